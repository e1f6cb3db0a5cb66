//! The normalized request: what the fingerprint hashes and what providers translate, from the same
//! value and from nothing else. So the same fingerprint means the same upstream request.
//!
//! Not here: how it is spelled (that is the wire's), how the answer travels (`stream` is no part of
//! what is asked for), and the model's contract, which joins it in [`crate::hold`] and in
//! [`fingerprint`].

mod canon;
mod decimal;
mod shown;

use std::collections::BTreeMap;

pub use self::canon::{FINGERPRINT_VERSION, fingerprint};
pub use self::decimal::{BadDecimal, Decimal};
use crate::model::PublicModelId;

/// A chat completion request in normal form: absent and default are one thing where no provider can
/// tell them apart, and two where one can.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The public id, as sent.
    pub model: PublicModelId,
    /// At least one, in order.
    pub messages: Vec<Message>,
    /// `max_tokens` or `max_completion_tokens`; at least one.
    pub max_output_tokens: Option<u64>,
    /// Choices wanted: 1 to 128.
    pub n: u32,
    /// 0 to 2.
    pub temperature: Option<Decimal>,
    /// 0 to 1.
    pub top_p: Option<Decimal>,
    /// -2 to 2.
    pub presence_penalty: Option<Decimal>,
    /// -2 to 2.
    pub frequency_penalty: Option<Decimal>,
    /// At most four sequences, in order.
    pub stop: Vec<String>,
    /// Sampling seed.
    pub seed: Option<i64>,
    /// The caller's end user.
    pub user: Option<String>,
    /// At most 16 pairs.
    pub metadata: BTreeMap<String, String>,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name.
    pub name: Option<String>,
    /// What is said. An assistant's turn may say nothing.
    pub content: Option<Content>,
}

/// Who speaks. Developer and system are two roles: providers treat them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions of the application.
    Developer,
    /// Instructions, in the older role.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name on the wire.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// What a turn says. One bare text part is the same as a string; several parts are never joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A string, or one bare text part.
    Text(String),
    /// Two or more text parts.
    Parts(Vec<String>),
}

impl Content {
    /// Its texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::Text(text) => (Some(text), &[][..]),
            Self::Parts(parts) => (None, &parts[..]),
        };
        one.into_iter().chain(many).map(String::as_str)
    }
}

/// What a request says about its own length: all that its hold bound needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// UTF-8 bytes of every string that may reach the prompt.
    pub prompt_bytes: u64,
    /// Number of messages.
    pub messages: u64,
    /// The request's own bound on output tokens of each choice.
    pub max_output_tokens: Option<u64>,
    /// Choices wanted.
    pub n: u32,
}

impl Request {
    /// The facts that bound what it can cost.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let length = |text: &str| u64::try_from(text.len()).unwrap_or(u64::MAX);
        let turns = self.messages.iter().flat_map(|message| {
            let said = message.content.iter().flat_map(Content::texts);
            said.chain(message.name.as_deref())
        });
        let pairs = self.metadata.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
        let others = self.stop.iter().map(String::as_str).chain(self.user.as_deref()).chain(pairs);
        Facts {
            prompt_bytes: turns
                .chain(others)
                .fold(0, |sum: u64, text| sum.saturating_add(length(text))),
            messages: u64::try_from(self.messages.len()).unwrap_or(u64::MAX),
            max_output_tokens: self.max_output_tokens,
            n: self.n,
        }
    }
}
