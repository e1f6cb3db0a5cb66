//! Translation of the engine's failures into rows of the error table: code, message, and the
//! other fields of an error's body. The rows are in `holdfast-wire`; this is the one place that
//! chooses among them.
//!
//! Two fields are promises, and decide whether a client may send again:
//!
//! - `charged_micros` is `0` only where it is certain that nothing was charged. A failure after
//!   the key is bound leaves it out, or tells the charge that is recorded.
//! - `retry` follows the code, unless something better is known: the time at which a limit is
//!   reset or a route is tried again, or that the same request would fail the same way.
//!
//! An operation's id is told wherever the key is bound, so that its caller can look it up.

use std::borrow::Cow;
use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::usage::Meters;
use holdfast_domain::{Micros, OperationId};
use holdfast_engine::{RequestFailure, SkippedRoute};
use holdfast_wire::error::{Code, ErrorBody, model_not_found, no_price, refused};

use crate::{body, limits};

/// Message for a claim that the database lost after it was committed: no promise holds any more.
const CLAIM_LOST: &str = "The request may have run once, and the database has lost what was written \
    of it: the operator has been told. As the database stands now you are not charged, and the same \
    Idempotency-Key may run again; ask the operator before you send it.";

/// Error on its way to a caller: everything that its body and its headers say.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
    pub(crate) param: Option<String>,
    /// Charge in micros, where it is known; `Some(0)` promises that nothing was charged.
    pub(crate) charged: Option<Micros>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) retry: RetryAdvice,
    /// Meters of the run, where the answer is gone but its bill is not.
    pub(crate) meters: Option<Box<Meters>>,
}

/// Advice on sending the same request again, told as `x-should-retry` and `retry-after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// The same request would fail again.
    Never,
    /// A later try may succeed, at an unknown time: a second is told.
    Soon,
    /// A try after this time may succeed.
    After(Duration),
}

impl RetryAdvice {
    /// Default advice of a code, from its row in the table.
    pub(crate) const fn of(code: Code) -> Self {
        if code.retry() { Self::Soon } else { Self::Never }
    }
}

impl Problem {
    /// Error with its code's default message, charge and advice.
    pub(crate) fn new(code: Code) -> Self {
        Self {
            code,
            message: Cow::Borrowed(code.message()),
            param: None,
            charged: code.is_charge_known().then_some(Micros::ZERO),
            operation: None,
            retry: RetryAdvice::of(code),
            meters: None,
        }
    }

    /// Error of a stored answer that does not open. A retry would find the same, and what was
    /// paid stays paid.
    pub(crate) fn unreadable(operation: OperationId, usage: Option<&UsageRecord>) -> Self {
        let told = match usage {
            Some(usage) => Self::billed(Code::InternalError, operation, usage),
            None => Self::bound(Code::InternalError, operation),
        };
        Self {
            message:
                "The answer of this operation cannot be read any more; the operator has been told. \
                      A new Idempotency-Key starts a new, paid run."
                    .into(),
            retry: RetryAdvice::Never,
            ..told
        }
    }

    /// Error of an API key that reads more bytes of results at once than it may. Nothing is lost:
    /// the results stay stored.
    pub(crate) fn too_many_results() -> Self {
        Self {
            message:
                "This API key has as many bytes of results on the way as it may: read the answers \
                      that were begun, then send the same request again."
                    .into(),
            ..Self::new(Code::TooManyOperations)
        }
    }

    /// JSON body of the error.
    pub(crate) fn render(&self) -> Vec<u8> {
        let body = ErrorBody {
            message: &self.message,
            param: self.param.as_deref(),
            charged_micros: self.charged.map(Micros::get),
            operation_id: self.operation,
            meters: self.meters.as_deref(),
            ..ErrorBody::new(self.code)
        };
        body.render()
    }

    fn of_model(code: Code) -> Self {
        Self { param: Some("model".to_owned()), ..Self::new(code) }
    }

    fn bound(code: Code, operation: OperationId) -> Self {
        Self { operation: Some(operation), ..Self::new(code) }
    }

    fn billed(code: Code, operation: OperationId, usage: &UsageRecord) -> Self {
        let meters = Some(Box::new(usage.metered.meters));
        Self { charged: Some(usage.charge), meters, ..Self::bound(code, operation) }
    }
}

impl From<&RequestFailure> for Problem {
    fn from(failure: &RequestFailure) -> Self {
        match failure {
            RequestFailure::BadRequest(bad) => Self {
                message: bad.message.clone().into(),
                param: bad.param.clone(),
                ..Self::new(bad.code)
            },
            RequestFailure::TooLarge { limit } => body::too_large(*limit),
            RequestFailure::ModelNotFound { meant } => Self {
                message: model_not_found(meant.as_ref().map(PublicModelId::as_str)).into(),
                ..Self::of_model(Code::ModelNotFound)
            },
            RequestFailure::ModelNotAllowed => Self::of_model(Code::ModelNotAllowed),
            RequestFailure::NoPrice(currency) => Self {
                message: no_price(&currency.to_string()).into(),
                ..Self::of_model(Code::ModelNotAllowed)
            },
            RequestFailure::ChargeLimit { hold, allowed } => Self {
                message: format!(
                    "This request may cost up to {} micros and Holdfast-Max-Charge-Micros allows {}: \
                     raise that header, or lower max_completion_tokens.",
                    hold.get(),
                    allowed.get()
                )
                .into(),
                ..Self::new(Code::ChargeLimitExceeded)
            },
            RequestFailure::InsufficientFunds { hold, available } => Self {
                message: insufficient_funds(*hold, *available).into(),
                ..Self::new(Code::InsufficientFunds)
            },
            RequestFailure::LimitReached(reached) => limits::limit_problem(reached),
            RequestFailure::PassedOver(SkippedRoute { after: Some(time), .. }) => {
                Self { retry: RetryAdvice::After(*time), ..Self::new(Code::UpstreamUnavailable) }
            }
            RequestFailure::PassedOver(SkippedRoute { after: None, .. }) => Self::new(Code::Overloaded),
            RequestFailure::TooManyWaiters => Self::new(Code::TooManyOperations),
            RequestFailure::TooManyResults(_) => Self::too_many_results(),
            RequestFailure::OtherRequest => Self::new(Code::IdempotencyKeyConflict),
            RequestFailure::InProgress(id) => Self::bound(Code::OperationInProgress, *id),
            RequestFailure::OutcomeUnknown(id) => Self::bound(Code::OutcomeUnknown, *id),
            RequestFailure::ClaimLost(id) => Self {
                message: CLAIM_LOST.into(),
                ..Self::bound(Code::OutcomeUnknown, *id)
            },
            // Zero means that no time is known, not that a retry succeeds at once.
            RequestFailure::NotRun(id, wait) => {
                let told = Self::bound(Code::UpstreamUnavailable, *id);
                let retry = if wait.is_zero() { told.retry } else { RetryAdvice::After(*wait) };
                Self { retry, ..told }
            }
            RequestFailure::Refused(id, refusal) => {
                let ErrorBody { code, param, .. } = refused(*refusal, *id);
                Self { param: param.map(str::to_owned), ..Self::bound(code, *id) }
            }
            RequestFailure::ResultExpired(id, usage) => Self::billed(Code::ResultExpired, *id, usage),
            RequestFailure::ResultSealed(id, usage) => Self::billed(Code::ResultSealed, *id, usage),
            RequestFailure::Storage(operation) => {
                Self { operation: *operation, ..Self::new(Code::StorageUnavailable) }
            }
            // Completed but not settled: the charge is certain, and is told with the error.
            RequestFailure::Recorded(id, charge) => {
                Self { charged: Some(*charge), ..Self::bound(Code::StorageUnavailable, *id) }
            }
            RequestFailure::Unreadable(id, usage) => Self::unreadable(*id, usage.as_deref()),
            RequestFailure::Overloaded => Self::new(Code::Overloaded),
            RequestFailure::Draining => Self::new(Code::Draining),
            RequestFailure::Internal(operation) => {
                // Where the key is bound, its operation may yet be charged: no zero is promised.
                let charged = operation.is_none().then_some(Micros::ZERO);
                Self { operation: *operation, charged, ..Self::new(Code::InternalError) }
            }
        }
    }
}

fn insufficient_funds(hold: Micros, available: Option<Micros>) -> String {
    let has = match available {
        Some(available) => format!("has {} available", available.get()),
        None => "has less available".to_owned(),
    };
    format!(
        "This request may cost up to {} micros and the wallet {has}: deposit funds, lower \
         max_completion_tokens, or wait for running requests to end.",
        hold.get()
    )
}
