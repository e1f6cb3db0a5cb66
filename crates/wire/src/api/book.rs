//! Views of the ledger for its operator: statements, usage reports and verification.
//!
//! * Amounts are integers in millionths of the wallet's currency, under names that end in
//!   `_micros`.
//! * Moments are RFC 3339 in UTC; a period contains its first moment and not its last.
//! * `available` may be spent; `held` is set aside for operations that are not settled.
//! * A statement adds up: its opening balance and its entries make its closing balance.

use holdfast_domain::Micros;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::usage::MeterKind;
use serde::{Serialize, Serializer};

use super::rfc3339;

/// Statement of a wallet over a period: opening balance, entries, closing balance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementView {
    /// Id of the wallet.
    pub wallet_id: String,
    /// Currency of all amounts of the statement.
    pub currency: String,
    /// First moment of the period; null is the beginning of the book.
    pub from: Option<String>,
    /// First moment after the period; null is the moment of asking.
    pub to: Option<String>,
    /// Balance before the first entry.
    pub opening: BalanceView,
    /// Entries of the period, oldest first.
    pub entries: Vec<LedgerEntryView>,
    /// Number of earlier entries of the period that are not listed: the opening balance is after
    /// them.
    pub omitted_entries: u64,
    /// Balance after the last entry.
    pub closing: BalanceView,
}

/// Balance of a wallet at some moment, available and held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BalanceView {
    available_micros: i64,
    held_micros: i64,
}

impl BalanceView {
    /// Shows a balance.
    #[must_use]
    pub const fn of(available: Micros, held: Micros) -> Self {
        Self { available_micros: available.get(), held_micros: held.get() }
    }
}

/// Transfer in a wallet's statement, with the balance after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LedgerEntryView {
    at: String,
    kind: &'static str,
    debit: &'static str,
    credit: &'static str,
    amount_micros: i64,
    operation_id: Option<String>,
    generation: Option<u32>,
    posting_id: Option<String>,
    reason: Option<String>,
    #[serde(flatten)]
    after: BalanceView,
}

impl LedgerEntryView {
    /// Shows an entry; `posted` is what a posting was for.
    #[must_use]
    pub fn of(entry: &LedgerEntry, posted: Option<&PostingKind>, after: BalanceView) -> Self {
        let (operation, generation, posting) = match entry.source {
            LedgerSource::Operation(id, generation) => (Some(id), Some(generation), None),
            LedgerSource::Posting(id) => (None, None, Some(id)),
        };
        let (refunded, reason) = match posted {
            None | Some(PostingKind::Deposit) => (None, None),
            Some(PostingKind::Refund(operation)) => (Some(*operation), None),
            Some(PostingKind::Adjustment(reason)) => (None, Some(reason.clone())),
        };
        Self {
            at: rfc3339(entry.at),
            kind: entry.kind,
            debit: entry.debit.label(),
            credit: entry.credit.label(),
            amount_micros: entry.amount.get(),
            operation_id: operation.or(refunded).map(|id| id.to_string()),
            generation,
            posting_id: posting.map(|id| id.to_string()),
            reason,
            after,
        }
    }
}

/// Usage of a group's operations in a period, in one currency: counts, meters, charges and costs.
/// Its first parts, as many as the report has keys, say which group it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageView {
    /// An hour, `2026-11-01T13:00:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<String>,
    /// A day, `2026-11-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// A month, `2026-11`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<String>,
    /// A model's public id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// An API key.
    #[serde(flatten)]
    pub api_key: Option<UsageApiKey>,
    /// A wallet.
    #[serde(flatten)]
    pub wallet: Option<UsageWallet>,
    /// A route; empty for operations that tried none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Currency of all amounts of the row.
    pub currency: String,
    /// Number of operations that were answered and settled.
    pub completed: u64,
    /// Number of operations that the provider refused.
    pub refused: u64,
    /// Number of operations that ended without a known outcome.
    pub abandoned: u64,
    /// Number of the completed whose meters were counted here, and not reported by the provider.
    pub estimated: u64,
    /// Meters of the completed, summed by kind.
    pub meters: CountsView,
    /// Charges of the completed.
    pub charge_micros: i64,
    /// Part of the completed operations' price that went beyond their holds.
    pub shortfall_micros: i64,
    /// Refunds of those charges, whenever they were made.
    pub refunded_micros: i64,
    /// Holds of the refused and the abandoned: at most so much may they have cost the operator, and
    /// nobody was charged.
    pub exposure_micros: i64,
    /// Number of the completed whose cost to the operator is known.
    pub costed: u64,
    /// Cost of those to the operator; null where no cost is known.
    pub provider_cost_micros: Option<i64>,
    /// Margin of those: charges less refunds less cost; null where no cost is known.
    pub margin_micros: Option<i64>,
    /// Completed operations whose provider cost no run can have caused: it is left out, and their holds are
    /// exposure. Absent if there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub costs_excluded: u64,
    /// True if a cost is left out, or a sum is more than a number can be; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// API key of a group's operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageApiKey {
    /// Id of the API key.
    pub api_key_id: String,
    /// Name of the API key.
    pub api_key_name: String,
}

/// Wallet of a group's operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageWallet {
    /// Id of the wallet.
    pub wallet_id: String,
    /// Name of the wallet.
    pub wallet_name: String,
}

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
    /// Id of the wallet, where it is a balance that does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet_id: Option<String>,
    /// Id of the operation, where it is a row that does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// Sentence with the expected value and the one that was found.
    pub text: String,
}
