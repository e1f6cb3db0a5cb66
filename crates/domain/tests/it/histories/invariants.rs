//! I1 to I9 of the operation's specification, over the rows, the book, and what a bystander remembers.

use std::collections::BTreeMap;

use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Binding, Operation, Phase, SealedResult, Snapshot};
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::usage::{MeterReading, UsageRecord};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Journal, Micros, OperationId, Timestamp, WalletId, Wallets as _};
use holdfast_testkit::laws::Lists as _;
use holdfast_testkit::memory::WalletEntry;

use super::world::{RETENTION, World};

/// What a bystander remembers of an operation.
#[derive(Debug, Default)]
pub(super) struct Ghost {
    /// How often a model may have run for it.
    pub(super) runs: u32,
    /// What its owners measured.
    pub(super) metered: Vec<MeterReading>,
    /// An owner called a model with another request than the one that the key is bound to.
    pub(super) is_mixed_up: bool,
    /// Final answers that owners gave.
    pub(super) told: Vec<(Phase, Option<SealedResult>)>,
    bound: Option<Binding>,
    generation: u32,
    usage: Option<UsageRecord>,
    final_answer: Option<(Phase, Option<SealedResult>)>,
}

/// Everything at one moment.
struct View<'a> {
    rows: Vec<(Operation, Option<SealedResult>, &'a Ghost)>,
    wallets: Vec<Wallet>,
    lines: Vec<WalletEntry>,
    /// What postings brought to each wallet.
    posted: BTreeMap<WalletId, i64>,
    world: &'a World,
    now: Timestamp,
}

/// A name, and what it says.
type Invariant = (&'static str, fn(&View<'_>) -> bool);

const INVARIANTS: [Invariant; 12] = [
    ("I1", |view| view.rows.iter().all(|(_, _, ghost)| ghost.runs <= 1)),
    ("I2", |view| view.each(is_charged_once)),
    ("I3", |view| {
        view.each(|row, _, book| {
            let active = if row.phase.holds() { row.hold } else { Micros::ZERO };
            book.sum(&["hold"]) - book.sum(&["settle", "rest", "release", "lapse"]) == active.get()
        })
    }),
    ("I4", |view| {
        view.each(|row, _, book| {
            let last = book.of(row.generation);
            let is_captured = last.sum(&["settle", "rest"]) == row.hold.get();
            let earlier = book.before(row.generation);
            let ends_as_told = is_captured == matches!(row.phase, Phase::Completed { .. });
            ends_as_told && earlier.sum(&["settle", "rest"]) == 0
        })
    }),
    ("I5", |view| view.wallets.iter().all(|wallet| is_balanced(view, wallet))),
    ("I6", |view| view.rows.iter().all(|it| tells_the_same(&it.0, it.1.as_ref(), it.2, view.now))),
    ("I7", |view| view.each(|_, ghost, book| book.sum(&["settle"]) == 0 || ghost.runs >= 1)),
    ("I8", |view| {
        view.each(|row, ghost, _| {
            let is_bound_as_ever = ghost.bound.is_none_or(|bound| bound == row.binding);
            row.generation >= ghost.generation && is_bound_as_ever
        })
    }),
    ("I9", |view| view.each(|row, ghost, _| is_recorded_for_good(row, ghost))),
    ("counters", |view| view.rows.iter().all(|(row, _, _)| counts_right(view, row))),
    ("cancelled", |view| view.each(|row, _, _| !(row.cancel_asked && row.phase == Phase::Open))),
    ("conflict", |view| view.rows.iter().all(|(_, _, ghost)| !ghost.is_mixed_up)),
];

/// The names of those that do not hold now. What is seen is remembered for the next time.
pub(super) async fn broken(world: &mut World) -> Vec<&'static str> {
    let mut loaded = Vec::new();
    for row in world.journal.operations() {
        let Snapshot { operation, result, .. } = world.journal.load(row.id).await.unwrap();
        loaded.push((operation.unwrap(), result));
    }
    let mut posted = BTreeMap::new();
    for id in &world.postings {
        if let Some(posting) = world.journal.posting(*id).await.unwrap() {
            *posted.entry(posting.wallet).or_insert(0) += posting.amount.get();
        }
    }
    for (row, _) in &loaded {
        world.ghosts.entry(row.id).or_default();
    }
    let view = View {
        rows: loaded.iter().map(|(r, of)| (r.clone(), of.clone(), &world.ghosts[&r.id])).collect(),
        wallets: world.journal.all_wallets().await,
        lines: world.journal.lines(),
        posted,
        world,
        now: world.journal.now(),
    };
    let is_broken = |(_, holds): &&Invariant| !holds(&view);
    let broken = INVARIANTS.iter().filter(is_broken).map(|(name, _)| *name).collect();
    let lost = world.ghosts.keys().find(|id| !loaded.iter().any(|(row, _)| row.id == **id));
    assert_eq!(lost, None, "the row of an operation is gone");
    for (row, result) in loaded {
        world.notes(&row, result.as_ref());
        world.ghosts.entry(row.id).or_default().remember(row, result);
    }
    broken
}

impl View<'_> {
    /// Whether something holds for every operation, with its part of the book.
    fn each(&self, holds: impl Fn(&Operation, &Ghost, &Part<'_>) -> bool) -> bool {
        self.rows.iter().all(|(row, _, ghost)| {
            let part = Part(self.lines.iter().filter_map(|line| of(line, row.id)).collect());
            holds(row, ghost, &part)
        })
    }
}

/// The lines of one operation, with their generations.
struct Part<'a>(Vec<(u32, &'a WalletEntry)>);

fn of(line: &WalletEntry, operation: OperationId) -> Option<(u32, &WalletEntry)> {
    match line.entry.source {
        LedgerSource::Operation(id, generation) if id == operation => Some((generation, line)),
        LedgerSource::Operation(..) | LedgerSource::Posting(_) => None,
    }
}

impl Part<'_> {
    fn of(&self, generation: u32) -> Self {
        Self(self.0.iter().filter(|(of, _)| *of == generation).copied().collect())
    }

    fn before(&self, generation: u32) -> Self {
        Self(self.0.iter().filter(|(of, _)| *of < generation).copied().collect())
    }

    fn amounts(&self, kinds: &[&str]) -> Vec<i64> {
        let of_kind = self.0.iter().filter(|(_, line)| kinds.contains(&line.entry.kind));
        of_kind.map(|(_, line)| line.entry.amount.get()).collect()
    }

    fn sum(&self, kinds: &[&str]) -> i64 {
        self.amounts(kinds).iter().sum()
    }
}

fn is_charged_once(row: &Operation, ghost: &Ghost, book: &Part<'_>) -> bool {
    let settled = book.amounts(&["settle"]);
    let same = |usage: &UsageRecord| row.phase.usage().is_none_or(|now| now == usage);
    settled.len() <= 1
        && settled.iter().all(|charge| *charge <= row.hold.get())
        && ghost.usage.as_ref().is_none_or(same)
}

fn is_balanced(view: &View<'_>, wallet: &Wallet) -> bool {
    let of_wallet = |row: &&Operation| row.wallet == wallet.id;
    let rows = || view.rows.iter().map(|(row, _, _)| row).filter(of_wallet);
    let active = rows().filter(|row| row.phase.holds()).map(|row| row.hold.get()).sum::<i64>();
    let captured = rows().filter_map(|row| match &row.phase {
        Phase::Completed { usage, .. } => Some(usage.charge.get()),
        Phase::Leased
        | Phase::Recorded(_)
        | Phase::Open
        | Phase::Refused { .. }
        | Phase::Abandoned { .. } => None,
    });
    let (available, held) = (wallet.available.get(), wallet.held.get());
    let posted = view.posted.get(&wallet.id).copied().unwrap_or(0);
    available >= 0 && held == active && available + held + captured.sum::<i64>() == posted
}

/// Everybody who asks now gets what was told first, but for content that is kept long enough.
fn tells_the_same(
    row: &Operation,
    result: Option<&SealedResult>,
    ghost: &Ghost,
    now: Timestamp,
) -> bool {
    let may_be_gone = |ended: &Phase| {
        ended.finished_at().is_none_or(|finished_at| finished_at.after(RETENTION) < now)
    };
    let is_kept = match &row.phase {
        Phase::Recorded(_) => result.is_some(),
        ended @ (Phase::Completed { .. } | Phase::Refused { .. }) => {
            result.is_some() || may_be_gone(ended)
        }
        Phase::Leased | Phase::Open | Phase::Abandoned { .. } => result.is_none(),
    };
    let mut told = ghost.told.iter().chain(&ghost.final_answer);
    let is_same = |(phase, content): &(Phase, Option<SealedResult>)| {
        *phase == row.phase && (result == content.as_ref() || result.is_none())
    };
    let stays_gone =
        ghost.final_answer.as_ref().is_none_or(|(_, kept)| kept.is_some() || result.is_none());
    is_kept && stays_gone && told.all(is_same)
}

fn is_recorded_for_good(row: &Operation, ghost: &Ghost) -> bool {
    match (row.phase.usage(), &ghost.usage) {
        (Some(usage), _) => {
            let of_row = |metered: &MeterReading| UsageRecord::of(*metered, &row.price, row.hold);
            ghost.metered.iter().any(|metered| of_row(metered) == *usage)
        }
        (None, was) => was.is_none(),
    }
}

/// What an API key's counters say is what its rows say.
fn counts_right(view: &View<'_>, of: &Operation) -> bool {
    let rows = view.rows.iter().map(|(row, _, _)| row).filter(|row| row.api_key == of.api_key);
    let (mut running, mut spent) = (0, 0);
    for row in rows {
        let reserves = |counter: Counter| {
            let at = Counter::ALL.iter().position(|it| *it == counter).unwrap();
            row.reserved.counters() >> at & 1 == 1
        };
        if reserves(Counter::Concurrency) && row.phase.holds() {
            running += 1;
        }
        if reserves(Counter::SpendTotal) {
            spent += match &row.phase {
                Phase::Completed { usage, .. } => usage.charge.get(),
                Phase::Leased | Phase::Recorded(_) => row.hold.get(),
                Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => 0,
            };
        }
    }
    let count = |counter| view.world.journal.counter(of.api_key, counter, view.now);
    count(Counter::Concurrency) == running && count(Counter::SpendTotal) == spent
}

impl Ghost {
    fn remember(&mut self, row: Operation, result: Option<SealedResult>) {
        self.bound.get_or_insert(row.binding);
        self.generation = row.generation;
        if let Some(usage) = row.phase.usage() {
            self.usage.get_or_insert_with(|| usage.clone());
        }
        if row.phase.finished_at().is_some() {
            self.final_answer = Some((row.phase, result));
        }
    }
}
