//! Seals answers before they reach storage, and opens them for whoever bears the credential.
//!
//! AES-256-GCM-SIV under a key that only the caller's secret yields, bound to the operation and its
//! fingerprint: content moved to another row does not open.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use holdfast_domain::CredentialId;
use holdfast_domain::operation::{Operation, SealedResult};
use holdfast_domain::secret::ResultKey;
use uuid::Uuid;

/// The layout of what is sealed: the bytes of the body that callers get.
const FORMAT: u8 = 1;

/// Why content was not sealed or opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// The cipher refused.
    #[error("the cipher refused")]
    Cipher(#[source] Unspecified),
    /// The row holds a layout that this version does not know.
    #[error("sealed in format {0}, which this version does not know")]
    Format(u8),
}

/// Seals a body.
pub(crate) fn seal(
    key: &ResultKey,
    credential: CredentialId,
    operation: &Operation,
    body: &[u8],
) -> Result<SealedResult, SealError> {
    let nonce = nonce();
    let mut sealed = Vec::with_capacity(body.len().saturating_add(AES_256_GCM_SIV.tag_len()));
    sealed.extend_from_slice(body);
    cipher(key)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            additional_data(operation, FORMAT),
            &mut sealed,
        )
        .map_err(SealError::Cipher)?;
    Ok(SealedResult { credential, format: FORMAT, nonce, sealed })
}

/// Opens what [`seal`] sealed for the same operation.
pub(crate) fn open(
    key: &ResultKey,
    operation: &Operation,
    result: &SealedResult,
) -> Result<Vec<u8>, SealError> {
    if result.format != FORMAT {
        return Err(SealError::Format(result.format));
    }
    let mut body = result.sealed.clone();
    let length = cipher(key)?
        .open_in_place(
            Nonce::assume_unique_for_key(result.nonce),
            additional_data(operation, result.format),
            &mut body,
        )
        .map_err(SealError::Cipher)?
        .len();
    body.truncate(length);
    Ok(body)
}

/// The random bytes of an id, without the two that are not all random. A generator of the thread makes
/// them, much faster than the cipher's library does: a key is of one operation and seals its few endings.
fn nonce() -> [u8; NONCE_LEN] {
    let [a, b, c, d, e, f, _version, g, _variant, h, i, j, k, l, ..] = Uuid::new_v4().into_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

fn cipher(key: &ResultKey) -> Result<LessSafeKey, SealError> {
    UnboundKey::new(&AES_256_GCM_SIV, key.expose()).map(LessSafeKey::new).map_err(SealError::Cipher)
}

fn additional_data(operation: &Operation, format: u8) -> Aad<Vec<u8>> {
    let id = operation.id.to_bytes();
    let fingerprint = operation.binding.fingerprint.to_bytes();
    Aad::from([&id[..], &fingerprint[..], &[format]].concat())
}
