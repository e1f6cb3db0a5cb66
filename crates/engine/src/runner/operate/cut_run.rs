//! Cost of a run that a call has left at a gateway behind: ended there, awaited, noted
//! ([`chain_end`](crate::runner::chain_end)).

use holdfast_domain::operation::Phase;
use holdfast_domain::ports::CallFailure;
use holdfast_domain::usage::{MeterReading, UsageReport};

use super::Run;
use crate::routes::RouteState;
use crate::runner::assembly::Assembly;
use crate::runner::chain_end::AwaitedCost;
use crate::tape::Outcome;

impl Run<'_> {
    /// Ends the run that a call has left at an upstream gateway: it was sent, has no answer with a charge, and is
    /// not sent again. `None` if none is left.
    pub(super) fn end_run(
        &self,
        route_state: &RouteState,
        called: &Result<Option<UsageReport>, CallFailure>,
        answer: &Assembly<'_>,
    ) -> Option<AwaitedCost> {
        let is_left = match called {
            // A whole answer has its charge, unless it was cut off before.
            Ok(_) => answer.charge.is_none() && (answer.is_cut || answer.is_streaming()),
            Err(CallFailure::Unknown(_)) => answer.is_sent,
            Err(CallFailure::NotRun(_) | CallFailure::Refused(_)) => false,
        };
        let (provider, key) = Some(route_state)
            .filter(|_| is_left)
            .and_then(|route_state| self.runner.chain_of(route_state, self.operation))?;
        Some(self.runner.end_run(&provider, key, self.operation))
    }

    /// Reading with the cost of a run that was ended, if that comes in time; else the cost is noted as awaited.
    pub(super) async fn with_cost(
        &self,
        metered: MeterReading,
        left: Option<AwaitedCost>,
        awaited: &mut Option<AwaitedCost>,
    ) -> MeterReading {
        let Some(mut left) = left else { return metered };
        let provider_cost = left.wait_inline().await;
        if provider_cost.is_none() {
            self.runner.note_awaited(self.operation).await;
            *awaited = Some(left);
        }
        MeterReading { provider_cost, ..metered }
    }

    /// Notes the cost for the ended row, once it comes, and counts the exposure until then.
    pub(super) fn note_later(&self, ended: &Outcome, cost: AwaitedCost) {
        if let Outcome::Row { snapshot, .. } = ended
            && let Some(row) = &snapshot.operation
            && let Phase::Completed { .. } = row.phase
        {
            self.runner.metrics.money.expose_awaited(row);
        }
        self.runner.note_later(self.operation, cost);
    }
}
