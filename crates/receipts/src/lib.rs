//! Signed evidence of charges: receipts of operations, roots of the ledger, and their verification.
//!
//! ```text
//! row of an operation ─▶ charge ─┬─▶ receipt ─▶ signature
//!                                └─▶ leaf of a day's tree ─▶ root ─▶ signature
//! ```
//!
//! - [`canonical`]: the bytes that are signed and hashed, by RFC 8785.
//! - [`charge`]: the part of a row that never changes again, as a document.
//! - [`key`]: the signing key, which follows from the server secret, and the public keys.
//! - [`root`]: roots of the ledger, and the leaves that they are of.
//! - [`verification`]: a document against public keys, offline.
//! - [`tree`]: hashes, roots and inclusion proofs of RFC 6962.
//!
//! Pure functions of rows: signing is on request, and a completion never calls this crate. A document
//! never has the provider, the prompt or the answer, and no secret.
//!
//! ```
//! use holdfast_receipts::DocumentKind;
//! use holdfast_receipts::key::Signer;
//! use holdfast_receipts::verification::TrustedKeys;
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let secret = holdfast_domain::secret::ServerSecret::new(b"at least sixteen bytes")?;
//! let signer = Signer::new(&secret.receipt_key(), &[], &[])?;
//! let mut file = signer.sign(DocumentKind::Receipt, json!({ "charge": { "charge_micros": "42" } }))?;
//!
//! // A customer has the file and the public keys, and no connection.
//! let keys = TrustedKeys::parse(signer.keys_document().to_string().as_bytes())?;
//! assert!(keys.verify(DocumentKind::Receipt, &file).is_ok());
//! file["receipt"]["charge"]["charge_micros"] = json!("41");
//! assert!(keys.verify(DocumentKind::Receipt, &file).is_err());
//! # Ok(())
//! # }
//! ```

pub mod canonical;
pub mod charge;
mod hex;
pub mod key;
pub mod root;
pub mod tree;
pub mod verification;

/// Kind of a signed document. Each has a prefix of its own in what is signed, so that the signature of one kind is
/// none of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// Receipt of an operation.
    Receipt,
    /// Root of a day of the ledger.
    Root,
}

impl DocumentKind {
    /// Member of the file that has the document, beside `signature`.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Receipt => "receipt",
            Self::Root => "root",
        }
    }

    /// Bytes before the canonical document in what is signed. They never change.
    pub(crate) const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Receipt => b"holdfast receipt v1\n",
            Self::Root => b"holdfast ledger root v1\n",
        }
    }
}
