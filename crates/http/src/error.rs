//! Translation of the engine's failures into errors for callers. The rows of the error table, each with its status
//! and its default text, are in `crates/wire/src/error/code.rs`; this is the one place that chooses among them, in a
//! match that no failure is left out of.
//!
//! An operation's id is in the answer if the key is bound, so that its caller can look it up.

use std::time::Duration;

use holdfast_domain::credential::BalanceVisibility;
use holdfast_domain::{Micros, OperationId};
use holdfast_engine::{HeldBalance, RequestFailure, SkippedRoute};
use holdfast_wire::error::{Code, ErrorBody, model_not_found, no_price, refused};

use crate::limits;
use crate::problem::{Problem, RetryAdvice, shortage};

/// Message for a claim that the database lost after it was committed: no promise holds any more.
const CLAIM_LOST: &str = "The request may have run once, and the database has lost what was written \
    of it: the operator has been notified. As the database stands now you are not charged, and the same \
    Idempotency-Key may run again; ask the operator before you send it.";

/// Message for an operation that was cancelled while it was open.
const CANCELLED_UNRUN: &str = "The request was cancelled before a provider took it: it did not run and \
    you were not charged. This key never runs again; a new Idempotency-Key starts a new, paid run.";

/// Message for a replay without a stored answer.
const NOTHING_BOUND: &str = "There is no answer under this Idempotency-Key: it is not bound, or \
    its operation has proven not to run. Nothing ran and nothing was charged; leave \
    Holdfast-Replay-Only out to run it.";

impl From<&RequestFailure> for Problem {
    fn from(failure: &RequestFailure) -> Self {
        match failure {
            RequestFailure::BadRequest(bad) => Self {
                message: bad.message.clone().into(),
                param: bad.param.as_deref().map(Box::from),
                ..Self::new(bad.code)
            },
            RequestFailure::NotBound => {
                Self { message: NOTHING_BOUND.into(), ..Self::new(Code::NotFound) }
            }
            RequestFailure::TooLarge { limit } => Self::too_large(*limit),
            RequestFailure::ModelNotFound { meant } => Self {
                message: model_not_found(meant.as_deref()).into(),
                ..Self::of_model(Code::ModelNotFound)
            },
            RequestFailure::ApiKeySuspended => Self::new(Code::ApiKeySuspended),
            RequestFailure::WalletSuspended => Self::new(Code::WalletSuspended),
            RequestFailure::ModelNotAllowed => Self::of_model(Code::ModelNotAllowed),
            RequestFailure::NoPrice(currency) => Self {
                message: no_price(&currency.to_string()).into(),
                ..Self::of_model(Code::ModelNotAllowed)
            },
            RequestFailure::ChargeLimit { hold, allowed } => charge_limit(*hold, *allowed),
            RequestFailure::InsufficientFunds { hold, available, visibility } => Self {
                message: insufficient_funds(*hold, available.filter(|_| is_shown(*visibility)))
                    .into(),
                ..Self::of_shortage(Code::InsufficientFunds, *hold, *available)
            },
            RequestFailure::FundsHeld { hold, balance, visibility } => Self {
                shortage: shortage(*hold, Some(balance.available)),
                ..funds_held(*hold, is_shown(*visibility).then_some(*balance))
            },
            RequestFailure::LimitReached(reached) => limits::limit_problem(reached),
            RequestFailure::PassedOver(SkippedRoute { after: Some(time), .. }) => {
                Self { retry: RetryAdvice::After(*time), ..Self::new(Code::UpstreamUnavailable) }
            }
            RequestFailure::PassedOver(SkippedRoute { after: None, .. }) => {
                Self::new(Code::Overloaded)
            }
            RequestFailure::TooManyWaiters => Self::new(Code::TooManyOperations),
            RequestFailure::TooManyResults(_) => Self::too_many_results(),
            RequestFailure::OtherRequest => Self::new(Code::IdempotencyKeyConflict),
            RequestFailure::LedgerRestored { until } => Self::ledger_restored(*until),
            RequestFailure::InProgress(id) => Self::bound(Code::OperationInProgress, *id),
            RequestFailure::OutcomeUnknown(id) => Self::bound(Code::OutcomeUnknown, *id),
            RequestFailure::CancelledUnrun(id) => abandoned(*id, CANCELLED_UNRUN),
            RequestFailure::ClaimLost(id) => abandoned(*id, CLAIM_LOST),
            RequestFailure::NotRun(id, wait) => not_run(*id, *wait),
            RequestFailure::Refused(id, refusal) => {
                let ErrorBody { code, param, .. } = refused(*refusal, *id);
                Self { param: param.map(Box::from), ..Self::bound(code, *id) }
            }
            RequestFailure::ResultExpired(id, usage) => {
                Self::billed(Code::ResultExpired, *id, usage)
            }
            RequestFailure::ResultSealed(id, usage) => Self::billed(Code::ResultSealed, *id, usage),
            RequestFailure::Storage(operation) => {
                Self { operation: *operation, ..Self::new(Code::StorageUnavailable) }
            }
            // Completed but not settled: the charge is certain, and part of the error.
            RequestFailure::Recorded(id, charge) => {
                Self { charged: Some(*charge), ..Self::bound(Code::StorageUnavailable, *id) }
            }
            RequestFailure::Unreadable(id, usage) => Self::unreadable(*id, usage.as_deref()),
            RequestFailure::Overloaded => Self::new(Code::Overloaded),
            RequestFailure::Draining => Self::new(Code::Draining),
            RequestFailure::Internal(operation) => {
                // If the key is bound, its operation may yet be charged: no zero is promised.
                let charged = operation.is_none().then_some(Micros::ZERO);
                Self { operation: *operation, charged, ..Self::new(Code::InternalError) }
            }
        }
    }
}

const fn is_shown(visibility: BalanceVisibility) -> bool {
    match visibility {
        BalanceVisibility::Shown => true,
        BalanceVisibility::Hidden => false,
    }
}

/// A request that may cost more than its caller allows.
fn charge_limit(hold: Micros, allowed: Micros) -> Problem {
    let message = format!(
        "This request may cost up to {} micros and Holdfast-Max-Charge-Micros allows {}: raise that header, or lower \
         max_completion_tokens.",
        hold.get(),
        allowed.get()
    );
    let problem = Problem::of_shortage(Code::ChargeLimitExceeded, hold, Some(allowed));
    Problem { message: message.into(), ..problem }
}

/// An operation without an answer for good, with what is known of it.
fn abandoned(id: OperationId, message: &'static str) -> Problem {
    Problem { message: message.into(), ..Problem::bound(Code::OutcomeUnknown, id) }
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

/// Shortage of funds that may pass by itself: the missing amount is held by active operations.
fn funds_held(hold: Micros, balance: Option<HeldBalance>) -> Problem {
    let has = match balance {
        Some(HeldBalance { available, held }) => {
            format!("has {} available, while running requests hold {}", available.get(), held.get())
        }
        None => "has less available, while running requests hold enough".to_owned(),
    };
    let message = format!(
        "This request may cost up to {} micros and the wallet {has}: send the same request again after \
         `retry-after`, or deposit funds or lower max_completion_tokens.",
        hold.get()
    );
    Problem {
        message: message.into(),
        retry: RetryAdvice::WhileHeld(balance.map(|balance| balance.held)),
        ..Problem::new(Code::InsufficientFunds)
    }
}

/// Proven not to run. Zero means that no time is known, not that a retry succeeds at once.
fn not_run(id: OperationId, wait: Duration) -> Problem {
    let unavailable = Problem::bound(Code::UpstreamUnavailable, id);
    let retry = if wait.is_zero() { unavailable.retry } else { RetryAdvice::After(wait) };
    Problem { retry, ..unavailable }
}
