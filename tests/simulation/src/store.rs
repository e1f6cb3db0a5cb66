//! Simulated store: the memory journal of the testkit as a database server that delays, refuses, loses answers and
//! fails over.
//!
//! ```text
//! process ─ latency ─► lock of the wallet ─► write ─► latency ─► process
//!              │             │                 │         └ answer lost: uncertain, it landed
//!              │             │                 └ rolled back: uncertain, it did not land
//!              │             └ lands late: uncertain at once, the lock is kept until it has landed
//!              └ refused: unavailable, it did not land
//! ```
//!
//! A change that was acknowledged is never lost: the contract of the port. Faults strike only what has no answer yet.
//! The server goes on with a change whose process has crashed or has stopped waiting. Its clock is the simulated time.

mod commits;
mod ports;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::ports::Cause;
use holdfast_domain::{ClaimId, OperationId, WalletId};
use holdfast_testkit::{MemoryJournal, sample};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::chance::{Chance, Draws};
use crate::defect::Defect;
use crate::keys::KeyNames;
use crate::process::Process;
use crate::recorder::Recorder;
use crate::step::Step;

/// Rates of faults, each in a thousand calls.
#[derive(Debug, Clone, Copy)]
pub struct FaultRates {
    /// Reads and heartbeats that fail.
    pub reads: u64,
    /// Commits with a fault of any kind.
    pub commits: u64,
    /// Commits that kill the task that waits for them.
    pub kills: u64,
}

impl FaultRates {
    /// No fault.
    pub const NONE: Self = Self { reads: 0, commits: 0, kills: 0 };
}

/// Failure that the simulation has made.
#[derive(Debug, thiserror::Error)]
#[error("the simulation made it so")]
pub struct InjectedFailure;

/// Database server.
pub struct Store {
    /// Rows.
    pub journal: MemoryJournal,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) names: Arc<KeyNames>,
    pub(crate) defect: Option<Defect>,
    chance: Chance,
    /// Number of the failover that is under way, zero if none is.
    outage: watch::Sender<bool>,
    state: Mutex<StoreState>,
}

#[derive(Default)]
struct StoreState {
    rates: Option<FaultRates>,
    failovers: u64,
    locks: BTreeMap<WalletId, Arc<tokio::sync::Mutex<()>>>,
    /// Changes that the server works on, whoever waits for them.
    transactions: JoinSet<()>,
    /// Claims whose task was killed by a commit.
    killed: BTreeSet<ClaimId>,
    /// Acknowledged changes so far, for defects that strike every eighth.
    acknowledged: u64,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl Store {
    /// Store with a wallet of so much.
    #[must_use]
    pub fn new(
        funds: i64,
        chance: Chance,
        (recorder, names): (Arc<Recorder>, Arc<KeyNames>),
        defect: Option<Defect>,
    ) -> Arc<Self> {
        let (journal, state) = (MemoryJournal::with_funds(funds), Mutex::default());
        let outage = watch::Sender::new(false);
        Arc::new(Self { journal, recorder, names, defect, chance, outage, state })
    }

    /// Sets the rates of faults from now on.
    pub fn set_rates(&self, rates: FaultRates) {
        self.state().rates = Some(rates);
    }

    /// Begins a failover: changes without an answer are cut, and no call is served until its end.
    pub fn begin_failover(&self) {
        self.state().failovers += 1;
        self.outage.send_replace(true);
        self.recorder.note(format_args!("store: failover begins"));
        if self.defect == Some(Defect::AsynchronousFailover) {
            let is_running = |row: &holdfast_domain::Operation| row.phase.holds();
            let running: Vec<OperationId> = self
                .journal
                .operations()
                .iter()
                .filter(|row| is_running(row))
                .map(|row| row.id)
                .collect();
            running.into_iter().for_each(|id| self.journal.lose_operation(id));
        }
    }

    /// Ends a failover.
    pub fn end_failover(&self) {
        self.outage.send_replace(false);
        self.recorder.note(format_args!("store: failover ends"));
    }

    /// Brings the journal's clock to the simulated time.
    pub fn turn_clock(&self) {
        let now = sample::NOW.after(self.recorder.elapsed());
        if self.journal.now() < now {
            self.journal.set_now(now);
        }
    }

    fn rates(&self) -> FaultRates {
        self.state().rates.unwrap_or(FaultRates::NONE)
    }

    fn failovers(&self) -> u64 {
        self.state().failovers
    }

    fn is_down(&self) -> bool {
        *self.outage.borrow()
    }

    async fn wait_up(&self) {
        let mut outage = self.outage.subscribe();
        // An error would be a sender that is gone, and this borrows it.
        drop(outage.wait_for(|is_down| !is_down).await);
    }

    /// Choices of a call from this place at this moment. Two such calls of one millisecond have the same: which of them
    /// is the first is chance.
    fn draws(&self, process: u64, kind: &'static str, object: [u8; 16]) -> Draws {
        let of_object = object.iter().fold(self.chance.part(kind, process), |chance, byte| {
            chance.part("", u64::from(*byte))
        });
        of_object.part("at", self.recorder.millis()).draws()
    }

    /// Lock of a wallet, which every change of it waits for.
    pub(crate) fn lock(&self, wallet: WalletId) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.state().locks.entry(wallet).or_default())
    }

    fn reach(&self, step: Step) {
        self.recorder.reach(step);
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connection of one process to the store: all its storage ports.
#[derive(Debug)]
pub struct StorePort {
    store: Arc<Store>,
    process: Arc<Process>,
}

impl StorePort {
    /// Connection of a process.
    #[must_use]
    pub fn new(store: &Arc<Store>, process: &Arc<Process>) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(store), process: Arc::clone(process) })
    }
}

/// Place of calls that are about no object of their own.
fn place(number: u8) -> [u8; 16] {
    [number; 16]
}

fn injected() -> Cause {
    Box::new(InjectedFailure)
}
