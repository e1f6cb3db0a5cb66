//! A completion on its way: sent under its key, and repeated while the gateway answers that this helps, or
//! cannot be reached.
//!
//! ```text
//! send ─▶ attempt ─┬─ an answer that is whole, or a stream that begins ─▶ CallAnswer
//!          ▲       └─ x-should-retry: true, or a connection that breaks
//!          └──── pause: the gateway's hint, else 100 ms to 2 s ──┘   (until no time is left)
//! ```
//!
//! A JSON answer is read to its end before any of it is written. What exceeds the budget of all
//! answers is passed on as it comes, and then a cut in it is the client's to heal.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_net::{PassedAnswer, PassedFailure, ServerClient};
use holdfast_wire::error::{Code, ErrorBody};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, Method, Request, StatusCode, Uri};
use tokio::time::{Instant, sleep, timeout};

use crate::answer::{self, Meaning, SHOULD_RETRY};
use crate::attendance::Attendance;
use crate::budget::{ByteBudget, Reservation};
use crate::health::Health;
use crate::retry_budget::RetryBudget;
use crate::table::CallEnd;

/// Time to a new connection of one request.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
const EVENT_STREAM: &[u8] = b"text/event-stream";
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Bytes that hold their part of a budget.
pub(crate) struct GuardedBytes<B> {
    pub(crate) bytes: B,
    pub(crate) _reservation: Reservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for GuardedBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Answer that is there as a whole.
#[derive(Debug)]
pub(crate) struct WholeAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// End of the call, once this was taken.
    pub(crate) end: CallEnd,
}

impl WholeAnswer {
    /// An error of the sidecar itself.
    pub(crate) fn error(code: Code) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let is_retry = code.retry();
        let hint = if is_retry { "true" } else { "false" };
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(hint));
        if is_retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(1));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(1_000));
        }
        let status = StatusCode::from_u16(code.status());
        Self {
            status: status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
            headers,
            body: ErrorBody::new(code).render().into(),
            end: CallEnd::Retryable,
        }
    }
}

/// Result of asking.
pub(crate) enum CallAnswer {
    Whole(WholeAnswer),
    /// A stream whose head is there.
    Stream(PassedAnswer),
    /// An answer for which there is no room: its beginning, and the rest as it comes.
    Long(Bytes, PassedAnswer),
}

/// A completion with all parts that its repetitions need.
pub(crate) struct Call {
    pub(crate) client: Arc<ServerClient>,
    pub(crate) health: Arc<Health>,
    pub(crate) answers: ByteBudget,
    pub(crate) uri: Uri,
    /// With the key, and without what is of one connection.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) retry_budget: RetryBudget,
    /// `None` if the client brought its own key.
    pub(crate) attendance: Option<Attendance>,
    /// The gateway's newest word that asking again helps.
    pub(crate) refused: Option<WholeAnswer>,
}

/// Attempt that did not end the call.
struct FailedAttempt {
    hint: Option<Duration>,
    /// A request may have arrived and bound the key.
    may_have_arrived: bool,
    answer: Option<WholeAnswer>,
}

impl From<PassedFailure> for FailedAttempt {
    fn from(failure: PassedFailure) -> Self {
        let may_have_arrived = match failure {
            PassedFailure::Unsent => false,
            PassedFailure::Broken => true,
        };
        Self { hint: None, may_have_arrived, answer: None }
    }
}

impl Call {
    /// Sends requests until there is an answer, or no time is left. Not cancel safe: it begins anew.
    pub(crate) async fn send(&mut self) -> CallAnswer {
        loop {
            let failed = match self.attempt_in_time().await {
                Ok(requested) => {
                    // A stream that breaks later must not end with a refusal from before it.
                    self.refused = None;
                    return requested;
                }
                Err(failed) => failed,
            };
            if failed.may_have_arrived {
                self.cut();
            }
            if failed.answer.is_some() {
                self.refused = failed.answer;
            }
            if let Some(last) = self.wait(failed.hint).await {
                return CallAnswer::Whole(last);
            }
        }
    }

    /// Some of a request may have arrived, and its answer did not.
    pub(crate) fn cut(&self) {
        if let Some(attendance) = &self.attendance {
            attendance.cut();
        }
    }

    /// Waits until the next request; returns the last answer if there is no time for one.
    pub(crate) async fn wait(&mut self, hint: Option<Duration>) -> Option<WholeAnswer> {
        let Some(pause) = self.retry_budget.pause(hint, Instant::now()) else {
            let unreachable = || WholeAnswer::error(Code::GatewayUnreachable);
            return Some(self.refused.take().unwrap_or_else(unreachable));
        };
        sleep(pause).await;
        None
    }

    async fn attempt_in_time(&self) -> Result<CallAnswer, FailedAttempt> {
        match self.retry_budget.request_time(Instant::now()) {
            None => self.attempt().await,
            Some(time) => match timeout(time, self.attempt()).await {
                Ok(attempted) => attempted,
                // The request may have arrived: never read as unsent.
                Err(_elapsed) => Err(PassedFailure::Broken.into()),
            },
        }
    }

    async fn attempt(&self) -> Result<CallAnswer, FailedAttempt> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        self.retry_budget.announce(request.headers_mut(), Instant::now());
        let sent = Box::pin(self.client.send(request, CONNECT)).await;
        let mut answer = self.health.note(sent)?;
        let content_type = answer.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_stream = content_type.is_some_and(|it| it.starts_with(EVENT_STREAM));
        if answer.status.is_success() && is_stream {
            return Ok(CallAnswer::Stream(answer));
        }
        let mut reservation = self.answers.reserve();
        let mut body = Vec::new();
        while let Some(piece) = answer.next().await? {
            body.extend_from_slice(&piece);
            // After the piece is kept: without room for it, it is part of the beginning that is
            // passed on.
            if !reservation.grow(piece.len()) {
                return Ok(CallAnswer::Long(body.into(), answer));
            }
        }
        let PassedAnswer { status, ref headers, retry_after, .. } = answer;
        let meaning = answer::meaning(status, headers, &body);
        let whole = |end| WholeAnswer {
            status,
            headers: headers.clone(),
            body: Bytes::from_owner(GuardedBytes { bytes: body, _reservation: reservation }),
            end,
        };
        match meaning {
            Meaning::Success => Ok(CallAnswer::Whole(whole(CallEnd::Delivered))),
            Meaning::PassOn(end) => Ok(CallAnswer::Whole(whole(end))),
            Meaning::Retry(end) => Err(FailedAttempt {
                hint: retry_after,
                // After an error that may have bound the key a later refusal must not free the slot.
                may_have_arrived: end != CallEnd::Retryable,
                answer: Some(whole(end)),
            }),
        }
    }
}
