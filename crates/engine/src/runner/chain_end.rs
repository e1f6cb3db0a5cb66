//! End of what a cut call has left at a gateway behind: the run there is cancelled under the key of the
//! call, and its charge is the cost of the operation here.
//!
//! ```text
//! call cut ─► end_run ─┬─ charge within INLINE_WAIT ─► the row, with the ending
//!                      └─ later ─────────────────────► a note beside the ended row
//! row reaped ─► end_run for each route of the model ─► a note beside the ended row
//! ```
//!
//! A cost that an ending lacks is noted as awaited before the ending is offered, so that no crash makes
//! the exposure of a completed operation vanish. A note of a cost comes after the ending alone.
//!
//! Never: a change of an ended row, or an end of a run whose call may be sent again.
//!
//! Limits: the time of [`Provider::end_run`]; [`ENDS_MAX`] reaped operations at once; a drain waits
//! [`CHAIN_END_WAIT`](crate::options::Options::CHAIN_END_WAIT) for all of them.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::billing::accepted_charge;
use holdfast_domain::operation::Operation;
use holdfast_domain::ports::{CostNote, Provider};
use holdfast_domain::{ErrorChain, Micros, RequestKey};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::Runner;
use crate::live_config::LiveConfig;
use crate::routes::RouteState;

/// Time that an ending waits for the charge of a cut run.
const INLINE_WAIT: Duration = Duration::from_secs(2);
/// Reaped operations whose runs are ended at once.
const ENDS_MAX: usize = 64;
/// Offers of a note, and the first pause between two.
const NOTE_OFFERS: u32 = 6;
const NOTE_PAUSE: Duration = Duration::from_millis(100);

/// Cost of a cut run, once its provider has told it.
#[derive(Debug)]
pub(super) struct AwaitedCost(oneshot::Receiver<Option<Micros>>);

impl AwaitedCost {
    /// Waits for the cost, as long as an ending does.
    pub(super) async fn wait_inline(&mut self) -> Option<Micros> {
        timeout(INLINE_WAIT, &mut self.0).await.ok()?.ok()?
    }
}

impl Runner {
    /// Ends the run of a cut call on a task of its own.
    pub(super) fn end_run(
        &self,
        provider: &Arc<dyn Provider>,
        key: RequestKey,
        operation: &Operation,
    ) -> AwaitedCost {
        let (provider, currency) = (Arc::clone(provider), operation.price.currency);
        let (id, hold) = (operation.id, operation.hold);
        let (tell, told) = oneshot::channel();
        self.chain_ends.spawn(async move {
            let charge = provider.end_run(key).await;
            let charge = charge.filter(|(paid_in, _)| *paid_in == currency);
            let cost = charge.and_then(|(_, charge)| accepted_charge(charge, hold));
            if charge.is_some() && cost.is_none() {
                tracing::warn!(operation.id = %id, "a cut run's charge is above its bound: its cost is unknown");
            }
            // The run may be gone: its process then ends.
            let _heard = tell.send(cost);
        });
        AwaitedCost(told)
    }

    /// Notes that the ending of a generation lacks its cost. One offer: the note of the cost itself
    /// follows in any case.
    pub(super) async fn note_awaited(&self, operation: &Operation) {
        let note = note(operation, None);
        match timeout(INLINE_WAIT, self.journal.note_cost(note)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(operation.id = %operation.id, error = %ErrorChain(&error), "an awaited cost was not noted");
            }
            Err(_elapsed) => {
                tracing::warn!(operation.id = %operation.id, "an awaited cost was not noted in time");
            }
        }
    }

    /// Notes a cost that comes after the ending, on a task of its own.
    pub(super) fn note_later(
        self: &Arc<Self>,
        operation: &Operation,
        AwaitedCost(told): AwaitedCost,
    ) {
        let (runner, operation) = (Arc::clone(self), operation.clone());
        self.chain_ends.spawn(async move {
            let cost = told.await.ok().flatten();
            runner.note_cost(&operation, cost).await;
        });
    }

    /// Notes the cost of an ended generation, and offers the note again where the store fails.
    async fn note_cost(&self, operation: &Operation, cost: Option<Micros>) {
        let Some(cost) = cost else { return };
        let mut pause = NOTE_PAUSE;
        for _offer in 0..NOTE_OFFERS {
            match self.journal.note_cost(note(operation, Some(cost))).await {
                Ok(()) => {
                    self.metrics.money.add_late_cost(operation, cost);
                    return;
                }
                Err(error) => {
                    tracing::warn!(operation.id = %operation.id, error = %ErrorChain(&error), "a late cost was not noted");
                }
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
    }

    /// Ends what reaped operations have left at gateways behind, until the background ends.
    pub(crate) async fn end_reaped(self: Arc<Self>, live: Arc<LiveConfig>) {
        let room = Arc::new(Semaphore::new(ENDS_MAX));
        let ending = async {
            while let Some(operation) = self.membership.reaped.next().await {
                let serving = live.get();
                let routes = serving.routes_of(&operation.model).iter();
                let chains = routes.filter_map(|route| self.chain_of(route, &operation));
                let chains: Vec<_> = chains.collect();
                if chains.is_empty() {
                    continue;
                }
                // Never closed: a place comes.
                let Ok(place) = Arc::clone(&room).acquire_owned().await else { break };
                let runner = Arc::clone(&self);
                self.chain_ends.spawn(async move {
                    let _place = place;
                    runner.end_chains(&operation, &chains).await;
                });
            }
        };
        tokio::select! {
            () = ending => {}
            () = self.membership.background.cancelled() => {}
        }
    }

    /// Ends the runs of a reaped operation on all routes that may have one, and notes their cost.
    async fn end_chains(&self, operation: &Operation, chains: &[(Arc<dyn Provider>, RequestKey)]) {
        // All at once: a gateway that never got the request takes the whole time to say so.
        let ends: Vec<_> =
            chains.iter().map(|(provider, key)| self.end_run(provider, *key, operation)).collect();
        let mut cost = None;
        for AwaitedCost(told) in ends {
            cost = add(cost, told.await.ok().flatten());
        }
        self.note_cost(operation, cost).await;
    }

    /// Provider behind a route that keeps keys, with the key of an operation's generation there.
    pub(super) fn chain_of(
        &self,
        RouteState { route, provider, .. }: &RouteState,
        operation: &Operation,
    ) -> Option<(Arc<dyn Provider>, RequestKey)> {
        let provider = provider.as_ref().filter(|provider| provider.asks_again())?;
        let secret = self.secrets.find(operation.binding.terms.server_secret)?;
        let names = (&*route.provider, &*route.model);
        let key = secret.upstream_key(operation.id, operation.generation, names);
        Some((Arc::clone(provider), key))
    }
}

fn note(operation: &Operation, cost: Option<Micros>) -> CostNote {
    CostNote { operation: operation.id, generation: operation.generation, cost }
}

/// Sum of two costs; one that is not known adds nothing to one that is.
fn add(one: Option<Micros>, other: Option<Micros>) -> Option<Micros> {
    match (one, other) {
        (Some(one), Some(other)) => one.plus(other),
        (known, None) | (None, known) => known,
    }
}
