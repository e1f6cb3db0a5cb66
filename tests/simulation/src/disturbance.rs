//! Disturbances: crashes, restarts, failovers, cut links, superseded names, broken wallets and operators, by chance.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::operation::Phase;
use holdfast_domain::{Micros, PostingId};
use holdfast_testkit::{Commands as _, sample};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::chance::{Chance, Draws};
use crate::node::{NODES, Nodes};
use crate::recorder::Recorder;
use crate::step::Step;
use crate::store::Store;

/// Starts of a process, before its slot stays empty.
const STARTS_MAX: u32 = 60;

/// Disturbance of the world.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    Crash,
    Failover,
    CutOff,
    LoseHeartbeats,
    Usurp,
    Drain,
    BreakWallet,
    Deposit,
    Refund,
}

/// Source of disturbances.
#[derive(Debug, Clone)]
pub struct Disturbances {
    /// Recorder of the run.
    pub recorder: Arc<Recorder>,
    /// Database server.
    pub store: Arc<Store>,
    /// Nodes.
    pub nodes: Arc<Nodes>,
    /// True if processes have the name of their slot, else a fresh one at each start.
    pub is_named: bool,
}

impl Disturbances {
    /// Disturbs the world one thing after another, until it is dropped.
    pub async fn go_on(self, chance: Chance) {
        let mut draws = chance.draws();
        let mut starts = JoinSet::new();
        for nth in 0_u64.. {
            sleep(draws.millis(500, 12_000)).await;
            let what = draws.pick(&[
                (6, Disturbance::Crash),
                (3, Disturbance::Failover),
                (3, Disturbance::CutOff),
                (2, Disturbance::Usurp),
                (3, Disturbance::Drain),
                (2, Disturbance::LoseHeartbeats),
                (3, Disturbance::BreakWallet),
                (2, Disturbance::Deposit),
                (2, Disturbance::Refund),
            ]);
            let slot = usize::try_from(draws.below(3)).unwrap_or(0).min(NODES - 1);
            let own = chance.part("disturbance", nth);
            match what {
                Disturbance::Crash => {
                    self.nodes.crash(slot);
                    let (disturbances, wait) = (self.clone(), draws.millis(100, 15_000));
                    starts.spawn(async move {
                        sleep(wait).await;
                        disturbances.fill(slot).await;
                    });
                }
                Disturbance::Failover => {
                    self.store.begin_failover();
                    sleep(draws.millis(200, 20_000)).await;
                    self.store.end_failover();
                }
                Disturbance::CutOff => self.cut_off(slot, draws.millis(1_000, 40_000)).await,
                Disturbance::LoseHeartbeats => {
                    self.lose_heartbeats(slot, draws.millis(5_000, 40_000)).await;
                }
                Disturbance::Usurp => self.usurp(slot, draws.millis(1_000, 30_000)).await,
                Disturbance::Drain => {
                    let is_locked = draws.permille(600);
                    self.drain(slot, draws.millis(100, 15_000), is_locked).await;
                }
                Disturbance::BreakWallet => {
                    self.recorder.note(format_args!("store: the wallet breaks"));
                    self.store.journal.break_wallet(sample::WALLET);
                    sleep(draws.millis(1_000, 15_000)).await;
                    self.store.journal.repair_wallet(sample::WALLET);
                    self.recorder.note(format_args!("store: the wallet is repaired"));
                }
                Disturbance::Deposit => self.post(own, PostingKind::Deposit, 200).await,
                Disturbance::Refund => self.refund(own, &mut draws).await,
            }
        }
    }

    /// Starts a process in an empty slot, as often as it takes.
    pub async fn fill(&self, slot: usize) {
        for _start in 0..STARTS_MAX {
            if self.nodes.running(slot).is_some() {
                return;
            }
            match self.nodes.start(slot, self.is_named).await {
                Ok(()) => return,
                Err(error) => {
                    self.recorder.note(format_args!("n{slot}: does not start: {error}"));
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    async fn cut_off(&self, slot: usize, time: Duration) {
        let Some(running) = self.nodes.running(slot) else { return };
        self.recorder.note(format_args!("n{slot}: cut off"));
        running.process.set_cut_off(true);
        sleep(time).await;
        running.process.set_cut_off(false);
        self.recorder.note(format_args!("n{slot}: healed"));
    }

    async fn lose_heartbeats(&self, slot: usize, time: Duration) {
        let Some(live) = self.nodes.running(slot) else { return };
        self.recorder.note(format_args!("n{slot}: heartbeats are lost"));
        live.process.set_deaf(true);
        sleep(time).await;
        live.process.set_deaf(false);
        self.recorder.note(format_args!("n{slot}: heartbeats arrive"));
    }

    /// Replaces a process that is cut off, and lives on until it learns that.
    async fn usurp(&self, slot: usize, time: Duration) {
        let Some(running) = self.nodes.take(slot) else { return };
        self.recorder.note(format_args!("n{slot}: cut off and replaced"));
        running.process.set_cut_off(true);
        self.fill(slot).await;
        sleep(time).await;
        running.process.set_cut_off(false);
        running.engine.drain(time).await;
        running.process.crash();
    }

    /// Shuts a process down. A transaction of another client may hold the wallet's lock meanwhile: endings then wait
    /// for longer than the shutdown does.
    async fn drain(&self, slot: usize, drain_time: Duration, is_locked: bool) {
        let Some(running) = self.nodes.take(slot) else { return };
        self.recorder.note(format_args!("n{slot}: drains, locked: {is_locked}"));
        let lock = self.store.lock(sample::WALLET);
        let held = if is_locked { Some(lock.lock().await) } else { None };
        let is_finished = running.engine.drain(drain_time).await;
        self.recorder.note(format_args!("n{slot}: drained, finished: {is_finished}"));
        self.recorder.reach(Step::Drained);
        running.process.crash();
        drop(held);
        self.fill(slot).await;
    }

    async fn post(&self, chance: Chance, kind: PostingKind, micros: i64) {
        let id = PostingId::from_u128(chance.id());
        let Ok(posting) = Posting::new(id, sample::WALLET, kind, Micros::new(micros)) else {
            return;
        };
        self.store.turn_clock();
        let is_posted = self.store.journal.post(&posting).await.is_ok();
        let label = posting.kind.label();
        self.recorder.note(format_args!("operator: {label} of {micros}, posted: {is_posted}"));
    }

    async fn refund(&self, chance: Chance, draws: &mut Draws) {
        let completed: Vec<_> = self
            .store
            .journal
            .operations()
            .into_iter()
            .filter(|row| matches!(row.phase, Phase::Completed { .. }))
            .collect();
        let Some(bound) = u64::try_from(completed.len()).ok().filter(|n| *n > 0) else { return };
        let nth = usize::try_from(draws.below(bound)).unwrap_or(0);
        let charge = completed.get(nth).and_then(|row| Some((row.id, row.phase.charge()?.get())));
        let Some((operation, charge)) = charge.filter(|(_operation, charge)| *charge > 0) else {
            return;
        };
        // Above the charge in some cases: the ledger refuses those.
        let micros =
            1 + i64::try_from(draws.below(u64::try_from(charge).unwrap_or(1) + 4)).unwrap_or(0);
        self.post(chance, PostingKind::Refund(operation), micros).await;
    }
}
