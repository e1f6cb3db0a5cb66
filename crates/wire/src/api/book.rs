//! Views of the ledger for its operator: sums of counts, and verification.

use holdfast_domain::usage::MeterKind;
use serde::{Serialize, Serializer};

/// Sums of counts by the label of their kind, all of them, in the order of [`MeterKind::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountsView(pub [u64; MeterKind::COUNT]);

impl Serialize for CountsView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(MeterKind::ALL.into_iter().map(MeterKind::label).zip(self.0))
    }
}

/// Result of a check of the whole book: numbers of rows that were checked, and every mismatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerificationView {
    ok: bool,
    wallets: u64,
    operations: u64,
    transfers: u64,
    /// Head of the trail, `seq:mac`.
    #[serde(skip_serializing_if = "Option::is_none")]
    trail: Option<String>,
    mismatches: Vec<MismatchView>,
    /// Findings that are no mismatches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<MismatchView>,
}

impl VerificationView {
    /// Shows how much was checked and what did not match.
    #[must_use]
    pub const fn of(
        wallets: u64,
        operations: u64,
        transfers: u64,
        mismatches: Vec<MismatchView>,
    ) -> Self {
        // Computed here, so that no report can be fine and have mismatches.
        Self {
            ok: mismatches.is_empty(),
            wallets,
            operations,
            transfers,
            trail: None,
            mismatches,
            notes: Vec::new(),
        }
    }

    /// The same with the head of the trail.
    #[must_use]
    pub fn with_trail(self, head: &str) -> Self {
        Self { trail: Some(head.to_owned()), ..self }
    }

    /// The same with notes, which leave it as well as it is.
    #[must_use]
    pub fn with_notes(self, notes: Vec<MismatchView>) -> Self {
        Self { notes, ..self }
    }
}

/// Mismatch between a row or a balance and the transfers behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MismatchView {
    /// Id of the wallet, if a balance does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet_id: Option<String>,
    /// Id of the operation, if a row does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// Sentence with the expected value and the one that was found.
    pub text: String,
}
