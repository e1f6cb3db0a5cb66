//! Answers: what callers of a key were answered, and whether two of them may both be true.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::private::Private;
use holdfast_engine::{Reply, ReplyBody, RequestFailure, StreamFailure, StreamItem};
use holdfast_testkit::MemoryJournal;
use serde_json::Value;

use crate::keys::Key;
use crate::recorder::{Invariant, Recorder};
use crate::step::Step;
use crate::upstream::Upstream;

/// Answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Completion.
    Completed(Completion),
    /// Completion whose content is gone, with its charge.
    Expired(i64),
    /// The provider's refusal; `None`: its words are gone.
    Refused(Option<Vec<u8>>),
    /// Outcome unknown for good.
    Unknown,
    /// Cancelled while it was open.
    CancelledUnrun,
    /// Key bound to another request.
    OtherRequest,
    /// Nothing bound it, or it did not run: no answer of an ended key.
    NotEnded(&'static str),
    /// Nothing follows from it.
    Later(&'static str),
    /// A bug, or a broken promise of the store.
    Bug(&'static str),
}

/// Completion, as a whole or as a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Exact bytes; `None` of a stream.
    pub bytes: Option<Vec<u8>>,
    /// Text of the first choice.
    pub content: String,
    /// Reason of its end.
    pub finish: String,
    /// `customer_charge_micros`.
    pub charge: i64,
}

impl Answer {
    /// Name in the trace.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Completed(it) => {
                let form = if it.bytes.is_some() { "whole" } else { "stream" };
                let digest = blake3::hash(it.bytes.as_deref().unwrap_or(it.content.as_bytes()));
                let digest: String = digest.to_hex().chars().take(12).collect();
                format!("completed {form} {} {} {digest}", it.finish, it.charge)
            }
            Self::Expired(charge) => format!("expired {charge}"),
            Self::Refused(_) => "refused".to_owned(),
            Self::Unknown => "outcome unknown".to_owned(),
            Self::CancelledUnrun => "cancelled, not run".to_owned(),
            Self::OtherRequest => "other request".to_owned(),
            Self::NotEnded(why) | Self::Later(why) | Self::Bug(why) => (*why).to_owned(),
        }
    }

    /// True for the answer of a key that has ended.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Completed(_)
            | Self::Expired(_)
            | Self::Refused(_)
            | Self::Unknown
            | Self::CancelledUnrun => true,
            Self::OtherRequest | Self::NotEnded(_) | Self::Later(_) | Self::Bug(_) => false,
        }
    }

    /// Reads the answer of a reply to its end.
    pub async fn read(reply: Reply) -> Self {
        match reply.outcome {
            Ok(ReplyBody::Completed(Private(body))) => Self::of_body(&body),
            Ok(ReplyBody::Refused(_refusal, Private(body))) => Self::Refused(Some(body.to_vec())),
            Err(failure) => Self::of_failure(&failure),
            Ok(ReplyBody::Streamed(mut stream)) => {
                let mut text = Vec::new();
                loop {
                    match stream.next().await {
                        Some(StreamItem::Event(Private(event))) => text.extend_from_slice(&event),
                        Some(StreamItem::Broken(StreamFailure::Refused(
                            _refusal,
                            Private(body),
                        ))) => {
                            return Self::Refused(Some(body.to_vec()));
                        }
                        Some(StreamItem::Broken(StreamFailure::Failed(failure))) => {
                            return Self::of_failure(&failure);
                        }
                        None => return Self::of_events(&text),
                    }
                }
            }
        }
    }

    fn of_body(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return Self::Bug("no JSON") };
        let choice = &value["choices"][0];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self::Completed(Completion {
            bytes: Some(body.to_vec()),
            content: text(&choice["message"]["content"]),
            finish: text(&choice["finish_reason"]),
            charge: value["usage"]["customer_charge_micros"].as_i64().unwrap_or(-1),
        })
    }

    fn of_events(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let (mut content, mut finish, mut charge) = (String::new(), String::new(), -1);
        for event in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let Ok(value) = serde_json::from_str::<Value>(event) else { continue };
            let choice = &value["choices"][0];
            content.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            finish.push_str(choice["finish_reason"].as_str().unwrap_or_default());
            charge = value["usage"]["customer_charge_micros"].as_i64().unwrap_or(charge);
        }
        Self::Completed(Completion { bytes: None, content, finish, charge })
    }

    fn of_failure(failure: &RequestFailure) -> Self {
        match failure {
            RequestFailure::OutcomeUnknown(_) => Self::Unknown,
            RequestFailure::CancelledUnrun(_) => Self::CancelledUnrun,
            RequestFailure::Refused(..) => Self::Refused(None),
            RequestFailure::ResultExpired(_, usage) => Self::Expired(usage.charge.get()),
            RequestFailure::OtherRequest => Self::OtherRequest,
            RequestFailure::NotRun(..) => Self::NotEnded("not run"),
            RequestFailure::PassedOver(_) => Self::NotEnded("routes passed over"),
            RequestFailure::InsufficientFunds { .. } => Self::NotEnded("no funds"),
            RequestFailure::FundsHeld { .. } => Self::NotEnded("funds held"),
            RequestFailure::LimitReached(_) => Self::NotEnded("limit reached"),
            RequestFailure::NotBound => Self::NotEnded("not bound"),
            RequestFailure::InProgress(_) => Self::Later("in progress"),
            RequestFailure::Storage(_) => Self::Later("storage unavailable"),
            RequestFailure::Recorded(..) => Self::Later("recorded"),
            RequestFailure::Overloaded => Self::Later("overloaded"),
            RequestFailure::Draining => Self::Later("draining"),
            RequestFailure::TooManyWaiters => Self::Later("too many waiters"),
            RequestFailure::TooManyResults(_) => Self::Later("too many results"),
            // A task that was killed by a commit.
            RequestFailure::Internal(_) => Self::Later("internal"),
            RequestFailure::ClaimLost(_) => Self::Bug("the store has lost a claim"),
            RequestFailure::Unreadable(..) => Self::Bug("unreadable"),
            RequestFailure::ResultSealed(..) => Self::Bug("sealed"),
            RequestFailure::BadRequest(_)
            | RequestFailure::TooLarge { .. }
            | RequestFailure::ModelNotFound { .. }
            | RequestFailure::ApiKeySuspended
            | RequestFailure::WalletSuspended
            | RequestFailure::ModelNotAllowed
            | RequestFailure::LedgerRestored { .. }
            | RequestFailure::NoPrice(_)
            | RequestFailure::ChargeLimit { .. } => Self::Bug("refused without a reason"),
        }
    }
}

/// First final answer of a key.
#[derive(Debug, Clone)]
struct FirstAnswer {
    answer: Answer,
    is_other: bool,
    at: Duration,
}

/// Answers of all keys.
#[derive(Debug)]
pub struct Answers {
    recorder: Arc<Recorder>,
    upstream: Arc<Upstream>,
    firsts: Mutex<BTreeMap<String, FirstAnswer>>,
}

impl Answers {
    /// No answer yet.
    #[must_use]
    pub fn new(recorder: &Arc<Recorder>, upstream: &Arc<Upstream>) -> Arc<Self> {
        let (recorder, upstream) = (Arc::clone(recorder), Arc::clone(upstream));
        Arc::new(Self { recorder, upstream, firsts: Mutex::default() })
    }

    /// Judges an answer to a request that was sent at this moment.
    pub fn take(&self, key: &Key, is_other: bool, sent: Duration, answer: &Answer) {
        let violate = |invariant, text: String| {
            self.recorder.violate(invariant, format!("{}: {text}", key.name));
        };
        match answer {
            Answer::Bug(why) => violate(Invariant::Answer, format!("answered: {why}")),
            Answer::Later("storage unavailable") => self.recorder.reach(Step::StorageUnavailable),
            Answer::OtherRequest => self.recorder.reach(Step::OtherRequest),
            Answer::Expired(_) => self.recorder.reach(Step::Expired),
            Answer::Completed(completion) => {
                // Of an answer that was cut there may be only its first words.
                let words: Vec<&str> = completion.content.split_whitespace().collect();
                let prompt = key.prompt(is_other);
                let is_its = prompt.split(' ').zip(&words).all(|(asked, said)| asked == *said);
                if !is_its {
                    let text = format!("a completion of another request: {}", completion.content);
                    violate(Invariant::Answer, text);
                }
            }
            Answer::Refused(_)
            | Answer::Unknown
            | Answer::CancelledUnrun
            | Answer::NotEnded(_)
            | Answer::Later(_) => {}
        }
        let mut firsts = self.firsts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = firsts.get_mut(&key.name) else {
            if answer.is_final() {
                let (answer, at) = (answer.clone(), self.recorder.elapsed());
                firsts.insert(key.name.clone(), FirstAnswer { answer, is_other, at });
            }
            return;
        };
        if first.at >= sent && !answer.is_final() {
            return;
        }
        let text = format!("{}, after {}", answer.label(), first.answer.label());
        match answer {
            Answer::Later(_) | Answer::Bug(_) => {}
            Answer::OtherRequest if is_other != first.is_other => {}
            Answer::OtherRequest | Answer::NotEnded(_) => violate(Invariant::I6, text),
            _final if is_other != first.is_other => {
                violate(Invariant::I8, format!("two requests answered: {text}"));
            }
            later => match merge(&first.answer, later) {
                Some(merged) => first.answer = merged,
                None => violate(Invariant::I6, text),
            },
        }
    }

    /// Judges the row of a key by its answers and its runs, once it has come to rest.
    pub fn judge(&self, key: &Key, journal: &MemoryJournal) {
        let violate = |invariant, text: String| {
            self.recorder.violate(invariant, format!("{}: {text}", key.name));
        };
        let firsts = self.firsts.lock().unwrap_or_else(PoisonError::into_inner);
        let first = firsts.get(&key.name);
        let Some(row) = journal.operation(key.operation) else {
            if let Some(first) = first {
                violate(Invariant::I6, format!("{}, and no row", first.answer.label()));
            }
            return;
        };
        let phase = row.phase.label();
        let charge = row.phase.charge().map_or(0, holdfast_domain::Micros::get);
        if charge > 0 && self.upstream.runs(&key.name) == 0 {
            violate(Invariant::I7, format!("{charge} micros charged without a run"));
        }
        let Some(first) = first else { return };
        if !fits(&first.answer, &row) {
            violate(Invariant::I6, format!("{}, and the row is {phase}", first.answer.label()));
        }
        let answered = match &first.answer {
            Answer::Completed(completion) => Some(completion.charge),
            Answer::Expired(charge) => Some(*charge),
            Answer::Refused(_) | Answer::Unknown | Answer::CancelledUnrun => Some(0),
            Answer::OtherRequest | Answer::NotEnded(_) | Answer::Later(_) | Answer::Bug(_) => None,
        };
        if answered.is_some_and(|answered| answered != charge) {
            violate(Invariant::Charge, format!("{answered:?} answered, {charge} charged"));
        }
        let is_honest = row.phase.usage().is_some_and(|usage| {
            usage.metered.source == holdfast_domain::usage::MetersSource::Reported
        });
        let prompt = key.prompt(first.is_other);
        if is_honest && !self.upstream.has_cost(&prompt, charge) {
            violate(Invariant::Charge, format!("{charge} micros, which no run has reported"));
        }
    }
}

/// True if a row has ended as its answer says.
fn fits(answer: &Answer, row: &Operation) -> bool {
    match (answer, &row.phase) {
        (Answer::Completed(_) | Answer::Expired(_), Phase::Completed { .. })
        | (Answer::Refused(_), Phase::Refused { .. }) => true,
        (Answer::Unknown, Phase::Abandoned { .. }) => !row.is_cancelled_open(),
        (Answer::CancelledUnrun, Phase::Abandoned { .. }) => row.is_cancelled_open(),
        _other => false,
    }
}

/// The answer that two answers of one key are; `None` if they differ.
fn merge(first: &Answer, later: &Answer) -> Option<Answer> {
    match (first, later) {
        (Answer::Completed(one), Answer::Completed(two)) => {
            let bytes = match (&one.bytes, &two.bytes) {
                (Some(one), Some(two)) if one != two => return None,
                (one, two) => one.clone().or_else(|| two.clone()),
            };
            let is_same =
                one.content == two.content && one.finish == two.finish && one.charge == two.charge;
            is_same.then(|| Answer::Completed(Completion { bytes, ..one.clone() }))
        }
        // A purge takes the content, and leaves the charge.
        (Answer::Completed(one), Answer::Expired(charge)) => {
            (one.charge == *charge).then(|| first.clone())
        }
        (Answer::Expired(charge), Answer::Completed(two)) => {
            (two.charge == *charge).then(|| later.clone())
        }
        (Answer::Refused(one), Answer::Refused(two)) => match (one, two) {
            (Some(one), Some(two)) if one != two => None,
            (one, two) => Some(Answer::Refused(one.clone().or_else(|| two.clone()))),
        },
        (one, two) => (one == two).then(|| first.clone()),
    }
}
