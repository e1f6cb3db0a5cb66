//! What the fuzz targets of requests say of one: how it is sent, and what it is bound to.

use holdfast_domain::ApiKeyId;
use holdfast_domain::ports::ResponseMode;
use holdfast_domain::request::{FINGERPRINT_VERSION, Request, fingerprint};
use holdfast_domain::secret::{Fingerprint, ServerSecret};
use holdfast_wire::chat::upstream::{BoundField, render_request};

/// A request's fingerprint under some key.
pub fn bound_to(request: &Request) -> Fingerprint {
    let secret = ServerSecret::new(&[7; 32]).expect("long enough");
    let key = secret.fingerprint_key(ApiKeyId::from_u128(1));
    fingerprint(&key, FINGERPRINT_VERSION, 1, request).expect("a version that is known")
}

/// The body that a provider would get which calls the model as the caller does. `unbounded` stands
/// for the bound on the output where the request has none.
pub fn sent(request: &Request, unbounded: u64) -> Vec<u8> {
    let bound = request.max_output_tokens.unwrap_or(unbounded);
    let field = BoundField::MaxCompletionTokens;
    render_request(request, request.model.as_str(), bound, field, ResponseMode::Whole)
}
