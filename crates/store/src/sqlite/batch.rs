//! A batch: one transaction of the writer.
//!
//! ```text
//! BEGIN IMMEDIATE -> clock, rows -> judge -> write what passed -> COMMIT (ROLLBACK if none did)
//! ```
//!
//! Cache: the writer caches the row of each operation that it left leased. An ending that hits the cache skips a
//! read. Another process may have written that row since, so a cached row may let a change pass, whose UPDATE then
//! finds no row of that version, but never refuses one: the cache is emptied, the rows are read, and the batch is
//! judged again.
//!
//! Errors report exactly what is certain: before COMMIT the batch was not committed, after a failed COMMIT its
//! outcome is unknown. The answers that follow from that are [`super::writer`]'s.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_domain::operation::{Effect, Receipt, Transition};
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::{OperationId, Timestamp, WalletId};
use holdfast_failpoint::{Fault, Step, is_broken, reach};

use super::clock::Clock;
use super::connect::{CONSTRAINT, ERROR, TOO_BIG};
use super::statements::Statements;
use super::write_task::WriteError;
use crate::batch::judge::{
    Acceptance, BatchState, OperationRow, Rejection, resolve_holds, uncovered_wallets, windows,
};
use crate::metrics;
use crate::transaction::event::SharedInterest;

/// Rows that the writer keeps from batch to batch.
#[derive(Debug)]
pub(super) struct BatchCache {
    /// Price versions never change, so those that were read once need not be read again.
    prices: HashMap<PriceVersionId, PriceVersion>,
    /// The operations that the writer has left leased, so that their ends need not read them. Another process may
    /// have written them since: then they have another version, which is noticed as they are written.
    leased: HashMap<OperationId, OperationRow>,
    pub(super) clock: Arc<Clock>,
    interest: SharedInterest,
}

/// A batch that did not go through, by what is certain about it.
#[derive(Debug)]
pub(super) enum BatchError {
    /// A change does not fit the tables; the batch was not committed.
    Constraint(WriteError),
    /// The database does not work; the batch was not committed.
    Unavailable(WriteError),
    /// COMMIT was tried and it failed, so the outcome is unknown.
    Uncertain(WriteError),
}

/// Numbers of the last entries of the wallets that a batch moves.
type EntryNumbers = BTreeMap<WalletId, i64>;

/// Verdicts of the changes of a batch, in their order.
pub(super) type Verdicts = Vec<Result<Receipt, Rejection>>;

impl BatchCache {
    pub(super) fn new(clock: Arc<Clock>, interest: SharedInterest) -> Self {
        Self { prices: HashMap::new(), leased: HashMap::new(), clock, interest }
    }

    /// The row of a transition that was judged by the version that was written last. What expects
    /// another one reads the row: it may know more.
    fn row(&self, transition: &Transition) -> Option<OperationRow> {
        let row = self.leased.get(&transition.operation)?;
        transition.matches_row(Some((row.version, row.claim))).then_some(*row)
    }

    /// True if a change was judged by a cached row.
    fn has_cached_row(&self, change: &Transition) -> bool {
        self.row(change).is_some()
    }

    /// Drops all cached rows and prices, so that they are read anew.
    pub(super) fn forget(&mut self) {
        self.prices.clear();
        self.forget_rows();
    }

    /// Has every operation read anew.
    fn forget_rows(&mut self) {
        self.leased.clear();
    }

    /// Remembers what a transition has left leased.
    fn remember(&mut self, transition: &Transition, row: OperationRow) {
        match &transition.effect {
            Effect::Admit(_) | Effect::Reopen(_) | Effect::AskCancel => {
                self.leased.insert(transition.operation, row);
            }
            Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Settle
            | Effect::Cancel
            | Effect::Open { .. }
            | Effect::Refuse { .. }
            | Effect::Abandon { .. } => {
                self.leased.remove(&transition.operation);
            }
        }
    }
}

/// Commits these changes as one transaction. No two concern the same operation. On a
/// failure other than `Uncertain` the transaction is over.
pub(super) fn commit(
    statements: &mut Statements<'_>,
    memory: &mut BatchCache,
    changes: &[&Transition],
) -> Result<Verdicts, BatchError> {
    let result = attempt_or_roll_back(statements, memory, changes);
    let Err(failure) = &result else { return result };
    // What was remembered may be so no longer. With rows that were read a change fails for its own
    // sake.
    let had_rows = !std::mem::take(&mut memory.leased).is_empty();
    if had_rows && matches!(failure, BatchError::Constraint(_)) {
        return attempt_or_roll_back(statements, memory, changes);
    }
    result
}

fn attempt_or_roll_back(
    statements: &mut Statements<'_>,
    memory: &mut BatchCache,
    changes: &[&Transition],
) -> Result<Verdicts, BatchError> {
    let result = attempt(statements, memory, changes);
    if let Err(BatchError::Constraint(_) | BatchError::Unavailable(_)) = &result {
        statements.rollback().map_err(|error| BatchError::Unavailable(error.into()))?;
    }
    result
}

fn attempt(
    statements: &mut Statements<'_>,
    memory: &mut BatchCache,
    changes: &[&Transition],
) -> Result<Verdicts, BatchError> {
    // BEGIN IMMEDIATE takes the right to write before the first read: no other process writes in between.
    statements.begin().map_err(BatchError::of)?;
    let (mut state, mut entries, mut now) =
        read(statements, memory, changes).map_err(BatchError::of)?;
    reach(Step::BatchBegun);
    let mut verdicts = judge(&mut state, changes, now);
    let refuses = |(change, verdict): (&&Transition, &Result<Acceptance, Rejection>)| {
        verdict.is_err() && memory.has_cached_row(change)
    };
    if changes.iter().zip(&verdicts).any(refuses) {
        // Another process may have written since: only a row that was read refuses.
        memory.forget_rows();
        (state, entries, now) = read(statements, memory, changes).map_err(BatchError::of)?;
        verdicts = judge(&mut state, changes, now);
    }
    let recorded = uncovered_wallets(changes, &verdicts).into_iter();
    let recorded = recorded.map(|wallet| Ok((wallet, statements.recorded_holds(wallet)?)));
    let recorded = recorded.collect::<Result<_, WriteError>>().map_err(BatchError::of)?;
    resolve_holds(changes, &mut verdicts, &recorded);
    let done = if verdicts.iter().any(Result::is_ok) {
        let judged = changes.iter().zip(&verdicts);
        let written =
            write(statements, &state, &mut entries, judged, now).map_err(BatchError::of)?;
        let events = memory.interest.wanted(&state.moved.events);
        for event in &events {
            statements.insert_event(event, now).map_err(BatchError::of)?;
        }
        reach(Step::BatchWritten);
        // No ROLLBACK after a failed COMMIT: it may be durable. The writer drops the connection.
        let done = if is_forgotten(changes) { statements.rollback() } else { statements.commit() };
        let done = done.map_err(|error| BatchError::Uncertain(error.into()))?;
        reach(Step::BatchCommitted);
        if !events.is_empty() {
            memory.interest.on_written();
        }
        // Cached after COMMIT only: a row that was rolled back must not be remembered.
        memory.prices.extend(state.moved.prices);
        for (transition, row) in written {
            memory.remember(transition, row);
        }
        done
    } else {
        statements.rollback().map_err(|error| BatchError::Unavailable(error.into()))?
    };
    metrics::transaction(done.statements, done.rows);
    let receipt =
        |passed: Acceptance| Receipt { version: passed.version, at: now, counters: passed.tally };
    Ok(verdicts.into_iter().map(|verdict| verdict.map(receipt)).collect())
}

/// True for a batch that is acknowledged and never committed, if that guard is switched off: every fourth of its kind.
fn is_forgotten(changes: &[&Transition]) -> bool {
    static MET: AtomicU64 = AtomicU64::new(0);
    let is_of_kind = |change: &&Transition| match &change.effect {
        Effect::Admit(_) => is_broken(Fault::RunBeforeClaim),
        Effect::Complete { .. } => is_broken(Fault::AnsweredBeforeCommit),
        Effect::Reopen(_)
        | Effect::Record { .. }
        | Effect::Settle
        | Effect::AskCancel
        | Effect::Cancel
        | Effect::Open { .. }
        | Effect::Refuse { .. }
        | Effect::Abandon { .. } => false,
    };
    changes.iter().all(is_of_kind) && MET.fetch_add(1, Ordering::Relaxed) % 4 == 3
}

fn judge(
    state: &mut BatchState,
    changes: &[&Transition],
    now: Timestamp,
) -> Vec<Result<Acceptance, Rejection>> {
    changes.iter().map(|change| state.judge(change, now)).collect()
}

fn read(
    statements: &mut Statements<'_>,
    memory: &mut BatchCache,
    changes: &[&Transition],
) -> Result<(BatchState, EntryNumbers, Timestamp), WriteError> {
    let now = memory.clock.stamp(statements.now()?);
    let (mut state, mut entries) = (BatchState::default(), EntryNumbers::new());
    for change in changes {
        let wallet = change.wallet;
        if !state.wallets.contains_key(&wallet)
            && let Some((balance, last)) = statements.wallet(wallet)?
        {
            state.wallets.insert(wallet, balance);
            entries.insert(wallet, last);
        }
        read_transition(statements, memory, &mut state, change, now)?;
    }
    Ok((state, entries, now))
}

fn read_transition(
    statements: &mut Statements<'_>,
    memory: &mut BatchCache,
    state: &mut BatchState,
    transition: &Transition,
    now: Timestamp,
) -> Result<(), WriteError> {
    let row = match memory.row(transition) {
        Some(row) => Some(row),
        None => statements.operation(transition.operation)?,
    };
    if let Some(row) = row {
        state.operations.insert(transition.operation, row);
    }
    for (window, _) in windows(transition, now) {
        if !state.counters.contains_key(&window)
            && let Some(used) = statements.counter(window)?
        {
            state.counters.insert(window, used);
        }
    }
    if let Some(start) = transition.start()
        && !state.prices.contains_key(&start.price.id)
    {
        let id = &start.price.id;
        if !memory.prices.contains_key(id)
            && let Some(price) = statements.price(id)?
        {
            memory.prices.insert(id.clone(), price);
        }
        state.prices.extend(memory.prices.get_key_value(id).map(|(k, v)| (k.clone(), v.clone())));
    }
    Ok(())
}

/// Writes what passed. The rows of operations that it wrote.
fn write<'c>(
    statements: &mut Statements<'_>,
    state: &BatchState,
    entries: &mut EntryNumbers,
    judged: impl Iterator<Item = (&'c &'c Transition, &'c Result<Acceptance, Rejection>)>,
    now: Timestamp,
) -> Result<Vec<(&'c Transition, OperationRow)>, WriteError> {
    let mut written = Vec::new();
    for price in state.moved.prices.values() {
        statements.keep_price(price)?;
    }
    for (change, verdict) in judged {
        // In the order in which they were judged. What passes without its wallet moves no money.
        let last = entries.entry(change.wallet).or_default();
        if let Ok(passed) = verdict {
            let seq = statements.transition(change, *passed, now, last)?;
            let row = OperationRow::after(change, seq, passed.version);
            written.extend(row.map(|row| (*change, row)));
        }
    }
    statements.write_transfers(now)?;
    for (window, used) in &state.moved.counters {
        statements.count(*window, *used)?;
    }
    for (wallet, moves) in &state.moved.wallets {
        // Never a default: the numbers of a wallet would begin anew.
        let last = entries.get(wallet).ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        statements.move_wallet(*wallet, *moves, *last)?;
    }
    Ok(written)
}

impl BatchError {
    /// An error before COMMIT. Constraints and rows that were not there are about a change, the
    /// rest is about the database.
    fn of(error: impl Into<WriteError>) -> Self {
        let error = error.into();
        if let WriteError::Sql(rusqlite::Error::StatementChangedRows(_)) = &error {
            return Self::Constraint(error);
        }
        match error.primary_code() {
            Some(ERROR | CONSTRAINT | TOO_BIG) => Self::Constraint(error),
            Some(_) | None => Self::Unavailable(error),
        }
    }
}
