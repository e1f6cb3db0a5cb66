//! What a logical request is to come to: decided before it is sent, known to its caller and to the
//! upstream, and to nobody in between.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::Dice;
use crate::config::ACME;
use crate::upstream::{Arrived, Judge, completion, error};
use crate::{Answer, Reply, Upstream};

/// What every completion costs before its own tokens: 60 input, 40 cached, 7 a request.
const CHARGE_FIXED: i64 = 167;
/// What a token of it costs.
const CHARGE_PER_TOKEN: i64 = 10;
/// How long the model takes, at most.
const MODEL_MS_MAX: u64 = 30;

/// What the upstream does with a request.
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
}

impl Does {
    const ALL: [Self; 4] = [Self::Answer, Self::TurnAway, Self::Refuse, Self::Fail];

    const fn label(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::TurnAway => "turn-away",
            Self::Refuse => "refuse",
            Self::Fail => "fail",
        }
    }
}

/// One logical request.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) id: String,
    /// Which account pays.
    pub(super) account: usize,
    does: Does,
    /// The model's tokens.
    tokens: i64,
    /// How long the model takes.
    millis: u64,
    /// The final answer that was given first.
    pub(super) told: Option<(u16, Vec<u8>)>,
    /// Whether a request of it was ever without its answer when its gateway died.
    pub(super) cut: bool,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, account, does, tokens, millis, told, cut } = self;
        let does = does.label();
        write!(
            f,
            "key {id} of account {account} ({does}, {tokens} tokens, {millis} ms, cut: {cut})"
        )?;
        match told {
            Some((status, body)) => write!(f, ", told {status}: {}", String::from_utf8_lossy(body)),
            None => f.write_str(", not told"),
        }
    }
}

impl Key {
    pub(super) fn new(dice: &mut Dice, accounts: usize) -> Self {
        let does = match dice.below(10) {
            0 => Does::TurnAway,
            1 => Does::Refuse,
            2 => Does::Fail,
            _ => Does::Answer,
        };
        let millis = if dice.one_in(2) { dice.below(MODEL_MS_MAX) } else { 0 };
        Self {
            id: dice.key(),
            account: dice.index(accounts),
            does,
            tokens: 1 + i64::try_from(dice.below(200)).expect("small"),
            millis,
            told: None,
            cut: false,
        }
    }

    /// The request's body, which also tells the upstream what to do.
    pub(super) fn body(&self) -> String {
        let (id, does, tokens, millis) = (&self.id, self.does.label(), self.tokens, self.millis);
        let orders = format!("{id} {does} {tokens} {millis}");
        json!({"model": ACME, "messages": [{"role": "user", "content": orders}]}).to_string()
    }

    /// What its caller has to pay where it is answered.
    fn charge(&self) -> i64 {
        CHARGE_FIXED + CHARGE_PER_TOKEN * self.tokens
    }

    /// What was paid for it.
    pub(super) fn paid(&self) -> i64 {
        if self.told.as_ref().is_some_and(|(status, _)| *status == 200) { self.charge() } else { 0 }
    }

    /// Takes an answer in: it fits what the request does, and is the one that was given before.
    /// Says whether it was final.
    pub(super) fn tell(&mut self, answer: &Answer) -> bool {
        let body = answer.json();
        let is_final = match (answer.status, self.does) {
            (200, Does::Answer | Does::TurnAway) => {
                let charge = body["usage"]["customer_charge_micros"].as_i64();
                assert_eq!(charge, Some(self.charge()), "{self:?}: {answer:?}");
                assert_eq!(body["choices"][0]["message"]["content"], self.says());
                true
            }
            (422, Does::Refuse) => body["error"]["code"] == "provider_refused",
            (503, Does::TurnAway) => {
                assert_eq!(body["error"]["code"], "upstream_unavailable", "{answer:?}");
                assert_eq!(answer.header("x-should-retry"), Some("true"));
                assert!(self.told.is_none(), "{self:?} was taken back: {answer:?}");
                return false;
            }
            (502, does) => {
                let is_unknown = does == Does::Fail || self.cut;
                assert!(is_unknown, "nothing happened to {self:?}: {answer:?}");
                body["error"]["code"] == "outcome_unknown"
            }
            (_, _) => false,
        };
        assert!(is_final, "{self:?} was answered {answer:?}");
        if answer.status != 200 {
            assert_eq!(body["error"]["charged_micros"], 0, "{answer:?}");
            assert_eq!(answer.header("x-should-retry"), Some("false"));
        }
        let now = (answer.status, answer.body.clone());
        match &self.told {
            None => self.told = Some(now),
            Some(told) => {
                let is_same = *told == now;
                assert!(
                    is_same,
                    "{self:?} is now answered otherwise: {answer:?}, {}",
                    answer.text()
                );
            }
        }
        true
    }

    fn says(&self) -> String {
        format!("Done: {}", self.id)
    }
}

/// What was sent upstream for each key: how often, and how often that proved to be no run.
#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    arrived: u64,
    turned_away: u64,
}

/// The upstream's own book.
#[derive(Debug, Clone, Default)]
pub(super) struct Runbook(Arc<Mutex<BTreeMap<String, Runs>>>);

impl Runbook {
    /// A server that does as it is told and writes it down.
    pub(super) fn upstream(&self) -> Upstream {
        let book = self.clone();
        Upstream::start(Reply::Judged(Judge::new(move |arrived| book.judge(arrived))))
    }

    fn judge(&self, arrived: &Arrived) -> Reply {
        let body = arrived.json();
        let orders = body["messages"][0]["content"].as_str().expect("a prompt");
        let [id, does, tokens, millis] = orders.split(' ').collect::<Vec<_>>()[..] else {
            panic!("no orders: {orders}")
        };
        let does = Does::ALL.into_iter().find(|it| it.label() == does).expect("an order");
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = book.entry(id.to_owned()).or_default();
        runs.arrived += 1;
        let reply = match does {
            Does::TurnAway if runs.turned_away == 0 => {
                runs.turned_away += 1;
                Reply::json(429, &error("rate_limit_exceeded"))
            }
            Does::Answer | Does::TurnAway => {
                let tokens: i64 = tokens.parse().expect("a count");
                let mut body = completion(&format!("Done: {id}"));
                body["usage"]["completion_tokens"] = json!(tokens);
                body["usage"]["total_tokens"] = json!(100 + tokens);
                body["usage"]["completion_tokens_details"]["reasoning_tokens"] = json!(0);
                Reply::json(200, &body)
            }
            Does::Refuse => Reply::json(400, &error("mark-of-code")),
            Does::Fail => Reply::json(500, &error("server_error")),
        };
        let time = Duration::from_millis(millis.parse().expect("a time"));
        Reply::Late(time, Box::new(reply))
    }

    /// Everything that was sent is in order: nothing ran twice, and what was paid for has run.
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

    /// How many requests have arrived.
    pub(super) fn arrived(&self) -> u64 {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.values().map(|runs| runs.arrived).sum()
    }
}
