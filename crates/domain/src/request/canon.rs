//! The canonical feed: the bytes of a normalized request that its fingerprint hashes.
//!
//! Prefix-free: every item begins with a tag, everything of variable length carries its length, and
//! every field is fed under its own tag, so no two requests feed the same bytes. Old versions of the
//! feed are kept: operations have no end, and a retry is compared under the version it was made with.

use blake3::Hasher;

use super::{Content, Decimal, Message, Request, Role};
use crate::secret::{Fingerprint, FingerprintKey};

/// The version of the feed below.
pub const FINGERPRINT_VERSION: u16 = 1;

/// Hashes a request under a model contract and a version of the feed; `None` for an unknown version.
///
/// `contract` is the contract's version number alone: a retry is compared under the number that its
/// operation was made with, whatever that contract's limits are today.
#[must_use]
pub fn fingerprint(
    key: &FingerprintKey,
    version: u16,
    contract: u32,
    request: &Request,
) -> Option<Fingerprint> {
    if version != FINGERPRINT_VERSION {
        return None;
    }
    let mut feed = Feed(Hasher::new_keyed(key.expose()));
    feed.integer(tag::VERSION, u64::from(version));
    feed.text(tag::ROUTE, "POST /v1/chat/completions");
    feed.integer(tag::CONTRACT, u64::from(contract));
    feed.request(request);
    Some(Fingerprint::from_bytes(*feed.0.finalize().as_bytes()))
}

/// One byte before every item. Numbers are never used again for another meaning.
mod tag {
    pub(super) const VERSION: u8 = 1;
    pub(super) const ROUTE: u8 = 2;
    pub(super) const CONTRACT: u8 = 3;
    pub(super) const MODEL: u8 = 4;
    pub(super) const MESSAGES: u8 = 5;
    pub(super) const ROLE: u8 = 6;
    pub(super) const NAME: u8 = 7;
    pub(super) const TEXT: u8 = 8;
    pub(super) const PARTS: u8 = 9;
    pub(super) const MAX_OUTPUT_TOKENS: u8 = 10;
    pub(super) const N: u8 = 11;
    pub(super) const TEMPERATURE: u8 = 12;
    pub(super) const TOP_P: u8 = 13;
    pub(super) const PRESENCE_PENALTY: u8 = 14;
    pub(super) const FREQUENCY_PENALTY: u8 = 15;
    pub(super) const STOP: u8 = 16;
    pub(super) const SEED: u8 = 17;
    pub(super) const USER: u8 = 18;
    pub(super) const METADATA: u8 = 19;
    pub(super) const END: u8 = 20;
}

struct Feed(Hasher);

impl Feed {
    fn integer(&mut self, tag: u8, value: u64) {
        self.0.update(&[tag]).update(&value.to_be_bytes());
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.count(tag, text.len());
        self.0.update(text.as_bytes());
    }

    fn count(&mut self, tag: u8, length: usize) {
        self.integer(tag, u64::try_from(length).unwrap_or(u64::MAX));
    }

    fn decimal(&mut self, tag: u8, number: Option<Decimal>) {
        if let Some(number) = number {
            let (negative, digits, exponent) = number.parts();
            self.0.update(&[tag, u8::from(negative)]);
            self.0.update(&digits.to_be_bytes()).update(&exponent.to_be_bytes());
        }
    }

    fn request(&mut self, request: &Request) {
        let Request {
            model,
            messages,
            max_output_tokens,
            n,
            temperature,
            top_p,
            presence_penalty,
            frequency_penalty,
            stop,
            seed,
            user,
            metadata,
        } = request;
        self.text(tag::MODEL, model.as_str());
        self.count(tag::MESSAGES, messages.len());
        messages.iter().for_each(|message| self.message(message));
        if let Some(bound) = max_output_tokens {
            self.integer(tag::MAX_OUTPUT_TOKENS, *bound);
        }
        self.integer(tag::N, u64::from(*n));
        self.decimal(tag::TEMPERATURE, *temperature);
        self.decimal(tag::TOP_P, *top_p);
        self.decimal(tag::PRESENCE_PENALTY, *presence_penalty);
        self.decimal(tag::FREQUENCY_PENALTY, *frequency_penalty);
        self.count(tag::STOP, stop.len());
        stop.iter().for_each(|sequence| self.text(tag::TEXT, sequence));
        if let Some(seed) = seed {
            self.0.update(&[tag::SEED]).update(&seed.to_be_bytes());
        }
        if let Some(user) = user {
            self.text(tag::USER, user);
        }
        self.count(tag::METADATA, metadata.len());
        for (name, value) in metadata {
            self.text(tag::NAME, name);
            self.text(tag::TEXT, value);
        }
        self.0.update(&[tag::END]);
    }

    fn message(&mut self, message: &Message) {
        let role = match message.role {
            Role::Developer => 0,
            Role::System => 1,
            Role::User => 2,
            Role::Assistant => 3,
        };
        self.integer(tag::ROLE, role);
        if let Some(name) = &message.name {
            self.text(tag::NAME, name);
        }
        match &message.content {
            None => {}
            Some(Content::Text(text)) => self.text(tag::TEXT, text),
            Some(Content::Parts(parts)) => {
                self.count(tag::PARTS, parts.len());
                parts.iter().for_each(|part| self.text(tag::TEXT, part));
            }
        }
        self.0.update(&[tag::END]);
    }
}
