//! Expected outcome of a logical request: decided before it is sent, known to its caller and to the upstream, and
//! to no process in between.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::Dice;
use super::heard::{Part, WholeAnswer};
use crate::config::ACME;
use crate::upstream::{ArrivedRequest, Judge, Streaming, completion, error};
use crate::{Reply, Upstream};

/// Charge of every completion before its own tokens: 60 input, 40 cached, 7 a request.
const CHARGE_FIXED: i64 = 167;
/// Charge of a token of it.
const CHARGE_PER_TOKEN: i64 = 10;
/// Longest time of the model.
const MODEL_MS_MAX: u64 = 30;
/// Place at which a key is parted.
const HALF: usize = 18;
/// More bytes than any answer has.
const ANSWER_BYTES_MAX: u64 = 2_000;

/// Reaction of the upstream to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Answers.
    Answer,
    /// Turns it away the first time, which proves that it did not run; then answers.
    TurnAway,
    /// Refuses it for good.
    Refuse,
    /// Fails in a way that proves nothing.
    Fail,
    /// Answers and breaks off.
    Break,
}

/// Form of one request for the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) is_streamed: bool,
    /// After how many bytes its caller hangs up.
    pub(super) hang_up: Option<usize>,
    /// Gateway of those that serve it: any number.
    pub(super) whom: u64,
}

impl Does {
    /// An answer, in two cases of three.
    pub(super) fn any(dice: &mut Dice) -> Self {
        match dice.below(12) {
            0 => Self::TurnAway,
            1 => Self::Refuse,
            2 => Self::Fail,
            3 => Self::Break,
            _ => Self::Answer,
        }
    }

    const ALL: [Self; 5] = [Self::Answer, Self::TurnAway, Self::Refuse, Self::Fail, Self::Break];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::TurnAway => "turn-away",
            Self::Refuse => "refuse",
            Self::Fail => "fail",
            Self::Break => "break",
        }
    }
}

/// Logical request.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) id: String,
    /// Account that pays.
    pub(super) account: usize,
    does: Does,
    /// The model's tokens.
    tokens: i64,
    /// Time of the model.
    millis: u64,
    /// Forms of its requests.
    ways: Dice,
    /// The final answer that was given first.
    pub(super) told: Option<WholeAnswer>,
    /// True if the end of an answer was sent to a caller who did not get the whole.
    has_end: bool,
    /// True if a request of it was ever without its answer when its gateway died.
    pub(super) cut: bool,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, account, does, tokens, millis, told, has_end, cut, .. } = self;
        let does = does.label();
        write!(
            f,
            "key {id} of account {account} ({does}, {tokens} tokens, {millis} ms, end seen: \
             {has_end}, cut: {cut})"
        )?;
        match told {
            Some(told) => write!(f, ", told {}: {}", told.status, told.gist),
            None => f.write_str(", not told"),
        }
    }
}

impl Key {
    pub(super) fn new(dice: &mut Dice, accounts: usize) -> Self {
        let does = Does::any(dice);
        let millis = if dice.one_in(2) { dice.below(MODEL_MS_MAX) } else { 0 };
        Self {
            id: dice.key(),
            account: dice.index(accounts),
            does,
            tokens: 1 + i64::try_from(dice.below(200)).expect("small"),
            millis,
            ways: Dice(dice.next()),
            told: None,
            has_end: false,
            cut: false,
        }
    }

    /// Form of its next request.
    pub(super) fn way(&mut self) -> Way {
        let bytes = usize::try_from(self.ways.below(ANSWER_BYTES_MAX)).expect("few");
        let hang_up = self.ways.one_in(4).then_some(bytes);
        Way { is_streamed: self.ways.one_in(2), hang_up, whom: self.ways.next() }
    }

    /// The request's body, which also contains the reaction of the upstream.
    pub(super) fn body(&self, is_streamed: bool) -> String {
        let (id, does, tokens, millis) = (&self.id, self.does.label(), self.tokens, self.millis);
        let orders = format!("{id} {does} {tokens} {millis}");
        let mut body = json!({"model": ACME, "messages": [{"role": "user", "content": orders}]});
        if is_streamed {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        body.to_string()
    }

    /// Charge of its caller if it is answered.
    fn charge(&self) -> i64 {
        CHARGE_FIXED + CHARGE_PER_TOKEN * self.tokens
    }

    /// Charge that was paid for it.
    pub(super) fn paid(&self) -> i64 {
        if self.told.as_ref().is_some_and(|told| told.status == 200) { self.charge() } else { 0 }
    }

    /// Takes in the received part of an answer before its connection ended.
    pub(super) fn hear(&mut self, part: &Part) {
        assert!(self.says().starts_with(&part.text), "{self:?} was told {part:?}");
        assert!(!part.has_end || part.text == self.says(), "{self:?} was told {part:?}");
        // An end is sent once it is settled, and then the answer is there for ever.
        self.has_end |= part.has_end;
    }

    /// Takes an answer in: it fits the reaction of the request, and equals the one that was given before, to
    /// requests after that (`again`) or at the same time. True if it was final.
    pub(super) fn tell(&mut self, answer: WholeAnswer, again: bool) -> bool {
        let (head, gist) = (&answer.head, &answer.gist);
        let is_final = match (answer.status, self.does) {
            (200, Does::Answer | Does::TurnAway) => {
                let charge = gist["usage"]["customer_charge_micros"].as_i64();
                assert_eq!(charge, Some(self.charge()), "{self:?}: {answer:?}");
                assert_eq!(gist["content"], self.says());
                true
            }
            (422, Does::Refuse) => gist["code"] == "provider_refused",
            (503, Does::TurnAway) => {
                assert_eq!(gist["code"], "upstream_unavailable", "{answer:?}");
                assert_eq!(head.header("x-should-retry"), Some("true"));
                assert!(!again, "{self:?} was taken back: {answer:?}");
                return false;
            }
            (502, does) => {
                let is_unknown = matches!(does, Does::Fail | Does::Break) || self.cut;
                assert!(is_unknown, "nothing happened to {self:?}: {answer:?}");
                assert!(!self.has_end, "{self:?} had its end: {answer:?}");
                gist["code"] == "outcome_unknown"
            }
            (_, _) => false,
        };
        assert!(is_final, "{self:?} was answered {answer:?}");
        if answer.status != 200 {
            assert_eq!(gist["charged_micros"], 0, "{answer:?}");
        }
        if head.status != 200 {
            assert_eq!(head.header("x-should-retry"), Some("false"));
        }
        match &mut self.told {
            None => self.told = Some(answer),
            Some(told) => {
                let is_same = told.is_like(&answer);
                assert!(is_same, "{} is told otherwise now: {told:?}, {answer:?}", self.id);
                told.body = told.body.take().or(answer.body);
            }
        }
        true
    }

    fn says(&self) -> String {
        format!("Done: {}", self.id)
    }
}

/// The first half of the text for a key.
fn begun(id: &str) -> Streaming {
    Streaming::new().opening().text("Done: ").text(&id[..HALF])
}

/// Requests upstream for each key: their number, and the number that proved not to be a run.
#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    arrived: u64,
    turned_away: u64,
}

/// Orders of a prompt to the upstream.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) id: String,
    pub(super) does: Does,
    tokens: i64,
    time: Duration,
    is_streamed: bool,
}

impl Orders {
    /// Orders of a request; words after them are somebody else's.
    pub(super) fn of(arrived: &ArrivedRequest) -> Self {
        let body = arrived.json();
        let orders = body["messages"][0]["content"].as_str().expect("a prompt");
        let [id, does, tokens, millis, ..] = orders.split(' ').collect::<Vec<_>>()[..] else {
            panic!("no orders: {orders}")
        };
        Self {
            id: id.to_owned(),
            does: Does::ALL.into_iter().find(|it| it.label() == does).expect("an order"),
            tokens: tokens.parse().expect("a count"),
            time: Duration::from_millis(millis.parse().expect("a time")),
            is_streamed: body["stream"] == true,
        }
    }

    /// Charge of an answer.
    pub(super) fn charge(&self) -> i64 {
        CHARGE_FIXED + CHARGE_PER_TOKEN * self.tokens
    }

    /// Reply to them; the first one of a key may be turned away.
    pub(super) fn reply(&self, is_first: bool) -> Reply {
        let Self { id, does, tokens, time, is_streamed } = self;
        let reply = match does {
            Does::TurnAway if is_first => Reply::json(429, &error("rate_limit_exceeded")),
            Does::Answer | Does::TurnAway => {
                let mut body = completion(&format!("Done: {id}"));
                body["usage"]["completion_tokens"] = json!(tokens);
                body["usage"]["total_tokens"] = json!(100 + tokens);
                body["usage"]["completion_tokens_details"]["reasoning_tokens"] = json!(0);
                let said = begun(id).pause(*time).text(&id[HALF..]).finish("stop");
                let streamed = said.used(&body["usage"]).done().reply();
                if *is_streamed { streamed } else { Reply::json(200, &body) }
            }
            Does::Refuse => Reply::json(400, &error("mark-of-code")),
            Does::Fail => Reply::json(500, &error("server_error")),
            Does::Break if *is_streamed => begun(id).pause(*time).cut(),
            Does::Break => Reply::Raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_owned()),
        };
        Reply::Late(*time, Box::new(reply))
    }
}

/// The upstream's own book.
#[derive(Debug, Clone, Default)]
pub(super) struct Runbook(Arc<Mutex<BTreeMap<String, Runs>>>);

impl Runbook {
    /// A server that reacts as its requests say, and records them.
    pub(super) fn upstream(&self) -> Upstream {
        let book = self.clone();
        Upstream::start(Reply::Judged(Judge::new(move |arrived| book.judge(arrived))))
    }

    fn judge(&self, arrived: &ArrivedRequest) -> Reply {
        let orders = Orders::of(arrived);
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = book.entry(orders.id.clone()).or_default();
        runs.arrived += 1;
        let is_first = runs.turned_away == 0;
        runs.turned_away += u64::from(orders.does == Does::TurnAway && is_first);
        orders.reply(is_first)
    }

    /// All requests are in order: none ran twice, and each paid one has run.
    pub(super) fn check(&self, keys: &[Key]) {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            let runs = book.get(&key.id).copied().unwrap_or_default();
            let may_have_run = runs.arrived - runs.turned_away;
            assert!(may_have_run <= 1, "{key:?} ran more than once: {runs:?}");
            assert!(key.paid() == 0 || may_have_run == 1, "{key:?} was paid and did not run");
            let untouched = key.told.as_ref().is_some_and(|_told| !key.cut);
            assert!(!untouched || runs.arrived >= 1, "{key:?} ended by itself");
        }
    }

    /// Number of requests that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.values().map(|runs| runs.arrived).sum()
    }
}
