//! Provider behind a server, of any kind: the part of a call that is the same for all of them.
//!
//! ```text
//! run ─▶ check ─▶ render ─▶ headers, sign ─▶ Transport::send ─┬─ no answer ─▶ proof::of_send_error
//!                                                             ├─ 200 ───────▶ response::receive
//!                                                             └─ other ─────▶ read_error ─▶ judge
//! ```
//!
//! A request is checked for every candidate, and translated once. A claim checks it before its key is bound,
//! and again for each route that it tries; so a check walks the request, looks its fields up in a table
//! ([`refusals`](crate::refusals)) and builds no body. A body that was made by the first check and kept for
//! `run` would be the wrong one for another provider, would lack the states of earlier calls, which are read
//! after the claim, and would hold every picture of the request twice while it waits for its turn. `run` checks
//! once more: rendering relies on it, and an unsupported field is never sent, for any caller.
//!
//! A failure is judged by what is proven about the run, never by what is likely. Two rules stand
//! here because they hold for every kind: a 200 alone is read as an answer, and a "not run" from an
//! answer that a relaying proxy may have written is lowered to "unknown".
//!
//! Never: a call that is sent twice, or a word of an error's body outside of `proof`, but in the note that `proof`
//! has filtered. A kind's
//! headers, addresses and signature come through `adapter`; none is named here.
//!
//! Limits: an error's body is read up to `ERROR_BYTES_MAX` and for `ERROR_TIME_MAX`, answers and
//! events up to `ServerOptions::response_bytes_max` and `event_bytes_max`. The time of a whole call
//! is its caller's, who drops the future.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::ports::{
    Call, CallFailure, Cause, ConnectionCounts, NotRunProof, Provider, ResponseMode, Sink,
    UnknownReason, UnsupportedParam,
};
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::upstream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use tokio::time::Instant;

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, SignableRequest};
use crate::images::ImagePolicy;
use crate::kinds::HttpOptions;
use crate::proof;
use crate::response::{SizeLimits, receive};
use crate::retry_info;
use crate::server::{KeyHeader, UpstreamKey};
use crate::stream_decoder::StreamDecoder;
use holdfast_net::requests_pause;
use holdfast_net::{BadOptions, BaseUrl, tls};
use holdfast_net::{Transport, UpstreamResponse};

/// Length and time within which an error's body is read. A body that is longer or later counts as
/// empty: the status alone proves less, never more.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const ERROR_TIME_MAX: Duration = Duration::from_secs(2);

/// Probe without an answer: the host was not resolved or not connected, or spoke no TLS or no HTTP.
#[derive(Debug, thiserror::Error)]
#[error("there is no answer")]
pub struct ProbeError(#[source] Cause);

/// Provider behind a server.
#[derive(Debug)]
pub struct HttpProvider {
    adapter: Arc<dyn Adapter>,
    transport: Transport,
    headers: HeaderMap,
    has_credential: bool,
    base_url: BaseUrl,
    /// Address of calls, if all have the same.
    address: Option<Uri>,
    list: Uri,
    /// Header in which calls have their keys, if they have any.
    key_header: Option<HeaderName>,
    pictures: ImagePolicy,
    lengths: SizeLimits,
}

impl HttpProvider {
    /// A client that has not connected yet. Reads the platform's root certificates.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] if there is none with these options.
    pub fn new(HttpOptions { server, kind }: HttpOptions) -> Result<Self, BadOptions> {
        let adapter = kind.into_adapter();
        let has_credential = server.api_key.is_some() || adapter.signs();
        let json = HeaderValue::from_static("application/json");
        let agent = concat!("holdfast/", env!("CARGO_PKG_VERSION"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        headers.extend(adapter.header());
        if let Some(UpstreamKey { plain, bearer }) = server.api_key {
            match adapter.credential() {
                CredentialHeader::Bearer => headers.insert(AUTHORIZATION, bearer),
                CredentialHeader::In(name) => headers.insert(name, plain),
            };
        }
        let address = match adapter.path("", ResponseMode::Whole) {
            Cow::Borrowed(path) => Some(server.base_url.join(path)?),
            Cow::Owned(_) => None,
        };
        Ok(Self {
            list: adapter.list(&server.base_url)?,
            key_header: adapter.key_header().or(server.key_header.map(|KeyHeader(name)| name)),
            adapter,
            transport: Transport::new(tls(server.extra_roots)?, server.proxies, server.pool_idle),
            headers,
            has_credential,
            base_url: server.base_url,
            address,
            pictures: ImagePolicy { urls: server.image_urls, own: server.own_addresses },
            lengths: SizeLimits {
                whole_max: server.response_bytes_max,
                event_max: server.event_bytes_max,
            },
        })
    }

    /// True if requests prove their sender, by a key or a signature.
    #[must_use]
    pub const fn has_credential(&self) -> bool {
        self.has_credential
    }

    /// Requests the list of models, which runs none, and returns the status of the answer. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] if there was no answer.
    pub async fn probe(&self) -> Result<StatusCode, ProbeError> {
        let headers = self.headers_of(&Method::GET, &self.list, b"");
        self.transport.get(self.list.clone(), headers).await.map_err(ProbeError)
    }

    /// Body that a call sends, without a network: for measurements.
    ///
    /// # Errors
    ///
    /// The first field that the provider does not support.
    pub fn render(&self, call: &Call) -> Result<Vec<u8>, UnsupportedParam> {
        self.check_supported(&call.request)?;
        Ok(self.adapter.render(call))
    }

    /// Reads the body of a success that came whole, without a network, and passes its content to the sink.
    /// Returns the usage as reported; `None` without a report.
    ///
    /// # Errors
    ///
    /// What is known of a call whose answer is none.
    pub fn read_whole(
        &self,
        body: &[u8],
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        self.adapter.deliver(body, call, sink).map_err(proof::unreadable)
    }

    /// Reads a success that comes in these pieces, which may be cut anywhere, and passes their content to the
    /// sink as it comes. Returns the usage as reported.
    ///
    /// # Errors
    ///
    /// What is known of a call whose answer is none, or breaks off before its end.
    pub fn read_stream<'p>(
        &self,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        let mut following = StreamDecoder::new(&*self.adapter, call, self.lengths.event_max);
        for piece in pieces {
            if following.feed(piece, sink).map_err(proof::unreadable)?.is_break() {
                break;
            }
        }
        following.end().map_err(proof::unreadable)
    }

    /// The headers of one request, as of now.
    fn headers_of(&self, method: &Method, uri: &Uri, body: &[u8]) -> HeaderMap {
        let mut headers = self.headers.clone();
        self.adapter.sign(&SignableRequest { method, uri, body }, &mut headers);
        headers
    }

    /// POST of a call's body with the current headers; `None` if the route's model makes no address. In a box:
    /// it goes from hand to hand.
    pub(crate) fn request(&self, call: &Call) -> Option<Box<Request<Vec<u8>>>> {
        let uri = match &self.address {
            Some(address) => address.clone(),
            None => self.base_url.join(&self.adapter.path(&call.model, call.response_mode)).ok()?,
        };
        let mut request = self.post(uri, self.adapter.render(call));
        if let (Some(name), Some(key)) = (&self.key_header, call.key) {
            let mut key = HeaderValue::try_from(key.to_string()).ok()?;
            // New with each call: HTTP/2 would keep it in its table for nothing.
            key.set_sensitive(true);
            request.headers_mut().insert(name, key);
        }
        Some(request)
    }

    /// POST of an empty object, which no server runs, to the address of calls, without a key; `None` if each
    /// model has an address of its own.
    pub(crate) fn post_without_key(&self) -> Option<Box<Request<Vec<u8>>>> {
        Some(self.post(self.address.clone()?, b"{}".to_vec()))
    }

    /// POST without a body to a path below the base URL, with the current headers; `None` if the two make no
    /// address.
    pub(crate) fn post_empty(&self, path: &str) -> Option<Box<Request<Vec<u8>>>> {
        Some(self.post(self.base_url.join(path).ok()?, Vec::new()))
    }

    fn post(&self, uri: Uri, body: Vec<u8>) -> Box<Request<Vec<u8>>> {
        let headers = self.headers_of(&Method::POST, &uri, &body);
        let mut request = Box::new(Request::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
    }

    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(crate) const fn lengths(&self) -> SizeLimits {
        self.lengths
    }

    /// Judges an answer that is no success, after it has passed on the pause that the server requests.
    async fn judge(
        &self,
        (call, sent_bytes): (&Call, usize),
        reply: UpstreamResponse,
        sink: &mut dyn Sink,
    ) -> (StatusCode, CallFailure) {
        let (status, is_relayed) = (reply.status, reply.is_relayed);
        let of_head = reply.retry_after.filter(|_| requests_pause(status));
        if let Some(time) = of_head {
            // Before the body is read: a body that does not come must not keep this back.
            sink.on_retry_after(time);
        }
        let rejected = read_error(reply).await;
        if of_head.is_none_or(|time| time.is_zero())
            && requests_pause(status)
            && let Some(time) = retry_info::pause(&rejected.body)
        {
            sink.on_retry_after(time);
        }
        if let Some(field) = upstream::read_error(&rejected.body).field() {
            sink.on_rejected_field(field);
        }
        let failure = match self.adapter.judge(&rejected) {
            // The server may have run what a proxy then kept back.
            CallFailure::NotRun(_) if is_relayed => CallFailure::Unknown(UnknownReason::Status),
            failure @ (CallFailure::NotRun(_)
            | CallFailure::Refused(_)
            | CallFailure::Unknown(_)) => failure,
        };
        // Kept by no row: a caller's mistake is not the route's.
        if let CallFailure::Refused(_) = failure {
            return (status, failure);
        }
        // Rendered once more, because only failures need it: a body that went out is not kept.
        let is_short = sent_bytes <= proof::SENT_BYTES_MAX;
        let sent = if is_short { self.request(call) } else { None };
        let note = match sent {
            Some(sent) => proof::failure_note(rejected, &sent.map(Bytes::from)).await,
            None => proof::note_of_status(status),
        };
        sink.on_failure_note(note);
        (status, failure)
    }
}

#[async_trait]
impl Provider for HttpProvider {
    fn check_supported(
        &self,
        request: &holdfast_domain::request::Request,
    ) -> Result<(), UnsupportedParam> {
        self.pictures.check(request)?;
        self.adapter.check(request)
    }

    fn added_prompt_bytes(&self, request: &holdfast_domain::request::Request) -> u64 {
        self.adapter.added_prompt_bytes(request)
    }

    fn state_shape(&self) -> Option<&'static str> {
        self.adapter.state_shape()
    }

    fn semantic_name(&self) -> &'static str {
        self.adapter.semantic_name()
    }

    fn takes_key(&self) -> bool {
        self.key_header.is_some()
    }

    fn connections(&self) -> Option<ConnectionCounts> {
        Some(self.transport.connections())
    }

    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        // Who claims asks first, so neither happens; and if it did, nothing was sent.
        self.check_supported(&call.request)
            .map_err(|_unsupported| CallFailure::NotRun(NotRunProof::Account))?;
        let request = self.request(call).ok_or(CallFailure::NotRun(NotRunProof::Account))?;
        let (begun, sent_bytes) = (Instant::now(), request.body().len());
        let error_header = self.adapter.error_header();
        let sent = self
            .transport
            .send(request, call.connect, error_header.as_ref(), &mut || sink.on_send())
            .await;
        let (status, outcome) = match sent {
            Err(cause) => {
                sink.on_failure_note(proof::note_of_send_error(cause));
                (None, Err(proof::of_send_error(cause)))
            }
            Ok(reply) if reply.status == StatusCode::OK => {
                let received = receive(&self.adapter, reply, self.lengths, call, sink).await;
                (Some(StatusCode::OK), received)
            }
            Ok(reply) => {
                // In a box, as what few calls come to: every call would have room for it.
                let (status, failure) = Box::pin(self.judge((call, sent_bytes), reply, sink)).await;
                (Some(status), Err(failure))
            }
        };
        tracing::debug!(
            class = outcome.as_ref().map_or_else(CallFailure::label, |_| "answered"),
            status = status.map(|status| status.as_u16()),
            latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "provider call ended"
        );
        outcome
    }
}

/// Reads an answer that is no success.
pub(crate) async fn read_error(reply: UpstreamResponse) -> ErrorResponse {
    let kind = reply.kind.as_ref().and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let status = reply.status;
    let mut uncounted = |_bytes| {};
    let body = reply.read(ERROR_BYTES_MAX, &mut uncounted);
    let body = match tokio::time::timeout(ERROR_TIME_MAX, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    ErrorResponse { status, kind, body }
}
