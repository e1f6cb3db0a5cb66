//! One chat completion request, from its raw body to the answer: parse, compare with what the key is
//! bound to, claim or attach, wait.
//!
//! Every future in here may be dropped by a caller that hangs up: the operation is a task of its own.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::model::Terms;
use holdfast_domain::operation::{Binding, Phase};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::request::Request;
use holdfast_domain::{Micros, OperationId, RequestKey};
use holdfast_wire::chat::request::{BadRequest, Delivery, Parsed, model_named, parse};
use holdfast_wire::error::Code;
use tokio::time::{Instant, sleep_until};

use crate::Engine;
use crate::admission::Bid;
use crate::callers::{Caller, InHand};
use crate::offer::Offer;
use crate::rates::Rates;
use crate::remote_run::{Progress, RemoteRun};
use crate::reply::{Failure, Reply};
use crate::tape::{Followed, Outcome, Registered, Tape, Track};

/// How long whoever wants a stream waits for its head where nothing is said: until then an error has its
/// status.
const HEAD_WAIT: Duration = Duration::from_secs(5);
/// Runs that may refuse each other the key before a caller is told to come again.
const TURNS_MAX: u32 = 16;

/// A chat completion request of an authenticated caller.
#[derive(Clone)]
pub struct Submission {
    /// What it is served by to the end, whatever takes its place meanwhile.
    pub offer: Arc<Offer>,
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
    pub in_hand: Arc<InHand>,
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
            return Reply::unbound(Failure::Draining);
        }
        let (mut ask, body) = Ask::of(submission);
        let request = match parse(&body) {
            Ok(Parsed { request, delivery }) => {
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
        let mut reply = self.answer(&ask, Said { request, body }).await;
        if reply.outcome.is_err() {
            // What was refused is of no row that would say it.
            reply.facts.model.get_or_insert(model);
        }
        self.travelling(reply, &ask).await
    }

    /// An id that cannot be a model's may still be near one.
    fn refusal(&self, ask: &Ask, body: &[u8], bad: BadRequest) -> Failure {
        if bad.code != Code::ModelNotFound {
            return Failure::BadRequest(Arc::new(bad));
        }
        let (offer, caller, now) = (&ask.offer, &ask.caller, self.node.now());
        let meant = model_named(body).and_then(|written| offer.meant(caller, &written, now));
        Failure::ModelNotFound { meant }
    }

    async fn answer(self: &Arc<Self>, ask: &Ask, mut said: Said) -> Reply {
        for _turn in 0..TURNS_MAX {
            said = match self.turn(ask, said).await {
                ControlFlow::Break(reply) => return reply,
                ControlFlow::Continue(said) => said,
            };
        }
        Reply::unbound(Failure::Overloaded)
    }

    /// Attaches to the run of this process, or starts one. `Continue`: the key is free again.
    ///
    /// What few requests come to is in boxes: all of them would be moved about with room for it.
    async fn turn(self: &Arc<Self>, ask: &Ask, said: Said) -> ControlFlow<Reply, Said> {
        if let Some(tape) = self.running.find(ask.id) {
            return Box::pin(self.attach(ask, said, &tape)).await;
        }
        let (bid, way) = match self.enter(ask, &said) {
            Ok(entered) => entered,
            Err(failure) => {
                let Said { request, body } = said;
                let refused = Box::pin(self.refuse(ask, Some(request), body, failure));
                return ControlFlow::Break(refused.await);
            }
        };
        // Taken before the look: a drain that this request did not see waits for its operation.
        let admitted = self.tasks.token();
        if self.takes_nothing_new() {
            return ControlFlow::Break(Reply::unbound(Failure::Draining));
        }
        let binding = bid.claim.binding;
        let track =
            ask.delivery.stream.then(|| Track::new(&ask.caller.bearer, bid.claim.model.clone()));
        let claim = bid.claim.owner.claim;
        let tape = match self.running.find_or_register(ask.id, claim, binding, track) {
            Registered::Found(tape) => {
                drop((bid, way));
                return Box::pin(self.attach(ask, said, &tape)).await;
            }
            Registered::New(tape) => tape,
        };
        let reader = tape.read(ask.offer.rules.waiters_per_operation);
        let body = said.into_body();
        // In a box: a task is copied several times before it runs.
        self.tasks.spawn(Box::pin(Arc::clone(self).operate(tape, ask.clone(), (bid, way), body)));
        drop(admitted);
        let Some(reader) = reader else {
            return ControlFlow::Break(Reply::unbound(Failure::TooManyWaiters));
        };
        // The caller that started the run waits for its end, which the model's timeout bounds.
        ControlFlow::Break(match self.follow(ask, reader, None).await {
            ControlFlow::Break(begun) => begun,
            ControlFlow::Continue(followed) => self.told(ask, followed).await,
        })
    }

    /// Follows a run that an earlier request started.
    async fn attach(
        self: &Arc<Self>,
        ask: &Ask,
        said: Said,
        tape: &Arc<Tape>,
    ) -> ControlFlow<Reply, Said> {
        let Said { request, body } = &said;
        let same = self.is_same_request(&tape.binding, &ask.caller, Some(request), body);
        if !same && tape.is_admitted() {
            return ControlFlow::Break(Reply::unbound(Failure::OtherRequest));
        }
        let Some(reader) = tape.read(ask.offer.rules.waiters_per_operation) else {
            return ControlFlow::Break(Reply::unbound(Failure::TooManyWaiters));
        };
        if !same {
            // Another request has offered a claim for the key. This one conflicts only if that claim
            // is committed: the key may be bound to this one already, or to none.
            return match reader.is_bound(ask.patience).await {
                Some(true) => ControlFlow::Break(Reply::unbound(Failure::OtherRequest)),
                Some(false) => ControlFlow::Continue(said),
                None => ControlFlow::Break(Reply::unbound(Failure::Storage(None))),
            };
        }
        if reader.is_let_go() {
            // There was nobody before this one, and it has what it takes to run.
            let followed = reader.follow(Some(ask.patience)).await;
            return if matches!(followed, Followed::Ended(_)) {
                ControlFlow::Continue(said)
            } else {
                ControlFlow::Break(self.told(ask, followed).await)
            };
        }
        // Those who wait are many, and the run has the same.
        drop(said);
        let (mut reply, is_own) = match self.follow(ask, reader, Some(ask.patience)).await {
            ControlFlow::Break(begun) => (begun, false),
            ControlFlow::Continue(followed) => {
                let is_own = is_of_claim(&followed);
                (self.told(ask, followed).await, is_own)
            }
        };
        if !is_own {
            reply.replayed = true;
            reply.rates = Rates::default();
        }
        ControlFlow::Break(reply)
    }

    /// What the end of a run tells this caller.
    pub(crate) async fn told(self: &Arc<Self>, ask: &Ask, followed: Followed) -> Reply {
        match followed {
            Followed::Ended(Outcome::Unbound(failure)) => {
                let rates = if let Failure::LimitReached(reached) = &failure {
                    Rates::at(&ask.caller.api_key.grant.limits, reached)
                } else {
                    Rates::default()
                };
                Reply { rates, ..Reply::unbound(failure) }
            }
            Followed::Ended(Outcome::Row { snapshot, body, ran, rates }) => {
                let reply = match Reply::from_run(&snapshot, body, &ask.caller, !ran) {
                    Some(reply) => reply,
                    None => Box::pin(self.reply_of_row(&snapshot, &ask.caller, !ran)).await,
                };
                Reply { rates, ..reply }
            }
            Followed::Ended(Outcome::Elsewhere) => Box::pin(self.follow_row(ask)).await,
            Followed::Ended(Outcome::OtherRequest) => Reply::unbound(Failure::OtherRequest),
            Followed::Ended(Outcome::Lost) => Reply::unbound(Failure::Internal(Some(ask.id))),
            Followed::Ended(Outcome::GivenBack) | Followed::Unclaimed => {
                Reply::unbound(Failure::Storage(None))
            }
            Followed::StillRunning => Reply::unbound(Failure::InProgress(ask.id)),
            Followed::Unsettled => Reply::unbound(Failure::Storage(Some(ask.id))),
        }
    }

    /// A refusal of today's rules stands only where the key is not bound, or is open.
    async fn refuse(
        self: &Arc<Self>,
        ask: &Ask,
        request: Option<Arc<Request>>,
        body: Bytes,
        failure: Failure,
    ) -> Reply {
        let caller = &ask.caller;
        let snapshot = match self.reconciled(ask.id).await {
            Ok(snapshot) => snapshot,
            Err(error) => return unreadable(&error, None),
        };
        let Some(operation) = &snapshot.operation else { return Reply::unbound(failure) };
        if !self.is_same_request(&operation.binding, caller, request.as_deref(), &body) {
            return Reply::unbound(Failure::OtherRequest);
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
    async fn follow_row(self: &Arc<Self>, ask: &Ask) -> Reply {
        let Some(watch) = self.watch(ask.id, ask.offer.rules.waiters_per_operation) else {
            return Reply::unbound(Failure::TooManyWaiters);
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
            Some(Progress::Said(event)) => Reply::joined(joined, [event].into()),
            None => Reply::joined(joined, [].into()),
        }
    }

    /// The rebinding that a claim is compared by with rows made under other terms.
    pub(crate) fn rebind(
        &self,
        ask: &Ask,
        bid: &Bid,
        body: Bytes,
    ) -> impl Fn(&Terms) -> Option<Binding> + Send + Sync + use<> {
        let (secrets, caller) = (Arc::clone(&self.secrets), Arc::clone(&ask.caller));
        let request = Arc::clone(&bid.request);
        move |terms| secrets.bind(*terms, &caller, &request, &body)
    }
}

/// One request while it is answered, without what it says.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) offer: Arc<Offer>,
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
    _in_hand: Arc<InHand>,
}

impl Ask {
    fn of(submission: Submission) -> (Self, Bytes) {
        let Submission { offer, caller, request_key, body, max_charge, patience, in_hand } =
            submission;
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
            _in_hand: in_hand,
        };
        (ask, body)
    }
}

/// What a request says: the largest part of it, kept only until it was compared or is to be run.
pub(crate) struct Said {
    pub(crate) request: Arc<Request>,
    pub(crate) body: Bytes,
}

impl Said {
    fn into_body(self) -> Bytes {
        self.body
    }
}

/// Whether what was followed came to no run: the claim was this caller's as well, it would have offered the same,
/// and is told what the one who offered it is told.
const fn is_of_claim(followed: &Followed) -> bool {
    let Followed::Ended(outcome) = followed else { return false };
    matches!(outcome, Outcome::Unbound(_) | Outcome::OtherRequest | Outcome::Elsewhere)
}

fn unreadable(error: &Unavailable, operation: Option<OperationId>) -> Reply {
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "an operation could not be read");
    Reply::unbound(Failure::Storage(operation))
}
