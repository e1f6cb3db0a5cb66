//! Seals answers before they reach storage, and opens them for the bearer of the credential.
//!
//! AES-256-GCM-SIV under a key that only the caller's secret yields, bound to the operation and its fingerprint:
//! content moved to another row does not open.
//!
//! With the body that callers get, an answer may have states that its provider takes in a later turn. They are
//! sealed with the body and go with it: an answer without them is sealed as if there were no such part.

use std::collections::BTreeMap;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use holdfast_domain::CredentialId;
use holdfast_domain::operation::{Operation, RESULT_FORMATS, SealedResult};
use holdfast_domain::private::Private;
use holdfast_domain::secret::ResultKey;
use holdfast_domain::state::{CallStates, Origin, ProviderState};
use uuid::Uuid;

/// A layout of what is sealed: the bytes of the body that callers get.
const BODY: u8 = 1;
/// Another: the same after their length, then the origin of states, and each with its choice, its call
/// and its length. Numbers are of four bytes, the largest first.
const BODY_AND_STATES: u8 = 2;

/// Failure to seal or to open content.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The cipher refused.
    #[error("the cipher refused")]
    Cipher(#[source] Unspecified),
    /// The row holds a layout that this version does not know.
    #[error("sealed in format {0}, which this version does not know")]
    Format(u8),
    /// Content opened, but its layout is not that of its format.
    #[error("not laid out as its format says")]
    Layout,
}

/// Opened result: body, and provider states if there were any.
#[derive(Debug)]
pub struct OpenedResult {
    pub body: Private<Vec<u8>>,
    pub kept: Option<CallStates>,
}

/// Seals a body with the states of the provider.
pub fn seal(
    key: &ResultKey,
    credential: CredentialId,
    operation: &Operation,
    (body, kept): (&[u8], Option<&CallStates>),
) -> Result<SealedResult, SealError> {
    let nonce = nonce();
    // With room for the tag: an answer that grows by it would be copied as a whole.
    let mut sealed = Vec::with_capacity(body.len().saturating_add(AES_256_GCM_SIV.tag_len()));
    let format = match kept.and_then(|kept| encode(body, kept)) {
        Some(both) => {
            sealed.extend_from_slice(&both);
            BODY_AND_STATES
        }
        None => {
            sealed.extend_from_slice(body);
            BODY
        }
    };
    cipher(key)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            additional_data(operation, format),
            &mut sealed,
        )
        .map_err(SealError::Cipher)?;
    Ok(SealedResult { credential, format, nonce, sealed: sealed.into(), withheld: 0 })
}

/// Opens what [`seal`] sealed for the same operation.
pub fn open(
    key: &ResultKey,
    operation: &Operation,
    result: &SealedResult,
) -> Result<OpenedResult, SealError> {
    // Before the cipher: a layout of a newer version is not a seal that was broken.
    if !RESULT_FORMATS.contains(&result.format) {
        return Err(SealError::Format(result.format));
    }
    let mut body = result.sealed.to_vec();
    let length = cipher(key)?
        .open_in_place(
            Nonce::assume_unique_for_key(result.nonce),
            additional_data(operation, result.format),
            &mut body,
        )
        .map_err(SealError::Cipher)?
        .len();
    body.truncate(length);
    if result.format == BODY {
        return Ok(OpenedResult { body: Private(body), kept: None });
    }
    decode(&body).ok_or(SealError::Layout)
}

/// `None` if a length does not fit four bytes.
fn encode(body: &[u8], kept: &CallStates) -> Option<Vec<u8>> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok().map(u32::to_be_bytes);
    let mut all = Vec::new();
    all.extend(length(body)?);
    all.extend_from_slice(body);
    all.extend(kept.origin.to_bytes());
    for ([choice, call], state) in &kept.states {
        let state = state.as_str().as_bytes();
        all.extend([choice.to_be_bytes(), call.to_be_bytes(), length(state)?].concat());
        all.extend_from_slice(state);
    }
    Some(all)
}

/// Reads what [`encode`] wrote.
fn decode(mut rest: &[u8]) -> Option<OpenedResult> {
    let body = Private(take_counted(&mut rest)?.to_vec());
    let (origin, mut rest) = rest.split_first_chunk()?;
    let mut states = BTreeMap::new();
    while !rest.is_empty() {
        let at = [take_number(&mut rest)?, take_number(&mut rest)?];
        let state = str::from_utf8(take_counted(&mut rest)?).ok()?;
        states.insert(at, ProviderState::new(state)?);
    }
    let kept = CallStates { origin: Origin::from_bytes(*origin), states };
    Some(OpenedResult { body, kept: Some(kept) })
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (counted, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(counted)
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

/// Associated data of the seal: operation id, fingerprint, layout. A result moved to another
/// row does not open.
fn additional_data(operation: &Operation, format: u8) -> Aad<[u8; 49]> {
    let id = operation.id.to_bytes();
    let fingerprint = operation.binding.fingerprint.to_bytes();
    let mut all = [0; 49];
    let (to_id, rest) = all.split_at_mut(id.len());
    let (to_fingerprint, to_format) = rest.split_at_mut(fingerprint.len());
    to_id.copy_from_slice(&id);
    to_fingerprint.copy_from_slice(&fingerprint);
    to_format.copy_from_slice(&[format]);
    Aad::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::operation::RESULT_TAG_LENGTH;

    #[test]
    fn an_audit_knows_the_formats_and_the_tag() {
        assert_eq!(RESULT_FORMATS, BODY..=BODY_AND_STATES);
        assert_eq!(RESULT_TAG_LENGTH, AES_256_GCM_SIV.tag_len());
    }

    #[test]
    fn what_is_laid_out_reads_as_it_was_and_half_of_it_does_not() {
        let state = |text| ProviderState::new(text).unwrap();
        let states = [([0, 1], state("é")), ([7, 0], state("second"))].into();
        let kept = CallStates { origin: Origin::of("shape", "provider", "model"), states };
        let all = encode(b"the body", &kept).unwrap();
        let opened = decode(&all).unwrap();
        assert_eq!(opened.body.0, b"the body");
        assert_eq!(opened.kept, Some(kept.clone()));
        for length in 0..all.len() {
            let whole = decode(&all[..length]).and_then(|opened| opened.kept);
            assert_ne!(whole, Some(kept.clone()), "{length}");
        }
    }
}
