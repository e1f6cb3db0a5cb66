//! Roots of the ledger as documents, and the leaves that they are of.
//!
//! A leaf is an operation that has ended, or a posting, as a canonical document: a receipt of the operation contains
//! the content of its leaf. A root names the root before it by its hash, so that none can be taken out between two
//! others. Receipts form no chain: operations end side by side.

use holdfast_domain::Timestamp;
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_wire::api::rfc3339;
use serde_json::{Value, json};

use crate::canonical::{NotCanonical, canonical};
use crate::charge::Charge;
use crate::tree::{self, TreeHash};

/// Place of a root among all, and the root before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootPlace {
    /// Number, from one.
    pub number: i64,
    /// Moment at which the root before it ended; `None` for the first.
    pub from: Option<Timestamp>,
    /// Moment before which its rows were created.
    pub to: Timestamp,
    /// Hash of the root before it; `None` for the first.
    pub previous: Option<TreeHash>,
    /// Moment of the signature.
    pub signed_at: Timestamp,
}

impl RootPlace {
    /// Document of the root over these leaves.
    #[must_use]
    pub fn document(&self, leaves: &[TreeHash]) -> Value {
        json!({
            "number": self.number.to_string(),
            "from": self.from.map(rfc3339),
            "to": rfc3339(self.to),
            "leaves": leaves.len().to_string(),
            "root": tree::root(leaves).to_string(),
            "previous": self.previous.map(|hash| hash.to_string()),
            "signed_at": rfc3339(self.signed_at),
        })
    }
}

/// Day that a root ends with: `2026-11-28` for one that ends as the 29th begins.
#[must_use]
pub fn day(to: Timestamp) -> String {
    let last = Timestamp::from_micros(to.as_micros().saturating_sub(1));
    rfc3339(last).chars().take("2026-11-28".len()).collect()
}

/// Hash by which the next root names the root of this document.
///
/// # Errors
///
/// [`NotCanonical`] for a document that is no root's.
pub fn hash(document: &Value) -> Result<TreeHash, NotCanonical> {
    canonical(document).map(|bytes| TreeHash::leaf(&bytes))
}

/// Leaf of an operation by its charge, as a receipt has it.
///
/// # Errors
///
/// [`NotCanonical`] for a document that is no charge.
pub fn charge_leaf(charge: &Value) -> Result<TreeHash, NotCanonical> {
    hash(&json!({ "charge": charge }))
}

impl Charge {
    /// Leaf of the operation.
    ///
    /// # Errors
    ///
    /// [`NotCanonical`] if the charge has no canonical form.
    pub fn leaf(&self) -> Result<TreeHash, NotCanonical> {
        charge_leaf(self.document())
    }
}

/// Leaf of a posting. Texts that people wrote are not in it.
///
/// # Errors
///
/// [`NotCanonical`] if the posting has no canonical form.
pub fn posting_leaf(posting: &Posting, created_at: Timestamp) -> Result<TreeHash, NotCanonical> {
    let operation = match &posting.kind {
        PostingKind::Refund(operation) => Some(operation.to_string()),
        PostingKind::Deposit | PostingKind::Adjustment(_) => None,
    };
    hash(&json!({ "posting": {
        "posting_id": posting.id.to_string(),
        "wallet_id": posting.wallet.to_string(),
        "kind": posting.kind.label(),
        "operation_id": operation,
        "amount_micros": posting.amount.get().to_string(),
        "created_at": rfc3339(created_at),
    }}))
}
