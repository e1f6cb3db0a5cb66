//! Report of one attempt: its outcome, read from an error's head and body. Of the body only the code, the name
//! of a field that we have, too, and the filtered note of a failure go further.

use std::time::Duration;

use holdfast_domain::RequestKey;
use holdfast_domain::ports::Sink;
use holdfast_wire::chat::upstream::{self, UpstreamError};
use holdfast_wire::error::Code;
use http::{HeaderMap, HeaderName, StatusCode};

use super::KeyedRequest;
use super::verdict::{AskOutcome, Echo};
use crate::kinds::holdfast::Holdfast;
use crate::proof::failure_note;
use crate::provider::read_error;
use holdfast_net::UpstreamResponse;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Outcome of one attempt, with the pause that the server requests before the next.
pub(super) struct AskReport {
    pub(super) outcome: AskOutcome,
    pub(super) retry_after: Option<Duration>,
}

impl AskReport {
    pub(super) const fn of(outcome: AskOutcome) -> Self {
        Self { outcome, retry_after: None }
    }

    /// Report of an answer that is no success.
    pub(super) async fn of_error(
        headers: &HeaderMap,
        reply: UpstreamResponse,
        keyed: &KeyedRequest,
        sink: &mut dyn Sink,
    ) -> Self {
        let echo = match (has_echo(headers, keyed.key), reply.is_relayed) {
            (false, _) => Echo::Absent,
            (true, true) => Echo::Relayed,
            (true, false) if is_new(headers) => Echo::Judged,
            (true, false) => Echo::Key,
        };
        // Only the gateway's own pause is kept: whoever stands in between knows nothing of it.
        let retry_after = reply.retry_after.filter(|_| echo != Echo::Absent);
        let (status, rejected) = (reply.status, read_error(reply).await);
        let error = upstream::read_error(&rejected.body);
        if let Some(field) = error.field() {
            sink.on_rejected_field(field);
        }
        let outcome = match code_of(&error, status) {
            Some(Code::InsufficientFunds) if may_pass(headers) => AskOutcome::FundsHeld(echo),
            code => AskOutcome::Error(code, echo),
        };
        sink.on_failure_note(failure_note(rejected, &keyed.request).await);
        Self { outcome, retry_after }
    }
}

/// Code of an error; `None` if it has none, or an unknown one.
pub(super) async fn error_code(reply: UpstreamResponse) -> Option<Code> {
    let (status, rejected) = (reply.status, read_error(reply).await);
    code_of(&upstream::read_error(&rejected.body), status)
}

fn code_of(error: &UpstreamError, status: StatusCode) -> Option<Code> {
    let label = error.code.as_deref()?;
    // The status too: the two contradict each other only where somebody has changed one.
    Code::ALL.into_iter().find(|code| code.label() == label && status == code.status())
}

/// True if the head announces that a retry may help.
fn may_pass(headers: &HeaderMap) -> bool {
    headers.get(SHOULD_RETRY).is_some_and(|mark| mark == "true")
}

/// True if the engine marks the request as no replay.
fn is_new(headers: &HeaderMap) -> bool {
    headers.get(IDEMPOTENT_REPLAYED).is_some_and(|mark| mark == "false")
}

/// True if the head has this key, once.
fn has_echo(headers: &HeaderMap, key: RequestKey) -> bool {
    let mut echoes = headers.get_all(Holdfast::KEY_HEADER).iter();
    let is_key = echoes.next().is_some_and(|echo| echo.as_bytes() == key.to_string().as_bytes());
    is_key && echoes.next().is_none()
}
