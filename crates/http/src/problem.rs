//! Errors on their way to callers: the code, and the other members of the body and the headers.
//!
//! Two fields are promises, and decide whether a client may send again:
//!
//! - `charged_micros` is `0` only if it is certain that there was no charge. A failure after the key is bound
//!   leaves it out, or has the charge that is recorded.
//! - `retry` follows the code, unless more is known: the time at which a limit is reset or a route is tried
//!   again, or that the same request would fail the same way.
//!
//! The choice of an error is not made here: the engine's failures are translated in [`error`](crate::error),
//! refusals of heads and bodies at the code that reads them.

use std::borrow::Cow;
use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::statistics::Shortage;
use holdfast_domain::usage::Meters;
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_wire::api::rfc3339;
use holdfast_wire::error::{Code, ErrorBody};

/// Time until the next try of a key that a restored ledger does not know: the longest that is advised, because the
/// window of a restore is as a rule a day.
const RESTORED_RETRY: Duration = Duration::from_secs(60);

/// Error on its way to a caller: the content of its body and its headers.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
    pub(crate) param: Option<Box<str>>,
    /// Charge in micros, if it is known; `Some(0)` promises that there was no charge.
    pub(crate) charged: Option<Micros>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) retry: RetryAdvice,
    /// Meters of the run, if the answer is gone but its bill is not.
    // In a box: all fallible calls have room for this type, and hardly any problem has meters.
    pub(crate) meters: Option<Box<Meters>>,
    /// Amounts that were compared, if money was missing: for the operator's statistics and never for the caller, who
    /// may not see the balance.
    pub(crate) shortage: Option<Box<Shortage>>,
}

/// Advice on sending the same request again, sent as `x-should-retry` and `retry-after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// The same request would fail again.
    Never,
    /// A later try may succeed, at an unknown time: the answer suggests a second.
    Soon,
    /// A try after this time may succeed.
    After(Duration),
    /// A try may succeed once operations that hold funds have ended: each caller gets a time of its own, so that they do
    /// not come back together. With the amount that is held, if the API key may see it.
    WhileHeld(Option<Micros>),
}

/// Amounts of a refusal, for the operator's statistics.
pub(crate) fn shortage(wanted: Micros, available: Option<Micros>) -> Option<Box<Shortage>> {
    Some(Box::new(Shortage { wanted, available }))
}

impl RetryAdvice {
    /// Default advice of a code, from its row in the table.
    pub(crate) const fn of(code: Code) -> Self {
        if code.retry() { Self::Soon } else { Self::Never }
    }

    /// Amount that running operations hold, if it is part of the advice.
    const fn held(self) -> Option<Micros> {
        match self {
            Self::WhileHeld(held) => held,
            Self::Never | Self::Soon | Self::After(_) => None,
        }
    }
}

impl Problem {
    /// Error with its code's default message, charge and advice.
    pub(crate) fn new(code: Code) -> Self {
        Self {
            code,
            message: Cow::Borrowed(code.message()),
            param: None,
            // Zero is a promise. Code that reports an error after the key was bound takes it back, unless the
            // code itself does.
            charged: code.is_charge_known().then_some(Micros::ZERO),
            operation: None,
            retry: RetryAdvice::of(code),
            meters: None,
            shortage: None,
        }
    }

    /// Error of a request that may cost more than there is.
    pub(crate) fn of_shortage(code: Code, wanted: Micros, available: Option<Micros>) -> Self {
        Self { shortage: shortage(wanted, available), ..Self::new(code) }
    }

    /// Error of a stored answer that does not open. A retry would find the same, and what was
    /// paid stays paid.
    pub(crate) fn unreadable(operation: OperationId, usage: Option<&UsageRecord>) -> Self {
        let error = match usage {
            Some(usage) => Self::billed(Code::InternalError, operation, usage),
            None => Self::bound(Code::InternalError, operation),
        };
        Self {
            message:
                "The answer of this operation cannot be read any more; the operator has been notified. \
                      A new Idempotency-Key starts a new, paid run."
                    .into(),
            retry: RetryAdvice::Never,
            ..error
        }
    }

    /// Error of a key that the restored ledger does not know.
    pub(crate) fn ledger_restored(until: Option<Timestamp>) -> Self {
        let problem = Self::new(Code::LedgerRestored);
        let message = match until {
            Some(until) => {
                format!("{} Unknown keys run from {} on.", problem.message, rfc3339(until)).into()
            }
            None => problem.message,
        };
        Self { message, retry: RetryAdvice::After(RESTORED_RETRY), ..problem }
    }

    /// Error of an API key that reads more bytes of results at once than it may. No result is lost: all of them
    /// stay stored.
    pub(crate) fn too_many_results() -> Self {
        Self {
            message:
                "This API key has as many bytes of results on the way as it may: read the answers \
                      that were begun, then send the same request again."
                    .into(),
            ..Self::new(Code::TooManyOperations)
        }
    }

    /// Error of a body over `bytes_max`. It closes the connection: the rest is never read.
    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!(
            "The body is larger than {bytes_max} bytes, the limit here: send smaller pictures or documents, which are \
             a third longer as base64, or a shorter prompt. The operator sets the limit with `body_bytes`."
        );
        Self { message: message.into(), ..Self::new(Code::RequestTooLarge) }
    }

    /// JSON body of the error.
    pub(crate) fn render(&self) -> Vec<u8> {
        let body = ErrorBody {
            message: &self.message,
            param: self.param.as_deref(),
            charged_micros: self.charged.map(Micros::get),
            held_micros: self.retry.held().map(Micros::get),
            operation_id: self.operation,
            meters: self.meters.as_deref(),
            ..ErrorBody::new(self.code)
        };
        body.render()
    }

    /// Error about the field `model`.
    pub(crate) fn of_model(code: Code) -> Self {
        Self { param: Some("model".into()), ..Self::new(code) }
    }

    /// Error after the key was bound: the answer makes no promise about a charge that the code leaves open.
    pub(crate) fn bound(code: Code, operation: OperationId) -> Self {
        Self { operation: Some(operation), ..Self::new(code) }
    }

    /// Error of an operation that was charged, whose answer is not there.
    pub(crate) fn billed(code: Code, operation: OperationId, usage: &UsageRecord) -> Self {
        let meters = Some(Box::new(usage.metered.meters));
        Self { charged: Some(usage.charge), meters, ..Self::bound(code, operation) }
    }
}
