//! Moments of a run, kept for its spans: its hold, its calls, its settlement. They become a record when the
//! ending is committed, and the record is given to the trace of the request that started the run.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_domain::conduct::Conclusion;
use holdfast_domain::operation::{Attempt, Operation, Phase, situation};
use holdfast_domain::ports::CallFailure as ProviderFailure;
use holdfast_domain::usage::{MeterKind, MeterReading, Meters};
use holdfast_telemetry::traces::{
    CallRecord, OperationRecord, RequestTrace, RunRecord, TokenCounts,
};
use holdfast_wire::chat::completion::finish_label;
use tokio::time::Instant;
use uuid::Uuid;

use super::assembly::Assembly;
use crate::routes::RouteState;

/// Moments of a run.
#[derive(Debug)]
pub(crate) struct RunMoments<'a> {
    trace: &'a RequestTrace,
    /// Moment at which the hold was committed.
    held: Instant,
    /// A std mutex: never held across an await.
    calls: Mutex<Vec<CallRecord>>,
}

impl<'a> RunMoments<'a> {
    /// The hold was committed now.
    pub(crate) fn begin(trace: &'a RequestTrace) -> Self {
        Self { trace, held: Instant::now(), calls: Mutex::default() }
    }

    /// A call that began then has ended now.
    pub(crate) fn add_call(
        &self,
        route_state: &RouteState,
        attempt: &Attempt,
        began: Instant,
        (called, answer): (&Result<MeterReading, ProviderFailure>, &Assembly<'_>),
    ) {
        let choices = answer.answer.choices();
        let provider = route_state.provider.as_ref();
        let call = CallRecord {
            system: provider.map_or("_OTHER", |provider| provider.semantic_name()),
            model: Arc::clone(&route_state.route.model),
            route: Arc::clone(&attempt.route),
            class: attempt.class.clone(),
            has_failed: called.is_err(),
            is_streamed: answer.is_streaming(),
            finish_reasons: choices
                .filter_map(|(_index, choice)| choice.finish.map(finish_label))
                .collect(),
            tokens: called.as_ref().ok().map(|metered| counts(&metered.meters)),
            began: began.into_std(),
            dispatched: answer.moments.dispatched.map(Instant::into_std),
            first_chunk: answer.moments.first_chunk.map(Instant::into_std),
            ended: Instant::now().into_std(),
        };
        // A vector is whole after a panic: a push that failed has added no call.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// The ending was committed now, or the row shows why it was not.
    pub(crate) fn end(&self, claimed: &Operation, concluded: &Conclusion, is_lost: bool) {
        let Conclusion { snapshot, late, .. } = concluded;
        let row = snapshot.operation.as_ref();
        let is_odd = row.is_none_or(|row| match &row.phase {
            Phase::Leased | Phase::Recorded(_) | Phase::Abandoned { .. } => true,
            Phase::Completed { usage, .. } => usage.shortfall.get() > 0,
            Phase::Open | Phase::Refused { .. } => false,
        });
        self.trace.end_run(is_odd || *late || is_lost, || RunRecord {
            operation: OperationRecord {
                model: Some(claimed.model.to_shared()),
                id: Some(Uuid::from_bytes(claimed.id.to_bytes())),
                situation: row
                    .map(|row| situation(row, snapshot.lease.as_ref(), snapshot.now).label()),
                outcome: row.map(|row| row.phase.label()),
            },
            currency: claimed.price.currency.to_string(),
            hold: (self.held.into_std(), claimed.hold.get()),
            settle: (
                Instant::now().into_std(),
                row.and_then(|row| row.phase.charge()).map(|charge| charge.get()),
            ),
            calls: std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner)),
        });
    }
}

fn counts(meters: &Meters) -> TokenCounts {
    TokenCounts {
        input: meters.prompt_tokens(),
        cache_read: meters.count(MeterKind::CachedInput),
        cache_creation: meters.count(MeterKind::CacheWrite),
        output: meters.completion_tokens(),
        reasoning: meters.count(MeterKind::Reasoning),
    }
}
