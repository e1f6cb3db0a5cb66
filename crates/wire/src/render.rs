//! One way from our own shapes to bytes. Not for shapes of others: those are read, never written.

use serde::Serialize;

/// Renders a shape of this crate as compact JSON.
#[expect(
    clippy::expect_used,
    reason = "strings, integers, checked raw JSON and maps keyed by strings, into memory: failing is a bug"
)]
pub(crate) fn to_bytes(shape: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(shape).expect("our own shapes are JSON")
}
