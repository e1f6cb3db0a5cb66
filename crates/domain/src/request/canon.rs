//! The canonical feed: the bytes of a normalized request that its fingerprint hashes.
//!
//! ```text
//! feed    = version, route, contract, request
//! item    = tag: u8, then what the tag stands for
//! number  = fixed width, big-endian          string = length: u64, bytes
//! list    = count: u64, its items            absent = not fed at all
//! ```
//!
//! Prefix-free: every item begins with a tag, everything of variable length carries its length, and every field
//! is fed under its own tag in a fixed order, so no two requests feed the same bytes. An absent member is not
//! fed at all: a field that is added later changes no fingerprint. Old versions are kept: operations have no
//! end, and a retry is compared under the version it was made with. Version 2 differs from version 1 in the
//! request that is fed, which is [folded](Request::fold), and in its number; the tags are the same.
//!
//! The same feed counts the bytes that bound the hold ([`super::CostFactors`]): what is hashed is
//! what is counted, so no string can reach a prompt unpaid. Never: a tag with a second meaning, a
//! field moved to another place, a float.

mod conversation;
pub(super) mod tag;
mod tools;

use std::collections::BTreeMap;

use blake3::{Hash, Hasher};

use super::{
    Audio, CacheOptions, Decimal, JsonSchema, Modalities, Opaque, Request, ResponseFormat, Voice,
};
use crate::secret::{Fingerprint, FingerprintKey};

/// The version that new fingerprints have: of requests that are [folded](Request::fold).
pub const FINGERPRINT_VERSION: u16 = 2;
/// The version before: of requests as they are read, without the fold. Only older rows have it.
pub const UNFOLDED_VERSION: u16 = 1;

/// True for a version that [`fingerprint`] can compute. A row of another one was written by a later release,
/// and no request can be compared with it here.
#[must_use]
pub const fn is_known_version(version: u16) -> bool {
    matches!(version, UNFOLDED_VERSION | FINGERPRINT_VERSION)
}

/// Hashes a request under a model contract and a version; `None` for an unknown version. The request
/// is in the normal form of that version.
///
/// `contract` is the contract's version number alone: a retry is compared under the number that its operation
/// was made with, even if that contract's limits have changed.
#[must_use]
pub fn fingerprint(
    key: &FingerprintKey,
    version: u16,
    contract: u32,
    request: &Request,
) -> Option<Fingerprint> {
    // Under an unknown version two requests cannot be compared: no answer, never a guess.
    if !is_known_version(version) {
        return None;
    }
    let mut hasher = Hasher::new_keyed(key.expose());
    let gathered = BufferedHasher { hasher: &mut hasher, buffer: [0; BUFFER_BYTES], n_buffered: 0 };
    let mut feed = CanonicalWriter(gathered);
    feed.integer(tag::VERSION, u64::from(version));
    feed.text(tag::ROUTE, "POST /v1/chat/completions");
    feed.integer(tag::CONTRACT, u64::from(contract));
    feed.request(request);
    Some(Fingerprint::from_bytes(*feed.0.finish().as_bytes()))
}

/// Takes in what is fed: strings of the request apart from the bytes that give them their structure.
pub(super) trait CanonicalSink {
    /// Takes in tags, lengths and numbers.
    fn bytes(&mut self, structure: &[u8]);
    /// Takes in a string, or an opaque value, that was fed under `tag`.
    fn string(&mut self, tag: u8, text: &str);
}

/// Bytes that wait at most to be hashed; a longer piece is hashed in place.
const BUFFER_BYTES: usize = 1_024;

/// Hash of what is fed. A feed is made of many small pieces, and a hasher takes long over each, so
/// that they are put together first.
struct BufferedHasher<'h> {
    /// Elsewhere: it is large.
    hasher: &'h mut Hasher,
    buffer: [u8; BUFFER_BYTES],
    n_buffered: usize,
}

impl BufferedHasher<'_> {
    fn finish(&mut self) -> Hash {
        self.flush();
        self.hasher.finalize()
    }

    fn flush(&mut self) {
        // Never fewer bytes than wait: it would be the fingerprint of another request.
        let (waiting, _room) = self.buffer.split_at(self.n_buffered);
        self.hasher.update(waiting);
        self.n_buffered = 0;
    }
}

impl CanonicalSink for BufferedHasher<'_> {
    fn bytes(&mut self, structure: &[u8]) {
        if structure.len() > BUFFER_BYTES.saturating_sub(self.n_buffered) {
            self.flush();
        }
        let end = self.n_buffered.saturating_add(structure.len());
        match self.buffer.get_mut(self.n_buffered..end) {
            Some(room) => {
                room.copy_from_slice(structure);
                self.n_buffered = end;
            }
            // Longer than all the room.
            None => {
                self.hasher.update(structure);
            }
        }
    }

    fn string(&mut self, _tag: u8, text: &str) {
        self.bytes(text.as_bytes());
    }
}

/// Writer of the feed, to a hash or to a count.
pub(super) struct CanonicalWriter<A>(pub(super) A);

impl<A: CanonicalSink> CanonicalWriter<A> {
    pub(super) fn request(&mut self, request: &Request) {
        self.text(tag::MODEL, request.model.as_str());
        self.count(tag::MESSAGES, request.turns().count());
        request.turns().for_each(|message| self.message(message));
        if let Some(bound) = request.max_output_tokens {
            self.integer(tag::MAX_OUTPUT_TOKENS, bound);
        }
        self.integer(tag::N, u64::from(request.n));
        self.decimal(tag::TEMPERATURE, request.temperature);
        self.decimal(tag::TOP_P, request.top_p);
        self.decimal(tag::PRESENCE_PENALTY, request.presence_penalty);
        self.decimal(tag::FREQUENCY_PENALTY, request.frequency_penalty);
        // Fed with a count of zero as well, as `metadata` is: part of version 1, so it stays.
        self.each(tag::STOP, &request.stop, |feed, sequence| feed.text(tag::TEXT, sequence));
        if let Some(seed) = request.seed {
            self.mark(tag::SEED, &seed.to_be_bytes());
        }
        self.optional_text(tag::USER, request.user.as_deref());
        self.count(tag::METADATA, request.metadata.len());
        // A sorted map: the order in which the caller wrote the pairs is no part of the request.
        for (name, value) in &request.metadata {
            self.text(tag::NAME, name);
            self.text(tag::TEXT, value);
        }
        self.sampling(request);
        self.offers(request);
        self.output(request);
        self.service(request);
        self.extras(tag::EXTRAS, &request.extras);
        self.mark(tag::END, &[]);
    }

    fn sampling(&mut self, request: &Request) {
        if request.logprobs {
            self.mark(tag::LOGPROBS, &[]);
        }
        if let Some(number) = request.top_logprobs {
            self.mark(tag::TOP_LOGPROBS, &[number]);
        }
        if !request.logit_bias.is_empty() {
            self.count(tag::LOGIT_BIAS, request.logit_bias.len());
            // Sorted, as all maps here: clients write members in any order, at each retry anew.
            for (token, bias) in &request.logit_bias {
                self.text(tag::NAME, token);
                self.mark(tag::BIAS, &bias.to_be_bytes());
            }
        }
    }

    fn output(&mut self, request: &Request) {
        match &request.response_format {
            None => {}
            Some(ResponseFormat::JsonObject) => self.mark(tag::JSON_OBJECT, &[]),
            Some(ResponseFormat::JsonSchema(schema)) => self.schema(schema),
        }
        if request.modalities != Modalities::Text {
            self.label(tag::MODALITIES, request.modalities.label());
        }
        if let Some(Audio { voice, format }) = &request.audio {
            self.label(tag::AUDIO, format.label());
            match voice {
                Voice::Named(name) => self.text(tag::VOICE, name),
                Voice::Custom(id) => self.text(tag::VOICE_ID, id),
            }
        }
        self.optional_opaque(tag::PREDICTION, request.prediction.as_ref());
        if let Some(effort) = request.reasoning_effort {
            self.label(tag::REASONING_EFFORT, effort.label());
        }
        if let Some(verbosity) = request.verbosity {
            self.label(tag::VERBOSITY, verbosity.label());
        }
    }

    fn service(&mut self, request: &Request) {
        if let Some(tier) = request.service_tier {
            self.label(tag::SERVICE_TIER, tier.label());
        }
        self.flag(tag::STORE, request.store);
        self.optional_text(tag::SAFETY_IDENTIFIER, request.safety_identifier.as_deref());
        self.optional_text(tag::PROMPT_CACHE_KEY, request.prompt_cache_key.as_deref());
        if let Some(retention) = request.prompt_cache_retention {
            self.label(tag::PROMPT_CACHE_RETENTION, retention.label());
        }
        if let Some(CacheOptions { mode, ttl }) = request.prompt_cache_options {
            // By itself: options without a member are not the absence of options.
            self.mark(tag::PROMPT_CACHE_OPTIONS, &[]);
            if let Some(mode) = mode {
                self.label(tag::CACHE_MODE, mode.label());
            }
            if let Some(ttl) = ttl {
                self.label(tag::CACHE_TTL, ttl.label());
            }
        }
        self.optional_opaque(tag::WEB_SEARCH_OPTIONS, request.web_search_options.as_ref());
        self.optional_opaque(tag::MODERATION, request.moderation.as_ref());
    }

    fn schema(&mut self, schema: &JsonSchema) {
        let JsonSchema { name, description, schema, strict } = schema;
        self.text(tag::JSON_SCHEMA, name);
        self.optional_text(tag::DESCRIPTION, description.as_deref());
        self.optional_opaque(tag::SCHEMA, schema.as_ref());
        self.flag(tag::STRICT, *strict);
    }

    fn extras(&mut self, tag: u8, extras: &BTreeMap<String, Opaque>) {
        if extras.is_empty() {
            return;
        }
        self.count(tag, extras.len());
        for (name, value) in extras {
            self.text(tag::NAME, name);
            self.opaque(tag::OPAQUE, value);
        }
    }
}

/// Forms of items: each writes its tag first.
impl<A: CanonicalSink> CanonicalWriter<A> {
    fn mark(&mut self, tag: u8, fixed: &[u8]) {
        self.0.bytes(&[tag]);
        self.0.bytes(fixed);
    }

    fn integer(&mut self, tag: u8, value: u64) {
        self.mark(tag, &value.to_be_bytes());
    }

    fn count(&mut self, tag: u8, length: usize) {
        self.integer(tag, u64::try_from(length).unwrap_or(u64::MAX));
    }

    fn each<T>(&mut self, tag: u8, items: &[T], feed: impl Fn(&mut Self, &T)) {
        self.count(tag, items.len());
        items.iter().for_each(|item| feed(self, item));
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.count(tag, text.len());
        self.0.string(tag, text);
    }

    fn optional_text(&mut self, tag: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.text(tag, text);
        }
    }

    /// Word of ours, no string of the request: hashed, and not counted as a byte of the prompt.
    fn label(&mut self, tag: u8, label: &str) {
        self.count(tag, label.len());
        self.0.bytes(label.as_bytes());
    }

    fn opaque(&mut self, tag: u8, value: &Opaque) {
        self.text(tag, value.as_str());
    }

    fn optional_opaque(&mut self, tag: u8, value: Option<&Opaque>) {
        if let Some(value) = value {
            self.opaque(tag, value);
        }
    }

    fn flag(&mut self, tag: u8, flag: Option<bool>) {
        if let Some(flag) = flag {
            // `false` is fed: to say no is not to say nothing, where the provider has a default.
            self.mark(tag, &[u8::from(flag)]);
        }
    }

    fn decimal(&mut self, tag: u8, number: Option<Decimal>) {
        if let Some(number) = number {
            // The value and not its spelling, at fixed widths: 1, 1.0 and 1e0 are one request.
            let (negative, digits, exponent) = number.parts();
            self.mark(tag, &[u8::from(negative)]);
            self.0.bytes(&digits.to_be_bytes());
            self.0.bytes(&exponent.to_be_bytes());
        }
    }
}
