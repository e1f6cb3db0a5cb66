//! The playground: a request with its request key in sight, sent as the bearer of a pasted API key.
//!
//! ```text
//! form ─▶ POST /playground ───────────▶ the answer as JSON, whole, on the page   (without a script)
//! script ─▶ POST /playground/stream ──▶ the answer of the public API, as it comes
//!        └▶ POST /playground/operation ▶ what became of the request key
//! ```
//!
//! Sent again under the same key, a request gets the same answer and is not charged again; while it runs, another
//! tab joins its stream.
//!
//! Never: the API key in an address, in a page, in a log, or anywhere after the answer. No part of the session goes
//! along with the request.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use holdfast_accounts::Place;
use holdfast_accounts::fields::members;
use holdfast_domain::private::Private;
use holdfast_domain::{Micros, OperationId, RequestKey};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::failure::{Failure, FieldRefusal, RequestRefusal};
use crate::kit::shell::PLAYGROUND;
use crate::kit::{
    Cell, Choice, ConsoleState, Facts, FieldKind, FormField, Notice, Page, SentFields, Snippet,
    Tone, Visit, money, read_form_within,
};
use crate::pages::parts::plain::PlainForm;
use crate::relay::bounded;
use crate::request_origin::RequestOrigin;

texts! { #[template(path = "pages/playground.txt")] PlaygroundText {
    Intro = "intro",
    Message = "message",
    Replayed = "replayed",
    Ran = "ran",
    Failed = "failed",
} }

const BEARER: &str = "api_key";
const MODEL: &str = "model";
const MESSAGE: &str = "message";
const REQUEST_KEY: &str = "request_key";

/// Most bytes of a message.
const MESSAGE_MAX: usize = 32 << 10;
/// Largest form, in bytes: each byte of a message may come as three, a line end as six, and there are other fields.
const FORM_MAX: usize = 6 * MESSAGE_MAX + (4 << 10);
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    Ok(plain_form(&visit, first_page())?.page())
}

fn first_page() -> Page {
    Page::new("Playground").intro(PlaygroundText::Intro.to_string())
}

/// The form, with a fresh request key.
fn plain_form(visit: &Visit, page: Page) -> Result<PlainForm, Failure> {
    let offered = visit.accounts().models(visit.principal())?;
    let models = offered.models.iter().map(|model| model.contract.model.to_string());
    let models: Vec<_> = models.map(|model| Choice::new(model.as_str(), model.as_str())).collect();
    let first = models.first().map(|model| model.value.clone()).unwrap_or_default();
    let key = Uuid::new_v4().to_string();
    Ok(PlainForm::new(page, PLAYGROUND, "Send")
        .field(FormField::of(&members::PASTED_KEY, FieldKind::Secret))
        .field(FormField::of(&members::MODEL, FieldKind::Select(models)).value(first))
        .field(
            FormField::of(&members::MESSAGE, FieldKind::Area)
                .value(PlaygroundText::Message.to_string()),
        )
        .field(FormField::text(&members::REQUEST_KEY).value(key)))
}

/// A request of the public API, as the form has it.
#[derive(Debug)]
struct PlaygroundRequest {
    bearer: HeaderValue,
    request_key: RequestKey,
    model: String,
    message: Private<String>,
}

impl PlaygroundRequest {
    fn read(fields: &SentFields) -> Result<Self, Failure> {
        let (bearer, request_key) = Self::identity(fields)?;
        // Browsers send the line ends of a text area as CRLF: no other client of the API would.
        let message = fields.raw(MESSAGE).replace("\r\n", "\n");
        if message.trim().is_empty() || message.len() > MESSAGE_MAX {
            return Err(Failure::field(MESSAGE, FieldRefusal::MessageLength));
        }
        let model = fields.get(MODEL).ok_or_else(|| Failure::field(MODEL, "Choose a model."))?;
        Ok(Self { bearer, request_key, model: model.to_owned(), message: Private(message) })
    }

    /// The API key and the request key alone.
    fn identity(fields: &SentFields) -> Result<(HeaderValue, RequestKey), Failure> {
        let bad = || Failure::field(BEARER, FieldRefusal::NotAnApiKey);
        let pasted = fields.get(BEARER).filter(|key| key.starts_with("hfk_"));
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", pasted.ok_or_else(bad)?))
            .map_err(|_bad| bad())?;
        // `Debug` of the request does not print it then.
        bearer.set_sensitive(true);
        Ok((bearer, fields.require(REQUEST_KEY)?))
    }

    /// The request, as a client of the public API would send it.
    fn completion(self, is_streamed: bool) -> Result<Request<Bytes>, Failure> {
        let Self { bearer, request_key, model, message: Private(message) } = self;
        let messages = json!([{ "role": "user", "content": message }]);
        let body = json!({ "model": model, "messages": messages, "stream": is_streamed });
        let key = HeaderValue::try_from(request_key.to_string());
        let request = of_bearer(Method::POST, "/v1/chat/completions", bearer)
            .header(CONTENT_TYPE, "application/json")
            .header(IDEMPOTENCY_KEY, key.map_err(|_never| Failure::not_found())?);
        request.body(body.to_string().into()).map_err(|_never| Failure::not_found())
    }
}

fn of_bearer(method: Method, path: &str, bearer: HeaderValue) -> http::request::Builder {
    let request = Request::builder().method(method).uri(path);
    request.header(HOST, "localhost").header(AUTHORIZATION, bearer)
}

/// An answer of the public API.
struct RelayedAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: BoxStream<'static, Bytes>,
}

impl RelayedAnswer {
    fn is_replayed(&self) -> bool {
        self.headers.get(REPLAYED).is_some_and(|value| value == "true")
    }

    /// The whole body, as far as it may come.
    async fn whole(mut self) -> Bytes {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.body.next().await {
            whole.extend_from_slice(&bytes);
        }
        whole.freeze()
    }
}

async fn relay(
    shared: &ConsoleState,
    client: IpAddr,
    request: Request<Bytes>,
) -> Result<RelayedAnswer, Failure> {
    let api = shared.options.playground.as_ref().ok_or_else(Failure::not_found)?;
    let answer = api.ask(request, client).await.map_err(|error| {
        tracing::warn!(%error, "a request of the playground was not answered");
        Failure::from(RequestRefusal::BrokenAnswer)
    })?;
    let (head, body) = answer.into_parts();
    Ok(RelayedAnswer { status: head.status, headers: head.headers, body: bounded(body) })
}

/// A place for an answer that may take long.
fn place(visit: &Visit) -> Result<Place, Failure> {
    let busy = || RequestRefusal::TooManyAnswers.into();
    visit.shared.relays.enter(visit.principal().actor).ok_or_else(busy)
}

/// Sends the form, and shows the whole answer.
pub(crate) async fn send(
    visit: Visit,
    request_origin: RequestOrigin,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let fields = read_form_within(&parts.headers, body, FORM_MAX).await?;
    let read = PlaygroundRequest::read(&fields);
    let asked = match read.and_then(|request| request.completion(false)) {
        Ok(asked) => asked,
        Err(failure) => {
            return Ok(plain_form(&visit, first_page())?.failed(&fields, failure).into_response());
        }
    };
    let _place = place(&visit)?;
    let answer = relay(&visit.shared, request_origin.client, asked).await?;
    let (status, is_replayed) = (answer.status, answer.is_replayed());
    let body = answer.whole().await;
    // After the last byte: before it the request may have no charge yet.
    let outcome = outcome(&visit, request_origin.client, &fields).await?;
    let mut page = first_page().action(true, "Another request key", PLAYGROUND);
    page = page.section(result(status, is_replayed)).section(facts(status, is_replayed, outcome));
    page = page.section(Snippet::new("Answer", pretty(&body)));
    let mut plain_form = plain_form(&visit, page)?;
    // With the request key that was sent, and not the fresh one: the answer is replayed, and
    // costs nothing more.
    plain_form.submit = "Send again";
    plain_form.fields = plain_form.fields.into_iter().map(|field| field.holding(&fields)).collect();
    Ok(plain_form.page().into_response())
}

/// Sends the form, and passes the answer on as it comes.
pub(crate) async fn stream(
    visit: Visit,
    request_origin: RequestOrigin,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let fields = match read_form_within(&parts.headers, body, FORM_MAX).await {
        Ok(fields) => fields,
        Err(failure) => return Ok(spoken(&failure)),
    };
    let read = PlaygroundRequest::read(&fields).and_then(|request| request.completion(true));
    let admitted = read.and_then(|asked| Ok((asked, place(&visit)?)));
    let (asked, place) = match admitted {
        Ok(admitted) => admitted,
        Err(failure) => return Ok(spoken(&failure)),
    };
    let answer = match relay(&visit.shared, request_origin.client, asked).await {
        Ok(answer) => answer,
        Err(failure) => return Ok(spoken(&failure)),
    };
    let mut head = Response::builder().status(answer.status);
    // Nothing else of its head is for this page.
    for name in [CONTENT_TYPE, REPLAYED, HeaderName::from_static("x-accel-buffering")] {
        if let Some(value) = answer.headers.get(&name) {
            head = head.header(name, value);
        }
    }
    let bytes = answer.body.map(move |bytes| {
        // Until the last of it is written.
        let _held = &place;
        Ok::<_, std::convert::Infallible>(bytes)
    });
    head.body(Body::from_stream(bytes)).map_err(|_never| Failure::not_found())
}

/// A failure in the words that the script shows.
fn spoken(failure: &Failure) -> Response {
    let body = json!({ "error": { "message": failure.message } }).to_string();
    let mut answer = (failure.status, [(CONTENT_TYPE, "application/json")], body).into_response();
    failure.put_retry_after(answer.headers_mut());
    answer
}

/// Outcome of a request key, for the script.
pub(crate) async fn operation(
    visit: Visit,
    request_origin: RequestOrigin,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let fields = read_form_within(&parts.headers, body, FORM_MAX).await?;
    let found = outcome(&visit, request_origin.client, &fields).await?;
    let found = found.map(|found| {
        json!({
            "id": found.id, "status": found.status, "charge": found.charge, "href": found.href,
        })
    });
    let body = found.unwrap_or(Value::Null).to_string();
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Outcome of a request key.
struct KeyOutcome {
    id: String,
    status: String,
    /// The charge of the operation, once there is one.
    charge: Option<String>,
    /// The operation's page, if the user may see it.
    href: Option<String>,
}

async fn outcome(
    visit: &Visit,
    client: IpAddr,
    fields: &SentFields,
) -> Result<Option<KeyOutcome>, Failure> {
    let Ok((bearer, request_key)) = PlaygroundRequest::identity(fields) else { return Ok(None) };
    let path = format!("/v1/operations/{request_key}");
    let asked = of_bearer(Method::GET, &path, bearer).body(Bytes::new());
    let answer =
        relay(&visit.shared, client, asked.map_err(|_never| Failure::not_found())?).await?;
    if answer.status != StatusCode::OK {
        return Ok(None);
    }
    let Ok(found) = serde_json::from_slice::<Value>(&answer.whole().await) else { return Ok(None) };
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = text("id");
    let charge = found.get("charge_micros").and_then(Value::as_i64).map(Micros::new);
    // The pasted key may be of a wallet that the visitor may not see: no link then.
    let seen = match id.parse::<OperationId>() {
        Ok(id) => visit.accounts().operation(visit.principal(), id).await.ok(),
        Err(_bad) => None,
    };
    let currency = seen.as_ref().map(|record| record.operation.price.currency);
    let charge = charge.map(|charge| match currency {
        Some(currency) => money(charge, currency),
        None => charge.to_string(),
    });
    let href = seen.map(|record| format!("/operations/{}", record.operation.id));
    Ok(Some(KeyOutcome { id, status: text("status"), charge, href }))
}

fn result(status: StatusCode, is_replayed: bool) -> Notice {
    let (tone, text) = match (is_replayed, status.is_success()) {
        (true, _) => (Tone::Good, PlaygroundText::Replayed),
        (false, true) => (Tone::Good, PlaygroundText::Ran),
        (false, false) => (Tone::Warning, PlaygroundText::Failed),
    };
    Notice::new(tone, text.to_string())
}

fn facts(status: StatusCode, is_replayed: bool, outcome: Option<KeyOutcome>) -> Facts {
    let mut rows = vec![
        ("Status", Cell::Number(status.as_u16().to_string())),
        ("idempotent-replayed", Cell::code(is_replayed)),
    ];
    if let Some(KeyOutcome { id, status, charge, href }) = outcome {
        rows.push(("Request", Cell::text(status)));
        rows.push(("It cost, once", charge.map_or(Cell::Nothing, Cell::Number)));
        rows.push(("Its id", Cell::code(id)));
        rows.extend(href.map(|href| ("Why", Cell::link("Charge breakdown", href))));
    }
    Facts::new("", rows)
}

/// JSON as people read it, and anything else as it is.
fn pretty(body: &Bytes) -> String {
    let value = serde_json::from_slice::<Value>(body);
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    pretty.unwrap_or_else(|_not_json| String::from_utf8_lossy(body).into_owned())
}
