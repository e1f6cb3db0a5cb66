//! The call on one route: its possible ends, its evidence about the route, and its record in the row.
//!
//! | ends it | if a piece arrived | if none did |
//! |---|---|---|
//! | the provider | whole: by its outcome; broken off: unknown, not charged | by its outcome |
//! | the model's total time, silence, a bound of memory | cut: kept, and charged by an own count | unknown |
//! | its caller's cancel | cut, the same | unknown |
//! | the drain deadline | unknown: half an answer because a process ends has no charge | unknown |
//!
//! An answer that is complete and reported is an answer, whatever ended its call. Before a byte may have left, an
//! end of ours is *not run*: that is proven, and the next route may be tried. A not-run that a provider claims is
//! not believed if its call has opened a choice: a provider that has sent text has run.
//!
//! It must never report a cut of our own as a failure of the route: a cancel would open the circuit breaker of a
//! provider that works.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::RequestKey;
use holdfast_domain::operation::{Attempt, Operation};
use holdfast_domain::ports::{
    Call, CallFailure as ProviderFailure, NotRunProof, ResponseMode, UnknownReason,
    UnreadableReason, rejected_text,
};
use holdfast_domain::state::ProviderStates;
use holdfast_domain::statistics::AttemptOutcome;
use holdfast_domain::usage::{MeterReading, UsageReport};

use super::Run;
use crate::catalogue::Timeouts;
use crate::metrics::CallReport;
use crate::routes::{CallOutcome, RouteState};
use crate::runner::assembly::{Assembly, SilenceTimer};
use crate::statistics::AttemptFacts;
use crate::tape::StopCause;

impl Run<'_> {
    /// Maps the result of a call to the outcome that the circuit breaker counts. A cut of our own counts as none; a
    /// `Retry-After` outranks the class of the failure.
    pub(super) fn call_outcome(
        &self,
        called: &Result<MeterReading, ProviderFailure>,
        retry_after: Option<Duration>,
    ) -> CallOutcome {
        match (called, retry_after) {
            // A refusal of the request proves that the route works.
            (Ok(_) | Err(ProviderFailure::Refused(_)), _) => CallOutcome::Answered,
            (Err(ProviderFailure::Unknown(UnknownReason::Cut)), _) => CallOutcome::Nothing,
            (Err(ProviderFailure::NotRun(_)), _) if self.is_cut() => CallOutcome::Nothing,
            (Err(ProviderFailure::NotRun(_) | ProviderFailure::Unknown(_)), Some(time)) => {
                CallOutcome::Asked(time)
            }
            (Err(ProviderFailure::NotRun(NotRunProof::Account)), None) => CallOutcome::Account,
            (Err(ProviderFailure::NotRun(_) | ProviderFailure::Unknown(_)), None) => {
                CallOutcome::Failed
            }
        }
    }

    /// Counts a call in the metrics of its provider, and makes the attempt that the row keeps:
    /// route, class, latency, and whether the operator may be billed for it.
    pub(super) fn attempt(
        &self,
        route_state: &RouteState,
        called: &Result<MeterReading, ProviderFailure>,
        answer: &Assembly<'_>,
        latency: Duration,
    ) -> Attempt {
        let class = match called {
            Ok(_) if answer.is_cut => "cut",
            Ok(_) => "finished",
            Err(failure) => failure.label(),
        };
        let provider = route_state.provider.as_ref();
        self.runner.metrics.calls.count(&CallReport {
            provider: &route_state.route.provider,
            system: provider.map_or("_OTHER", |provider| provider.semantic_name()),
            model: &route_state.route.model,
            class,
            took: latency,
            meters: called.as_ref().ok().map(|metered| &metered.meters),
            has_failed: called.is_err(),
        });
        self.note_attempt(route_state, called, answer, latency);
        let unreadable = called.as_ref().err().and_then(ProviderFailure::reason);
        if let Some(why) = unreadable {
            self.runner.route_complaints.report_unreadable(&route_state.route, why, self.operation);
        }
        let rejected = answer.rejected_field.filter(|_field| called.is_err());
        let reason = match (unreadable, rejected) {
            (Some(why), _) => Some(why.to_string().into()),
            (None, rejected) => rejected.map(|field| rejected_text(field).into()),
        };
        Attempt {
            route: Arc::clone(&route_state.name),
            class: class.into(),
            latency,
            may_be_billed: !matches!(called, Err(ProviderFailure::NotRun(_))),
            reason,
        }
    }

    /// Notes the attempt in the statistics of its route, the only place that gets the note of its failure.
    fn note_attempt(
        &self,
        route_state: &RouteState,
        called: &Result<MeterReading, ProviderFailure>,
        answer: &Assembly<'_>,
        latency: Duration,
    ) {
        let outcome = match called {
            Ok(_) if answer.is_cut => AttemptOutcome::Cut,
            Ok(_) => AttemptOutcome::Answered,
            Err(ProviderFailure::Refused(_)) => AttemptOutcome::Refused,
            Err(ProviderFailure::Unknown(UnknownReason::Cut)) => AttemptOutcome::Cut,
            Err(ProviderFailure::NotRun(_)) if self.is_cut() => AttemptOutcome::Cut,
            Err(ProviderFailure::NotRun(_)) => AttemptOutcome::NotRun,
            Err(ProviderFailure::Unknown(_)) => AttemptOutcome::Unknown,
        };
        let failure = called.as_ref().err().filter(|_| outcome.is_failure()).map(|failure| {
            let note = answer.failure_note.clone();
            (failure.label(), note.unwrap_or_else(|| failure.note()))
        });
        let moments = answer.moments;
        let first_token = moments.first_chunk.filter(|_| answer.is_streaming()).and_then(|first| {
            moments.dispatched.map(|dispatched| first.saturating_duration_since(dispatched))
        });
        let facts = AttemptFacts {
            route: &route_state.name,
            model: &self.operation.model,
            outcome,
            took: latency,
            first_token,
            failure,
        };
        self.runner.routes.note(self.runner.membership.node.now(), facts);
    }

    /// Calls one route once, and cuts the call at the total time, at the bound of memory, by a
    /// cancel, or at the drain deadline. `Ok(None)`: an answer without a usage report.
    pub(super) async fn call(
        &self,
        states: ProviderStates,
        answer: &mut Assembly<'_>,
        silence: &SilenceTimer<'_>,
    ) -> Result<Option<UsageReport>, ProviderFailure> {
        let route_state = &silence.pass().route_state;
        // No provider of that name is configured: no request is sent, and the next route may try.
        let Some(provider) = &route_state.provider else {
            return Err(ProviderFailure::NotRun(NotRunProof::Account));
        };
        let arrival =
            self.tape.chunk_log().map_or(ResponseMode::Whole, |_heard| ResponseMode::Streamed);
        let call = Call {
            request: Arc::clone(&self.prepared.request),
            model: Arc::clone(&route_state.route.model),
            max_output_tokens: self.prepared.bound.output_tokens,
            context_tokens: self.prepared.model.contract.context_tokens,
            key: self.upstream_key(route_state),
            connect: self.prepared.model.timeouts.connect,
            response_mode: arrival,
            states,
        };
        let n = self.prepared.request.n;
        let (why, keeps) = tokio::select! {
            // An answer that is there when the time ends is an answer.
            biased;
            called = provider.run(&call, answer) => return outcome(called, answer, n),
            () = tokio::time::sleep_until(self.until) => (UnknownReason::Timeout, true),
            why = self.bounded(silence, arrival) => (why, true),
            // The operator's own act: half an answer because a process ends has no charge.
            stop = self.tape.wait_stop() => (UnknownReason::Cut, stop == StopCause::Caller),
        };
        if !answer.is_sent {
            return Err(ProviderFailure::NotRun(NotRunProof::Connect));
        }
        // An answer that is whole and reported lacks only its end mark.
        let reported = answer.usage.filter(|_| answer.answer.is_complete(n));
        if reported.is_none() && (!keeps || answer.answer.is_empty()) {
            return Err(ProviderFailure::Unknown(why));
        }
        // What arrived is what the caller gets and pays for: as reported, else by an own count.
        answer.cut(n);
        Ok(reported)
    }

    /// Key of the call on a route, for a provider that takes one. Another process derives the same from the row.
    fn upstream_key(&self, RouteState { route, provider, .. }: &RouteState) -> Option<RequestKey> {
        let _taken = provider.as_ref().filter(|provider| provider.takes_key())?;
        let Operation { id, generation, binding, .. } = self.operation;
        let secret = self.runner.secrets.find(binding.terms.server_secret)?;
        Some(secret.upstream_key(*id, *generation, (&route.provider, &route.model)))
    }

    /// Completes when a call must be cut: a streamed one by silence or by size, a whole one only by size, because
    /// it is silent by nature until its end.
    async fn bounded(&self, silence: &SilenceTimer<'_>, arrival: ResponseMode) -> UnknownReason {
        if arrival == ResponseMode::Whole {
            silence.wait_full().await;
            return UnknownReason::Cut;
        }
        let Timeouts { first_token, between_tokens, .. } = self.prepared.model.timeouts;
        tokio::select! {
            biased;
            () = silence.wait_silent(first_token, between_tokens) => UnknownReason::Timeout,
            () = silence.wait_full() => UnknownReason::Cut,
        }
    }
}

/// Judges a call that ended by itself: a broken set of choices is unreadable, a full answer is
/// cut, and a *not run* after a choice was opened is not believed.
fn outcome(
    called: Result<Option<UsageReport>, ProviderFailure>,
    answer: &mut Assembly<'_>,
    n: u32,
) -> Result<Option<UsageReport>, ProviderFailure> {
    if answer.is_full() && !answer.answer.is_empty() {
        // A report would be of more than was kept.
        answer.cut(n);
        return Ok(None);
    }
    match called {
        Ok(reported) if answer.answer.is_complete(n) => Ok(reported),
        Ok(_broken) => Err(ProviderFailure::Unknown(UnknownReason::Unreadable(
            UnreadableReason::Choices("choices"),
        ))),
        // What has opened a choice has run, be it without a word.
        Err(ProviderFailure::NotRun(_)) if answer.answer.choices().next().is_some() => {
            Err(ProviderFailure::Unknown(UnknownReason::Broken))
        }
        // A stream that the provider breaks off is unknown and not charged, whatever has been sent to the caller. Only
        // a cut of ours is charged, by an own count.
        Err(failure) => Err(failure),
    }
}
