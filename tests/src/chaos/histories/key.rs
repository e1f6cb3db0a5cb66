//! Request keys of a history: what their callers send.

use serde_json::json;

use crate::chaos::Dice;
use crate::chaos::model::Does;
use crate::config::ACME;

/// How long the model takes, at most.
const MODEL_MS_MAX: u64 = 30;

/// One request key of one API key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) id: String,
    /// Number of the API key.
    pub(super) account: usize,
    does: Does,
    tokens: u64,
    millis: u64,
    /// Whether its callers need not call again.
    pub(super) is_ended: bool,
    /// Operation and charge of its answer, until it was refunded.
    pub(super) refundable: Option<(String, i64)>,
}

/// How one call is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) is_streamed: bool,
    /// After how many bytes its caller hangs up.
    pub(super) hang_up: Option<usize>,
    /// Whether it is another request under the same key.
    pub(super) is_other: bool,
}

impl Way {
    /// Any way: a half streamed, a sixth hung up on, an eighth another request.
    pub(super) fn any(dice: &mut Dice) -> Self {
        let bytes = usize::try_from(dice.below(1_500)).expect("few");
        Self {
            is_streamed: dice.one_in(2),
            hang_up: dice.one_in(6).then_some(bytes),
            is_other: dice.one_in(8),
        }
    }

    /// The same to the end of the answer.
    pub(super) fn patient(self) -> Self {
        Self { hang_up: None, is_other: false, ..self }
    }
}

impl Key {
    pub(super) fn any(dice: &mut Dice, accounts: usize) -> Self {
        Self {
            id: dice.key(),
            account: dice.index(accounts),
            does: Does::any(dice),
            tokens: 1 + dice.below(200),
            millis: if dice.one_in(2) { dice.below(MODEL_MS_MAX) } else { 0 },
            is_ended: false,
            refundable: None,
        }
    }

    /// The same request key under another API key, for a request of its own.
    pub(super) fn twin(&self, dice: &mut Dice, account: usize) -> Self {
        Self { id: self.id.clone(), account, ..Self::any(dice, 1) }
    }

    /// The prompt: orders to the upstream, and for whom they are.
    pub(super) fn prompt(&self, way: Way) -> String {
        let Self { id, account, does, tokens, millis, .. } = self;
        let tokens = tokens + u64::from(way.is_other);
        format!("{id} {} {tokens} {millis} {}", does.label(), api_key(*account))
    }

    /// The body of a call.
    pub(super) fn body(&self, way: Way) -> String {
        let prompt = self.prompt(way);
        let mut body = json!({"model": ACME, "messages": [{"role": "user", "content": prompt}]});
        if way.is_streamed {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        body.to_string()
    }
}

/// Name of an API key in a history.
pub(super) fn api_key(account: usize) -> String {
    format!("k{account}")
}
