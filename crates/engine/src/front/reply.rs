//! Replies: a tape or a row in the form for one caller, as a whole or as a stream; its spelling is the wire's and
//! HTTP's business.
//!
//! The answer of a run that has just ended is in memory, and goes to all who waited for it as one copy. Every other
//! answer is read from its row and opened with the caller's own credential. A row outlives its content and its
//! content may be of another credential: each of these has a failure of its own, with the charge if there was one,
//! because a caller who gets no text must still be able to see the charge.

mod remote_run;
mod streaming;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::{
    Operation, Phase, ProviderRefusal, Situation, Snapshot, situation,
};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::private::Private;
use holdfast_domain::{ErrorChain, OperationId};
use tokio::time::sleep_until;

use self::remote_run::{RemoteProgress, RemoteRun};
pub use self::streaming::{CompletionStream, StreamFailure, StreamItem};
use super::Front;
use crate::authentication::Caller;
use crate::failure::RequestFailure;
use crate::rate_limit::RateLimitStatus;
use crate::request_context::RequestContext;
use crate::results::{Content, ResultsFull};
use crate::routes::SkippedRoute;
use crate::tape::{FollowOutcome, Outcome};

/// Reply to one request.
#[derive(Debug)]
pub struct Reply {
    /// Body, or the failure.
    pub outcome: Result<ReplyBody, RequestFailure>,
    /// `true` if an earlier request had bound the operation.
    pub replayed: bool,
    /// Limits by the minute of the API key, if this request claimed; else unset.
    pub rates: RateLimitStatus,
    /// Facts for the request's log line.
    pub facts: ReplyFacts,
}

/// Body of a reply, in its exact bytes.
#[derive(Debug)]
pub enum ReplyBody {
    /// Completion as one JSON body.
    Completed(Private<Bytes>),
    /// Completion as a stream of events.
    Streamed(Box<CompletionStream>),
    /// Definitive refusal by the provider, in the bytes of the first answer.
    Refused(ProviderRefusal, Private<Bytes>),
}

/// Facts of an operation that may be logged: never content.
#[derive(Debug, Clone, Default)]
pub struct ReplyFacts {
    /// Operation id, once the key is bound.
    pub operation: Option<OperationId>,
    /// Public model id.
    pub model: Option<PublicModelId>,
    /// Label of the phase.
    pub phase: Option<&'static str>,
    /// Situation as callers see it.
    pub situation: Option<Situation>,
    /// Route of the last attempt.
    pub route: Option<Arc<str>>,
    /// Class of the last attempt.
    pub class: Option<Cow<'static, str>>,
    /// Reason why the answer of the last attempt could not be read.
    pub reason: Option<Cow<'static, str>>,
    /// Latency of the last attempt.
    pub upstream: Option<Duration>,
    /// Usage record, the billing fact.
    pub usage: Option<UsageRecord>,
}

impl Reply {
    /// Creates the reply of a failure without a row.
    pub(crate) fn unbound(failure: RequestFailure) -> Self {
        let mut facts = ReplyFacts { operation: failure.operation(), ..ReplyFacts::default() };
        if let RequestFailure::PassedOver(SkippedRoute { route, class, .. }) = &failure {
            facts.route = Some(Arc::clone(route));
            facts.class = Some((*class).into());
        }
        Self { outcome: Err(failure), replayed: false, rates: RateLimitStatus::default(), facts }
    }

    /// Sets the requested model, for the log of a failure: a refusal has no row with the model.
    pub(crate) fn of_model(mut self, requested: Option<PublicModelId>) -> Self {
        if self.outcome.is_err() {
            self.facts.model = self.facts.model.or(requested);
        }
        self
    }

    /// Creates the reply of a run that ended here, from the plaintext in memory. `None` if the row has to be read:
    /// another credential sealed it, or it holds no answer.
    pub(crate) fn from_run(
        snapshot: &Snapshot,
        body: Option<Private<Bytes>>,
        caller: &Caller,
        replayed: bool,
    ) -> Option<Self> {
        let result = snapshot.result.as_ref()?;
        // Plaintext is for the credential that it is sealed for. Another one of the same API key may not get by
        // waiting what it cannot get by a later request.
        let body = body.filter(|_body| result.credential == caller.bearer.id)?;
        let operation = snapshot.operation.as_ref()?;
        let answered = match operation.phase {
            Phase::Completed { .. } => ReplyBody::Completed(body),
            Phase::Refused { refusal, .. } => ReplyBody::Refused(refusal, body),
            Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Abandoned { .. } => {
                return None;
            }
        };
        let (rates, facts) = (RateLimitStatus::default(), ReplyFacts::of(snapshot, operation));
        Some(Self { outcome: Ok(answered), replayed, rates, facts })
    }
}

impl Front {
    /// Makes the reply of a row for this caller, and opens its content. Cancel safe.
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
            Phase::Abandoned { .. } if operation.is_cancelled_open() => {
                Err(RequestFailure::CancelledUnrun(id))
            }
            Phase::Abandoned { .. } => Err(RequestFailure::OutcomeUnknown(id)),
            Phase::Completed { usage, .. } => {
                match self.results.content(&*self.journal, snapshot, operation, caller).await {
                    Content::Kept(body) => Ok(ReplyBody::Completed(Private(body))),
                    Content::Expired => {
                        Err(RequestFailure::ResultExpired(id, Box::new(usage.clone())))
                    }
                    Content::Sealed => {
                        Err(RequestFailure::ResultSealed(id, Box::new(usage.clone())))
                    }
                    Content::Broken => {
                        Err(RequestFailure::Unreadable(id, Some(Box::new(usage.clone()))))
                    }
                    Content::NoRoom(full) => Err(failure_of_room(full, id)),
                    Content::Unread(error) => Err(failure_of_read(&error, id)),
                }
            }
            Phase::Refused { refusal, .. } => {
                match self.results.content(&*self.journal, snapshot, operation, caller).await {
                    Content::Kept(body) => Ok(ReplyBody::Refused(*refusal, Private(body))),
                    // The words are gone and the verdict is not: the row has its kind.
                    Content::Expired | Content::Sealed => {
                        Err(RequestFailure::Refused(id, *refusal))
                    }
                    Content::Broken => Err(RequestFailure::Unreadable(id, None)),
                    Content::NoRoom(full) => Err(failure_of_room(full, id)),
                    Content::Unread(error) => Err(failure_of_read(&error, id)),
                }
            }
        };
        Reply {
            outcome,
            replayed,
            rates: RateLimitStatus::default(),
            facts: ReplyFacts::of(snapshot, operation),
        }
    }
}

fn failure_of_read(error: &Unavailable, operation: OperationId) -> RequestFailure {
    tracing::warn!(operation.id = %operation, error = %ErrorChain(error), "a result could not be read");
    RequestFailure::Storage(Some(operation))
}

const fn failure_of_room(full: ResultsFull, operation: OperationId) -> RequestFailure {
    match full {
        ResultsFull::ApiKey => RequestFailure::TooManyResults(operation),
        ResultsFull::Process => RequestFailure::Overloaded,
    }
}

impl ReplyFacts {
    /// Facts of a row and its last attempt.
    pub(crate) fn of(snapshot: &Snapshot, operation: &Operation) -> Self {
        let last = operation.attempts.last();
        let situation = situation(operation, snapshot.lease.as_ref(), snapshot.now);
        Self {
            operation: Some(operation.id),
            model: Some(operation.model.clone()),
            phase: Some(operation.phase.label()),
            situation: Some(situation),
            route: last.map(|attempt| Arc::clone(&attempt.route)),
            class: last.map(|attempt| attempt.class.clone()),
            reason: last.and_then(|attempt| attempt.reason.clone()),
            upstream: last.map(|attempt| attempt.latency),
            usage: operation.phase.usage().cloned(),
        }
    }
}

impl Front {
    /// Makes the reply of a followed run for this caller; a run elsewhere is followed by its row.
    pub(crate) async fn to_reply(
        self: &Arc<Self>,
        context: &RequestContext,
        followed: FollowOutcome,
    ) -> Reply {
        match followed {
            FollowOutcome::Ended(Outcome::Unbound(failure)) => {
                let rates = if let RequestFailure::LimitReached(reached) = &failure {
                    RateLimitStatus::at(&context.caller.api_key.grant.limits, reached)
                } else {
                    RateLimitStatus::default()
                };
                Reply { rates, ..Reply::unbound(failure) }
            }
            FollowOutcome::Ended(Outcome::Row { snapshot, body, ran, rates }) => {
                let reply = match Reply::from_run(&snapshot, body, &context.caller, !ran) {
                    Some(reply) => reply,
                    None => Box::pin(self.reply_of_row(&snapshot, &context.caller, !ran)).await,
                };
                Reply { rates, ..reply }
            }
            FollowOutcome::Ended(Outcome::Elsewhere) => Box::pin(self.follow_row(context)).await,
            FollowOutcome::Ended(Outcome::OtherRequest) => {
                Reply::unbound(RequestFailure::OtherRequest)
            }
            FollowOutcome::Ended(Outcome::Lost) => {
                Reply::unbound(RequestFailure::Internal(Some(context.id)))
            }
            // Without the operation: the key may be bound, or free again.
            FollowOutcome::Ended(Outcome::GivenBack) | FollowOutcome::Unclaimed => {
                Reply::unbound(RequestFailure::Storage(None))
            }
            FollowOutcome::StillRunning => Reply::unbound(RequestFailure::InProgress(context.id)),
            FollowOutcome::Unsettled => Reply::unbound(RequestFailure::Storage(Some(context.id))),
        }
    }

    /// Follows an operation that another process runs, and shares its polls with all who wait here.
    pub(super) async fn follow_row(self: &Arc<Self>, context: &RequestContext) -> Reply {
        let Some(watch) =
            self.row_poller.watch(context.id, context.serving.rules.waiters_per_operation)
        else {
            return Reply::unbound(RequestFailure::TooManyWaiters);
        };
        let mut joined = RemoteRun::new(self, context, watch);
        if !context.delivery.stream {
            return joined.rest().await;
        }
        let next = tokio::select! {
            // An event that is there when the head is due goes out as the first one, and an error keeps its status.
            biased;
            next = joined.more() => Some(next),
            () = sleep_until(context.head_by) => None,
        };
        match next {
            Some(RemoteProgress::Ended(reply)) => *reply,
            Some(RemoteProgress::Event(event)) => Reply::from_remote_run(joined, [event].into()),
            None => Reply::from_remote_run(joined, [].into()),
        }
    }
}
