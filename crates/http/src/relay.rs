//! HTTP between nodes: a node requests the text of a run from another's node listener. The engine decides who
//! may read it and which records are sent; this is the transport, HTTP/1.1 without TLS.
//!
//! ```text
//! GET /tape/1/<operation>       Holdfast-Claim, Holdfast-Nonce, Holdfast-Proof
//! 200                           Holdfast-Nonce, then records until the end
//! 404                           any other request
//! ```
//!
//! The nonce of the requesting node and the proof are for the engine, which authenticates both sides; a wrong
//! proof and an unknown operation get the same 404, so that probing reveals no operation. A relay ends with its
//! connection, whole or not: only the records show which.

mod client;
mod server;

use std::str::FromStr;

use http::HeaderMap;
use http::header::HeaderName;

pub use self::client::DirectTransport;
pub use self::server::serve_nodes;

/// Path prefix of a relay; the number is the protocol's version.
const TAPE: &str = "/tape/1/";

const CLAIM: HeaderName = HeaderName::from_static("holdfast-claim");
const NONCE: HeaderName = HeaderName::from_static("holdfast-nonce");
const PROOF: HeaderName = HeaderName::from_static("holdfast-proof");

/// Parsed value of a header; `None` if it is missing or malformed.
fn header<T: FromStr>(headers: &HeaderMap, name: &HeaderName) -> Option<T> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
