//! What a caller is told, in this crate's words; how it is spelled is the wire's and HTTP's business.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::limits::ReachedLimit;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::{Operation, Phase, ProviderRefusal, Snapshot};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::usage::UsageRecord;
use holdfast_domain::{Currency, Micros, OperationId};
use holdfast_wire::chat::request::BadRequest;

use crate::Engine;
use crate::callers::Caller;
use crate::rate_limit::RateLimitStatus;
use crate::results::ResultsFull;
use crate::routes::SkippedRoute;
use crate::seal;
use crate::streaming::CompletionStream;

/// The answer to one request.
#[derive(Debug)]
pub struct Reply {
    /// The answer, or why there is none.
    pub outcome: Result<ReplyBody, RequestFailure>,
    /// Whether it comes from an operation that an earlier request had bound.
    pub replayed: bool,
    /// What the API key's limits by the minute stand at, where this request claimed.
    pub rates: RateLimitStatus,
    /// For the log.
    pub facts: ReplyFacts,
}

/// An answer with its exact bytes.
pub enum ReplyBody {
    /// The completion.
    Completed(Bytes),
    /// The completion, as it is said.
    Streamed(Box<CompletionStream>),
    /// The provider's definitive refusal, as it was told the first time.
    Refused(ProviderRefusal, Bytes),
}

impl fmt::Debug for ReplyBody {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(body) => write!(f, "Completed({} bytes)", body.len()),
            Self::Streamed(stream) => write!(f, "Streamed({stream:?})"),
            Self::Refused(refusal, body) => write!(f, "Refused({refusal:?}, {} bytes)", body.len()),
        }
    }
}

/// What the log may know of an operation: never content.
#[derive(Debug, Clone, Default)]
pub struct ReplyFacts {
    /// Which operation, once the key is bound.
    pub operation: Option<OperationId>,
    /// The public model id.
    pub model: Option<PublicModelId>,
    /// The phase's label.
    pub phase: Option<&'static str>,
    /// The last route that was tried.
    pub route: Option<Arc<str>>,
    /// What came of it.
    pub class: Option<Cow<'static, str>>,
    /// How long that route took.
    pub upstream: Option<Duration>,
    /// The billing fact.
    pub usage: Option<UsageRecord>,
}

/// Why there is no answer. Every variant has one row in the table of errors.
#[derive(Debug, Clone)]
pub enum RequestFailure {
    /// The body cannot be taken.
    BadRequest(Arc<BadRequest>),
    /// The body is larger than its model takes.
    TooLarge {
        /// What it takes, in bytes.
        limit: usize,
    },
    /// No such model.
    ModelNotFound {
        /// The one that was probably meant, of those that the API key may use.
        meant: Option<PublicModelId>,
    },
    /// The API key may not use the model.
    ModelNotAllowed,
    /// The model has no price in the currency of the API key's wallet.
    NoPrice(Currency),
    /// The hold would exceed what the caller allowed.
    ChargeLimit {
        /// What would be held.
        hold: Micros,
        /// What the caller allowed.
        allowed: Micros,
    },
    /// The wallet has less available than the hold.
    InsufficientFunds {
        /// What would be held.
        hold: Micros,
        /// What it had a moment later, where that is less and the API key may see it.
        available: Option<Micros>,
    },
    /// A limit of the API key is reached.
    LimitReached(ReachedLimit),
    /// No route that could take it may be taken now.
    PassedOver(SkippedRoute),
    /// Too many callers wait for this operation.
    TooManyWaiters,
    /// So many bytes of results are on their way to this API key that this one found no room.
    TooManyResults(OperationId),
    /// The key is bound to another request.
    OtherRequest,
    /// It runs, and the caller's patience ended first.
    InProgress(OperationId),
    /// It may have run, and was not charged.
    OutcomeUnknown(OperationId),
    /// The database has lost the claim that it ran by: it may have run, and may run again under the
    /// same key.
    ClaimLost(OperationId),
    /// It provably did not run, and may be sent again after so long.
    NotRun(OperationId, Duration),
    /// Refused for good; the words of the first answer are gone.
    Refused(OperationId, ProviderRefusal),
    /// Completed; the content was deleted after its time.
    ResultExpired(OperationId, Box<UsageRecord>),
    /// Completed; another credential sealed the content.
    ResultSealed(OperationId, Box<UsageRecord>),
    /// The store does not take or give what is needed; with the operation where the key is bound.
    Storage(Option<OperationId>),
    /// Completed but for its settlement, which the store refuses: this will be its charge.
    Recorded(OperationId, Micros),
    /// Too many commits wait.
    Overloaded,
    /// This process takes nothing new.
    Draining,
    /// It ended, and its content does not open with the credential that sealed it: a bug or tampering,
    /// told to the operator. Asking again does not help.
    Unreadable(OperationId, Option<Box<UsageRecord>>),
    /// A bug, told to the operator.
    Internal(Option<OperationId>),
}

impl Reply {
    /// A failure that is not read from a row.
    pub(crate) fn unbound(failure: RequestFailure) -> Self {
        let mut facts = ReplyFacts { operation: failure.operation(), ..ReplyFacts::default() };
        if let RequestFailure::PassedOver(SkippedRoute { route, class, .. }) = &failure {
            facts.route = Some(Arc::clone(route));
            facts.class = Some((*class).into());
        }
        Self { outcome: Err(failure), replayed: false, rates: RateLimitStatus::default(), facts }
    }

    /// What the row says to this caller, with the content that this process still has in memory; `None`
    /// where the content has to be read from the row.
    pub(crate) fn from_run(
        snapshot: &Snapshot,
        body: Option<Bytes>,
        caller: &Caller,
        replayed: bool,
    ) -> Option<Self> {
        let result = snapshot.result.as_ref()?;
        let body = body.filter(|_body| result.credential == caller.bearer.id)?;
        let operation = snapshot.operation.as_ref()?;
        let answered = match operation.phase {
            Phase::Completed { .. } => ReplyBody::Completed(body),
            Phase::Refused { refusal, .. } => ReplyBody::Refused(refusal, body),
            Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Abandoned { .. } => {
                return None;
            }
        };
        let (rates, facts) = (RateLimitStatus::default(), ReplyFacts::of(operation));
        Some(Self { outcome: Ok(answered), replayed, rates, facts })
    }
}

impl Engine {
    /// What the row says to this caller. Cancel safe.
    pub(crate) async fn reply_of_row(
        &self,
        snapshot: &Snapshot,
        caller: &Caller,
        replayed: bool,
    ) -> Reply {
        let Some(operation) = &snapshot.operation else {
            return Reply::unbound(RequestFailure::Storage(None));
        };
        let id = operation.id;
        let outcome = match &operation.phase {
            Phase::Leased => Err(RequestFailure::InProgress(id)),
            Phase::Recorded(usage) => Err(RequestFailure::Recorded(id, usage.charge)),
            Phase::Open => Err(RequestFailure::NotRun(id, operation.reopens_in(snapshot.now))),
            Phase::Abandoned { .. } => Err(RequestFailure::OutcomeUnknown(id)),
            Phase::Completed { usage, .. } => {
                match self.content(snapshot, operation, caller).await {
                    Content::Kept(body) => Ok(ReplyBody::Completed(body)),
                    Content::Expired => {
                        Err(RequestFailure::ResultExpired(id, Box::new(usage.clone())))
                    }
                    Content::Sealed => {
                        Err(RequestFailure::ResultSealed(id, Box::new(usage.clone())))
                    }
                    Content::Broken => {
                        Err(RequestFailure::Unreadable(id, Some(Box::new(usage.clone()))))
                    }
                    Content::NoRoom(full) => Err(RequestFailure::no_room(full, id)),
                    Content::Unread(error) => Err(failure_of_read(&error, id)),
                }
            }
            Phase::Refused { refusal, .. } => {
                match self.content(snapshot, operation, caller).await {
                    Content::Kept(body) => Ok(ReplyBody::Refused(*refusal, body)),
                    Content::Expired | Content::Sealed => {
                        Err(RequestFailure::Refused(id, *refusal))
                    }
                    Content::Broken => Err(RequestFailure::Unreadable(id, None)),
                    Content::NoRoom(full) => Err(RequestFailure::no_room(full, id)),
                    Content::Unread(error) => Err(failure_of_read(&error, id)),
                }
            }
        };
        Reply {
            outcome,
            replayed,
            rates: RateLimitStatus::default(),
            facts: ReplyFacts::of(operation),
        }
    }
}

fn failure_of_read(error: &Unavailable, operation: OperationId) -> RequestFailure {
    let error: &dyn std::error::Error = error;
    tracing::warn!(operation.id = %operation, error, "a result could not be read");
    RequestFailure::Storage(Some(operation))
}

impl RequestFailure {
    const fn no_room(full: ResultsFull, operation: OperationId) -> Self {
        match full {
            ResultsFull::ApiKey => Self::TooManyResults(operation),
            ResultsFull::Process => Self::Overloaded,
        }
    }

    /// Which operation it is about, where the key is bound and the caller may know.
    const fn operation(&self) -> Option<OperationId> {
        match self {
            Self::InProgress(id)
            | Self::TooManyResults(id)
            | Self::Unreadable(id, _)
            | Self::OutcomeUnknown(id)
            | Self::ClaimLost(id)
            | Self::NotRun(id, _)
            | Self::Recorded(id, _)
            | Self::Refused(id, _)
            | Self::ResultExpired(id, _)
            | Self::ResultSealed(id, _) => Some(*id),
            Self::Storage(operation) | Self::Internal(operation) => *operation,
            Self::BadRequest(_)
            | Self::TooLarge { .. }
            | Self::ModelNotFound { .. }
            | Self::ModelNotAllowed
            | Self::NoPrice(_)
            | Self::ChargeLimit { .. }
            | Self::InsufficientFunds { .. }
            | Self::LimitReached(_)
            | Self::PassedOver(_)
            | Self::TooManyWaiters
            | Self::OtherRequest
            | Self::Overloaded
            | Self::Draining => None,
        }
    }
}

impl ReplyFacts {
    /// What a row tells.
    pub(crate) fn of(operation: &Operation) -> Self {
        let last = operation.attempts.last();
        Self {
            operation: Some(operation.id),
            model: Some(operation.model.clone()),
            phase: Some(operation.phase.label()),
            route: last.map(|attempt| Arc::clone(&attempt.route)),
            class: last.map(|attempt| attempt.class.clone()),
            upstream: last.map(|attempt| attempt.latency),
            usage: operation.phase.usage().cloned(),
        }
    }
}

/// What became of an operation's content, for one caller.
pub(crate) enum Content {
    /// Here it is.
    Kept(Bytes),
    /// Deleted after its time.
    Expired,
    /// Sealed by another credential.
    Sealed,
    /// It does not open with the credential that sealed it: a bug or tampering.
    Broken,
    /// It is large, and found no room in time.
    NoRoom(ResultsFull),
    /// The store does not work.
    Unread(Unavailable),
}

impl Engine {
    /// A row's content for a caller: opened at once where the load brought it along. Cancel safe.
    pub(crate) async fn content(
        &self,
        snapshot: &Snapshot,
        operation: &Operation,
        caller: &Caller,
    ) -> Content {
        let Some(result) = &snapshot.result else { return Content::Expired };
        if result.credential != caller.bearer.id {
            return Content::Sealed;
        }
        if result.withheld > 0 {
            // In a box: few are.
            return Box::pin(self.load_large_content(operation, result.withheld, caller)).await;
        }
        let key = caller.bearer.secret.result_key(operation.id);
        match seal::open(&key, operation, result) {
            Ok(opened) => Content::Kept(opened.body.into()),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(operation.id = %operation.id, error, "a result does not open");
                Content::Broken
            }
        }
    }
}
