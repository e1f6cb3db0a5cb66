//! Keys of receipts: one that signs, and the public keys of all that have signed.
//!
//! The signing key is Ed25519, from a seed that is derived of the server secret: all nodes of a database have the same
//! one, there is no other file to keep, and it rotates with the secret. A public key has an id that follows from it,
//! so that no list of keys can give a signature to another key.

use std::array::TryFromSliceError;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use holdfast_domain::debug_as;
use holdfast_domain::secret::ReceiptKey;
use serde_json::{Value, json};

use crate::canonical::{NotCanonical, canonical};
use crate::{DocumentKind, hex};

/// Name of the only algorithm.
pub(crate) const ALGORITHM: &str = "Ed25519";
/// Bytes of the hash of a public key that are its id.
const ID_LEN: usize = 8;

/// Public key of receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Key of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Id of the key: the first 16 hexadecimal digits of its SHA-256.
    #[must_use]
    pub fn id(self) -> String {
        hex::write(digest(&SHA256, &self.0).as_ref()).chars().take(2 * ID_LEN).collect()
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        hex::read(text).map(Self)
    }

    pub(crate) fn verify(self, message: &[u8], signature: &[u8; 64]) -> Result<(), Unspecified> {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature)
    }

    fn document(self) -> Value {
        json!({ "key_id": self.id(), "algorithm": ALGORITHM, "public_key": hex::write(&self.0) })
    }
}

/// Failure to sign.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The seed is not that of a key.
    #[error("the receipt key was rejected")]
    Key(#[source] KeyRejected),
    /// The key has a public part of another length.
    #[error("the public key has not 32 bytes")]
    PublicKey(#[source] TryFromSliceError),
    /// The signature was not made.
    #[error("the signature was not made")]
    Signature(#[source] Unspecified),
    /// The document has a value that is not signed.
    #[error("the document has no canonical form")]
    Document(#[source] NotCanonical),
}

/// Signer of receipts and roots, with the public keys that verify them.
pub struct Signer {
    pair: Ed25519KeyPair,
    keys: Vec<PublicKey>,
}

debug_as!(Signer as it: "Signer({:?})", it.keys);

impl Signer {
    /// Signer by the first key. The public keys are those of all keys, and the others that are known, each once.
    ///
    /// # Errors
    ///
    /// [`SignError::Key`] for a seed that is not one.
    pub fn new(
        first: &ReceiptKey,
        others: &[ReceiptKey],
        known: &[PublicKey],
    ) -> Result<Self, SignError> {
        let pair = pair(first)?;
        let mut keys = vec![public(&pair)?];
        for other in others {
            keys.push(public(&self::pair(other)?)?);
        }
        keys.extend(known);
        let mut seen = Vec::new();
        keys.retain(|key| {
            !seen.contains(key) && {
                seen.push(*key);
                true
            }
        });
        Ok(Self { pair, keys })
    }

    /// Public keys: the one that signs first.
    #[must_use]
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Document of the public keys, as verifiers read it.
    #[must_use]
    pub fn keys_document(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(|key| key.document()).collect();
        json!({ "keys": keys })
    }

    /// The document with its signature, under the member of its kind.
    ///
    /// # Errors
    ///
    /// [`SignError::Document`] for a document without a canonical form, [`SignError::Signature`] and
    /// [`SignError::PublicKey`] if the cipher fails.
    pub fn sign(&self, kind: DocumentKind, document: Value) -> Result<Value, SignError> {
        let message = message(kind, &document).map_err(SignError::Document)?;
        let signature = self.pair.try_sign(&message).map_err(SignError::Signature)?;
        let key_id = public(&self.pair)?.id();
        Ok(json!({
            kind.member(): document,
            "signature": {
                "algorithm": ALGORITHM,
                "key_id": key_id,
                "value": hex::write(signature.as_ref()),
            },
        }))
    }
}

/// Bytes that are signed: the prefix of the kind and the canonical document.
pub(crate) fn message(kind: DocumentKind, document: &Value) -> Result<Vec<u8>, NotCanonical> {
    Ok([kind.prefix(), &canonical(document)?].concat())
}

fn pair(key: &ReceiptKey) -> Result<Ed25519KeyPair, SignError> {
    Ed25519KeyPair::from_seed_unchecked(key.expose()).map_err(SignError::Key)
}

fn public(pair: &Ed25519KeyPair) -> Result<PublicKey, SignError> {
    pair.public_key().as_ref().try_into().map(PublicKey).map_err(SignError::PublicKey)
}
