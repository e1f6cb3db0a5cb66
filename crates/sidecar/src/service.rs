//! A request of a client: passed on, or as a completion given its key and healed.
//!
//! ```text
//! request ─┬─ of another host or page ────▶ refused, unread
//!          ├─ /sidecar/… ─────────────────▶ answered here
//!          ├─ no completion ──────────────▶ passed on
//!          └─ completion ─┬─ its own key ─▶ Call (healed, without a slot)
//!                         └─ none ────────▶ SlotRegistry::admit ─▶ Call ─┬─ Whole
//!                                                                        └─ ResumedStream
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use holdfast_net::{PassedAnswer, PassedFailure, ServerClient};
use holdfast_wire::error::Code;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName,
    HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attendance::{Attendance, NoSlot, SlotRegistry};
use crate::body::{CallerBody, KEEP_ALIVE, PassedBody, ResumedBody};
use crate::budget::{BYTES_MAX, ByteBudget};
use crate::call::{CONNECT, Call, CallAnswer, GuardedBytes, WholeAnswer};
use crate::guard::{Guard, GuardRefusal};
use crate::health::{Health, OwnPage, RequestKind};
use crate::retry_budget::RetryBudget;
use crate::socket::CallerState;
use crate::stream::{ResumedStream, StreamPart};
use crate::table::{BodyDigest, CallEnd};
use crate::upstream::{IDEMPOTENCY_KEY, UpstreamUrl, answer_headers, is_completion, n_choices};
use crate::{HangUpPolicy, upstream};

/// Time for a body from the end of its head to its last byte.
const BODY_TIME: Duration = Duration::from_secs(60);
/// Time for the gateway to take a cancellation.
const CANCEL_TIME: Duration = Duration::from_secs(10);
/// SDKs mark their retries with this: 0 is the first try.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
/// Context of the keys of body digests.
const DIGEST: &str = "holdfast 2026-11 sidecar body v1";

pub(crate) type CallerResponse = Response<CallerBody>;

/// Everything that requests share.
pub(crate) struct Service {
    pub(crate) upstream: UpstreamUrl,
    pub(crate) client: Arc<ServerClient>,
    pub(crate) guard: Guard,
    pub(crate) health: Arc<Health>,
    pub(crate) registry: Arc<SlotRegistry>,
    pub(crate) patience: Duration,
    pub(crate) hang_up: HangUpPolicy,
    pub(crate) requests: ByteBudget,
    pub(crate) answers: ByteBudget,
    /// Cancellations under way.
    pub(crate) tasks: TaskTracker,
    /// Cut of the connections that outlast the end of the process: no client has hung up there.
    pub(crate) cut: CancellationToken,
}

/// The client of a connection.
#[derive(Debug, Clone)]
pub(crate) struct LocalCaller {
    pub(crate) socket: Arc<TcpStream>,
    pub(crate) state: Arc<CallerState>,
    /// Address of the listener that it reached.
    pub(crate) local: SocketAddr,
}

impl Service {
    /// Answers one request. Dropped if its client hangs up: its slot is then orphaned.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        caller: LocalCaller,
    ) -> CallerResponse {
        caller.state.begin();
        let (head, body) = request.into_parts();
        // Before the own pages too: a page of another origin must not read the health or the
        // metrics.
        let terms = match self.guard.judge(&head, caller.local) {
            Ok(terms) => terms,
            Err(refusal) => {
                self.health.count(RequestKind::Refused);
                return refused(refusal, &caller);
            }
        };
        let mut answer = if let Some(headers) = terms.preflight(&head) {
            respond(StatusCode::NO_CONTENT, headers, Bytes::new(), &caller)
        } else if let Some(page) = OwnPage::of(head.uri.path()) {
            self.own_page(page, &head.method, &caller)
        } else {
            self.answer_gateway(head, body, caller).await
        };
        terms.put(answer.headers_mut());
        answer
    }

    /// Answers one request on a connection beyond the limits, which closes with its answer.
    pub(crate) async fn answer_beyond_limit(
        &self,
        request: Request<Incoming>,
        caller: LocalCaller,
    ) -> CallerResponse {
        let is_probe = OwnPage::of(request.uri().path()) == Some(OwnPage::Health);
        let mut answer = if is_probe {
            self.answer(request, caller).await
        } else {
            self.health.count(RequestKind::Refused);
            own(Code::Overloaded, &caller)
        };
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        answer
    }

    /// A page of the sidecar itself.
    fn own_page(&self, page: OwnPage, method: &Method, caller: &LocalCaller) -> CallerResponse {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return own(Code::MethodNotAllowed, caller);
        }
        let (content_type, body) = match page {
            OwnPage::Health => ("application/json", self.health.render_health()),
            OwnPage::Metrics => {
                ("text/plain; version=0.0.4", self.health.render_metrics(self.registry.count()))
            }
            OwnPage::Unknown => return own(Code::NotFound, caller),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        respond(StatusCode::OK, headers, body.into(), caller)
    }

    async fn answer_gateway(
        &self,
        head: Parts,
        body: Incoming,
        caller: LocalCaller,
    ) -> CallerResponse {
        // The caller's timeout runs from its request: the time to read the body counts against it.
        let since = Instant::now();
        let Some(uri) = self.upstream.uri(&head.uri) else {
            return own(Code::NotFound, &caller);
        };
        let body = match self.read(body).await {
            Ok(body) => body,
            Err(code) => return own(code, &caller),
        };
        if !is_completion(&head.method, &head.uri) {
            self.health.count(RequestKind::Passed);
            return self.pass(head, uri, body, &caller).await;
        }
        self.health.count(RequestKind::Completion);
        let mut headers = upstream::completion_headers(&head.headers);
        let mut attendance = None;
        if !headers.contains_key(IDEMPOTENCY_KEY) {
            match self.admit(&head, &body, &caller).await {
                Ok(admitted) => {
                    // The text of a UUID is always a valid header value: no completion goes out
                    // without a key.
                    if let Ok(key) = HeaderValue::try_from(admitted.key().to_string()) {
                        headers.insert(IDEMPOTENCY_KEY, key);
                    }
                    attendance = Some(admitted);
                }
                Err(NoSlot::Full) => return own(Code::Overloaded, &caller),
                Err(NoSlot::NotWritten) => return own(Code::StorageUnavailable, &caller),
            }
        }
        let call = Call {
            client: Arc::clone(&self.client),
            health: Arc::clone(&self.health),
            answers: self.answers.clone(),
            uri,
            retry_budget: RetryBudget::new(&headers, self.patience, since),
            headers,
            body,
            attendance,
            refused: None,
        };
        Box::pin(complete(call, caller)).await
    }

    async fn admit(
        &self,
        head: &Parts,
        body: &Bytes,
        caller: &LocalCaller,
    ) -> Result<Attendance, NoSlot> {
        let digest = self.digest(head, body);
        let retries = head.headers.get(RETRY_COUNT).and_then(|it| it.to_str().ok());
        let is_retry =
            retries.and_then(|it| it.trim().parse::<u64>().ok()).is_some_and(|it| it > 0);
        let mut attendance = self.registry.admit(digest, is_retry, &caller.socket).await?;
        match self.hang_up {
            HangUpPolicy::Run => {}
            HangUpPolicy::Cancel => {
                let credential = head.headers.get(AUTHORIZATION).cloned();
                self.cancel_on_hang_up(&mut attendance, credential);
            }
        }
        Ok(attendance)
    }

    /// Digest of a call, keyed by its credential: a stolen journal confirms no guessed prompt.
    fn digest(&self, head: &Parts, body: &[u8]) -> BodyDigest {
        let mut key = blake3::Hasher::new_derive_key(DIGEST);
        for credential in head.headers.get_all(AUTHORIZATION) {
            feed(&mut key, credential.as_bytes());
        }
        let mut digest = blake3::Hasher::new_keyed(key.finalize().as_bytes());
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        for part in [self.upstream.text().as_bytes(), target.as_bytes(), body] {
            feed(&mut digest, part);
        }
        BodyDigest(*digest.finalize().as_bytes())
    }

    fn cancel_on_hang_up(&self, attendance: &mut Attendance, credential: Option<HeaderValue>) {
        let Some(uri) = self.upstream.cancel(attendance.key()) else { return };
        let (client, tasks) = (Arc::clone(&self.client), self.tasks.clone());
        let cut = self.cut.clone();
        attendance.on_hang_up(Box::new(move || {
            if cut.is_cancelled() {
                return;
            }
            // On the process's tracker: the connection's own task ends with its client.
            tasks.spawn(async move {
                let mut request = Request::new(Bytes::new());
                *request.method_mut() = Method::POST;
                *request.uri_mut() = uri;
                request.headers_mut().extend(credential.map(|it| (AUTHORIZATION, it)));
                let sent = timeout(CANCEL_TIME, client.send(request, CONNECT)).await;
                if !matches!(sent, Ok(Ok(_))) {
                    tracing::warn!("a call whose client hung up was not cancelled");
                }
            });
        }));
    }

    /// Reads a body whole: it may have to be sent again.
    async fn read(&self, mut body: Incoming) -> Result<Bytes, Code> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > BYTES_MAX {
            return Err(Code::RequestTooLarge);
        }
        let reading = async {
            let mut kept = Some((BytesMut::new(), self.requests.reserve()));
            let mut length: usize = 0;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_broken| Code::RequestTimeout)?;
                let Ok(data) = frame.into_data() else { continue };
                length = length.saturating_add(data.len());
                if length > BYTES_MAX {
                    return Err(Code::RequestTooLarge);
                }
                // What has no room is read to its end all the same: a client that is answered while it
                // sends may see a broken connection instead.
                if let Some((read, reservation)) = &mut kept {
                    if reservation.grow(data.len()) {
                        read.extend_from_slice(&data);
                    } else {
                        kept = None;
                    }
                }
            }
            kept.ok_or(Code::Overloaded)
        };
        let read = timeout(BODY_TIME, reading).await.unwrap_or(Err(Code::RequestTimeout));
        let (read, reservation) = read?;
        Ok(Bytes::from_owner(GuardedBytes { bytes: read.freeze(), _reservation: reservation }))
    }

    /// Passes a request on that is no completion, once.
    async fn pass(
        &self,
        head: Parts,
        uri: Uri,
        body: Bytes,
        caller: &LocalCaller,
    ) -> CallerResponse {
        let mut request = Request::new(body);
        *request.method_mut() = head.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = upstream::request_headers(&head.headers);
        match self.health.note(Box::pin(self.client.send(request, CONNECT)).await) {
            Ok(answer) => passed(Bytes::new(), answer, None),
            Err(PassedFailure::Unsent | PassedFailure::Broken) => {
                own(Code::GatewayUnreachable, caller)
            }
        }
    }
}

/// Sends a completion, and answers with its result.
async fn complete(mut call: Call, caller: LocalCaller) -> CallerResponse {
    let answer = match call.send().await {
        CallAnswer::Whole(answer) => return whole(answer, call.attendance, &caller),
        CallAnswer::Long(beginning, rest) => {
            let leaving = call.attendance.map(|mut attendance| {
                // The end of the body is not read here: an error that is passed on proves nothing
                // about the key, and its slot must stay for the retry.
                let is_success = rest.status.is_success();
                attendance.set_end(if is_success { CallEnd::Delivered } else { CallEnd::Unsure });
                (caller.state, attendance)
            });
            return passed(beginning, rest, leaving);
        }
        CallAnswer::Stream(answer) => answer,
    };
    let n_choices = n_choices(&call.body);
    let mut parts = ResumedStream::begin(call, n_choices, answer).into_stream();
    let Some(StreamPart::Begun(headers)) = parts.next().await else {
        return own(Code::InternalError, &caller);
    };
    // Until its first event a stream may still become an error with a status.
    let first = tokio::select! {
        first = parts.next() => first,
        () = sleep(KEEP_ALIVE) => None,
    };
    if let Some(StreamPart::Whole(answer, attendance)) = first {
        return whole(answer, attendance, &caller);
    }
    let body = ResumedBody::new(parts, first, Arc::clone(&caller.state));
    let mut response = Response::new(CallerBody::Resumed(Box::new(body)));
    *response.headers_mut() = answer_headers(&headers);
    response
}

/// A refused request, of which no more is read.
fn refused(refusal: GuardRefusal, caller: &LocalCaller) -> CallerResponse {
    let answer = WholeAnswer { body: refusal.body(), ..WholeAnswer::error(Code::InvalidValue) };
    let mut response = whole(answer, None, caller);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An answer of the sidecar itself.
fn respond(
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    caller: &LocalCaller,
) -> CallerResponse {
    let mut response = Response::new(CallerBody::whole(body, &caller.state, None));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

fn whole(
    answer: WholeAnswer,
    attendance: Option<Attendance>,
    caller: &LocalCaller,
) -> CallerResponse {
    let attendance = attendance.map(|mut attendance| {
        attendance.set_end(answer.end);
        attendance
    });
    let mut response = Response::new(CallerBody::whole(answer.body, &caller.state, attendance));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer_headers(&answer.headers);
    response
}

/// An error of the sidecar itself, of a request that has no slot.
fn own(code: Code, caller: &LocalCaller) -> CallerResponse {
    let mut response = whole(WholeAnswer::error(code), None, caller);
    // The rest of such a request is not read.
    if matches!(code, Code::RequestTooLarge | Code::RequestTimeout | Code::Overloaded) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An answer as it comes, after what of it was read, and who leaves with its end.
fn passed(
    beginning: Bytes,
    mut answer: PassedAnswer,
    leaving: Option<(Arc<CallerState>, Attendance)>,
) -> CallerResponse {
    let headers = std::mem::replace(&mut answer.headers, HeaderMap::new());
    let status = answer.status;
    let rest = stream::unfold(Some(answer), |answer| async {
        let mut answer = answer?;
        match answer.next().await {
            Ok(piece) => piece.map(|piece| (Ok(piece), Some(answer))),
            Err(broken) => Some((Err(broken), None)),
        }
    });
    let beginning = (!beginning.is_empty()).then_some(Ok(beginning));
    let bytes = stream::iter(beginning).chain(rest).boxed();
    let length = headers.get(CONTENT_LENGTH);
    let left = length.and_then(|it| it.to_str().ok()).and_then(|it| it.parse().ok());
    let mut response = Response::new(CallerBody::Passed(PassedBody { bytes, leaving, left }));
    *response.status_mut() = status;
    *response.headers_mut() = answer_headers(&headers);
    // The same bytes, so the same length: an answer to HEAD contains no more than that.
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, length.clone());
    }
    response
}

/// Hashes a part after its length.
fn feed(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    hasher.update(part);
}
