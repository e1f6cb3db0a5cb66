//! One chat completion request, from its raw body to the answer: parse, compare with what the key is
//! bound to, claim or attach, wait.
//!
//! Every future in here may be dropped by a caller that hangs up: the operation is a task of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::model::Terms;
use holdfast_domain::operation::{Binding, Phase, Snapshot};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::request::Request;
use holdfast_domain::{Micros, OperationId, RequestKey};
use holdfast_wire::error::Code;
use tokio::time::Instant;

use crate::Engine;
use crate::admission::Bid;
use crate::callers::Caller;
use crate::reply::{Failure, Reply};
use crate::tape::{Followed, Outcome, Reader, Registered, Tape};

/// Between two looks at an operation that another process runs.
const POLL: Duration = Duration::from_millis(250);
/// Runs that may refuse each other the key before a caller is told to come again.
const TURNS_MAX: u32 = 16;

/// A chat completion request of an authenticated caller.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// The body as it came.
    pub body: Bytes,
    /// The most that may be held, where the caller says so. A retry that does not run ignores it.
    pub max_charge: Option<Micros>,
    /// How long an attached caller waits before it is told that the operation still runs.
    pub patience: Duration,
}

impl Engine {
    /// Runs a chat completion once, or answers from the operation that the key is bound to. Cancel
    /// safe: a dropped future leaves the operation running.
    pub async fn complete(self: &Arc<Self>, submission: Submission) -> Reply {
        if self.draining.is_cancelled() || self.node.superseded.is_cancelled() {
            return Reply::unbound(Failure::Draining);
        }
        let patience = Instant::now() + submission.patience;
        let api_key = submission.caller.api_key.id;
        let id = OperationId::of(api_key, submission.request_key);
        let request = match holdfast_wire::chat::request::parse(&submission.body) {
            Ok(request) => Arc::new(request),
            Err(bad) => {
                let readable = bad.code != Code::InvalidJson;
                let failure = Failure::BadRequest(Arc::new(bad));
                if !readable {
                    return Reply::unbound(failure);
                }
                return self.refuse(&submission, id, None, failure, patience).await;
            }
        };
        for _turn in 0..TURNS_MAX {
            match self.turn(&submission, id, &request, patience).await {
                Turn::Over(reply) => return reply,
                Turn::Again => {}
            }
        }
        Reply::unbound(Failure::Overloaded)
    }

    /// Attaches to the run of this process, or starts one.
    async fn turn(
        self: &Arc<Self>,
        submission: &Submission,
        id: OperationId,
        request: &Arc<Request>,
        patience: Instant,
    ) -> Turn {
        if let Some(tape) = self.running.find(id) {
            return self.attach(submission, request, &tape, patience).await;
        }
        let bid = match self.admit(submission, request) {
            Ok(bid) => bid,
            Err(failure) => {
                let request = Some(&**request);
                let reply = self.refuse(submission, id, request, failure, patience).await;
                return Turn::Over(reply);
            }
        };
        let binding = bid.claim.binding;
        let tape = match self.running.find_or_register(id, bid.claim.owner.claim, binding) {
            Registered::Found(tape) => {
                return self.attach(submission, request, &tape, patience).await;
            }
            Registered::New(tape) => tape,
        };
        let reader = tape.read(self.options.waiters_per_operation);
        let run = Arc::clone(self).operate(tape, submission.clone(), bid);
        self.tasks.spawn(run);
        let Some(reader) = reader else {
            return Turn::Over(Reply::unbound(Failure::TooManyWaiters));
        };
        // The caller that started the run waits for its end, which the model's timeout bounds.
        let followed = reader.follow(None).await;
        Turn::Over(self.told(submission, id, followed, patience).await)
    }

    /// Follows a run that an earlier request started.
    async fn attach(
        &self,
        submission: &Submission,
        request: &Arc<Request>,
        tape: &Arc<Tape>,
        patience: Instant,
    ) -> Turn {
        let caller = &submission.caller;
        let same = self.is_same_request(&tape.binding, caller, Some(request), &submission.body);
        if !same && tape.is_admitted() {
            return Turn::Over(Reply::unbound(Failure::OtherRequest));
        }
        let Some(reader) = tape.read(self.options.waiters_per_operation) else {
            return Turn::Over(Reply::unbound(Failure::TooManyWaiters));
        };
        if !same {
            return self.await_verdict(&reader, patience).await;
        }
        match reader.follow(Some(patience)).await {
            // What refused that claim may not refuse this one: other funds, another moment.
            Followed::Ended(Outcome::Unbound(_)) => Turn::Again,
            followed @ (Followed::Ended(_) | Followed::StillRunning | Followed::StoreSilent) => {
                let mut reply = self.told(submission, tape.operation, followed, patience).await;
                reply.replayed = true;
                Turn::Over(reply)
            }
        }
    }

    /// Another request has offered a claim for the key: this one conflicts only if that claim is
    /// committed. The key may as well be bound to this one already.
    async fn await_verdict(&self, reader: &Reader, patience: Instant) -> Turn {
        match reader.follow(Some(patience)).await {
            Followed::Ended(Outcome::Row { ran: true, .. }) => {
                Turn::Over(Reply::unbound(Failure::OtherRequest))
            }
            Followed::Ended(_) => Turn::Again,
            Followed::StillRunning | Followed::StoreSilent => {
                Turn::Over(Reply::unbound(Failure::Storage(None)))
            }
        }
    }

    /// What the end of a run tells this caller.
    async fn told(
        &self,
        submission: &Submission,
        id: OperationId,
        followed: Followed,
        patience: Instant,
    ) -> Reply {
        let caller = &submission.caller;
        match followed {
            Followed::Ended(Outcome::Unbound(failure)) => Reply::unbound(failure),
            Followed::Ended(Outcome::Row { snapshot, body, ran }) => {
                Reply::from_run(&snapshot, body, caller, !ran)
            }
            Followed::Ended(Outcome::Elsewhere) => self.follow_row(caller, id, patience).await,
            Followed::Ended(Outcome::OtherRequest) => Reply::unbound(Failure::OtherRequest),
            Followed::Ended(Outcome::Lost) => Reply::unbound(Failure::Internal(Some(id))),
            Followed::StillRunning => Reply::unbound(Failure::InProgress(id)),
            Followed::StoreSilent => Reply::unbound(Failure::Storage(Some(id))),
        }
    }

    /// A refusal of today's rules stands only where the key is not bound, or is open.
    async fn refuse(
        &self,
        submission: &Submission,
        id: OperationId,
        request: Option<&Request>,
        failure: Failure,
        patience: Instant,
    ) -> Reply {
        let caller = &submission.caller;
        let snapshot = match self.conduct().reconcile(id).await {
            Ok(snapshot) => snapshot,
            Err(error) => return unreadable(&error, None),
        };
        let Some(operation) = &snapshot.operation else { return Reply::unbound(failure) };
        if !self.is_same_request(&operation.binding, caller, request, &submission.body) {
            return Reply::unbound(Failure::OtherRequest);
        }
        match operation.phase {
            Phase::Open => Reply::unbound(failure),
            Phase::Leased => self.follow_row(caller, id, patience).await,
            Phase::Recorded(_)
            | Phase::Completed { .. }
            | Phase::Refused { .. }
            | Phase::Abandoned { .. } => Reply::from_row(&snapshot, caller, true),
        }
    }

    /// Waits for an operation that this process does not run, by looking at its row.
    async fn follow_row(&self, caller: &Caller, id: OperationId, patience: Instant) -> Reply {
        loop {
            let snapshot = match self.conduct().reconcile(id).await {
                Ok(snapshot) => snapshot,
                Err(error) => return unreadable(&error, Some(id)),
            };
            let leased = is_leased(&snapshot);
            if !leased || Instant::now() + POLL > patience || self.draining.is_cancelled() {
                return Reply::from_row(&snapshot, caller, true);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The rebinding that a claim is compared by with rows made under other terms.
    pub(crate) fn rebind(
        &self,
        submission: &Submission,
        bid: &Bid,
    ) -> impl Fn(&Terms) -> Option<Binding> + Send + Sync + use<> {
        let secrets = Arc::clone(&self.secrets);
        let (request, body) = (Arc::clone(&bid.request), submission.body.clone());
        let api_key = submission.caller.api_key.id;
        move |terms| secrets.bind(*terms, api_key, &request, &body)
    }
}

/// Whether a turn answered the caller.
enum Turn {
    Over(Reply),
    Again,
}

fn is_leased(snapshot: &Snapshot) -> bool {
    snapshot.operation.as_ref().is_some_and(|operation| operation.phase == Phase::Leased)
}

fn unreadable(error: &Unavailable, operation: Option<OperationId>) -> Reply {
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "an operation could not be read");
    Reply::unbound(Failure::Storage(operation))
}
