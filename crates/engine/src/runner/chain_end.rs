//! End of the remains of a cut call at an upstream gateway: the run there is cancelled under the key of the call,
//! and its charge is the cost of the operation here.
//!
//! ```text
//! call cut ─► end_run ─┬─ charge within INLINE_WAIT ─► the row, with the ending
//!                      └─ later ─────────────────────► a note for the ended row
//! row reaped ─► end_run for each route of the model ─► a note for the ended row
//! ```
//!
//! A cost that an ending lacks is noted as awaited before the ending is offered, and again after it until the note
//! is kept, so that the exposure of a completed operation does not vanish: it is lost only if the store fails both
//! at the first offer and until the process ends. A note of a cost comes only after the ending.
//!
//! A cost is noted only if it is the whole cost: if every route of the model that may have run the operation has
//! reported one. Until then the hold stays exposure.
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
/// First and longest pause between two offers of a note.
const NOTE_PAUSE: Duration = Duration::from_millis(100);
const NOTE_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Cost of a cut run, from its provider.
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
        let (sender, receiver) = oneshot::channel();
        self.chain_ends.spawn(async move {
            let charge = provider.end_run(key).await;
            let charge = charge.filter(|(paid_in, _)| *paid_in == currency);
            let cost = charge.and_then(|(_, charge)| accepted_charge(charge, hold));
            if charge.is_some() && cost.is_none() {
                tracing::warn!(operation.id = %id, "a cut run's charge is above its bound: its cost is unknown");
            }
            // The run may be gone: its process then ends.
            let _received = sender.send(cost);
        });
        AwaitedCost(receiver)
    }

    /// Notes that the ending of a generation lacks its cost. One offer, so that the ending is not kept
    /// waiting: [`Self::note_later`] offers it again.
    pub(super) async fn note_awaited(&self, operation: &Operation) {
        let note = note(operation, None);
        match timeout(INLINE_WAIT, self.journal.note_cost(note)).await {
            Ok(Ok(_is_new)) => {}
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
        AwaitedCost(awaited): AwaitedCost,
    ) {
        let (runner, operation) = (Arc::clone(self), operation.clone());
        self.chain_ends.spawn(async move {
            runner.keep_note(&operation, None).await;
            if let Some(cost) = awaited.await.ok().flatten() {
                runner.note_cost(&operation, cost).await;
            }
        });
    }

    /// Notes the cost of an ended generation.
    async fn note_cost(&self, operation: &Operation, cost: Micros) {
        if self.keep_note(operation, Some(cost)).await {
            self.metrics.money.add_late_cost(operation, cost);
        }
    }

    /// Offers a note until it is kept; true if it was not kept before. The end of the process ends it.
    async fn keep_note(&self, operation: &Operation, cost: Option<Micros>) -> bool {
        let mut pause = NOTE_PAUSE;
        loop {
            match self.journal.note_cost(note(operation, cost)).await {
                Ok(is_new) => return is_new,
                Err(error) => {
                    tracing::warn!(operation.id = %operation.id, error = %ErrorChain(&error), "a note of a late cost was not kept yet");
                }
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(NOTE_PAUSE_MAX);
        }
    }

    /// Ends what reaped operations have left at gateways behind, until the background ends.
    pub(crate) async fn end_reaped(self: Arc<Self>, live: Arc<LiveConfig>) {
        let room = Arc::new(Semaphore::new(ENDS_MAX));
        let ending = async {
            while let Some(operation) = self.membership.reaped.next().await {
                let serving = live.get();
                let routes = serving.routes_of(&operation.model).iter();
                let routes: Vec<_> = routes.map(|route| self.chain_of(route, &operation)).collect();
                let is_whole = routes.iter().all(Option::is_some);
                let chains: Vec<_> = routes.into_iter().flatten().collect();
                if chains.is_empty() {
                    continue;
                }
                // Never closed: a place comes.
                let Ok(place) = Arc::clone(&room).acquire_owned().await else { break };
                let runner = Arc::clone(&self);
                self.chain_ends.spawn(async move {
                    let _place = place;
                    let cost = runner.end_chains(&operation, &chains).await;
                    if let Some(cost) = cost.filter(|_| is_whole) {
                        runner.note_cost(&operation, cost).await;
                    }
                });
            }
        };
        tokio::select! {
            biased;
            () = ending => {}
            () = self.membership.background.cancelled() => {}
        }
    }

    /// Ends the runs of a reaped operation on all routes that may have one, and returns their cost; `None`
    /// if the cost of one of them is not known.
    async fn end_chains(
        &self,
        operation: &Operation,
        chains: &[(Arc<dyn Provider>, RequestKey)],
    ) -> Option<Micros> {
        // All at once: a gateway that never got the request takes the whole time to report that.
        let ends: Vec<_> =
            chains.iter().map(|(provider, key)| self.end_run(provider, *key, operation)).collect();
        let mut cost = Micros::ZERO;
        for AwaitedCost(awaited) in ends {
            cost = cost.plus(awaited.await.ok().flatten()?)?;
        }
        Some(cost)
    }

    /// Provider behind a route that keeps keys, with the key of an operation's generation there.
    pub(super) fn chain_of(
        &self,
        RouteState { route, provider, .. }: &RouteState,
        operation: &Operation,
    ) -> Option<(Arc<dyn Provider>, RequestKey)> {
        let provider = provider.as_ref().filter(|provider| provider.repeats_calls())?;
        let secret = self.secrets.find(operation.binding.terms.server_secret)?;
        let names = (&*route.provider, &*route.model);
        let key = secret.upstream_key(operation.id, operation.generation, names);
        Some((Arc::clone(provider), key))
    }
}

fn note(operation: &Operation, cost: Option<Micros>) -> CostNote {
    CostNote { operation: operation.id, generation: operation.generation, cost }
}
