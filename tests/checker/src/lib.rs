//! Judge of recorded histories: reads a file of the calls and their answers, and decides whether the contract allows
//! some order of them.
//!
//! It knows no crate of the product, and nothing of how a gateway works: only the file and the contract, as a model
//! that does one step at a time. Request keys are independent of each other, and wallets are: each has a model and a
//! search of its own, by the algorithm of Wing, Gong and Lowe as `todc-utils` has it. What needs no order (charges,
//! caps, runs without a caller) is judged by the module `rules`.
//!
//! Never: a verdict that depends on the recorder's opinion. A record is a fact with its moments; whether an answer is
//! final, and what it proves, is decided here by status and code.

pub mod history;
mod key;
mod outcome;
mod records;
mod rules;
mod search;
mod wallet;

use std::fmt;
use std::path::Path;

pub use self::history::{BadHistory, History};

/// A contradiction between a history and the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// The request key, wallet or API key.
    pub object: String,
    /// The contradiction, in a sentence.
    pub text: String,
    /// Lines of the file that it is about, the first being one.
    pub lines: Vec<usize>,
}

/// Rules of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Calls, answers and runs of a request key have an order: bound once, run once, answered alike.
    Key,
    /// Balances that were read have an order with deposits, charges and refunds.
    Wallet,
    /// Available and held amounts are never negative, and nothing stays held.
    Holds,
    /// A caller is charged the cost of its run, and nothing without an answer.
    Charge,
    /// The charges of an API key stay within its spend limit.
    Cap,
    /// A run has a caller who sent this request before.
    Caller,
    /// An operation id belongs to one request key of one API key.
    Operation,
    /// An answer has a status and a code that the contract lists.
    Answer,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "key",
            Self::Wallet => "wallet",
            Self::Holds => "holds",
            Self::Charge => "charge",
            Self::Cap => "cap",
            Self::Caller => "caller",
            Self::Operation => "operation",
            Self::Answer => "answer",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, object, text, lines } = self;
        write!(f, "violation of {rule}: {object}: {text} (lines {lines:?})")
    }
}

/// Verdict on a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Sizes of the history.
    pub counts: Counts,
    /// Contradictions, in the order of the rules; none in a history that the contract allows.
    pub violations: Vec<Violation>,
}

/// Sizes of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls.
    pub calls: usize,
    /// Request keys, those of each API key apart.
    pub keys: usize,
    /// Calls and postings whose outcome nobody knows.
    pub unknown: usize,
    /// Runs of the upstream.
    pub runs: usize,
    /// Keys with an answer that was charged.
    pub charged: usize,
    /// Readings of balances.
    pub balances: usize,
    /// Deposits and refunds.
    pub postings: usize,
    /// Kills of a gateway.
    pub kills: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { calls, keys, unknown, runs, charged, balances, postings, kills } = self.counts;
        write!(
            f,
            "{calls} calls, {keys} keys, {unknown} unknown outcomes, {runs} runs, {charged} keys charged, {balances} \
             balances read, {postings} deposits and refunds, {kills} kills, {} violations",
            self.violations.len()
        )
    }
}

/// Judges the history of a file.
///
/// # Errors
///
/// [`BadHistory`] if the file cannot be read as a history.
pub fn check_file(path: &Path) -> Result<Report, BadHistory> {
    Ok(check(&History::read(path)?))
}

/// Judges a history.
#[must_use]
pub fn check(history: &History) -> Report {
    let keys = records::by_key(history);
    let mut violations = rules::check(history, &keys);
    violations.extend(keys.iter().filter_map(|(id, records)| key::check(id, records)));
    violations.extend(wallet::check(history, &keys));
    violations.sort_by_key(|violation| violation.rule);
    Report { counts: records::count(history, &keys), violations }
}
