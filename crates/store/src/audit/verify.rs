//! The audit of `holdfast ledger verify`: recomputes every balance and every invariant that rows can show, from the
//! rows alone. It trusts no column that another one implies.
//!
//! An audit is a list of parts, and a part is a sequence of pages:
//!
//! ```text
//! operations -> postings -> wallets -> API keys       parts, one after the other
//!     -> admin keys -> people -> webhooks -> trail -> roots -> usage
//! after .. last row                                   pages of a part, each in a snapshot of its own
//! ```
//!
//! A page holds all that must be compared at one moment: an operation with its transfers, a wallet with its sums, a
//! counter with its window. A value that moves between two pages is therefore not a mismatch, and no snapshot is
//! held while other pages are read. An [`AuditPosition`] is all that leads from a page to the next: another process
//! can continue from it, too.
//!
//! Pure: `audit::pages` reads the rows. The domain computes the transfers that an operation should have; they are
//! never written down here a second time. Sums are 128 bits wide: a damaged ledger must be reported, not overflow.
//!
//! It never repairs, and never stops at the first mismatch: the first `LISTED_MAX` are listed, more are counted, so
//! that an audit of any ledger fits into memory.
//!
//! ```
//! use holdfast_store::verify::{Mismatch, Subject, Verification};
//!
//! let page = |wallets, sentence: Option<&str>| Verification {
//!     wallets,
//!     mismatches: sentence.map(|it| Mismatch { subject: Subject::Ledger, sentence: it.into() }).into_iter().collect(),
//!     ..Verification::default()
//! };
//! let mut audit = page(2, None);
//! assert!(audit.is_clean());
//! audit.add(page(1, Some("its transfers 7 to 9 are missing")));
//! assert_eq!((audit.wallets, audit.mismatches.len(), audit.is_clean()), (3, 1, false));
//! ```

pub(crate) mod counters;
mod report;
pub(crate) mod rules;
pub(crate) mod transfers;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::operation::Operation;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{
    AdminKeyId, ApiKeyId, Micros, OperationId, PersonId, PostingId, Timestamp, WalletId, WebhookId,
};

pub use self::report::BadReport;

/// Mismatches that are listed; more are counted.
const LISTED_MAX: usize = 1_000;

/// Result of an audit, or of some pages of one.
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
    /// Findings that no rule forbade when their rows were written, such as a payment that was booked twice: the first
    /// 1,000. They are no mismatches.
    pub notes: Vec<Mismatch>,
}

/// Terms of an audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// Time that results are kept for.
    pub retention: Duration,
    /// Server secrets that rows of the audit log were made with; without any their MACs are not checked.
    pub secrets: Arc<[ServerSecret]>,
    /// Head of the audit log that was printed before: the audit log must still go through it.
    pub since: Option<TrailHead>,
}

impl AuditOptions {
    /// An audit of a ledger whose results are kept for so long, without the MACs of its audit log.
    #[must_use]
    pub fn keeping(retention: Duration) -> Self {
        Self { retention, secrets: Arc::default(), since: None }
    }
}

/// Progress of an audit within the part that it is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Name of the part.
    pub part: &'static str,
    /// Number of the last row that was looked at.
    pub done: u64,
    /// Number of the last row that the part reads.
    pub of: u64,
}

/// Place of an audit between two pages. As a text it may be kept, and read again by any process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPosition {
    /// Name of the part.
    pub(crate) part: Box<str>,
    /// Number of the row before the next page.
    pub(crate) after: i64,
    /// Number of the last row: those that are added meanwhile are the next audit's.
    pub(crate) until: i64,
}

/// Text that is not a position of an audit.
#[derive(Debug, thiserror::Error)]
#[error("it is no place of an audit: a part and two numbers")]
pub struct BadAuditPosition;

/// Page of an audit that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// Findings of this page.
    pub found: Verification,
    /// Progress after it.
    pub progress: Progress,
    /// Place of the next page; none after the last one.
    pub next: Option<AuditPosition>,
}

/// A mismatch: its subject and a sentence about it.
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
    /// An admin key.
    AdminKey(AdminKeyId),
    /// A person.
    Person(PersonId),
    /// A webhook.
    Webhook(WebhookId),
    /// The ledger as a whole.
    Ledger,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wallet(id) => write!(f, "wallet {id}"),
            Self::ApiKey(id) => write!(f, "API key {id}"),
            Self::Operation(id) => write!(f, "operation {id}"),
            Self::Posting(id) => write!(f, "posting {id}"),
            Self::AdminKey(id) => write!(f, "admin key {id}"),
            Self::Person(id) => write!(f, "person {id}"),
            Self::Webhook(id) => write!(f, "webhook {id}"),
            Self::Ledger => f.write_str("the ledger"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.sentence)
    }
}

impl fmt::Display for AuditPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.part, self.after, self.until)
    }
}

impl FromStr for AuditPosition {
    type Err = BadAuditPosition;

    fn from_str(text: &str) -> Result<Self, BadAuditPosition> {
        let mut words = text.split(':');
        let mut word = || words.next().ok_or(BadAuditPosition);
        let (part, after, until) = (word()?, word()?, word()?);
        let number = |text: &str| text.parse().ok().ok_or(BadAuditPosition);
        Ok(Self { part: part.into(), after: number(after)?, until: number(until)? })
    }
}

/// Everything that belongs to one operation, but for its transfers.
#[derive(Debug)]
pub(crate) struct AuditedOperation {
    pub(crate) operation: Operation,
    /// Sum that its earlier generations held, by its row.
    pub(crate) released: Micros,
    pub(crate) result: StoredResult,
    /// True if it is found among those that run.
    pub(crate) is_listed: bool,
    /// Wallet of its API key; none if there is no such API key.
    pub(crate) key_wallet: Option<WalletId>,
    /// Currency of its wallet as its row spells it; none if there is no such wallet.
    pub(crate) currency: Option<String>,
    pub(crate) refunds: Refunds,
}

/// Result row of an operation, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredResult {
    Nothing,
    Result {
        finished_at: Option<Timestamp>,
        /// API key of the credential that it is sealed for, if that credential is kept.
        api_key: Option<ApiKeyId>,
        /// True if that credential should be kept and is not: administration issued the API key.
        is_nobodys: bool,
        /// Shape of what is sealed.
        shape: ResultShape,
    },
}

/// All that a row can show of sealed content without the caller's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultShape {
    pub(crate) format: i64,
    /// Lengths in bytes.
    pub(crate) nonce: i64,
    pub(crate) sealed: i64,
}

/// Refunds of one operation, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Refunds {
    pub(crate) micros: i128,
    /// Number of those that went to another wallet.
    pub(crate) elsewhere: i64,
}

/// From when on results are still there: results go in the order of their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetentionBound {
    /// The oldest that is there.
    pub(crate) oldest: Option<Timestamp>,
    /// The youngest that a purge has deleted.
    pub(crate) purged: Option<Timestamp>,
    /// None that is younger is due.
    pub(crate) due: Timestamp,
}

impl Verification {
    /// Adds the findings of a page to those of the pages before it.
    pub fn add(&mut self, page: Self) {
        self.wallets += page.wallets;
        self.operations += page.operations;
        self.transfers += page.transfers;
        self.unlisted += page.unlisted;
        for mismatch in page.mismatches {
            self.list(mismatch);
        }
        let room = LISTED_MAX.saturating_sub(self.notes.len());
        self.notes.extend(page.notes.into_iter().take(room));
    }

    /// True if there is no mismatch.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.mismatches.is_empty() && self.unlisted == 0
    }

    pub(crate) fn report(&mut self, subject: Subject, sentence: impl Into<String>) {
        self.list(Mismatch { subject, sentence: sentence.into() });
    }

    /// Notes a finding that is not a mismatch.
    pub(crate) fn note(&mut self, subject: Subject, sentence: impl Into<String>) {
        if self.notes.len() < LISTED_MAX {
            self.notes.push(Mismatch { subject, sentence: sentence.into() });
        }
    }

    /// Reports a row that cannot even be read.
    pub(crate) fn unreadable(&mut self, subject: Subject, error: &dyn std::error::Error) {
        self.report(subject, format!("its row cannot be read: {error}"));
    }

    /// Reports numbers that no row has, in a table that numbers its rows without gaps.
    pub(crate) fn missing(&mut self, table: &str, first: i64, last: i64) {
        self.report(Subject::Ledger, format!("its {table} {first} to {last} are missing"));
    }

    fn list(&mut self, mismatch: Mismatch) {
        if self.mismatches.len() < LISTED_MAX {
            self.mismatches.push(mismatch);
        } else {
            self.unlisted += 1;
        }
    }
}

/// Sentences about the sums of a wallet. `active` is the sum of the holds of what runs.
pub(crate) fn wallet_mismatches(
    [available, held]: [Micros; 2],
    [its_available, its_held]: [i128; 2],
    active: i128,
) -> Vec<String> {
    let rows = [("available", available, its_available), ("held", held, its_held)];
    let mut wrong: Vec<String> = rows
        .into_iter()
        .filter(|(_, row, sum)| i128::from(row.get()) != *sum)
        .map(|(name, row, sum)| format!("{name} is {} micros, its transfers make {sum}", row.get()))
        .collect();
    if i128::from(held.get()) != active {
        wrong.push(format!("held is {} micros, its active holds make {active}", held.get()));
    }
    // No column can be below zero. Its transfers can, if one of them was deleted by hand.
    if its_available < 0 || its_held < 0 {
        wrong.push("its transfers take more than there was".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = AuditPosition { part: "API keys".into(), after: i64::MIN, until: 7 };
        assert_eq!(place.to_string().parse::<AuditPosition>().unwrap(), place);
        for text in ["", "operations:1", "operations:1:two"] {
            assert!(text.parse::<AuditPosition>().is_err(), "{text}");
        }
    }

    #[test]
    fn mismatches_beyond_those_that_are_listed_are_counted() {
        let page = || {
            let mut page = Verification { operations: 1, ..Verification::default() };
            for n in 0..600 {
                page.report(Subject::Ledger, format!("its page {n} is torn"));
            }
            page
        };
        let mut found = Verification::default();
        assert!(found.is_clean());
        for _page in 0..3 {
            found.add(page());
        }
        let listed = u64::try_from(found.mismatches.len()).unwrap();
        assert_eq!((listed, found.unlisted, found.operations), (1_000, 800, 3));
        assert!(!found.is_clean());
    }
}
