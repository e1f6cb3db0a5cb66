//! Every failure's row in the table of errors: code, message and what else its body tells. The rows
//! themselves are in `holdfast-wire`; this is the one place that chooses among them.

use std::borrow::Cow;
use std::time::Duration;

use holdfast_domain::model::PublicModelId;
use holdfast_domain::usage::{Meters, UsageRecord};
use holdfast_domain::{Micros, OperationId};
use holdfast_engine::{Failure, PassedOver};
use holdfast_wire::error::{Code, ErrorBody, model_not_found, no_price, refused};

use crate::{body, limits};

/// What is true where nothing can be promised any more.
const CLAIM_LOST: &str = "The request may have run once, and the database has lost what was written \
    of it: the operator has been told. As the database stands now you are not charged, and the same \
    Idempotency-Key may run again; ask the operator before you send it.";

/// An error as it is told.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
    pub(crate) param: Option<String>,
    /// Where it is known.
    pub(crate) charged: Option<Micros>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) retry: Retry,
    /// What the run used up, where the answer is gone but its bill is not.
    pub(crate) meters: Option<Box<Meters>>,
}

/// Whether the same request may fare better when it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It may not.
    Never,
    /// It may, nobody knows when.
    Soon,
    /// It may after so long.
    After(Duration),
}

impl Retry {
    /// What is usually said with a code.
    pub(crate) const fn of(code: Code) -> Self {
        if code.retry() { Self::Soon } else { Self::Never }
    }
}

impl Problem {
    /// An error with its usual message.
    pub(crate) fn new(code: Code) -> Self {
        Self {
            code,
            message: Cow::Borrowed(code.message()),
            param: None,
            charged: code.is_charge_known().then_some(Micros::ZERO),
            operation: None,
            retry: Retry::of(code),
            meters: None,
        }
    }

    /// What was stored does not open: asking again would find the same. What was paid stays paid.
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
            retry: Retry::Never,
            ..told
        }
    }

    /// The API key reads more results at once than it may: nothing is lost, what is stored stays stored.
    pub(crate) fn too_many_results() -> Self {
        Self {
            message:
                "This API key has as many bytes of results on the way as it may: read the answers \
                      that were begun, then send the same request again."
                    .into(),
            ..Self::new(Code::TooManyOperations)
        }
    }

    /// The body.
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

impl From<&Failure> for Problem {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::BadRequest(bad) => Self {
                message: bad.message.clone().into(),
                param: bad.param.clone(),
                ..Self::new(bad.code)
            },
            Failure::TooLarge { limit } => body::too_large(*limit),
            Failure::ModelNotFound { meant } => Self {
                message: model_not_found(meant.as_ref().map(PublicModelId::as_str)).into(),
                ..Self::of_model(Code::ModelNotFound)
            },
            Failure::ModelNotAllowed => Self::of_model(Code::ModelNotAllowed),
            Failure::NoPrice(currency) => Self {
                message: no_price(&currency.to_string()).into(),
                ..Self::of_model(Code::ModelNotAllowed)
            },
            Failure::ChargeLimit { hold, allowed } => Self {
                message: format!(
                    "This request may cost up to {} micros and Holdfast-Max-Charge-Micros allows {}: \
                     raise that header, or lower max_completion_tokens.",
                    hold.get(),
                    allowed.get()
                )
                .into(),
                ..Self::new(Code::ChargeLimitExceeded)
            },
            Failure::InsufficientFunds { hold, available } => Self {
                message: insufficient_funds(*hold, *available).into(),
                ..Self::new(Code::InsufficientFunds)
            },
            Failure::LimitReached(reached) => limits::told(reached),
            Failure::PassedOver(PassedOver { after: Some(time), .. }) => {
                Self { retry: Retry::After(*time), ..Self::new(Code::UpstreamUnavailable) }
            }
            Failure::PassedOver(PassedOver { after: None, .. }) => Self::new(Code::Overloaded),
            Failure::TooManyWaiters => Self::new(Code::TooManyOperations),
            Failure::TooManyResults(_) => Self::too_many_results(),
            Failure::OtherRequest => Self::new(Code::IdempotencyKeyConflict),
            Failure::InProgress(id) => Self::bound(Code::OperationInProgress, *id),
            Failure::OutcomeUnknown(id) => Self::bound(Code::OutcomeUnknown, *id),
            Failure::ClaimLost(id) => Self {
                message: CLAIM_LOST.into(),
                ..Self::bound(Code::OutcomeUnknown, *id)
            },
            Failure::NotRun(id, wait) => {
                let told = Self::bound(Code::UpstreamUnavailable, *id);
                let retry = if wait.is_zero() { told.retry } else { Retry::After(*wait) };
                Self { retry, ..told }
            }
            Failure::Refused(id, refusal) => {
                let ErrorBody { code, param, .. } = refused(*refusal, *id);
                Self { param: param.map(str::to_owned), ..Self::bound(code, *id) }
            }
            Failure::ResultExpired(id, usage) => Self::billed(Code::ResultExpired, *id, usage),
            Failure::ResultSealed(id, usage) => Self::billed(Code::ResultSealed, *id, usage),
            Failure::Storage(operation) => {
                Self { operation: *operation, ..Self::new(Code::StorageUnavailable) }
            }
            Failure::Recorded(id, charge) => {
                Self { charged: Some(*charge), ..Self::bound(Code::StorageUnavailable, *id) }
            }
            Failure::Unreadable(id, usage) => Self::unreadable(*id, usage.as_deref()),
            Failure::Overloaded => Self::new(Code::Overloaded),
            Failure::Draining => Self::new(Code::Draining),
            Failure::Internal(operation) => {
                // Where the key is bound, its operation is yet to be resolved.
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
