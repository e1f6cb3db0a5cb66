//! The file of a history: JSON, one record a line, in any order; moments are microseconds since the recorder began.
//!
//! A call without a moment of return has an unknown outcome: its caller hung up, or its connection was cut. It may have
//! taken effect, may take effect at any later moment, or never.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

/// Version of the format that is read here.
pub const FORMAT: u32 = 1;

/// A file that is no history.
#[derive(Debug, thiserror::Error)]
pub enum BadHistory {
    /// The file cannot be read.
    #[error("the history cannot be read")]
    Unreadable(#[source] io::Error),
    /// A line is not a record.
    #[error("line {0} is not a record")]
    Line(usize, #[source] serde_json::Error),
    /// The first line does not name this format.
    #[error("the history does not begin with a record of format {FORMAT}")]
    Format,
}

/// A line of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Record {
    History(Heading),
    ApiKey(ApiKey),
    Call(Call),
    Run(Run),
    Balance(Balance),
    Posting(Posting),
    Kill(Kill),
}

/// The first line.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// Version of the format.
    pub format: u32,
    /// Name of the load.
    pub load: String,
    /// Seed of its choices.
    pub seed: u64,
}

/// An API key that callers have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Name, here and in calls.
    pub api_key: String,
    /// Wallet that pays.
    pub wallet: String,
    /// Most that it may spend, in total.
    pub spend_limit_micros: Option<i64>,
}

/// A request of a caller.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Number of the caller.
    pub client: u32,
    /// Number of the gateway that was called.
    pub node: u32,
    /// API key.
    pub api_key: String,
    /// Request key.
    pub key: String,
    /// Digest of the request, however its answer travels.
    pub request: String,
    /// Digest of the body's bytes.
    pub body: String,
    /// True if a stream was requested.
    pub streamed: bool,
    /// Moment before the first byte was sent.
    pub called: u64,
    /// Moment after the last byte of a whole answer.
    pub returned: Option<u64>,
    /// The whole answer.
    pub answer: Option<Answer>,
}

/// A whole answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Status, or the one that the error at the end of a stream stands for.
    pub status: u16,
    /// Code of an error.
    pub code: Option<String>,
    /// Digest of the exact bytes, if it was not a stream.
    pub bytes: Option<String>,
    /// Digest of the content, however it travelled.
    pub content: String,
    /// Operation id.
    pub operation: Option<String>,
    /// Charge that it names.
    pub charge_micros: Option<i64>,
}

/// A request that arrived at the upstream.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Moment of its arrival.
    pub at: u64,
    /// API key whose caller wrote the prompt.
    pub api_key: String,
    /// Request key, as the prompt has it.
    pub key: String,
    /// Digest of the request.
    pub request: String,
    /// Reaction of the upstream.
    pub reaction: Reaction,
    /// Cost of an answer by the price list of the test.
    pub cost_micros: Option<i64>,
}

/// Reaction of the upstream to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// An answer.
    Answered,
    /// A status that proves that the model did not run.
    TurnedAway,
    /// A definitive refusal.
    Refused,
    /// A failure that proves nothing.
    Failed,
}

/// A balance as a caller read it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// Wallet.
    pub wallet: String,
    /// Moment before the request.
    pub called: u64,
    /// Moment after the answer.
    pub returned: u64,
    /// Amount that can be spent.
    pub available_micros: i64,
    /// Amount that running operations hold.
    pub held_micros: i64,
}

/// A deposit or a refund by the operator.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posting {
    /// Wallet that is paid.
    pub wallet: String,
    /// `deposit`, or `refund`.
    pub kind: PostingKind,
    /// Operation that a refund is for.
    pub operation: Option<String>,
    /// Amount.
    pub amount_micros: i64,
    /// Moment before the command.
    pub called: u64,
    /// Moment after it was done; absent if its outcome is unknown.
    pub returned: Option<u64>,
}

/// Kind of a posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostingKind {
    /// Money from outside.
    Deposit,
    /// A charge, or a part of it, given back.
    Refund,
}

/// A gateway that was killed. Nothing is judged by it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Number of the gateway.
    pub node: u32,
    /// Moment after its end.
    pub at: u64,
}

/// A record with the number of its line.
#[derive(Debug, Clone)]
pub struct Line<T> {
    /// Number of the line, the first being one.
    pub line: usize,
    /// The record.
    pub record: T,
}

/// A history in memory.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub(crate) api_keys: BTreeMap<String, ApiKey>,
    pub(crate) calls: Vec<Line<Call>>,
    pub(crate) runs: Vec<Line<Run>>,
    pub(crate) balances: Vec<Line<Balance>>,
    pub(crate) postings: Vec<Line<Posting>>,
    pub(crate) kills: Vec<Kill>,
}

impl History {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`BadHistory`] if the file is not a history of this format.
    pub fn read(path: &Path) -> Result<Self, BadHistory> {
        Self::read_from(BufReader::new(File::open(path).map_err(BadHistory::Unreadable)?))
    }

    /// Reads the lines of a file.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn read_from(lines: impl BufRead) -> Result<Self, BadHistory> {
        let mut history = Self::default();
        let mut has_heading = false;
        for (number, line) in (1..).zip(lines.lines()) {
            let line = line.map_err(BadHistory::Unreadable)?;
            let record = serde_json::from_str(&line);
            match record.map_err(|error| BadHistory::Line(number, error))? {
                Record::History(heading) => has_heading = number == 1 && heading.format == FORMAT,
                record if has_heading => history.add(number, record),
                Record::ApiKey(_)
                | Record::Call(_)
                | Record::Run(_)
                | Record::Balance(_)
                | Record::Posting(_)
                | Record::Kill(_) => return Err(BadHistory::Format),
            }
        }
        if has_heading { Ok(history) } else { Err(BadHistory::Format) }
    }

    fn add(&mut self, line: usize, record: Record) {
        match record {
            Record::History(_) => {}
            Record::ApiKey(key) => drop(self.api_keys.insert(key.api_key.clone(), key)),
            Record::Call(record) => self.calls.push(Line { line, record }),
            Record::Run(record) => self.runs.push(Line { line, record }),
            Record::Balance(record) => self.balances.push(Line { line, record }),
            Record::Posting(record) => self.postings.push(Line { line, record }),
            Record::Kill(kill) => self.kills.push(kill),
        }
    }
}
