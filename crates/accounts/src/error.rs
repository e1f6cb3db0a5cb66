//! Errors of the use cases, in words that every door can show.

use std::fmt;

use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::report::{EXPORTS_AT_ONCE, ExportError};
use holdfast_domain::admin::{AccountRefusal, ActorId, Role, UseCase};
use holdfast_domain::ports::{Cause, Unavailable};

/// Result of a use case.
pub(crate) type Result<T, E = AccountsError> = std::result::Result<T, E>;

/// Kind of a resource that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A wallet.
    Wallet,
    /// An API key.
    ApiKey,
    /// A posting.
    Posting,
    /// An operation.
    Operation,
    /// An admin key.
    AdminKey,
    /// A person.
    Person,
    /// A role of a person.
    Grant,
    /// An event.
    Event,
    /// A refused request of a caller.
    RefusedRequest,
    /// A webhook.
    Webhook,
    /// A job.
    Job,
    /// A route.
    Route,
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wallet => "wallet",
            Self::ApiKey => "API key",
            Self::Posting => "posting",
            Self::Operation => "operation",
            Self::AdminKey => "admin key",
            Self::Person => "person",
            Self::Grant => "role",
            Self::Event => "event",
            Self::RefusedRequest => "refused request",
            Self::Webhook => "webhook",
            Self::Job => "job",
            Self::Route => "route",
        })
    }
}

/// Failure of a use case. No change was made, unless it is [`AccountsError::Uncertain`].
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// The role does not have the use case.
    #[error("the role {role} may not do {use_case}")]
    Forbidden {
        /// The use case.
        use_case: UseCase,
        /// The role.
        role: Role,
    },
    /// There is no such resource, for this principal at least.
    #[error("there is no such {0}")]
    NotFound(ResourceKind),
    /// Several resources have the name.
    #[error("more than one {0} has this name: use an id, or name the wallet")]
    Ambiguous(ResourceKind),
    /// A value that cannot stand.
    #[error("{message}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// Sentence with the correction.
        message: String,
    },
    /// The ledger refuses it. The request key is not bound.
    #[error(transparent)]
    Refused(AccountRefusal),
    /// Too much was made for one wallet within a minute, in this process.
    #[error(
        "too many resources were created for this wallet within a minute: send the same request \
        again after {retry_after} s"
    )]
    TooManyCreations {
        /// Seconds until there is room for the request.
        retry_after: u16,
    },
    /// A period has more rows than an export may have.
    #[error(
        "the period has {rows} rows, and an export has at most {rows_max}: choose a shorter period, or one wallet"
    )]
    ExportTooLarge {
        /// Rows of the period.
        rows: u64,
        /// Bound of an export.
        rows_max: u64,
    },
    /// As many exports are read as may be at once.
    #[error(
        "{EXPORTS_AT_ONCE} exports are in progress, the most at once: try again when one is complete"
    )]
    ExportsBusy,
    /// The actor has an export in progress.
    #[error("{0} has an export in progress, and has one at once: try again when it is complete")]
    ExportInProgress(ActorId),
    /// No server secret is known here, so that no row can be chained or verified.
    #[error("there is no server secret")]
    NoSecret,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandom(#[source] Cause),
    /// The store does not work.
    #[error("the store is unavailable")]
    Unavailable(#[source] Cause),
    /// The answer was lost: the change may have been made. The same request again finds out.
    #[error("the store gave no verdict: send the same request again, it is done at most once")]
    Uncertain(#[source] Cause),
}

impl From<CommandError> for AccountsError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Refused(refusal) => Self::Refused(refusal),
            CommandError::Unavailable(cause) => Self::Unavailable(cause),
            CommandError::Uncertain(cause) => Self::Uncertain(cause),
        }
    }
}

impl From<ExportError> for AccountsError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::TooManyRows { rows, rows_max } => Self::ExportTooLarge { rows, rows_max },
            ExportError::Busy => Self::ExportsBusy,
            ExportError::Unavailable(error) => error.into(),
        }
    }
}

impl From<Unavailable> for AccountsError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable(cause)
    }
}
