//! Requests, read strictly: every rejection is an error of this API, never a library's plain text.
//!
//! ```text
//! gate ─ principal ─▶ Id (path) ─▶ Params (query) | Change (headers, query, body) ─▶ handler
//! ```
//!
//! [`Change`] is what every mutation takes: the `Idempotency-Key`, the parsed body and a digest of
//! method, path, query and that body. The same key with another digest is another request. The
//! digest is made of what was understood, so that blanks and the order of members don't matter. Its
//! spelling is frozen; another version compares the digest of the canonical form ([`crate::canonical`]).
//!
//! Limits: a body has 1 MiB and 10 seconds.

use std::time::Duration;

use axum::extract::{
    FromRef, FromRequest, FromRequestParts, OriginalUri, RawPathParams, Request as HttpRequest,
};
use bytes::Bytes;
use holdfast_accounts::{Accounts, Principal, Reason, Request};
use holdfast_domain::text::{is_seen, printable};
use holdfast_domain::{CommandKey, ErrorChain};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, IF_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::canonical::canonical_json;
use crate::error::{Code, Problem};
use crate::gate::Gate;
use crate::value::parse_some;
use crate::value::schema::ReasonText;

/// Largest body, in bytes.
pub(crate) const BODY_MAX: usize = 1 << 20;
// From the gate on the request has one of its key's places: a body that trickles would keep it.
/// Time for a body from the end of its head to its last byte.
const BODY_TIME: Duration = Duration::from_secs(10);

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Caller of an endpoint: the principal that the gate has authenticated, and the resource that its path names.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) gate: Gate,
    pub(crate) principal: Principal,
    id: Option<Uuid>,
}

impl Caller {
    pub(crate) const fn accounts(&self) -> &Accounts {
        &self.gate.accounts
    }

    /// The first id in the path.
    pub(crate) fn id<T: From<Uuid>>(&self) -> Result<T, Problem> {
        self.id.map(T::from).ok_or_else(|| Problem::new(Code::NotFound))
    }
}

impl FromRequestParts<Gate> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gate: &Gate) -> Result<Self, Problem> {
        // A route outside the gate is a mistake of the router: refused, never let in.
        let principal: Option<Principal> = parts.extensions.get().cloned();
        let principal = principal.ok_or_else(|| Problem::new(Code::InvalidAdminKey))?;
        // A text that is not an id matches no resource.
        let missing = |_| Problem::new(Code::NotFound);
        let segments = RawPathParams::from_request_parts(parts, gate).await.map_err(missing)?;
        let id = segments.iter().find_map(|(_name, id)| Uuid::try_parse(id).ok());
        if id.is_none() && segments.iter().next().is_some() {
            return Err(Problem::new(Code::NotFound));
        }
        Ok(Self { gate: gate.clone(), principal, id })
    }
}

/// Parameters of a query. An unknown one is refused: a misspelled filter would show everything.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        read_query(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Reads the parameters of a query.
pub(crate) fn read_query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let pairs = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(pairs).map_err(|error| {
        let param = named(&error.path().to_string(), error.inner());
        Problem::invalid(param, format!("The query cannot be read: {}.", error.inner()))
    })
}

/// The member that an error is about: its path, or the name that an unknown or missing one has.
fn named(path: &str, error: &impl std::fmt::Display) -> String {
    let message = error.to_string();
    let quoted = message.split('`').nth(1).filter(|_name| message.contains(" field `"));
    match (path, quoted) {
        (".", Some(name)) => name.to_owned(),
        (".", None) => "body".to_owned(),
        (path, _) => path.to_owned(),
    }
}

/// Body of a change.
pub(crate) trait ChangeBody: DeserializeOwned + Serialize + Send {
    /// True if `?dry_run=true` is accepted.
    const DRY_RUN: bool = false;
    /// True if `?after_restore=true` is accepted: the change is refused within the window of a restore without it.
    const AFTER_RESTORE: bool = false;
    /// Members that identify a person. No digest covers them, because digests outlive an erasure.
    const PRIVATE: &'static [&'static str] = &[];
    /// Members of which null is a value, and not absence: in an edit it removes.
    const NULLABLE: &'static [&'static str] = &[];
}

/// A body with only a reason, or without one.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonBody {
    /// Reason of the change, for the audit log: 1 to 200 printable characters.
    #[schema(value_type = Option<ReasonText>)]
    pub(crate) reason: Option<String>,
}

impl ChangeBody for ReasonBody {}

/// Request of a change: its body, and what makes it safe to repeat.
#[derive(Debug)]
pub(crate) struct Change<T> {
    pub(crate) request: Request,
    pub(crate) body: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeQuery {
    dry_run: Option<bool>,
    after_restore: Option<bool>,
}

impl<S, T> FromRequest<S> for Change<T>
where
    S: Sync,
    T: ChangeBody,
    Accounts: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: HttpRequest, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        // The head before the body: a request without a key is refused before its megabyte is read.
        let key = request_key(&parts.headers)?;
        let query: ChangeQuery = read_query(parts.uri.query().unwrap_or_default())?;
        if query.dry_run.is_some() && !T::DRY_RUN {
            return Err(Problem::invalid("dry_run", "This request has no dry run."));
        }
        if query.after_restore.is_some() && !T::AFTER_RESTORE {
            let message = "No restore keeps this request from being done.";
            return Err(Problem::invalid("after_restore", message));
        }
        let bytes = read_body(&parts.headers, body).await?;
        let mut body: T = from_json(&bytes)?;
        let dry_run = query.dry_run.unwrap_or(false);
        let unwritten = |error: serde_json::Error| {
            tracing::error!(error = %ErrorChain(&error), "a request cannot be bound to its key");
            Problem::new(Code::InternalError)
        };
        // Bound by the body as it was sent and read, before `shown` replaces texts in it: the
        // repetition of an earlier version's request must have the digest that was stored then.
        let request = bound(key, &parts, dry_run, &body).map_err(unwritten)?;
        if let Some(shown) = shown(&bytes)
            && is_repetition(&Accounts::from_ref(state), &parts, &request).await?
        {
            body = from_json(&shown)?;
        }
        // Every body has the member under this name.
        let members = serde_json::to_value(&body).map_err(unwritten)?;
        let reason = members.get("reason").and_then(Value::as_str);
        let reason: Option<Reason> = parse_some("reason", reason)?;
        // Outside of the canonical digest: a repetition without it is the same request.
        let after_restore = query.after_restore.unwrap_or(false);
        Ok(Self { request: Request { reason, after_restore, ..request }, body })
    }
}

/// True if the request key is bound to this very request.
async fn is_repetition(
    accounts: &Accounts,
    parts: &Parts,
    request: &Request,
) -> Result<bool, Problem> {
    // No principal, no record of its keys: the extractor of the caller refuses the request.
    let Some(principal) = parts.extensions.get::<Principal>() else { return Ok(false) };
    let bound = accounts.request_record(principal, request.key).await?;
    Ok(bound.is_some_and(|record| record.is_of(&request.binding())))
}

/// The body with U+FFFD for each character that no text may contain; `None` if its texts are printable.
///
/// A version before that rule may have run the request: its repetition is answered from the request key, and of its
/// texts only the digest counts, which is computed from the body as it was sent.
fn shown(body: &[u8]) -> Option<Vec<u8>> {
    // JSON in ASCII without a `\u` escape has none of these characters: the usual body is not
    // parsed a second time.
    if body.is_ascii() && !body.windows(2).any(|pair| pair == b"\\u") {
        return None;
    }
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let mut is_changed = false;
    let mut rest = vec![&mut body];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) if printable(text).is_err() => {
                let seen = |it: char| it.is_control() || is_seen(it);
                *text = text.chars().map(|it| if seen(it) { it } else { '\u{fffd}' }).collect();
                is_changed = true;
            }
            Value::Array(values) => rest.extend(values),
            Value::Object(members) => rest.extend(members.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    is_changed.then(|| body.to_string().into_bytes())
}

/// The request of a body under a key, with its digests.
fn bound<T: ChangeBody>(
    key: CommandKey,
    parts: &Parts,
    dry_run: bool,
    body: &T,
) -> serde_json::Result<Request> {
    // The router has taken the prefix off the other one.
    let uri = parts.extensions.get().map_or(&parts.uri, |OriginalUri(uri)| uri);
    let [method, path] = [parts.method.as_str().as_bytes(), uri.path().as_bytes()];
    let query = uri.query().unwrap_or_default().as_bytes();
    let request = Request::new(key, &[method, path, query, &digested(body)?], None);
    // The canonical digest has the parsed query: the order and the spelling of parameters are not
    // part of a request's meaning. The older digest has the text, and is frozen.
    let query: &[u8] = if dry_run { b"dry_run=true" } else { b"" };
    let request = request.with_canonical(&[method, path, query, &canonical(body)?]);
    Ok(Request { dry_run, ..request })
}

/// Bytes of a body for its digest, without the members in `PRIVATE`. Frozen: nodes of the version before compare no
/// other bytes. A new member is skipped if it is absent.
fn digested<T: ChangeBody>(body: &T) -> serde_json::Result<Vec<u8>> {
    if T::PRIVATE.is_empty() {
        return serde_json::to_vec(body);
    }
    let mut members = serde_json::to_value(body)?;
    if let Some(members) = members.as_object_mut() {
        members.retain(|name, _| !T::PRIVATE.contains(&name.as_str()));
    }
    serde_json::to_vec(&members)
}

/// Bytes of a body for its canonical digest: its present members, without those in `PRIVATE`.
fn canonical<T: ChangeBody>(body: &T) -> serde_json::Result<Vec<u8>> {
    let members = serde_json::to_value(body)?;
    let Value::Object(members) = members else { return serde_json::to_vec(&members) };
    canonical_json(&members, |name, value| {
        T::PRIVATE.contains(&name) || (value.is_null() && !T::NULLABLE.contains(&name))
    })
}

/// The one `Idempotency-Key`, in its one spelling: two spellings of one key would be two requests.
fn request_key(headers: &HeaderMap) -> Result<CommandKey, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Err(Problem::new(Code::IdempotencyKeyRequired)),
        (Some(_), Some(_)) => return Err(Problem::new(Code::IdempotencyKeyMalformed)),
        (Some(value), None) => value,
    };
    let text = value.to_str().unwrap_or_default();
    let id = Uuid::try_parse(text).ok();
    let canonical = id.filter(|id| id.as_hyphenated().to_string() == text);
    canonical.map(CommandKey::from).ok_or_else(|| Problem::new(Code::IdempotencyKeyMalformed))
}

/// Reads a JSON body. An empty body, or `null`, is an object without members.
async fn read_body(headers: &HeaderMap, body: axum::body::Body) -> Result<Bytes, Problem> {
    let nothing = Bytes::from_static(b"{}");
    // Read even if the media type is wrong: an empty body needs none, and only its end shows that
    // it is empty.
    let bytes = collect(body).await?;
    if bytes.is_empty() {
        return Ok(nothing);
    }
    if !is_json(headers) {
        return Err(Problem::new(Code::UnsupportedMediaType));
    }
    Ok(if bytes.trim_ascii() == b"null" { nothing } else { bytes })
}

async fn collect(body: axum::body::Body) -> Result<Bytes, Problem> {
    let collected = tokio::time::timeout(BODY_TIME, Limited::new(body, BODY_MAX).collect());
    match collected.await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::new(Code::RequestTooLarge))
        }
        // The client broke it off, or garbled its chunks: this answer may have no reader.
        Ok(Err(error)) => {
            tracing::debug!(%error, "the body of a request was not read");
            Err(Problem::new(Code::InvalidJson))
        }
        Err(_elapsed) => Err(Problem::new(Code::RequestTimeout)),
    }
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // serde would take the members of an object from an array too, by their places.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::new(Code::InvalidJson));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let inner = error.inner();
        if inner.is_data() {
            let param = named(&error.path().to_string(), inner);
            Problem::invalid(param, format!("The body is not valid: {inner}."))
        } else {
            Problem::with_message(Code::InvalidJson, format!("The body is not JSON: {inner}."))
        }
    })?;
    // A second value after the first would be in no digest: two different bodies would be one
    // request.
    json.end().map_err(|error| {
        Problem::with_message(
            Code::InvalidJson,
            format!("The body is not one JSON object: {error}."),
        )
    })?;
    Ok(read)
}

/// True for a body announced as JSON without compression.
fn is_json(headers: &HeaderMap) -> bool {
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let essence = types.next().and_then(|value| value.to_str().ok()?.split(';').next());
    let is_json =
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"));
    // A compressed body is refused and not decompressed: its bound would count the bytes on the
    // wire.
    is_json && types.next().is_none() && headers.get_all(CONTENT_ENCODING).iter().all(is_identity)
}

/// Number of edits in `If-Match`; `None` without a precondition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IfMatch(pub(crate) Option<u32>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(IF_MATCH).iter();
        let (value, others) = (values.next(), values.next());
        let text = match (value, others) {
            (None, _) => return Ok(Self(None)),
            (Some(value), None) => value.to_str().unwrap_or_default(),
            // Two headers are a malformed precondition: an edit is based on one revision.
            (Some(_), Some(_)) => "",
        };
        if text == "*" {
            return Ok(Self(None));
        }
        let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let number = number.and_then(|number| number.parse().ok());
        number.map(|number| Self(Some(number))).ok_or_else(|| {
            Problem::invalid("If-Match", "Send the `ETag` that you were shown, like \"3\", or *.")
        })
    }
}

#[cfg(test)]
mod tests;
