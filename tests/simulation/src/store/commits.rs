//! Commits: one change on its way to the store, with the fate that chance gives it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ledger::Funds;
use holdfast_domain::limits::CounterReadings;
use holdfast_domain::operation::{Effect, Operation, Receipt, Transition};
use holdfast_domain::ports::{CommitError, Unavailable};
use holdfast_domain::{Journal, Micros};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::verdicts::{WriteFacts, is_claim, is_ending, label};
use super::{Store, StorePort, injected};
use crate::chance::Draws;
use crate::defect::Defect;
use crate::judge::judge_row;
use crate::process::Process;
use crate::step::Step;

/// Fate of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Judged, and answered.
    Answered,
    /// Not taken in, and known to be so.
    Refused,
    /// Too many wait.
    Overloaded,
    /// Judged, and the answer is lost.
    Landed,
    /// Rolled back, and the answer is lost.
    NotLanded,
    /// The answer is lost while the transaction is under way: it lands later, and holds its locks until then.
    Late(Duration),
    /// Lost on its way; the process finds out after minutes.
    Silent(Duration),
    /// The waiting task dies before the change is judged.
    KilledBefore,
    /// The waiting task dies after the change was judged.
    KilledAfter,
}

impl Fate {
    fn draw(draws: &mut Draws, (commits, kills): (u64, u64), change: &Transition) -> Self {
        // Drawn in any case: the choices after it are of the same change.
        let is_kill = draws.permille(kills);
        if is_kill && (is_claim(change) || is_ending(change)) {
            return draws.pick(&[(1, Self::KilledBefore), (1, Self::KilledAfter)]);
        }
        if !draws.permille(commits) {
            return Self::Answered;
        }
        let late = Self::Late(draws.millis(50, 6_000));
        let silent = Self::Silent(draws.millis(60_000, 160_000));
        draws.pick(&[
            (3, Self::Refused),
            (1, Self::Overloaded),
            (5, Self::Landed),
            (5, Self::NotLanded),
            (5, late),
            (4, silent),
        ])
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Overloaded => "overloaded",
            Self::Landed => "answer lost",
            Self::NotLanded => "rolled back",
            Self::Late(_) => "lands late",
            Self::Silent(_) => "silent",
            Self::KilledBefore => "task killed before",
            Self::KilledAfter => "task killed after",
        }
    }
}

impl StorePort {
    pub(super) async fn send_commit(
        &self,
        change: Arc<Transition>,
    ) -> Result<Receipt, CommitError> {
        let arrived = self.arrive("commit", change.operation.to_bytes()).await;
        let mut draws = arrived.map_err(|Unavailable(cause)| CommitError::Unavailable(cause))?;
        let rates = self.store.rates();
        // Changes that any process may make are slower than others: what they race with is quick.
        if matches!(change.effect, Effect::Cancel | Effect::Settle) && draws.permille(500) {
            sleep(draws.millis(50, 2_500)).await;
            self.process.live().await;
        }
        let fate = Fate::draw(&mut draws, (rates.commits, rates.kills), &change);
        if fate != Fate::Answered {
            let name = self.store.names.of_operation(change.operation);
            let (slot, effect) = (self.process.slot, label(&change));
            self.store.recorder.note(format_args!("n{slot}: {name} {effect} {}", fate.label()));
        }
        match fate {
            Fate::Refused => return Err(CommitError::Unavailable(injected())),
            Fate::Overloaded => return Err(CommitError::Overloaded),
            Fate::Silent(time) => {
                sleep(time).await;
                self.process.live().await;
                self.note_lost(&change, [Step::ClaimNotLanded, Step::EndingNotLanded]);
                return Err(CommitError::Uncertain(injected()));
            }
            Fate::KilledBefore => self.kill(&change).await,
            Fate::NotLanded => {
                sleep(draws.latency()).await;
                self.process.live().await;
                self.note_lost(&change, [Step::ClaimNotLanded, Step::EndingNotLanded]);
                return Err(CommitError::Uncertain(injected()));
            }
            Fate::Answered | Fate::Landed | Fate::Late(_) | Fate::KilledAfter => {}
        }
        let late = if let Fate::Late(time) = fate { time } else { Duration::ZERO };
        let answer = self.serve(&change, late, draws.below(2) == 0);
        if fate != Fate::Answered && fate != Fate::KilledAfter {
            let lost = if matches!(fate, Fate::Late(_)) {
                [Step::ClaimLate, Step::EndingLate]
            } else {
                [Step::ClaimLanded, Step::EndingLanded]
            };
            if fate == Fate::Landed {
                // The answer exists, and is lost on its way.
                drop(answer.await);
            }
            sleep(draws.latency()).await;
            self.process.live().await;
            self.note_lost(&change, lost);
            return Err(CommitError::Uncertain(injected()));
        }
        let verdict = answer.await;
        if fate == Fate::KilledAfter {
            self.kill(&change).await;
        }
        sleep(draws.latency()).await;
        self.process.live().await;
        // A transaction that a failover has cut: its connection is gone.
        verdict.unwrap_or_else(|_cut| Err(CommitError::Uncertain(injected())))
    }

    /// Gives a change to the server, which goes on with it whoever waits.
    fn serve(
        &self,
        change: &Arc<Transition>,
        late: Duration,
        lands_if_cut: bool,
    ) -> oneshot::Receiver<Result<Receipt, CommitError>> {
        let (sender, receiver) = oneshot::channel();
        let (store, process) = (Arc::clone(&self.store), Arc::clone(&self.process));
        let change = Arc::clone(change);
        let begun = store.failovers();
        self.store.state().transactions.spawn(async move {
            let lock = store.lock(change.wallet);
            let _held = lock.lock().await;
            sleep(late + Duration::from_millis(1)).await;
            let is_cut = store.failovers() != begun;
            if is_cut {
                store.reach(if lands_if_cut {
                    Step::FailoverLanded
                } else {
                    Step::FailoverNotLanded
                });
            }
            // What was not acknowledged may be kept or lost, by a failover and by the end of its process.
            if (is_cut || process.is_crashed()) && !lands_if_cut {
                return;
            }
            let verdict = store.write(&process, &change).await;
            if !is_cut {
                // The process may not wait any more.
                drop(sender.send(verdict));
            }
        });
        receiver
    }

    /// Ends the task that waits for a commit, as a panic would.
    async fn kill(&self, change: &Transition) {
        self.process.live().await;
        if let Some(claim) = change.start().map(|start| start.owner.claim).or(change.claim) {
            self.store.state().killed.insert(claim);
        }
        // Without the panic hook: it is no bug, and prints nothing.
        resume_unwind(Box::new(super::InjectedFailure));
    }

    fn note_lost(&self, change: &Transition, [claim, ending]: [Step; 2]) {
        if is_claim(change) {
            self.store.reach(claim);
        } else if is_ending(change) {
            self.store.reach(ending);
        }
    }
}

impl Store {
    /// Judges a change and writes it, under the lock of its wallet.
    async fn write(
        &self,
        process: &Process,
        change: &Arc<Transition>,
    ) -> Result<Receipt, CommitError> {
        self.turn_clock();
        // The fake never fails a read of its own.
        let loaded = Journal::load(&self.journal, change.operation).await;
        let (before, lease) = loaded.map_or((None, None), |it| (it.operation, it.lease));
        let name = self.names.of_operation(change.operation);
        if self.forgets(change) {
            self.recorder.note(format_args!("n{}: {name} forgotten", process.slot));
            let version = change.version();
            let (at, counters) = (self.journal.now(), CounterReadings::default());
            return Ok(Receipt { version, at, counters });
        }
        let written = self.broken(change, before.as_ref());
        let verdict = Journal::commit(&self.journal, written).await;
        let after = self.journal.operation(change.operation);
        let killed = self.state().killed.clone();
        let facts = WriteFacts {
            change,
            before: before.as_ref(),
            after: after.as_ref(),
            lease: lease.as_ref(),
            writer: &process.node,
            now: self.journal.now(),
            killed: &killed,
        };
        let outcome = facts.outcome(&verdict);
        self.recorder.note(format_args!("n{}: {name} {} {outcome}", process.slot, label(change)));
        facts.steps(&verdict).into_iter().for_each(|step| self.reach(step));
        facts.traced(&verdict).into_iter().for_each(|traced| self.recorder.change(name, traced));
        if let (Ok(_), Some(after)) = (&verdict, &after) {
            judge_row(&self.recorder, name, before.as_ref(), after);
        }
        verdict
    }

    /// True for a change that a defect acknowledges and does not store.
    fn forgets(&self, change: &Transition) -> bool {
        let is_struck = match self.defect {
            Some(Defect::ClaimForgotten) => is_claim(change),
            Some(Defect::EndingForgotten) => is_ending(change),
            _ => false,
        };
        let mut state = self.state();
        state.acknowledged += u64::from(is_struck);
        is_struck && state.acknowledged.is_multiple_of(8)
    }

    /// The change as a defect writes it; as it is without one.
    fn broken(&self, change: &Arc<Transition>, before: Option<&Operation>) -> Arc<Transition> {
        let Some(defect) = self.defect else { return Arc::clone(change) };
        let mut broken = (**change).clone();
        match (defect, broken.funds) {
            (Defect::FencingForgotten, _funds) => {
                // A claim is an insert, and a row that exists stops it.
                if let Some(row) = before.filter(|_row| broken.expected.is_some()) {
                    (broken.expected, broken.claim) = (Some(row.version), Some(row.owner.claim));
                }
            }
            (Defect::HoldPaidTwice, Funds::Release(hold) | Funds::Lapse(hold)) => {
                broken.funds = Funds::Capture { hold, charge: hold.negated() };
            }
            (Defect::HoldKept, Funds::Lapse(_hold)) => broken.funds = Funds::Unmoved,
            (Defect::OtherAmountCharged, Funds::Capture { hold, charge }) => {
                let charge = charge.plus(Micros::new(1)).unwrap_or(charge).min(hold);
                broken.funds = Funds::Capture { hold, charge };
            }
            _other => {}
        }
        Arc::new(broken)
    }
}
