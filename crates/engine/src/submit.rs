//! One chat completion request, from its raw body to the answer: parse, compare with what the key is
//! bound to, claim or attach, wait.
//!
//! Every future in here may be dropped by a caller that hangs up: the operation is a task of its own.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::{Binding, Phase};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::request::Request;
use holdfast_domain::{Micros, OperationId, RequestKey};
use holdfast_wire::chat::request::{BadRequest, Delivery, ParsedRequest, model_name, parse};
use holdfast_wire::error::Code;
use tokio::time::{Instant, sleep_until};

use crate::Engine;
use crate::admission::PreparedClaim;
use crate::callers::{Caller, InFlight};
use crate::rate_limit::RateLimitStatus;
use crate::remote_run::{Progress, RemoteRun};
use crate::reply::{Reply, RequestFailure};
use crate::serving_config::ServingConfig;
use crate::tape::{ChunkLog, FollowOutcome, Outcome, Registration, Tape};

/// How long whoever wants a stream waits for its head where nothing is said: until then an error has its
/// status.
const HEAD_WAIT: Duration = Duration::from_secs(5);
/// Runs that may refuse each other the key before a caller is told to come again.
const TURNS_MAX: u32 = 16;

/// A chat completion request of an authenticated caller.
#[derive(Clone)]
pub struct Submission {
    /// What it is served by to the end, whatever takes its place meanwhile.
    pub offer: Arc<ServingConfig>,
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// The body as it came.
    pub body: Bytes,
    /// The most that may be held, where the caller says so, or why that cannot be read. A retry that
    /// does not run ignores it.
    pub max_charge: Result<Option<Micros>, Arc<BadRequest>>,
    /// How long an attached caller waits before it is told that the operation still runs.
    pub patience: Duration,
    /// Counts for the API key until the answer is made and the run that it started has ended: who hangs
    /// up does not have less in hand.
    pub in_flight: Arc<InFlight>,
}

impl fmt::Debug for Submission {
    /// Without the body: it is the prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Submission({}, {} bytes)", self.request_key, self.body.len())
    }
}

impl Engine {
    /// Runs a chat completion once, or answers from the operation that the key is bound to. Cancel
    /// safe: a dropped future leaves the operation running.
    pub async fn complete(self: &Arc<Self>, submission: Submission) -> Reply {
        if self.takes_nothing_new() {
            return Reply::unbound(RequestFailure::Draining);
        }
        let (mut ask, body) = RequestContext::of(submission);
        let request = match parse(&body) {
            Ok(ParsedRequest { request, delivery }) => {
                ask.delivery = delivery;
                Arc::new(request)
            }
            Err(bad) => {
                let readable = bad.code != Code::InvalidJson;
                let failure = self.refusal(&ask, &body, bad);
                if !readable {
                    return Reply::unbound(failure);
                }
                return Box::pin(self.refuse(&ask, None, body, failure)).await;
            }
        };
        let model = request.model.clone();
        let mut reply = self.answer(&ask, RequestBody { request, body }).await;
        if reply.outcome.is_err() {
            // What was refused is of no row that would say it.
            reply.facts.model.get_or_insert(model);
        }
        self.deliver(reply, &ask).await
    }

    /// An id that cannot be a model's may still be near one.
    fn refusal(&self, ask: &RequestContext, body: &[u8], bad: BadRequest) -> RequestFailure {
        if bad.code != Code::ModelNotFound {
            return RequestFailure::BadRequest(Arc::new(bad));
        }
        let (offer, caller, now) = (&ask.offer, &ask.caller, self.node.now());
        let meant = model_name(body).and_then(|written| offer.suggest_model(caller, &written, now));
        RequestFailure::ModelNotFound { meant }
    }

    async fn answer(self: &Arc<Self>, ask: &RequestContext, mut said: RequestBody) -> Reply {
        for _turn in 0..TURNS_MAX {
            said = match self.try_once(ask, said).await {
                ControlFlow::Break(reply) => return reply,
                ControlFlow::Continue(said) => said,
            };
        }
        Reply::unbound(RequestFailure::Overloaded)
    }

    /// Attaches to the run of this process, or starts one. `Continue`: the key is free again.
    ///
    /// What few requests come to is in boxes: all of them would be moved about with room for it.
    async fn try_once(
        self: &Arc<Self>,
        ask: &RequestContext,
        said: RequestBody,
    ) -> ControlFlow<Reply, RequestBody> {
        if let Some(tape) = self.running.find(ask.id) {
            return Box::pin(self.attach(ask, said, &tape)).await;
        }
        let (bid, way) = match self.prepare_claim(ask, &said) {
            Ok(entered) => entered,
            Err(failure) => {
                let RequestBody { request, body } = said;
                let refused = Box::pin(self.refuse(ask, Some(request), body, failure));
                return ControlFlow::Break(refused.await);
            }
        };
        // Taken before the look: a drain that this request did not see waits for its operation.
        let admitted = self.tasks.token();
        if self.takes_nothing_new() {
            return ControlFlow::Break(Reply::unbound(RequestFailure::Draining));
        }
        let binding = bid.claim.binding;
        let track =
            ask.delivery.stream.then(|| ChunkLog::new(&ask.caller.bearer, bid.claim.model.clone()));
        let claim = bid.claim.owner.claim;
        let tape = match self.running.find_or_register(ask.id, claim, binding, track) {
            Registration::Found(tape) => {
                drop((bid, way));
                return Box::pin(self.attach(ask, said, &tape)).await;
            }
            Registration::New(tape) => tape,
        };
        let reader = tape.read(ask.offer.rules.waiters_per_operation);
        let body = said.into_body();
        // In a box: a task is copied several times before it runs.
        self.tasks.spawn(Box::pin(Arc::clone(self).operate(tape, ask.clone(), (bid, way), body)));
        drop(admitted);
        let Some(reader) = reader else {
            return ControlFlow::Break(Reply::unbound(RequestFailure::TooManyWaiters));
        };
        // The caller that started the run waits for its end, which the model's timeout bounds.
        ControlFlow::Break(match self.follow(ask, reader, None).await {
            ControlFlow::Break(begun) => begun,
            ControlFlow::Continue(followed) => self.to_reply(ask, followed).await,
        })
    }

    /// Follows a run that an earlier request started.
    async fn attach(
        self: &Arc<Self>,
        ask: &RequestContext,
        said: RequestBody,
        tape: &Arc<Tape>,
    ) -> ControlFlow<Reply, RequestBody> {
        let RequestBody { request, body } = &said;
        let same = self.is_same_request(&tape.binding, &ask.caller, Some(request), body);
        if !same && tape.is_admitted() {
            return ControlFlow::Break(Reply::unbound(RequestFailure::OtherRequest));
        }
        let Some(reader) = tape.read(ask.offer.rules.waiters_per_operation) else {
            return ControlFlow::Break(Reply::unbound(RequestFailure::TooManyWaiters));
        };
        if !same {
            // Another request has offered a claim for the key. This one conflicts only if that claim
            // is committed: the key may be bound to this one already, or to none.
            return match reader.is_bound(ask.patience).await {
                Some(true) => ControlFlow::Break(Reply::unbound(RequestFailure::OtherRequest)),
                Some(false) => ControlFlow::Continue(said),
                None => ControlFlow::Break(Reply::unbound(RequestFailure::Storage(None))),
            };
        }
        if reader.is_released() {
            // There was nobody before this one, and it has what it takes to run.
            let followed = reader.follow(Some(ask.patience)).await;
            return if matches!(followed, FollowOutcome::Ended(_)) {
                ControlFlow::Continue(said)
            } else {
                ControlFlow::Break(self.to_reply(ask, followed).await)
            };
        }
        // Those who wait are many, and the run has the same.
        drop(said);
        let (mut reply, is_own) = match self.follow(ask, reader, Some(ask.patience)).await {
            ControlFlow::Break(begun) => (begun, false),
            ControlFlow::Continue(followed) => {
                let is_own = is_of_claim(&followed);
                (self.to_reply(ask, followed).await, is_own)
            }
        };
        if !is_own {
            reply.replayed = true;
            reply.rates = RateLimitStatus::default();
        }
        ControlFlow::Break(reply)
    }

    /// What the end of a run tells this caller.
    pub(crate) async fn to_reply(
        self: &Arc<Self>,
        ask: &RequestContext,
        followed: FollowOutcome,
    ) -> Reply {
        match followed {
            FollowOutcome::Ended(Outcome::Unbound(failure)) => {
                let rates = if let RequestFailure::LimitReached(reached) = &failure {
                    RateLimitStatus::at(&ask.caller.api_key.grant.limits, reached)
                } else {
                    RateLimitStatus::default()
                };
                Reply { rates, ..Reply::unbound(failure) }
            }
            FollowOutcome::Ended(Outcome::Row { snapshot, body, ran, rates }) => {
                let reply = match Reply::from_run(&snapshot, body, &ask.caller, !ran) {
                    Some(reply) => reply,
                    None => Box::pin(self.reply_of_row(&snapshot, &ask.caller, !ran)).await,
                };
                Reply { rates, ..reply }
            }
            FollowOutcome::Ended(Outcome::Elsewhere) => Box::pin(self.follow_row(ask)).await,
            FollowOutcome::Ended(Outcome::OtherRequest) => {
                Reply::unbound(RequestFailure::OtherRequest)
            }
            FollowOutcome::Ended(Outcome::Lost) => {
                Reply::unbound(RequestFailure::Internal(Some(ask.id)))
            }
            FollowOutcome::Ended(Outcome::GivenBack) | FollowOutcome::Unclaimed => {
                Reply::unbound(RequestFailure::Storage(None))
            }
            FollowOutcome::StillRunning => Reply::unbound(RequestFailure::InProgress(ask.id)),
            FollowOutcome::Unsettled => Reply::unbound(RequestFailure::Storage(Some(ask.id))),
        }
    }

    /// A refusal of today's rules stands only where the key is not bound, or is open.
    async fn refuse(
        self: &Arc<Self>,
        ask: &RequestContext,
        request: Option<Arc<Request>>,
        body: Bytes,
        failure: RequestFailure,
    ) -> Reply {
        let caller = &ask.caller;
        let snapshot = match self.reconcile_operation(ask.id).await {
            Ok(snapshot) => snapshot,
            Err(error) => return unreadable(&error, None),
        };
        let Some(operation) = &snapshot.operation else { return Reply::unbound(failure) };
        if !self.is_same_request(&operation.binding, caller, request.as_deref(), &body) {
            return Reply::unbound(RequestFailure::OtherRequest);
        }
        drop((request, body));
        match operation.phase {
            Phase::Open => Reply::unbound(failure),
            Phase::Leased => self.follow_row(ask).await,
            Phase::Recorded(_)
            | Phase::Completed { .. }
            | Phase::Refused { .. }
            | Phase::Abandoned { .. } => self.reply_of_row(&snapshot, caller, true).await,
        }
    }

    /// Waits for an operation that this process does not run, with all others who wait for it here.
    async fn follow_row(self: &Arc<Self>, ask: &RequestContext) -> Reply {
        let Some(watch) = self.watch(ask.id, ask.offer.rules.waiters_per_operation) else {
            return Reply::unbound(RequestFailure::TooManyWaiters);
        };
        let mut joined = RemoteRun::new(self, ask, watch);
        if !ask.delivery.stream {
            return joined.rest().await;
        }
        let next = tokio::select! {
            biased;
            next = joined.more() => Some(next),
            () = sleep_until(ask.head_by) => None,
        };
        match next {
            Some(Progress::Rests(reply)) => *reply,
            Some(Progress::Said(event)) => Reply::from_remote_run(joined, [event].into()),
            None => Reply::from_remote_run(joined, [].into()),
        }
    }

    /// The rebinding that a claim is compared by with rows made under other terms.
    pub(crate) fn rebind(
        &self,
        ask: &RequestContext,
        bid: &PreparedClaim,
        body: Bytes,
    ) -> impl Fn(&FingerprintTerms) -> Option<Binding> + Send + Sync + use<> {
        let (secrets, caller) = (Arc::clone(&self.secrets), Arc::clone(&ask.caller));
        let request = Arc::clone(&bid.request);
        move |terms| secrets.bind(*terms, &caller, &request, &body)
    }
}

/// One request while it is answered, without what it says.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) offer: Arc<ServingConfig>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) request_key: RequestKey,
    pub(crate) max_charge: Result<Option<Micros>, Arc<BadRequest>>,
    pub(crate) id: OperationId,
    /// How the answer travels.
    pub(crate) delivery: Delivery,
    /// Until when an attached caller waits.
    pub(crate) patience: Instant,
    /// When whoever wants a stream gets its head, whether anything was said or not.
    pub(crate) head_by: Instant,
    _in_flight: Arc<InFlight>,
}

impl RequestContext {
    fn of(submission: Submission) -> (Self, Bytes) {
        let Submission {
            offer,
            caller,
            request_key,
            body,
            max_charge,
            patience,
            in_flight: in_hand,
        } = submission;
        let id = OperationId::of(caller.api_key.id, request_key);
        let now = Instant::now();
        let ask = Self {
            offer,
            caller,
            request_key,
            max_charge,
            id,
            delivery: Delivery::default(),
            patience: now + patience,
            head_by: now + HEAD_WAIT,
            _in_flight: in_hand,
        };
        (ask, body)
    }
}

/// What a request says: the largest part of it, kept only until it was compared or is to be run.
pub(crate) struct RequestBody {
    pub(crate) request: Arc<Request>,
    pub(crate) body: Bytes,
}

impl RequestBody {
    fn into_body(self) -> Bytes {
        self.body
    }
}

/// Whether what was followed came to no run: the claim was this caller's as well, it would have offered the same,
/// and is told what the one who offered it is told.
const fn is_of_claim(followed: &FollowOutcome) -> bool {
    let FollowOutcome::Ended(outcome) = followed else { return false };
    matches!(outcome, Outcome::Unbound(_) | Outcome::OtherRequest | Outcome::Elsewhere)
}

fn unreadable(error: &Unavailable, operation: Option<OperationId>) -> Reply {
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "an operation could not be read");
    Reply::unbound(RequestFailure::Storage(operation))
}
