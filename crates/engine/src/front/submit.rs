//! Submissions: one chat completion request, from its raw body to the reply.
//!
//! ```text
//! parse ─► a run here? ─ yes ─► same request? ─► attach, follow
//!   │          └─ no ─► admission ─► register ─► spawn the run, follow
//!   └ refused, as admission may: does the key hold an answer already? ─► that answer
//! ```
//!
//! A refusal by today's rules is valid only if the key holds no answer and no run: a model that was taken off the
//! list last night must not keep a caller from an answer that it has paid for. So a refused request costs a read of
//! its row.
//!
//! A key belongs to the first request whose claim is committed. Until then two different requests may race for it,
//! and the one that came second waits for the verdict instead of a conflict that may never be. Those who lose each
//! other's key try again, at most [`TURNS_MAX`] times.
//!
//! A request that may not run ([`RunMode::ReplayOnly`]) takes the same ways except admission: it attaches, or is
//! answered from the row, and else gets the failure that its key is not bound. It registers no tape and offers no
//! claim.
//!
//! Every future in here may be dropped by a caller that hangs up: the operation is a task of its own. A request
//! must never start a run that drain does not wait for: it takes a token of the task set first and reads the
//! drain's state then.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::model::{ModelAlias, PublicModelId};
use holdfast_domain::operation::Phase;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::request::Request;
use holdfast_domain::{ErrorChain, OperationId};
use holdfast_telemetry::traces::RequestTrace;
use holdfast_wire::chat::request::{BadRequest, Delivery, ParsedRequest, model_name, parse_with};
use holdfast_wire::error::Code;

use super::Front;
use super::admission::Comparison;
use super::reply::Reply;
use crate::authentication::{Caller, InFlight};
use crate::failure::RequestFailure;
use crate::rate_limit::RateLimitStatus;
use crate::request_context::{MemoryReservation, RequestBody, RequestContext, RunMode, Submission};
use crate::routes::time_to_next;
use crate::serving_config::{PARSED_INLINE_MAX, ServingConfig};
use crate::tape::{ChunkLog, FollowOutcome, NewRun, Outcome, Registration, Tape};

/// A body that parses. Its request is shared from here on: it is large, and futures would copy it.
pub(super) struct ParsedBody {
    pub(super) request: Arc<Request>,
    /// Alias that it names the model by.
    pub(super) alias: Option<ModelAlias>,
    delivery: Delivery,
}

/// A body that today's rules refuse.
pub(super) struct RefusedBody {
    pub(super) bad: BadRequest,
    /// Form of the requested answer if only its model is not known.
    delivery: Delivery,
}

/// Turns of one request, each lost to another claim of its key, before it is refused.
const TURNS_MAX: u32 = 16;

impl Front {
    /// Runs a chat completion once, or answers from the operation that the key is bound to. Cancel
    /// safe: a dropped future leaves the operation running.
    pub(crate) async fn complete(self: &Arc<Self>, submission: Submission) -> Reply {
        if self.takes_nothing_new() {
            return Reply::unbound(RequestFailure::Draining);
        }
        let (mut context, body, memory) = RequestContext::of(submission);
        let Some(parsed) = self
            .parse(&context.serving, &context.caller, &body, || kept(&context, memory.as_ref()))
            .await
        else {
            return Reply::unbound(RequestFailure::Internal(None));
        };
        let (request, alias) = match parsed {
            Ok(ParsedBody { request, alias, delivery }) => {
                context.delivery = delivery;
                (request, alias)
            }
            Err(RefusedBody { bad, delivery }) => {
                let readable = bad.code != Code::InvalidJson;
                context.delivery = delivery;
                let model = context.serving.model_in(&body);
                let (serving, caller) = (&context.serving, &context.caller);
                let failure = self.refusal(serving, caller, &body, bad);
                if !readable {
                    return Reply::unbound(failure);
                }
                let refused = Box::pin(self.refuse(&context, None, body, failure)).await;
                let refused = for_mode(refused, context.mode).of_model(model);
                return self.deliver(refused, &context).await;
            }
        };
        let model = request.model.clone();
        // Not of a large body: a caller that waits for a run of another request would keep it for that long.
        let asked = (body.len() <= PARSED_INLINE_MAX).then(|| Arc::clone(&request));
        let reply = self.answer(&context, RequestBody { request, alias, memory, body }).await;
        let reply = match &asked {
            Some(asked) => with_route_wait(reply, &context.serving, asked),
            None => reply,
        };
        let reply = for_mode(reply, context.mode).of_model(Some(model));
        self.deliver(reply, &context).await
    }

    /// Parses a body with the aliases of a serving configuration, a large one on a thread of its own: 20 MB of escapes
    /// would keep every other request of its worker waiting. The thread has what `kept` makes until its end. `None` if
    /// it panicked, which is logged. Cancel safe.
    pub(super) async fn parse<K: Send + 'static>(
        &self,
        serving: &Arc<ServingConfig>,
        caller: &Caller,
        body: &Bytes,
        kept: impl FnOnce() -> K,
    ) -> Option<Result<ParsedBody, RefusedBody>> {
        if body.len() <= PARSED_INLINE_MAX {
            return Some(parse_for(serving, body));
        }
        let (serving, body) = (Arc::clone(serving), body.clone());
        // In a box: few bodies are large.
        let api_key = caller.api_key.id;
        Box::pin(self.runner.parsing.run(api_key, kept(), move || parse_for(&serving, &body))).await
    }

    /// Makes the failure of a body that does not parse; a model id that is malformed may still be
    /// near one that the caller can use.
    pub(super) fn refusal(
        &self,
        serving: &ServingConfig,
        caller: &Caller,
        body: &[u8],
        bad: BadRequest,
    ) -> RequestFailure {
        if bad.code != Code::ModelNotFound {
            return RequestFailure::BadRequest(Arc::new(bad));
        }
        let now = self.membership.node.now();
        // A large body would be read once more by this worker, only for a hint.
        let written = (body.len() <= PARSED_INLINE_MAX).then(|| model_name(body)).flatten();
        let meant = written.and_then(|written| serving.suggest_model(caller, &written, now));
        RequestFailure::ModelNotFound { meant }
    }

    async fn answer(
        self: &Arc<Self>,
        context: &RequestContext,
        mut request_body: RequestBody,
    ) -> Reply {
        for _turn in 0..TURNS_MAX {
            request_body = match self.try_once(context, request_body).await {
                ControlFlow::Break(reply) => return reply,
                ControlFlow::Continue(request_body) => request_body,
            };
        }
        Reply::unbound(RequestFailure::Overloaded)
    }

    /// Attaches to the run of this process, or starts one. `Continue`: the key is free again.
    ///
    /// Rare paths are boxed: every request's future would have room for the largest of them.
    async fn try_once(
        self: &Arc<Self>,
        context: &RequestContext,
        request_body: RequestBody,
    ) -> ControlFlow<Reply, RequestBody> {
        // Before admission: most retries meet their run, and need no price, hold or route for that.
        if let Some(tape) = self.runner.running.find(context.id) {
            return Box::pin(self.attach(context, request_body, &tape)).await;
        }
        if context.mode == RunMode::ReplayOnly {
            let RequestBody { request, body, .. } = request_body;
            let unbound = RequestFailure::NotBound;
            let found = Box::pin(self.refuse(context, Some(request), body, unbound));
            return ControlFlow::Break(found.await);
        }
        let (prepared, route_plan) = match self.prepare_claim(context, &request_body) {
            Ok(entered) => entered,
            Err(failure) => {
                let RequestBody { request, body, .. } = request_body;
                let refused = Box::pin(self.refuse(context, Some(request), body, failure));
                return ControlFlow::Break(refused.await);
            }
        };
        // Token before the check: either this request sees the drain, or the drain waits for its run.
        let drain_token = self.runner.tasks.token();
        if self.takes_nothing_new() {
            return ControlFlow::Break(Reply::unbound(RequestFailure::Draining));
        }
        let (binding, model) = (prepared.claim.binding, prepared.claim.model.clone());
        let alias = prepared.claim.alias.clone();
        let chunk_log = context
            .delivery
            .stream
            .then(|| ChunkLog::new(&context.caller.bearer, prepared.claim.model.clone()));
        let claim = prepared.claim.owner.claim;
        let span = context.trace.as_deref().map(RequestTrace::context);
        let new = NewRun { claim, binding, model, alias, chunk_log, span };
        let tape = match self.runner.running.find_or_register(context.id, new) {
            Registration::Found(tape) => {
                // Another request was registered since the check, and runs with its own permit: this one is given
                // back.
                drop((prepared, route_plan));
                return Box::pin(self.attach(context, request_body, &tape)).await;
            }
            Registration::New(tape) => tape,
        };
        let reader = tape.read(context.serving.rules.waiters_per_operation);
        // The reader comes before the task: a run that ended at once would else have had none, and a claim that is
        // late may be given back for want of readers.
        let body = request_body.into_body();
        // In a box: a task is copied several times before it runs.
        self.runner.tasks.spawn(Box::pin(Arc::clone(&self.runner).operate(
            tape,
            context.clone(),
            (prepared, route_plan),
            body,
        )));
        drop(drain_token);
        let Some(reader) = reader else {
            return ControlFlow::Break(Reply::unbound(RequestFailure::TooManyWaiters));
        };
        // The caller that started the run waits for its end, which the model's timeout bounds.
        ControlFlow::Break(match self.follow(context, reader, None).await {
            ControlFlow::Break(begun) => begun,
            ControlFlow::Continue(followed) => self.to_reply(context, followed).await,
        })
    }

    /// Attaches to a run that an earlier request started. `Continue`: that run was not claimed, and this request
    /// may claim.
    async fn attach(
        self: &Arc<Self>,
        context: &RequestContext,
        request_body: RequestBody,
        tape: &Arc<Tape>,
    ) -> ControlFlow<Reply, RequestBody> {
        let RequestBody { request, body, .. } = &request_body;
        // Never unknown: the tape is of this process, and so is the version.
        let compared = self.compare(tape.bound_request(), context, Some(request), body).await;
        let Some(compared) = compared else {
            return ControlFlow::Break(Reply::unbound(RequestFailure::Internal(None)));
        };
        let same = compared == Comparison::Same;
        if !same && tape.has_bound_key() {
            return ControlFlow::Break(Reply::unbound(RequestFailure::OtherRequest));
        }
        let Some(reader) = tape.read(context.serving.rules.waiters_per_operation) else {
            return ControlFlow::Break(Reply::unbound(RequestFailure::TooManyWaiters));
        };
        if !same {
            // Another request has offered a claim for the key. This one conflicts only if that claim
            // is committed: the key may be bound to this one already, or to none.
            return match reader.is_bound(context.wait_until).await {
                Some(true) => ControlFlow::Break(Reply::unbound(RequestFailure::OtherRequest)),
                Some(false) => ControlFlow::Continue(request_body),
                None => ControlFlow::Break(Reply::unbound(RequestFailure::Storage(None))),
            };
        }
        if reader.is_released() {
            // The claim was given back for want of readers: after its end this request claims anew.
            let followed = reader.follow(Some(context.wait_until)).await;
            return if matches!(followed, FollowOutcome::Ended(_)) {
                ControlFlow::Continue(request_body)
            } else {
                ControlFlow::Break(self.to_reply(context, followed).await)
            };
        }
        if let (Some(trace), Some(run)) = (&context.trace, tape.span) {
            trace.follow(run);
        }
        // Drop the body: the run holds its own copy, and many may wait.
        drop(request_body);
        let (mut reply, is_own) = match self.follow(context, reader, Some(context.wait_until)).await
        {
            ControlFlow::Break(begun) => (begun, false),
            ControlFlow::Continue(followed) => {
                let is_own = is_of_claim(&followed);
                (self.to_reply(context, followed).await, is_own)
            }
        };
        if !is_own {
            reply.replayed = true;
            reply.rates = RateLimitStatus::default();
        }
        ControlFlow::Break(reply)
    }

    /// Answers a request that today's rules refuse: with the operation's answer if its key is bound to it, else, or
    /// if the operation is open, with the refusal. Within the window of a restore a refusal that says that nothing was
    /// charged could be wrong: the key may have run by the rules of before. A malformed body never ran.
    async fn refuse(
        self: &Arc<Self>,
        context: &RequestContext,
        request: Option<Arc<Request>>,
        body: Bytes,
        failure: RequestFailure,
    ) -> Reply {
        let caller = &context.caller;
        let snapshot = match self.membership.reconcile_operation(context.id).await {
            Ok(snapshot) => snapshot,
            Err(error) => return unreadable(&error, None),
        };
        let failure = match (failure, caller.window_at(snapshot.now)) {
            (failure @ RequestFailure::BadRequest(_), _) | (failure, None) => failure,
            (_, until) => RequestFailure::LedgerRestored { until },
        };
        let Some(operation) = &snapshot.operation else { return Reply::unbound(failure) };
        match self.compare(operation.into(), context, request.as_ref(), &body).await {
            Some(Comparison::Same) => {}
            Some(Comparison::Other) => return Reply::unbound(RequestFailure::OtherRequest),
            Some(Comparison::Unknown) => return Reply::unbound(RequestFailure::Storage(None)),
            None => return Reply::unbound(RequestFailure::Internal(None)),
        }
        let is_moved = request.as_ref().is_some_and(|it| it.model != operation.model);
        drop((request, body));
        match operation.phase {
            // Its alias leads to another model by now, which the key is not bound to.
            Phase::Open if is_moved => Reply::unbound(RequestFailure::OtherRequest),
            Phase::Open => Reply::unbound(failure),
            Phase::Leased => self.follow_row(context).await,
            Phase::Recorded(_)
            | Phase::Completed { .. }
            | Phase::Refused { .. }
            | Phase::Abandoned { .. } => self.reply_of_row(&snapshot, caller, true).await,
        }
    }
}

/// Count and memory of a request, for as long as a thread works on its body.
fn kept(
    context: &RequestContext,
    memory: Option<&MemoryReservation>,
) -> (Arc<InFlight>, Option<MemoryReservation>) {
    (Arc::clone(&context.in_flight), memory.cloned())
}

/// Parses a body with the aliases of a serving configuration.
fn parse_for(serving: &ServingConfig, body: &[u8]) -> Result<ParsedBody, RefusedBody> {
    match parse_with(body, &|alias: &ModelAlias| serving.catalogue.resolve(alias)) {
        Ok(ParsedRequest { request, alias, delivery }) => {
            Ok(ParsedBody { request: Arc::new(request), alias, delivery })
        }
        Err(bad) => {
            let is_of_no_model = bad.code == Code::ModelNotFound;
            let delivery = if is_of_no_model { delivery_of(body) } else { Delivery::default() };
            Err(RefusedBody { bad, delivery })
        }
    }
}

/// Form of the answer to a body whose model is not known: the alias that bound its key may be gone.
fn delivery_of(body: &[u8]) -> Delivery {
    let any_model = |alias: &ModelAlias| PublicModelId::try_from(&*format!("{alias}/{alias}")).ok();
    parse_with(body, &any_model).map_or(Delivery::default(), |parsed| parsed.delivery)
}

/// True if a run ended before it began. Its verdict is then this caller's own as well, because it would have
/// offered the same claim.
const fn is_of_claim(followed: &FollowOutcome) -> bool {
    let FollowOutcome::Ended(outcome) = followed else { return false };
    matches!(outcome, Outcome::Unbound(_) | Outcome::OtherRequest | Outcome::Elsewhere)
}

/// Adds the time to the next route to the wait of a request that did not run: while all routes are
/// closed by their providers' pauses, an earlier retry is refused.
fn with_route_wait(mut reply: Reply, serving: &ServingConfig, request: &Request) -> Reply {
    if let Err(RequestFailure::NotRun(_id, wait)) = &mut reply.outcome {
        *wait = (*wait).max(time_to_next(serving.routes_of(&request.model), request));
    }
    reply
}

/// Reply to a request of this mode. One that may not run gets neither the reason against a run nor the possibility
/// of one: its key holds no answer, be it that another's claim was refused meanwhile, or that its run has proven
/// not to have happened.
fn for_mode(mut reply: Reply, mode: RunMode) -> Reply {
    let is_about_a_run = |failure: &RequestFailure| match failure {
        RequestFailure::BadRequest(bad) => bad.code != Code::InvalidJson,
        RequestFailure::NotBound
        | RequestFailure::TooLarge { .. }
        | RequestFailure::ModelNotFound { .. }
        | RequestFailure::ApiKeySuspended
        | RequestFailure::WalletSuspended
        | RequestFailure::ModelNotAllowed
        | RequestFailure::NoPrice(_)
        | RequestFailure::ChargeLimit { .. }
        | RequestFailure::InsufficientFunds { .. }
        | RequestFailure::FundsHeld { .. }
        | RequestFailure::LimitReached(_)
        | RequestFailure::PassedOver(_)
        | RequestFailure::NotRun(..) => true,
        RequestFailure::TooManyWaiters
        | RequestFailure::TooManyResults(_)
        | RequestFailure::OtherRequest
        | RequestFailure::LedgerRestored { .. }
        | RequestFailure::InProgress(_)
        | RequestFailure::OutcomeUnknown(_)
        | RequestFailure::CancelledUnrun(_)
        | RequestFailure::ClaimLost(_)
        | RequestFailure::Refused(..)
        | RequestFailure::ResultExpired(..)
        | RequestFailure::ResultSealed(..)
        | RequestFailure::Storage(_)
        | RequestFailure::Recorded(..)
        | RequestFailure::Overloaded
        | RequestFailure::Draining
        | RequestFailure::Unreadable(..)
        | RequestFailure::Internal(_) => false,
    };
    if mode == RunMode::ReplayOnly && reply.outcome.as_ref().is_err_and(is_about_a_run) {
        reply = Reply::unbound(RequestFailure::NotBound);
    }
    reply
}

fn unreadable(error: &Unavailable, operation: Option<OperationId>) -> Reply {
    tracing::warn!(error = %ErrorChain(error), "an operation could not be read");
    Reply::unbound(RequestFailure::Storage(operation))
}
