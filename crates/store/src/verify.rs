//! The audit of `holdfast ledger verify`: recomputes every balance and every invariant that rows can
//! show, from the rows alone. It trusts no column that another one implies.
//!
//! Pure; the rows come from [`crate::Store::verify`]. What an operation's transfers should be is
//! asked of the domain, never written down here a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use holdfast_domain::ledger::{Funds, Posting, PostingKind, Transfer};
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::usage::UsageRecord;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, Timestamp, WalletId};

/// Mismatches that are listed; more are counted.
const LISTED_MAX: usize = 10_000;

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Wallets that were looked at.
    pub wallets: u64,
    /// Operations that were looked at.
    pub operations: u64,
    /// Transfers that were looked at, postings among them.
    pub transfers: u64,
    /// What does not fit.
    pub mismatches: Vec<Mismatch>,
    /// How many more there are than are listed.
    pub unlisted: u64,
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What it is about.
    pub subject: Subject,
    /// What is wrong with it.
    pub sentence: String,
}

/// What a mismatch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A wallet.
    Wallet(WalletId),
    /// An API key.
    ApiKey(ApiKeyId),
    /// An operation.
    Operation(OperationId),
    /// A deposit, refund or adjustment.
    Posting(PostingId),
    /// The book as a whole.
    Book,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wallet(id) => write!(f, "wallet {id}"),
            Self::ApiKey(id) => write!(f, "API key {id}"),
            Self::Operation(id) => write!(f, "operation {id}"),
            Self::Posting(id) => write!(f, "posting {id}"),
            Self::Book => f.write_str("the book"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.sentence)
    }
}

/// A transfer of an operation as its row tells it, its accounts among it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) generation: u32,
    pub(crate) transfer: Transfer,
}

/// Everything that belongs to one operation.
#[derive(Debug)]
pub(crate) struct Dossier {
    pub(crate) operation: Operation,
    pub(crate) lines: Vec<Line>,
    pub(crate) result: Kept,
    /// Whether it is found among those that run.
    pub(crate) is_listed: bool,
}

/// What stands of an operation's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    Result { finished_at: Option<Timestamp> },
}

/// An audit in progress. Wallets, API keys and postings come first.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    found: Verification,
    wallets: BTreeMap<WalletId, Tally>,
    api_keys: BTreeSet<ApiKeyId>,
    refunds: BTreeMap<OperationId, Vec<Posting>>,
    reserved: BTreeMap<(ApiKeyId, Counter), i128>,
}

/// A wallet's row and what its transfers come to. Sums are wide: a broken book may not fit.
#[derive(Debug)]
struct Tally {
    wallet: Wallet,
    available: i128,
    held: i128,
    active: i128,
}

impl Audit {
    pub(crate) fn wallet(&mut self, wallet: Wallet) {
        self.found.wallets += 1;
        let tally = Tally { available: 0, held: 0, active: 0, wallet };
        self.wallets.insert(tally.wallet.id, tally);
    }

    pub(crate) fn api_key(&mut self, id: ApiKeyId) {
        self.api_keys.insert(id);
    }

    pub(crate) fn posting(&mut self, posting: Posting) {
        self.found.transfers += 1;
        let subject = Subject::Posting(posting.id);
        match self.wallets.get_mut(&posting.wallet) {
            Some(tally) => tally.available += i128::from(posting.amount.get()),
            None => self.report(subject, "its wallet does not exist".to_owned()),
        }
        if !posting.kind.allows(posting.amount) {
            let Posting { kind, amount, .. } = &posting;
            self.report(subject, format!("it is a {} of {} micros", kind.label(), amount.get()));
        }
        if let PostingKind::Refund(operation) = &posting.kind {
            self.refunds.entry(*operation).or_default().push(posting);
        }
    }

    pub(crate) fn operation(&mut self, dossier: &Dossier) {
        self.found.operations += 1;
        let operation = &dossier.operation;
        let mut wrong = Vec::new();
        if operation.id != OperationId::of(operation.api_key, operation.request_key) {
            wrong.push("its id does not follow from its API key and request key".to_owned());
        }
        if !self.api_keys.contains(&operation.api_key) {
            wrong.push("its API key does not exist".to_owned());
        }
        if dossier.is_listed != operation.phase.holds() {
            let found = if dossier.is_listed { "listed" } else { "not listed" };
            wrong.push(format!("it is {found} among those that run"));
        }
        check_transfers(operation, &dossier.lines, &mut wrong);
        check_usage(operation, &mut wrong);
        check_result(operation, dossier.result, &mut wrong);
        self.check_refunds(operation, &mut wrong);
        self.count(operation, &dossier.lines, &mut wrong);
        for sentence in wrong {
            self.report(Subject::Operation(operation.id), sentence);
        }
    }

    /// A row that cannot even be read.
    pub(crate) fn unreadable(&mut self, subject: Subject, error: &dyn std::error::Error) {
        if matches!(subject, Subject::Operation(_)) {
            self.found.operations += 1;
        }
        self.report(subject, format!("its row cannot be read: {error}"));
    }

    /// A counter that knows no window, as its row tells it.
    pub(crate) fn counter(&mut self, api_key: ApiKeyId, counter: Counter, used: i64) {
        let reserved = self.reserved.remove(&(api_key, counter)).unwrap_or(0);
        if reserved != i128::from(used) {
            let label = counter.label();
            let sentence =
                format!("its counter {label} stands at {used}, its operations make {reserved}");
            self.report(Subject::ApiKey(api_key), sentence);
        }
    }

    /// Ends the audit. `orphans` is how many transfers and results belong to no operation.
    pub(crate) fn finish(mut self, orphans: u64) -> Verification {
        if orphans > 0 {
            let sentence = format!("{orphans} transfers and results belong to no operation");
            self.report(Subject::Book, sentence);
        }
        let missing: Vec<_> = self.refunds.keys().copied().collect();
        for operation in missing {
            let sentence = "it was refunded and does not exist".to_owned();
            self.report(Subject::Operation(operation), sentence);
        }
        let uncounted: Vec<_> =
            self.reserved.iter().filter(|(_, reserved)| **reserved != 0).collect();
        let uncounted: Vec<_> = uncounted.into_iter().map(|(key, n)| (*key, *n)).collect();
        for ((api_key, counter), reserved) in uncounted {
            let label = counter.label();
            let sentence =
                format!("its operations make {reserved} of {label}, which is not counted");
            self.report(Subject::ApiKey(api_key), sentence);
        }
        for tally in std::mem::take(&mut self.wallets).into_values() {
            for sentence in tally.mismatches() {
                self.report(Subject::Wallet(tally.wallet.id), sentence);
            }
        }
        self.found
    }

    fn check_refunds(&mut self, operation: &Operation, wrong: &mut Vec<String>) {
        let Some(refunds) = self.refunds.remove(&operation.id) else { return };
        let charge = match &operation.phase {
            Phase::Completed { usage, .. } => usage.charge,
            Phase::Leased
            | Phase::Recorded(_)
            | Phase::Open
            | Phase::Refused { .. }
            | Phase::Abandoned { .. } => Micros::ZERO,
        };
        let refunded: i128 = refunds.iter().map(|refund| i128::from(refund.amount.get())).sum();
        if refunded > i128::from(charge.get()) {
            wrong.push(format!("{refunded} micros were refunded of a charge of {}", charge.get()));
        }
        if refunds.iter().any(|refund| refund.wallet != operation.wallet) {
            wrong.push("it was refunded to another wallet".to_owned());
        }
    }

    /// Adds the operation to its wallet's and its API key's sums.
    fn count(&mut self, operation: &Operation, lines: &[Line], wrong: &mut Vec<String>) {
        let hold = i128::from(operation.hold.get());
        let (concurrency, spend) = match &operation.phase {
            Phase::Leased | Phase::Recorded(_) => (1, hold),
            Phase::Completed { usage, .. } => (0, i128::from(usage.charge.get())),
            Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => (0, 0),
        };
        for (counter, amount) in [(Counter::Concurrency, concurrency), (Counter::SpendTotal, spend)]
        {
            if reserves(operation, counter) {
                *self.reserved.entry((operation.api_key, counter)).or_default() += amount;
            }
        }
        self.found.transfers += u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let Some(tally) = self.wallets.get_mut(&operation.wallet) else {
            wrong.push("its wallet does not exist".to_owned());
            return;
        };
        if tally.wallet.currency != operation.price.currency {
            wrong.push("its price is in another currency than its wallet".to_owned());
        }
        if operation.phase.holds() {
            tally.active += hold;
        }
        for Line { transfer, .. } in lines {
            tally.add(transfer);
        }
    }

    fn report(&mut self, subject: Subject, sentence: String) {
        if self.found.mismatches.len() < LISTED_MAX {
            self.found.mismatches.push(Mismatch { subject, sentence });
        } else {
            self.found.unlisted += 1;
        }
    }
}

impl Tally {
    fn add(&mut self, transfer: &Transfer) {
        use holdfast_domain::ledger::Account;
        let amount = i128::from(transfer.amount.get());
        for (account, amount) in [(transfer.debit, -amount), (transfer.credit, amount)] {
            match account {
                Account::Available => self.available += amount,
                Account::Held => self.held += amount,
                Account::Funding | Account::Revenue | Account::Adjustments => {}
            }
        }
    }

    fn mismatches(&self) -> Vec<String> {
        let Wallet { available, held, .. } = &self.wallet;
        let rows = [("available", *available, self.available), ("held", *held, self.held)];
        let mut wrong: Vec<String> = rows
            .into_iter()
            .filter(|(_, row, sum)| i128::from(row.get()) != *sum)
            .map(|(name, row, sum)| {
                format!("{name} is {} micros, its transfers make {sum}", row.get())
            })
            .collect();
        if i128::from(held.get()) != self.active {
            let active = self.active;
            wrong.push(format!("held is {} micros, its active holds make {active}", held.get()));
        }
        if self.available < 0 || self.held < 0 {
            wrong.push("its transfers take more than there was".to_owned());
        }
        wrong
    }
}

/// Whether the operation took part in a counter.
fn reserves(operation: &Operation, counter: Counter) -> bool {
    let bits = operation.reserved.counters();
    let bit = Counter::ALL.iter().position(|other| *other == counter);
    bit.is_some_and(|bit| bits >> bit & 1 == 1)
}

/// Each generation's transfers are those of its hold and of what became of it, and no others.
fn check_transfers(operation: &Operation, lines: &[Line], wrong: &mut Vec<String>) {
    let mut by_generation: BTreeMap<u32, Vec<Transfer>> = BTreeMap::new();
    for line in lines {
        by_generation.entry(line.generation).or_default().push(line.transfer);
    }
    let now = by_generation.entry(operation.generation).or_default();
    now.sort_by_key(|transfer| transfer.kind);
    for (generation, transfers) in &by_generation {
        let expected = match generation.cmp(&operation.generation) {
            std::cmp::Ordering::Greater => Vec::new(),
            std::cmp::Ordering::Equal => current(operation),
            std::cmp::Ordering::Less => past(transfers),
        };
        if *generation == 0 || *transfers != expected {
            wrong.push(format!(
                "the transfers of its generation {generation} are {}, they should be {}",
                spelled(transfers),
                spelled(&expected)
            ));
        }
    }
}

fn current(operation: &Operation) -> Vec<Transfer> {
    let hold = operation.hold;
    let after = match &operation.phase {
        Phase::Leased | Phase::Recorded(_) => Funds::Unmoved,
        Phase::Completed { usage, .. } => Funds::Capture { hold, charge: usage.charge },
        Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => Funds::Release(hold),
    };
    Funds::Hold(hold).transfers().chain(after.transfers()).collect()
}

/// A generation that is over was proven not to have run: what it held went back.
fn past(transfers: &[Transfer]) -> Vec<Transfer> {
    let hold = transfers.first().map_or(Micros::ZERO, |first| first.amount);
    Funds::Hold(hold).transfers().chain(Funds::Release(hold).transfers()).collect()
}

fn spelled(transfers: &[Transfer]) -> String {
    let spelled = transfers.iter().map(|transfer| {
        let Transfer { kind, debit, credit, amount } = transfer;
        format!("{} {} ({} to {})", kind.label(), amount.get(), debit.label(), credit.label())
    });
    let spelled: Vec<String> = spelled.collect();
    if spelled.is_empty() { "none".to_owned() } else { spelled.join(", ") }
}

/// The charge is what the meters cost by the price, at most the hold.
fn check_usage(operation: &Operation, wrong: &mut Vec<String>) {
    let Some(usage) = operation.phase.usage() else { return };
    let computed = UsageRecord::of(usage.metered, &operation.price, operation.hold);
    if (computed.charge, computed.shortfall) != (usage.charge, usage.shortfall) {
        wrong.push(format!(
            "its charge is {} micros and its shortfall {}, its meters make {} and {}",
            usage.charge.get(),
            usage.shortfall.get(),
            computed.charge.get(),
            computed.shortfall.get()
        ));
    }
}

/// Only what ended with an answer has a result, and what waits for its settlement has one.
fn check_result(operation: &Operation, result: Kept, wrong: &mut Vec<String>) {
    let label = operation.phase.label();
    match (&operation.phase, result) {
        (Phase::Recorded(_), Kept::Nothing) => {
            wrong.push("it is recorded and its result is gone".to_owned());
        }
        (Phase::Leased | Phase::Open | Phase::Abandoned { .. }, Kept::Result { .. }) => {
            wrong.push(format!("it is {label} and has a result"));
        }
        (
            Phase::Recorded(_) | Phase::Completed { .. } | Phase::Refused { .. },
            Kept::Result { finished_at },
        ) => {
            if finished_at != operation.phase.finished_at() {
                wrong.push("its result says another moment than its row".to_owned());
            }
        }
        (
            Phase::Leased
            | Phase::Open
            | Phase::Abandoned { .. }
            | Phase::Completed { .. }
            | Phase::Refused { .. },
            Kept::Nothing,
        ) => {}
    }
}
