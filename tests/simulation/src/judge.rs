//! Judge of rows and books: `operation.md`'s invariants over what the store holds. Answers and runs are judged where
//! callers and upstreams meet them.

use std::collections::BTreeMap;

use holdfast_domain::ledger::Account;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Micros, OperationId};
use holdfast_testkit::memory::WalletEntry;
use holdfast_testkit::{MemoryJournal, sample};

use crate::keys::KeyNames;
use crate::recorder::{Invariant, Recorder};

/// Judges a row after a change, by the row before.
pub fn judge_row(recorder: &Recorder, name: &str, before: Option<&Operation>, after: &Operation) {
    let violate = |invariant, text: &str| recorder.violate(invariant, format!("{name}: {text}"));
    if let Some(before) = before {
        if before.phase.finished_at().is_some() && before.phase != after.phase {
            violate(Invariant::Terminal, "a terminal phase has changed");
        }
        if after.generation < before.generation {
            violate(Invariant::I8, "the generation has decreased");
        }
        if after.binding != before.binding {
            violate(Invariant::I8, "the fingerprint has changed");
        }
        let is_settlement = matches!(after.phase, Phase::Completed { .. });
        if matches!(before.phase, Phase::Recorded(_)) && !is_settlement {
            violate(Invariant::I9, "a usage record is gone");
        }
    }
    if after.phase.usage().is_some_and(|usage| usage.charge > after.hold) {
        violate(Invariant::I2, "the charge is above the hold");
    }
}

/// Transfers of an operation, by kind.
#[derive(Debug, Default)]
struct OperationBooks {
    holds: i64,
    settled: i64,
    settlements: usize,
    returned: i64,
}

/// Judges the books as a whole: each operation against its transfers, and each wallet against all of them.
pub fn judge_books(recorder: &Recorder, names: &KeyNames, journal: &MemoryJournal) {
    let (operations, lines) = (journal.operations(), journal.lines());
    let mut books: BTreeMap<OperationId, OperationBooks> = BTreeMap::new();
    for WalletEntry { entry, .. } in &lines {
        let LedgerSource::Operation(operation, _generation) = entry.source else { continue };
        let book = books.entry(operation).or_default();
        let amount = entry.amount.get();
        match (entry.debit, entry.credit) {
            (Account::Available, Account::Held) => book.holds += amount,
            (Account::Held, Account::Revenue) => {
                book.settled += amount;
                book.settlements += 1;
            }
            _other => book.returned += amount,
        }
    }
    for operation in &operations {
        let book = books.remove(&operation.id).unwrap_or_default();
        judge_operation(recorder, names.of_operation(operation.id), operation, &book);
    }
    for operation in books.keys() {
        let name = names.of_operation(*operation);
        recorder.violate(Invariant::I5, format!("{name}: transfers of an operation without a row"));
    }
    if let Some(wallet) = journal.wallet(sample::WALLET) {
        judge_wallet(recorder, &wallet, &operations, &lines);
    }
}

fn judge_operation(recorder: &Recorder, name: &str, operation: &Operation, book: &OperationBooks) {
    let violate = |invariant, text: String| recorder.violate(invariant, format!("{name}: {text}"));
    let active = book.holds - book.settled - book.returned;
    let is_active = operation.phase.holds();
    let expected = if is_active { operation.hold.get() } else { 0 };
    if active != expected {
        let phase = operation.phase.label();
        violate(Invariant::I3, format!("{phase} with {active} micros held, not {expected}"));
    }
    let captured = match &operation.phase {
        Phase::Completed { usage, .. } => usage.charge.get(),
        Phase::Leased
        | Phase::Recorded(_)
        | Phase::Open
        | Phase::Refused { .. }
        | Phase::Abandoned { .. } => 0,
    };
    if book.settled != captured {
        violate(Invariant::I4, format!("{} micros captured, not {captured}", book.settled));
    }
    if book.settlements > 1 {
        violate(Invariant::I2, format!("{} settlements", book.settlements));
    }
}

fn judge_wallet(
    recorder: &Recorder,
    wallet: &Wallet,
    operations: &[Operation],
    lines: &[WalletEntry],
) {
    let sum = |of: &dyn Fn(&Operation) -> i64| operations.iter().map(of).sum::<i64>();
    let held = sum(&|row| if row.phase.holds() { row.hold.get() } else { 0 });
    if wallet.available < Micros::ZERO || wallet.held.get() != held {
        let text = format!(
            "{} micros available and {} held, by operations {held}",
            wallet.available.get(),
            wallet.held.get()
        );
        recorder.violate(Invariant::I5, text);
    }
    // Money of the wallet: what came in from outside less what went out, holds stay inside.
    let is_inside = |account| matches!(account, Account::Available | Account::Held);
    let balance: i64 = lines
        .iter()
        .map(|line| match (is_inside(line.entry.debit), is_inside(line.entry.credit)) {
            (false, true) => line.entry.amount.get(),
            (true, false) => -line.entry.amount.get(),
            (true, true) | (false, false) => 0,
        })
        .sum();
    let stands = wallet.available.get() + wallet.held.get();
    if stands != balance {
        recorder.violate(
            Invariant::I5,
            format!("the wallet has {stands} micros, its ledger {balance}"),
        );
    }
}
