//! Statistics of a process: requests that it refused, as rows for support and as counts for reports; attempts on routes,
//! their latencies and failures, and the circuit breakers.
//!
//! They are no money. A process collects them in memory and adds them to the store about once a second
//! ([`Statistics`](crate::ports::Statistics)), so that a flood of refusals does not become a flood of writes; one that
//! is killed loses its last second.
//!
//! Never in here: a word of a prompt or an answer, a credential, or a model's name that the configuration does not
//! have. A provider's words about a failure are in a [`FailureNote`], which is made without
//! them.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use holdfast_domain::statistics::Latencies;
//!
//! let mut latencies = Latencies::default();
//! latencies.observe(Duration::from_millis(180));
//! assert_eq!(latencies.count(), 1);
//! ```

mod failure_note;
mod latencies;
pub mod ring;
mod route;

use std::borrow::Cow;

pub use self::failure_note::FailureNote;
pub use self::latencies::{BOUNDS_MS, Latencies};
pub use self::route::{
    AttemptOutcome, BreakerCondition, BreakerReport, FAILURES_KEPT, NodeBreaker, RouteFailure,
    RouteHour, RouteHourKey,
};
use crate::model::PublicModelId;
use crate::{ApiKeyId, Micros, RequestId, Timestamp, WalletId};

/// Microseconds of an hour.
const HOUR_MICROS: i64 = 3_600_000_000;

/// Request of a known API key that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// Value of its `x-request-id`.
    pub id: RequestId,
    /// Moment of the refusal, by the database's clock as the process knows it.
    pub at: Timestamp,
    /// API key that sent it.
    pub api_key: ApiKeyId,
    /// Wallet of that API key.
    pub wallet: WalletId,
    /// Error code.
    pub code: Cow<'static, str>,
    /// HTTP status.
    pub status: u16,
    /// Model, if the request names one of the configuration.
    pub model: Option<PublicModelId>,
    /// Amounts that were compared, if money or a limit of it was missing.
    pub shortage: Option<Shortage>,
}

/// Amounts of a refusal for lack of money, in micros of the wallet's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Hold that the request needed.
    pub wanted: Micros,
    /// Amount that was left of the balance or of the limit; `None` if it was not read.
    pub available: Option<Micros>,
}

/// Key of a count: refusals of one API key with one code in one hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusalHour {
    /// Beginning of the hour.
    pub hour: Timestamp,
    /// Wallet of the API key.
    pub wallet: WalletId,
    /// API key that sent the requests.
    pub api_key: ApiKeyId,
    /// Error code.
    pub code: Cow<'static, str>,
}

/// Number of refused requests of one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalCount {
    /// Requests that are counted.
    pub of: RefusalHour,
    /// Number of the requests; above zero.
    pub count: u64,
}

/// Refusals that a process has collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusalBatch {
    /// Numbers of all of them, each key once.
    pub counts: Vec<RefusalCount>,
    /// Requests that are listed, oldest first.
    pub listed: Vec<RefusedRequest>,
}

/// Beginning of the hour of a moment.
#[must_use]
pub const fn hour_of(at: Timestamp) -> Timestamp {
    let micros = at.as_micros();
    Timestamp::from_micros(micros.saturating_sub(micros.rem_euclid(HOUR_MICROS)))
}
