//! Client of the administration's API: requests of the command line, sent in one of two ways.
//!
//! ```text
//! command ─▶ AdminClient::get, list, change ─┬─▶ InProcessClient    the API within this process, over the database
//!                                     └─▶ HttpClient  the API of a server, over HTTP
//! ```
//!
//! A command builds a request and shows the answer; it decides nothing. So it has the same meaning, the same
//! refusals and the same request key on both ways.
//!
//! | outcome of a change | reaction |
//! |---|---|
//! | an answer | it is shown |
//! | a refusal | shown, exit status 1, or 2 for an invalid value; no key was bound |
//! | no answer, or a temporary failure | sent again with the same request key, [`TRIES_MAX`] times in all |
//! | no connection that the key may be sent over | reported at once: another try would end in the same way |
//! | still none | the error names the `--key` to repeat the command with: it is done at most once |
//!
//! The request key is printed on standard error before it is sent, so that also a command that is killed can be
//! repeated.
//!
//! Never: a secret in an error. Answers have them, and are not quoted.

mod download;
mod failure;
mod local;
mod network;

use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use holdfast_accounts::{Reason, Reference};
use holdfast_config::Secret;
use holdfast_net::AdminUrl;
use http::{HeaderValue, Method, Request};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) use self::failure::AdminClientError;
pub(crate) use self::local::InProcessClient;
use self::network::HttpClient;
use crate::output::note;
use crate::view::with;

/// Beginning of every path.
const PREFIX: &str = "/admin/v1";
/// Most rows that a page has.
pub(crate) const PAGE_ROWS: usize = 200;
// One pause fewer than times: the last failure is reported, and not waited for.
/// Times that one request is sent, and the pause before each repetition.
const TRIES_MAX: u32 = 5;
const PAUSES: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// A client of the API of administration.
#[derive(Debug)]
pub(crate) enum AdminClient {
    /// Beside the database.
    Local(Box<InProcessClient>),
    /// Over the network.
    Network(Box<HttpClient>),
}

/// Change of a command.
#[derive(Debug)]
pub(crate) struct ChangeRequest {
    method: Method,
    path: String,
    body: Value,
    key: ChangeKey,
    dry_run: bool,
    after_restore: bool,
}

/// Request key of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeKey {
    pub(crate) id: Uuid,
    /// True if it was made here, and has to be printed.
    is_made: bool,
}

impl ChangeKey {
    /// A key that follows from another one, which was printed.
    pub(crate) const fn derived(id: Uuid) -> Self {
        Self { id, is_made: false }
    }

    /// Prints the key if it was generated here, ahead of its request.
    pub(crate) fn announced(self) -> Self {
        if self.is_made {
            note(&format!("key {}", self.id));
        }
        Self { is_made: false, ..self }
    }

    /// The key that was given, or one made here.
    pub(crate) fn new(given: Option<Uuid>) -> Self {
        Self { id: given.unwrap_or_else(Uuid::new_v4), is_made: given.is_none() }
    }
}

impl ChangeRequest {
    /// Creates a resource or acts on one: `POST`. The members of `body` that are null are left out.
    pub(crate) fn post(key: ChangeKey, path: impl Into<String>, body: Value) -> Self {
        let body = without_nulls(body);
        Self {
            method: Method::POST,
            path: path.into(),
            body,
            key,
            dry_run: false,
            after_restore: false,
        }
    }

    /// Edits a resource: `PATCH`. A member that is null removes its setting.
    pub(crate) fn patch(key: ChangeKey, path: impl Into<String>, body: Value) -> Self {
        let nothing = Self::post(key, path, json!({}));
        // The body is set after `post`, which leaves nulls out: in an edit null removes a setting.
        Self { method: Method::PATCH, body, ..nothing }
    }

    /// The same with a reason, if there is one.
    pub(crate) fn because(self, reason: Option<&Reason>) -> Self {
        let Some(reason) = reason else { return self };
        Self { body: with(self.body, "reason", reason.as_typed()), ..self }
    }

    /// The same, judged and not made.
    pub(crate) fn rehearsed(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// The same, made although a restored ledger may have lost that it was made before.
    pub(crate) fn after_restore(self, after_restore: bool) -> Self {
        Self { after_restore, ..self }
    }

    /// True if it is judged and not made.
    pub(crate) const fn is_rehearsal(&self) -> bool {
        self.dry_run
    }

    /// Request key that it is sent with.
    pub(crate) const fn key(&self) -> Uuid {
        self.key.id
    }
}

/// A resource as a change has left it.
pub(crate) struct ChangeOutcome {
    pub(crate) thing: Value,
    /// True if an earlier request made the change.
    pub(crate) replayed: bool,
}

/// Rows of a list.
pub(crate) struct ListRows {
    pub(crate) rows: Vec<Value>,
    /// True if the list has more.
    pub(crate) is_cut: bool,
}

/// Answer to one request: its status, what matters of its headers, its body.
struct ApiReply {
    status: u16,
    replayed: bool,
    /// True if the server's answer allows a repetition of the same request.
    is_temporary: bool,
    body: Bytes,
    /// Cause of a failure, which only the failed process knows.
    cause: Option<String>,
}

impl AdminClient {
    /// A client over the network.
    pub(crate) fn network(url: AdminUrl, key: &Secret) -> anyhow::Result<Self> {
        Ok(Self::Network(Box::new(HttpClient::new(url, key)?)))
    }

    /// Whole address of a link. A path, which the API answers without `admin.url`, is below the address of
    /// `--server`, or of the listener on this machine.
    pub(crate) fn whole(&self, link: &str) -> String {
        let origin = match self {
            Self::Network(client) => Some(client.url().to_string()),
            Self::Local(client) => client.origin(),
        };
        match origin {
            Some(origin) if link.starts_with('/') => format!("{origin}{link}"),
            Some(_) | None => link.to_owned(),
        }
    }

    /// Reads a resource: the path below `/admin/v1`, and the parameters of the query.
    pub(crate) async fn get(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Value, AdminClientError> {
        let request = || request(&Method::GET, path, query, &Bytes::new());
        let reply = self.send(request, None).await?;
        reply.read()
    }

    /// Reads the first rows of a list, page by page; all of them if there is no limit.
    pub(crate) async fn list(
        &self,
        path: &str,
        query: &[(&str, &str)],
        limit: Option<usize>,
    ) -> Result<ListRows, AdminClientError> {
        let (mut rows, mut cursor) = (Vec::new(), None::<String>);
        loop {
            // One more shows whether there are more.
            let left = limit.map_or(PAGE_ROWS, |limit| limit + 1 - rows.len());
            let count = left.min(PAGE_ROWS).to_string();
            let mut query = [query, &[("limit", count.as_str())]].concat();
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let mut page = self.get(path, &query).await?;
            let data = page.get_mut("data").and_then(Value::as_array_mut);
            rows.append(data.ok_or(AdminClientError::NotTheApi)?);
            if let Some(limit) = limit.filter(|limit| rows.len() > *limit) {
                rows.truncate(limit);
                return Ok(ListRows { rows, is_cut: true });
            }
            match page.get("next_cursor").and_then(Value::as_str) {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(ListRows { rows, is_cut: false }),
            }
        }
    }

    /// The resources of this id or name among those of a path; several only if names are unique within a wallet.
    pub(crate) async fn named(
        &self,
        path: &str,
        reference: &Reference,
    ) -> Result<Vec<Value>, AdminClientError> {
        match reference {
            Reference::Id(id) => match self.get(&format!("{path}/{id}"), &[]).await {
                Ok(thing) => Ok(vec![thing]),
                Err(missing) if missing.is("not_found") => Ok(Vec::new()),
                Err(error) => Err(error),
            },
            Reference::Name(name) => {
                Ok(self.list(path, &[("name", name.as_str())], None).await?.rows)
            }
        }
    }

    /// Sends a change, and repeats it with the same request key if the answer is lost.
    pub(crate) async fn change(
        &self,
        change: &ChangeRequest,
    ) -> Result<ChangeOutcome, AdminClientError> {
        change.key.announced();
        let ChangeRequest { method, path, key, .. } = change;
        // Written once for all repetitions: the server compares the digest of what it reads under
        // one key.
        let body = Bytes::from(change.body.to_string());
        let flags = [("dry_run", change.dry_run), ("after_restore", change.after_restore)];
        let set = flags.into_iter().filter(|(_name, is_set)| *is_set);
        let query: &[_] = &set.map(|(name, _is_set)| (name, "true")).collect::<Vec<_>>();
        let request = || {
            let mut request = request(method, path, query, &body)?;
            let key = HeaderValue::try_from(key.id.to_string())?;
            request.headers_mut().insert("idempotency-key", key);
            Ok(request)
        };
        let reply = self.send(request, Some(key.id)).await?;
        let replayed = reply.replayed;
        let mut thing = reply.read()?;
        // The result of a dry run has the form of a change: the command notes that it changed nothing.
        let would = if change.dry_run { thing.get_mut("would").map(Value::take) } else { None };
        Ok(ChangeOutcome { thing: would.unwrap_or(thing), replayed })
    }

    /// Sends a request until there is an answer that another try would not change.
    async fn send(
        &self,
        request: impl Fn() -> Result<Request<Bytes>, http::Error>,
        key: Option<Uuid>,
    ) -> Result<ApiReply, AdminClientError> {
        // Never reset: after one lost answer a later connection that is refused proves nothing
        // about the first request, and "nothing was done" would lead the operator to do it again
        // under another key.
        let mut may_be_done = false;
        let mut pauses = PAUSES.into_iter();
        for _try in 0..TRIES_MAX {
            let request = request().map_err(|error| AdminClientError::Unsent(error.into()))?;
            let failure = match self {
                // Its store has tried for long enough.
                Self::Local(client) => return client.send(request).await,
                Self::Network(client) => match client.send(request).await {
                    Ok(reply) if reply.is_from_between() => {
                        may_be_done = true;
                        AdminClientError::Lost(anyhow!(
                            "a proxy in between answered {}",
                            reply.status
                        ))
                    }
                    // By the server's own header and not by the status: of the refusals with one
                    // status some are the same at each repetition.
                    Ok(reply) if !reply.is_temporary => return Ok(reply),
                    Ok(reply) => {
                        may_be_done |= reply.is_outcome_unknown();
                        reply.error()
                    }
                    Err(error) => {
                        may_be_done |= matches!(error, AdminClientError::Lost { .. });
                        error
                    }
                },
            };
            // A refused certificate or address is the same at the next try: waiting would only hide
            // the remedy.
            let pause = if failure.is_final() { None } else { pauses.next() };
            let Some(pause) = pause else {
                return Err(match key.filter(|_key| may_be_done) {
                    Some(key) => AdminClientError::Uncertain { key, why: Box::new(failure) },
                    None => failure,
                });
            };
            tokio::time::sleep(pause).await;
        }
        // Not reached: the pauses end before the times do.
        Err(AdminClientError::NotTheApi)
    }
}

/// A request of the API.
fn request(
    method: &Method,
    path: &str,
    query: &[(&str, &str)],
    body: &Bytes,
) -> Result<Request<Bytes>, http::Error> {
    let mut uri = format!("{PREFIX}{path}");
    if !query.is_empty() {
        let pairs = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        uri = format!("{uri}?{pairs}");
    }
    let request = Request::builder().method(method).uri(uri);
    let request =
        if body.is_empty() { request } else { request.header("content-type", "application/json") };
    request.body(body.clone())
}

fn without_nulls(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_name, value| !value.is_null());
    }
    body
}
