//! The transfers of one operation, summed and checked while they are read: a key that was retried ten thousand
//! times has tens of thousands of them. Each generation has those of its hold and of the hold's end, and no others;
//! their moments are those of the row.

use std::cmp::Ordering;

use holdfast_domain::ledger::{Funds, Transfer, TransferKind};
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::{Micros, Timestamp};

use super::{Subject, Verification};

/// A transfer of an operation as its row has it, with its accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditEntry {
    pub(crate) generation: u32,
    pub(crate) transfer: Transfer,
    pub(crate) at: Timestamp,
}

/// The transfers of an operation as they are read, in the order of their legs. What does not fit is
/// reported at once: an operation of ten thousand generations may have as many mismatches.
#[derive(Debug)]
pub(crate) struct Transfers<'o> {
    operation: &'o Operation,
    found: &'o mut Verification,
    /// Sum of the holds of all generations but the last.
    past_holds: i128,
    /// Transfers of the generation that is being read.
    group: Vec<AuditEntry>,
    has_last: bool,
}

impl<'o> Transfers<'o> {
    pub(crate) const fn of(operation: &'o Operation, found: &'o mut Verification) -> Self {
        Self { operation, found, past_holds: 0, group: Vec::new(), has_last: false }
    }

    pub(crate) fn add(&mut self, line: AuditEntry) {
        if self.group.first().is_some_and(|first| first.generation != line.generation) {
            self.close_group();
        }
        self.found.transfers += 1;
        self.group.push(line);
    }

    /// Ends the operation: the sum that its generations before the last held.
    pub(crate) fn finish(mut self) -> i128 {
        self.close_group();
        // A last generation without any transfer was never seen above; one that holds zero has none.
        if !self.has_last {
            self.check(self.operation.generation, &[]);
        }
        self.past_holds
    }

    fn close_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        let Some(first) = group.first() else { return };
        self.check(first.generation, &group);
    }

    fn check(&mut self, generation: u32, lines: &[AuditEntry]) {
        let transfers: Vec<Transfer> = lines.iter().map(|line| line.transfer).collect();
        let expected = match generation.cmp(&self.operation.generation) {
            Ordering::Greater => Vec::new(),
            Ordering::Equal => {
                self.has_last = true;
                self.check_moments(lines);
                current(self.operation, &transfers)
            }
            Ordering::Less => {
                let held = transfers.iter().filter(|it| it.kind == TransferKind::Hold);
                self.past_holds += held.map(|it| i128::from(it.amount.get())).sum::<i128>();
                released_transfers(&transfers)
            }
        };
        if generation == 0 || transfers != expected {
            self.report(format!(
                "the transfers of its generation {generation} are {}, they should be {}",
                render_transfers(&transfers),
                render_transfers(&expected)
            ));
        }
    }

    /// The row was written in the same transactions as its last transfers: moments must agree.
    fn check_moments(&mut self, lines: &[AuditEntry]) {
        let Operation { admitted_at, phase, .. } = self.operation;
        for AuditEntry { transfer, at, .. } in lines {
            let (recorded, what) = match transfer.kind {
                TransferKind::Hold => (Some(*admitted_at), "admitted"),
                // Its hold went back before: the moment of that is not on its row any more.
                TransferKind::Release if self.operation.is_cancelled_open() => continue,
                TransferKind::Settle
                | TransferKind::Rest
                | TransferKind::Release
                | TransferKind::Lapse => (phase.finished_at(), "finished"),
            };
            if recorded.is_some_and(|recorded| recorded != *at) {
                self.report(format!("it was {what} at another moment than its transfers say"));
                return;
            }
        }
    }

    fn report(&mut self, sentence: String) {
        self.found.report(Subject::Operation(self.operation.id), sentence);
    }
}

fn current(operation: &Operation, transfers: &[Transfer]) -> Vec<Transfer> {
    let hold = operation.hold;
    // An operation with a pending cancel is abandoned also if it is proven not to have run. An operation that was
    // cancelled while it was open has returned its hold already.
    let has_released = transfers.iter().any(|transfer| transfer.kind == TransferKind::Release);
    let has_not_run = operation.is_cancelled_open() || operation.cancel_asked && has_released;
    let after = match &operation.phase {
        Phase::Leased | Phase::Recorded(_) => Funds::Unmoved,
        Phase::Completed { usage, .. } => Funds::Capture { hold, charge: usage.charge },
        Phase::Open | Phase::Refused { .. } => Funds::Release(hold),
        Phase::Abandoned { .. } if has_not_run => Funds::Release(hold),
        Phase::Abandoned { .. } => Funds::Lapse(hold),
    };
    Funds::Hold(hold).transfers().chain(after.transfers()).collect()
}

/// A generation that is over was proven not to have run: what it held went back.
fn released_transfers(transfers: &[Transfer]) -> Vec<Transfer> {
    let hold = transfers.first().map_or(Micros::ZERO, |first| first.amount);
    Funds::Hold(hold).transfers().chain(Funds::Release(hold).transfers()).collect()
}

fn render_transfers(transfers: &[Transfer]) -> String {
    let spelled = transfers.iter().map(|transfer| {
        let Transfer { kind, debit, credit, amount } = transfer;
        format!("{} {} ({} to {})", kind.label(), amount.get(), debit.label(), credit.label())
    });
    let spelled: Vec<String> = spelled.collect();
    if spelled.is_empty() { "none".to_owned() } else { spelled.join(", ") }
}
