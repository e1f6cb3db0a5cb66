//! The task of one operation: claims it, has a route answer it, and brings its ending to the store.
//!
//! ```text
//! claim ─┬─ mine ─┬─ in time ─► call a route ─┬─ answered, refused ─► end
//!        │        │                 ▲         ├─ not run: proven ───► the next route, or end: not run
//!        │        │                 └─────────┘ unknown ────────────► end: abandoned, or the next route
//!        │        └─ too late ─► given back                           (`fallback`)
//!        └─ not mine ─► the outcome of the row, or of another process that runs it
//! ```
//!
//! It runs to its end with or without readers: money is held from the claim to the ending, and if there is none a
//! reaper gives it back only after the lease or the deadline. So no byte is sent before the claim's COMMIT is
//! acknowledged; no panic of an answer passes the ending, which is then *unknown*; and an ending is offered until
//! the store takes it, for as long as the process lives. Waiting callers are informed after
//! [`Options::COMMIT_WAIT`] (10 s) that the store does not answer; the task goes on.
//!
//! The step after a failed call, the next route or the end, is decided only by `fallback`. Once an ending was
//! offered, no call is sent.
//!
//! Limits: the model's total timeout bounds all routes together; [`Options::DEADLINE_MARGIN`] (60 s) later others
//! may take the task for dead.

mod call;
mod cut_run;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::FutureExt;
use holdfast_domain::ErrorChain;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::conduct::{ClaimOutcome, Conclusion, Ending};
use holdfast_domain::limits::CounterReadings;
use holdfast_domain::operation::{
    Attempt, Operation, Phase, ProviderRefusal, SealedResult, Snapshot,
};
use holdfast_domain::private::Private;
use holdfast_domain::request::Request;
use holdfast_domain::state::CallStates;
use holdfast_domain::usage::MeterReading;
use holdfast_failpoint::{Step, reach};
use holdfast_wire::error::{ErrorBody, context_length_exceeded, refused};
use metrics::counter;
use tokio::time::{Instant, timeout};

use super::Runner;
use super::answer_bytes::AnswerShare;
use super::assembly::{Assembly, SilenceTimer};
use super::chain_end::AwaitedCost;
use super::fallback::{NextStep, UnknownTerms, after_failure};
use super::rendering::{ReceivedAnswer, RenderContext, RenderedAnswer};
use super::run_trace::RunMoments;
use crate::failure::RequestFailure;
use crate::options::Options;
use crate::rate_limit::RateLimitStatus;
use crate::request_context::{PreparedClaim, RequestContext};
use crate::routes::RoutePlan;
use crate::seal::{self, SealError};
use crate::tape::{Outcome, Tape};

const LATE_RESULTS: &str = "holdfast_late_results_total";
const LOST_COMMITS: &str = "holdfast_lost_commits_total";

impl Runner {
    /// Runs one operation from its claim to its committed ending, and ends its tape with the
    /// outcome.
    pub(crate) async fn operate(
        self: Arc<Self>,
        tape: Arc<Tape>,
        mut context: RequestContext,
        (mut prepared, route_plan): (Box<PreparedClaim>, Box<RoutePlan>),
        body: Bytes,
    ) {
        // First: after any failure from here on, the place is given up and the tape ends.
        let place = self.running.guard(Arc::clone(&tape));
        // Before the claim: a store that is slow eats of the time of the run, which so ends before its deadline.
        let until = Instant::now() + prepared.model.timeouts.total;
        tape.ends_by(until + Options::DEADLINE_MARGIN);
        let rebinder = self.rebinder(&context, &prepared, body);
        reach(Step::ClaimOffered);
        let claimed = self.claim(&mut prepared, &mut context, &rebinder).await;
        // The run has the request: what it was read from was needed to compare it.
        drop(rebinder);
        prepared.written = None;
        let outcome = match claimed {
            Ok(ClaimOutcome::Mine(operation, readings)) => {
                reach(Step::ClaimCommitted);
                let traced = context.trace.as_deref().map(RunMoments::begin);
                let accepts = &prepared.model.contract.accepts;
                Request::make_outgoing(&mut prepared.request, accepts, context.caller.pseudonyms());
                let (runner, prepared, tape) = (&self, &prepared, &*tape);
                let (context, operation) = (&context, &*operation);
                let share = runner.answers.share(context.serving.rules.answer_bytes);
                let run = Run {
                    runner,
                    tape,
                    context,
                    prepared,
                    operation,
                    readings,
                    until,
                    share,
                    traced,
                };
                if tape.try_release() {
                    run.give_back().await
                } else {
                    // First: a head may go out as soon as it runs, and carries the limits.
                    run.publish_rates();
                    tape.set_running();
                    run.perform(route_plan).await
                }
            }
            Ok(ClaimOutcome::Ended(found)) => from_row(self.membership.found(*found)),
            Ok(ClaimOutcome::Recorded(snapshot) | ClaimOutcome::TooSoon(snapshot)) => {
                from_row(*snapshot)
            }
            Ok(ClaimOutcome::InProgress(_)) => Outcome::Elsewhere,
            Ok(ClaimOutcome::OtherRequest) => Outcome::OtherRequest,
            Err(error) => {
                Outcome::Unbound(Box::pin(self.claim_failure(&error, &prepared, &context)).await)
            }
        };
        // In hand until here: a notified caller may send again at once.
        drop(context);
        place.leave(outcome);
    }
}

/// Run of one claimed operation, with all that its calls and its ending need.
struct Run<'a> {
    runner: &'a Arc<Runner>,
    tape: &'a Tape,
    context: &'a RequestContext,
    prepared: &'a PreparedClaim,
    operation: &'a Operation,
    /// Counters of the API key right after the claim.
    readings: CounterReadings,
    until: Instant,
    /// Memory share of its answer, held until the store has the answer.
    share: AnswerShare,
    /// Moments that its spans are built of; `None` if traces are off.
    traced: Option<RunMoments<'a>>,
}

/// Verdict over all routes of a run, from which its ending is made.
enum CallVerdict {
    Answered(ReceivedAnswer, RunReport),
    Refused(ProviderRefusal),
    NotRun,
    Unknown,
}

/// Report of the call that answered: its meters, and states for later turns.
struct RunReport {
    metered: MeterReading,
    /// Provider states to seal with the result, for a later turn.
    kept: Option<Box<CallStates>>,
}

impl Run<'_> {
    /// Sets the rate-limit status on the log, from which the head of a stream takes it.
    fn publish_rates(&self) {
        if let Some(chunk_log) = self.tape.chunk_log() {
            chunk_log.set_rates(self.rates(self.operation));
        }
    }

    /// Calls the routes, and concludes the operation with their verdict.
    async fn perform(&self, route_plan: Box<RoutePlan>) -> Outcome {
        let id = self.operation.id;
        let (mut attempts, mut awaited) = (Vec::new(), None);
        let answering = async {
            self.ending(self.answer(route_plan, (&mut attempts, &mut awaited)).await).await
        };
        // A panic after the claim must not leave the money held until the deadline: it is an ending, and since a
        // provider may have run, an unknown one.
        let ended = AssertUnwindSafe(answering).catch_unwind().await;
        let (ending, body) = ended.unwrap_or_else(|_panic| {
            tracing::error!(operation.id = %id, "an operation's task panicked");
            (Ending::Unknown, None)
        });
        self.tape.set_settling();
        let ended = self.end(&ending, body, &attempts).await;
        if let Some(cost) = awaited {
            self.note_later(&ended, cost);
        }
        ended
    }

    /// Concludes as *not run* a claim that was committed after all its callers had gone.
    async fn give_back(&self) -> Outcome {
        let id = self.operation.id;
        tracing::info!(operation.id = %id, "a claim came too late for its callers: it is given back");
        // A later reader reads the row anew.
        self.end(&Ending::NotRun, None, &[]).await;
        Outcome::GivenBack
    }

    /// Commits the ending, raises the alarms that it calls for, and returns the outcome as the row
    /// has it: never the run's own result.
    async fn end(&self, ending: &Ending, body: Option<Bytes>, attempts: &[Attempt]) -> Outcome {
        let id = self.operation.id;
        reach(Step::SettlementOffered);
        let concluded = self.conclude(ending, attempts).await;
        reach(Step::SettlementCommitted);
        self.runner.metrics.count_concluded(&concluded);
        let is_lost = concluded.is_commit_lost(self.operation);
        if let Some(traced) = &self.traced {
            traced.end(self.operation, &concluded, is_lost);
        }
        let Conclusion { snapshot, late, .. } = concluded;
        if is_lost {
            tracing::error!(
                operation.id = %id,
                wallet.id = %self.operation.wallet,
                "the database has lost a claim that it had committed: it is not the one that it was, \
                 and more may be lost"
            );
            counter!(LOST_COMMITS).increment(1);
            self.runner.has_lost_commits.store(true, Ordering::Relaxed);
        }
        if is_given_up(ending, &snapshot) {
            tracing::error!(
                operation.id = %id,
                "a result is larger than the database can hold: it is neither delivered nor charged"
            );
        }
        if late {
            tracing::error!(operation.id = %id, "a result came too late to be billed");
            counter!(LATE_RESULTS).increment(1);
        }
        // No row and no claim: the key is free, and the caller must know that a run may have been.
        if is_lost && snapshot.operation.is_none() {
            return Outcome::Unbound(RequestFailure::ClaimLost(id));
        }
        if let Some(operation) = &snapshot.operation
            && let Phase::Recorded(_) = operation.phase
        {
            tracing::error!(
                operation.id = %operation.id,
                wallet.id = %operation.wallet,
                "the store refuses to settle: the result is kept, run `holdfast ledger verify`"
            );
        }
        // A late result has no charge, and a lost claim may run again: neither may be handed out.
        let body = body.filter(|_body| !late && !is_lost).map(Private);
        let rates = self.rates(snapshot.operation.as_ref().unwrap_or(self.operation));
        Outcome::Row { snapshot, body, ran: true, rates }
    }

    /// Rate-limit status after this row, from the counters that the claim read.
    fn rates(&self, row: &Operation) -> RateLimitStatus {
        RateLimitStatus::after(
            &self.prepared.claim.limits,
            self.readings,
            row,
            self.runner.membership.node.now(),
        )
    }

    /// Offers the ending until the store takes it, and logs once if that takes longer than `COMMIT_WAIT`.
    async fn conclude(&self, ending: &Ending, attempts: &[Attempt]) -> Conclusion {
        let conduct = self.runner.membership.conduct();
        let mut concluding = pin!(conduct.conclude(self.operation, ending, attempts));
        // The timeout is only for the log. To give up would leave a run that is paid for without its ending.
        if let Ok(concluded) = timeout(Options::COMMIT_WAIT, concluding.as_mut()).await {
            return concluded;
        }
        tracing::error!(
            operation.id = %self.operation.id,
            wallet.id = %self.operation.wallet,
            "the store does not take an ending: offering it again"
        );
        concluding.await
    }

    /// Tries one route after the other, as far as `fallback` lets it.
    async fn answer(
        &self,
        mut route_plan: Box<RoutePlan>,
        (attempts, awaited): (&mut Vec<Attempt>, &mut Option<AwaitedCost>),
    ) -> CallVerdict {
        // Before a call is sent: without it a provider may refuse for good what it would have taken.
        let earlier = match self.runner.earlier(self.context, self.prepared).await {
            Ok(earlier) => earlier,
            Err(error) => {
                tracing::warn!(operation.id = %self.operation.id, error = %ErrorChain(&error), "no earlier turn was read");
                return CallVerdict::NotRun;
            }
        };
        let mut may_have_run = false;
        let may_send_again = || self.may_send() && !self.runner.tasks.is_closed();
        while self.may_send()
            && let Some(permit) = route_plan.next(&self.prepared.request)
        {
            let silence = SilenceTimer::new(&permit);
            let mut answer = Assembly::on(
                self.tape,
                self.operation,
                &self.prepared.request,
                (&silence, &self.share),
                &may_send_again,
            );
            let origin = permit.route_state.origin();
            let started = Instant::now();
            reach(Step::Sending);
            let called = self.call(earlier.of(origin), &mut answer, &silence).await;
            reach(Step::Answered);
            let latency = started.elapsed();
            let left = self.end_run(&permit.route_state, &called, &answer);
            let called = called.map(|reported| {
                let (route, run) = (&permit.route_state.route, (self.prepared, self.operation));
                self.runner.metered(route, reported, &answer, run)
            });
            let attempt = self.attempt(&permit.route_state, &called, &answer, latency);
            if let Some(traced) = &self.traced {
                traced.add_call(&permit.route_state, &attempt, started, (&called, &answer));
            }
            attempts.push(attempt);
            // Before the answer is rendered, which may take long: the next request chooses by this.
            permit.report(self.call_outcome(&called, answer.retry_after));
            let is_sent = answer.is_streamed();
            let received = answer.into_received();
            let failure = match called {
                Ok(metered) => {
                    let metered = self.with_cost(metered, left, awaited).await;
                    let kept = origin.and_then(|origin| received.answer.call_states(origin));
                    let report = RunReport { metered, kept: kept.map(Box::new) };
                    return CallVerdict::Answered(received, report);
                }
                Err(failure) => failure,
            };
            received.forget();
            // A charge of one run does not cover another one, before it, that may be unknown.
            *awaited = left.filter(|_| !may_have_run);
            let (guarantee, repeats_calls) =
                (self.prepared.model.guarantee, permit.route_state.repeats_calls());
            match after_failure(failure, UnknownTerms { guarantee, is_sent, repeats_calls }) {
                NextStep::EndRefused(refusal) => return CallVerdict::Refused(refusal),
                NextStep::EndUnknown => return CallVerdict::Unknown,
                NextStep::NextRoute(None) => may_have_run = true,
                // Our own cut proves nothing about the route.
                NextStep::NextRoute(Some(_)) if self.is_cut() => {}
                NextStep::NextRoute(Some(proof)) => {
                    self.runner.route_complaints.report_not_run(
                        &permit.route_state.route,
                        proof,
                        self.operation,
                    );
                }
            }
        }
        // What was passed over comes first: the last one is the last that was tried.
        attempts.splice(..0, route_plan.skipped_attempts());
        if may_have_run { CallVerdict::Unknown } else { CallVerdict::NotRun }
    }

    /// True if a provider may be called now: time is left, no stop was requested, and this node's lease is live
    /// with its margin.
    fn may_send(&self) -> bool {
        Instant::now() < self.until && !self.is_cut() && self.runner.membership.node.may_send()
    }

    /// True if a caller or the operator has requested a stop.
    fn is_cut(&self) -> bool {
        self.tape.stop().is_some()
    }

    /// Makes the ending from a verdict, and the body that callers get once the store has taken it.
    async fn ending(&self, verdict: CallVerdict) -> (Ending, Option<Bytes>) {
        let operation = self.operation;
        match verdict {
            CallVerdict::Answered(received, RunReport { metered, kept }) => {
                let usage = &UsageRecord::of(metered, &operation.price, operation.hold);
                let (request, caller) = (&self.prepared.request, &self.context.caller);
                let terms = RenderContext { request, operation, caller, usage };
                let Some(written) = self.runner.render_answer(received, kept, &terms).await else {
                    return (Ending::Unknown, None);
                };
                let RenderedAnswer { closing, body, sealed } = written;
                if let (Some(chunk_log), Some(closing)) = (self.tape.chunk_log(), closing) {
                    chunk_log.close_with(closing);
                }
                self.ending_with_result(body, sealed, |result| Ending::Finished { metered, result })
            }
            CallVerdict::Refused(refusal) => {
                let error = refused(refusal, self.operation.id);
                let bounded = context_length_exceeded(self.prepared.model.contract.context_tokens);
                let message = match refusal {
                    ProviderRefusal::Request => error.message,
                    ProviderRefusal::ContextLength => &bounded,
                };
                let body = ErrorBody { message, ..error }.render();
                let bearer = &self.context.caller.bearer;
                let key = bearer.secret.result_key(operation.id);
                let sealed = seal::seal(&key, bearer.id, operation, (&body, None));
                self.ending_with_result(body, sealed, |result| Ending::Refused { refusal, result })
            }
            CallVerdict::NotRun => (Ending::NotRun, None),
            CallVerdict::Unknown => (Ending::Unknown, None),
        }
    }

    /// Makes an ending with sealed content. A result that cannot be sealed cannot be replayed: the
    /// ending is then unknown, and the caller does not pay.
    fn ending_with_result(
        &self,
        body: Vec<u8>,
        sealed: Result<SealedResult, SealError>,
        ending: impl FnOnce(SealedResult) -> Ending,
    ) -> (Ending, Option<Bytes>) {
        match sealed {
            Ok(result) => (ending(result), Some(body.into())),
            Err(error) => {
                tracing::error!(operation.id = %self.operation.id, error = %ErrorChain(&error), "a result was not sealed");
                (Ending::Unknown, None)
            }
        }
    }
}

/// True if a run that had a result ended as abandoned: the store could not hold it.
fn is_given_up(ending: &Ending, snapshot: &Snapshot) -> bool {
    let had_result = match ending {
        Ending::Finished { .. } | Ending::Refused { .. } => true,
        Ending::NotRun | Ending::Unknown => false,
    };
    let is_abandoned = |row: &Operation| matches!(row.phase, Phase::Abandoned { .. });
    had_result && snapshot.operation.as_ref().is_some_and(is_abandoned)
}

/// Outcome of a row that another run has written, without a body in memory.
fn from_row(snapshot: Snapshot) -> Outcome {
    let (snapshot, rates) = (Arc::new(snapshot), RateLimitStatus::default());
    Outcome::Row { snapshot, body: None, ran: false, rates }
}
