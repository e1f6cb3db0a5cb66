//! What the wire reads and writes, through its public doors: requests, fingerprints of what they say,
//! answers on both sides, errors and our own shapes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod answers;
mod both_ways;
mod bounds;
mod chunks;
mod contracts;
mod covering;
mod described_words;
mod docs;
mod errors;
mod generated;
mod json;
mod keys;
mod mistakes;
mod nothing;
mod nulls;
mod openapi;
mod places;
mod requests;
mod respelling;
mod schema;
mod spelling;
mod sse;
mod upstream;
mod upstream_bounds;
mod upstream_chunks;
mod upstream_meters;
mod vectors;
mod views;

use holdfast_domain::ApiKeyId;
use holdfast_domain::ports::ResponseMode;
use holdfast_domain::request::{FINGERPRINT_VERSION, Request, fingerprint};
use holdfast_domain::secret::{Fingerprint, ServerSecret};
use holdfast_wire::chat::upstream::{BoundField, render_request};

/// A request's fingerprint under a contract version and some key.
fn fingerprint_of(request: &Request, contract: u32) -> Fingerprint {
    let key = ServerSecret::new(&[7; 32]).unwrap().fingerprint_key(ApiKeyId::from_u128(1));
    fingerprint(&key, FINGERPRINT_VERSION, contract, request).unwrap()
}

/// A request as a provider would get it.
fn upstream_body(request: &Request) -> String {
    let bound = request.max_output_tokens.unwrap_or(4_096);
    let body =
        render_request(request, "m", bound, BoundField::MaxCompletionTokens, ResponseMode::Whole);
    String::from_utf8(body).unwrap()
}
