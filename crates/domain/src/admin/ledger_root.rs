//! Roots of the ledger: signed hashes of all rows that ended in a span of days, and proofs that a row is in one.

use crate::OperationId;

/// Root of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRoot {
    /// Number, from one.
    pub number: i64,
    /// Signed document, as JSON.
    pub signed: String,
}

/// Proof that an operation is in a root: the hashes beside its way to the root of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InclusionProof {
    /// Root that has the operation.
    pub root: LedgerRoot,
    /// The operation.
    pub operation: OperationId,
    /// Place of its leaf, from zero.
    pub index: u64,
    /// Hashes, the nearest to the leaf first.
    pub path: Vec<[u8; 32]>,
}
