//! Sealing of answers before they reach the store.

use std::sync::Arc;

use holdfast_domain::CredentialId;
use holdfast_domain::operation::{OWN_RESULT_FORMAT, Operation, SealedResult};

/// Cipher of answers, as a service chooses it. The operation is part of what is sealed, so that an answer which is
/// moved to another row does not open.
///
/// ```
/// use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
/// use holdfast_domain::operation::Operation;
/// use holdfast_embed::Seal;
///
/// /// AES-256-GCM-SIV under one key of the service.
/// struct Cipher(LessSafeKey);
///
/// impl Cipher {
///     fn new(key: &[u8; 32]) -> Self {
///         Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key).unwrap()))
///     }
/// }
///
/// impl Seal for Cipher {
///     fn seal(&self, operation: &Operation, nonce: [u8; 12], mut answer: Vec<u8>) -> Vec<u8> {
///         let (nonce, row) = (Nonce::assume_unique_for_key(nonce), operation.id.to_bytes());
///         self.0.seal_in_place_append_tag(nonce, Aad::from(row), &mut answer).unwrap();
///         answer
///     }
///
///     fn open(&self, operation: &Operation, nonce: [u8; 12], sealed: &[u8]) -> Option<Vec<u8>> {
///         let (nonce, row) = (Nonce::assume_unique_for_key(nonce), operation.id.to_bytes());
///         let mut bytes = sealed.to_vec();
///         Some(self.0.open_in_place(nonce, Aad::from(row), &mut bytes).ok()?.to_vec())
///     }
/// }
/// ```
pub trait Seal: Send + Sync {
    /// Seals an answer. The nonce is random, and of this answer alone.
    fn seal(&self, operation: &Operation, nonce: [u8; 12], answer: Vec<u8>) -> Vec<u8>;

    /// Opens what [`Seal::seal`] made for the same operation; `None` for anything else.
    fn open(&self, operation: &Operation, nonce: [u8; 12], sealed: &[u8]) -> Option<Vec<u8>>;
}

/// No cipher: every reader of the database can read the answers.
#[derive(Debug, Clone, Copy)]
pub struct NoCipher;

impl Seal for NoCipher {
    fn seal(&self, _operation: &Operation, _nonce: [u8; 12], answer: Vec<u8>) -> Vec<u8> {
        answer
    }

    fn open(&self, _operation: &Operation, _nonce: [u8; 12], sealed: &[u8]) -> Option<Vec<u8>> {
        Some(sealed.to_vec())
    }
}

/// An answer as the store keeps it, in a format that is the service's own and for no credential of the ledger.
pub(crate) fn result(seal: &dyn Seal, operation: &Operation, answer: Vec<u8>) -> SealedResult {
    let [a, b, c, d, e, f, _, g, _, h, i, j, k, l, ..] = uuid::Uuid::new_v4().into_bytes();
    // Without the two bytes that have fixed bits.
    let nonce = [a, b, c, d, e, f, g, h, i, j, k, l];
    let sealed: Arc<[u8]> = seal.seal(operation, nonce, answer).into();
    let (credential, format) = (CredentialId::from_u128(0), OWN_RESULT_FORMAT);
    SealedResult { credential, format, nonce, sealed, withheld: 0 }
}
