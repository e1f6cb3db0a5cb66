//! The audit of `holdfast ledger verify`: recomputes every balance and every invariant that
//! rows can show, from the rows alone. It trusts no column that another one implies.
//!
//! Order: wallets, API keys and postings first; then operations with their transfers, by number;
//! then counters; then `Audit::finish`, which reports what was expected and never came.
//!
//! Pure: [`crate::Store::verify`] reads the rows, in one transaction. The transfers that an
//! operation should have are asked of the domain, never written down here a second time. Sums are
//! 128 bits wide: a damaged book must be reported, not overflow.
//!
//! It never repairs, and never stops at the first mismatch: the first 10,000 are listed, more are
//! counted.

mod counters;
mod rules;
pub(crate) mod transfers;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, Timestamp, WalletId};

use self::counters::ExpectedCounters;
use self::transfers::Sums;

/// Mismatches that are listed; more are counted.
const LISTED_MAX: usize = 10_000;

/// Result of an audit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Wallets that were looked at.
    pub wallets: u64,
    /// Operations that were looked at.
    pub operations: u64,
    /// Transfers that were looked at, postings among them.
    pub transfers: u64,
    /// Mismatches, in the order in which they were found.
    pub mismatches: Vec<Mismatch>,
    /// Number of mismatches beyond those that are listed.
    pub unlisted: u64,
}

/// Terms of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditOptions {
    /// Time that results are kept for.
    pub retention: Duration,
}

/// Progress of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Operations that were looked at.
    pub operations: u64,
    /// Operations that there are.
    pub of: u64,
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Row or rows that do not fit.
    pub subject: Subject,
    /// Sentence about the subject, without its name.
    pub sentence: String,
}

/// Subject of a mismatch.
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

/// Everything that belongs to one operation, but for its transfers.
#[derive(Debug)]
pub(crate) struct AuditedOperation {
    pub(crate) operation: Operation,
    /// Sum that its earlier generations held, as its row says.
    pub(crate) released: Micros,
    pub(crate) result: StoredResult,
    /// True where it is found among those that run.
    pub(crate) is_listed: bool,
}

/// Result row of an operation, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredResult {
    Nothing,
    Result { finished_at: Option<Timestamp> },
}

/// From when on results are still there: results go in the order of their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetentionBound {
    /// The oldest that is there.
    pub(crate) oldest: Option<Timestamp>,
    /// None that is younger is due.
    pub(crate) due: Timestamp,
}

/// An audit in progress. Wallets, API keys and postings come first.
#[derive(Debug)]
pub(crate) struct Audit {
    found: Verification,
    kept: RetentionBound,
    wallets: BTreeMap<WalletId, WalletSums>,
    api_keys: BTreeMap<ApiKeyId, WalletId>,
    refunds: BTreeMap<OperationId, Vec<Posting>>,
    counted: ExpectedCounters,
}

/// A wallet's row and what its transfers come to. Sums are wide: a broken book may not fit.
#[derive(Debug)]
struct WalletSums {
    wallet: Wallet,
    available: i128,
    held: i128,
    active: i128,
}

impl Audit {
    /// An audit at this moment of the database's clock.
    pub(crate) fn new(kept: RetentionBound, now: Timestamp) -> Self {
        Self {
            found: Verification::default(),
            kept,
            wallets: BTreeMap::new(),
            api_keys: BTreeMap::new(),
            refunds: BTreeMap::new(),
            counted: ExpectedCounters::new(now),
        }
    }

    pub(crate) fn wallet(&mut self, wallet: Wallet) {
        self.found.wallets += 1;
        let tally = WalletSums { available: 0, held: 0, active: 0, wallet };
        self.wallets.insert(tally.wallet.id, tally);
    }

    pub(crate) fn api_key(&mut self, id: ApiKeyId, wallet: WalletId) {
        self.api_keys.insert(id, wallet);
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
            // Kept until the operation comes by: its charge bounds them.
            self.refunds.entry(*operation).or_default().push(posting);
        }
    }

    pub(crate) fn operation(&mut self, dossier: &AuditedOperation, transfers: Sums) {
        self.found.operations += 1;
        let operation = &dossier.operation;
        let mut wrong = transfers.wrong;
        match self.api_keys.get(&operation.api_key) {
            None => wrong.push("its API key does not exist".to_owned()),
            Some(wallet) if *wallet != operation.wallet => {
                wrong.push("its wallet is not that of its API key".to_owned());
            }
            Some(_same) => {}
        }
        if transfers.past_holds != i128::from(dossier.released.get()) {
            wrong.push(format!(
                "its earlier generations held {} micros by its transfers and {} by its row",
                transfers.past_holds,
                dossier.released.get()
            ));
        }
        rules::check(dossier, self.kept, &mut wrong);
        self.check_refunds(operation, &mut wrong);
        self.counted.operation(operation, &transfers.reopened);
        self.found.transfers += transfers.count;
        match self.wallets.get_mut(&operation.wallet) {
            None => wrong.push("its wallet does not exist".to_owned()),
            Some(tally) => {
                if tally.wallet.currency != operation.price.currency {
                    wrong.push("its price is in another currency than its wallet".to_owned());
                }
                // By phases, not by transfers: both must come to the same, and are compared at the end.
                if operation.phase.holds() {
                    tally.active += i128::from(operation.hold.get());
                }
                tally.available += transfers.available;
                tally.held += transfers.held;
            }
        }
        for sentence in wrong {
            self.report(Subject::Operation(operation.id), sentence);
        }
    }

    /// Numbers that no operation has, where each row got the next one.
    pub(crate) fn missing(&mut self, first: i64, last: i64) {
        let sentence = format!("its operations {first} to {last} are missing");
        self.report(Subject::Book, sentence);
    }

    /// A row that cannot even be read.
    pub(crate) fn unreadable(&mut self, subject: Subject, error: &dyn std::error::Error) {
        // Counted all the same: it is there, and was looked at.
        if matches!(subject, Subject::Operation(_)) {
            self.found.operations += 1;
        }
        self.report(subject, format!("its row cannot be read: {error}"));
    }

    /// A counter as its row tells it.
    pub(crate) fn counter(
        &mut self,
        (api_key, counter, window): (ApiKeyId, Counter, Timestamp),
        used: i64,
    ) {
        if let Some(sentence) = self.counted.compare((api_key, counter, window), used) {
            self.report(Subject::ApiKey(api_key), sentence);
        }
    }

    /// Number of operations that were looked at.
    pub(crate) const fn operations(&self) -> u64 {
        self.found.operations
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
        for (api_key, sentence) in self.counted.missing_counters() {
            self.report(Subject::ApiKey(api_key), sentence);
        }
        // Last: each wallet has all its postings and transfers only now.
        for tally in std::mem::take(&mut self.wallets).into_values() {
            for sentence in tally.mismatches() {
                self.report(Subject::Wallet(tally.wallet.id), sentence);
            }
        }
        self.found
    }

    fn check_refunds(&mut self, operation: &Operation, wrong: &mut Vec<String>) {
        // Taken out: refunds that are left at the end are of operations that do not exist.
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

    fn report(&mut self, subject: Subject, sentence: String) {
        if self.found.mismatches.len() < LISTED_MAX {
            self.found.mismatches.push(Mismatch { subject, sentence });
        } else {
            self.found.unlisted += 1;
        }
    }
}

impl WalletSums {
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
        // No column can be below zero. Its transfers can, where one of them was deleted by hand.
        if self.available < 0 || self.held < 0 {
            wrong.push("its transfers take more than there was".to_owned());
        }
        wrong
    }
}
