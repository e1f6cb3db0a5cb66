//! Wallets, what moved through them, what was used, and what a check of the book found.

use holdfast_domain::Micros;
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::wallet::Wallet;
use serde::{Serialize, Serializer};

use super::rfc3339;

/// A wallet as its operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WalletView {
    id: String,
    name: String,
    currency: String,
    available_micros: i64,
    held_micros: i64,
}

impl WalletView {
    /// Shows a wallet with its name.
    #[must_use]
    pub fn for_operator(wallet: &Wallet) -> Self {
        Self {
            id: wallet.id.to_string(),
            name: wallet.name.clone(),
            currency: wallet.currency.to_string(),
            available_micros: wallet.available.get(),
            held_micros: wallet.held.get(),
        }
    }
}

/// What a wallet had, what moved, and what it has then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementView {
    /// Whose it is.
    pub wallet_id: String,
    /// Of which money.
    pub currency: String,
    /// Its first moment; null is the beginning of the book.
    pub from: Option<String>,
    /// The first moment after it; null is the moment of asking.
    pub to: Option<String>,
    /// Before the first entry.
    pub opening: BalanceView,
    /// What moved, oldest first.
    pub entries: Vec<LedgerEntryView>,
    /// How many earlier entries of the period are not listed: the opening balance is after them.
    pub omitted_entries: u64,
    /// After the last entry.
    pub closing: BalanceView,
}

/// What a wallet has at some moment.
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

/// One transfer of a wallet's statement, with what the wallet has after it.
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

/// What a group's operations of a period used and were charged, in one currency. One of its first
/// three parts says which group it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageView {
    /// A day, `2026-11-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// A model's public id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// An API key or a wallet.
    #[serde(flatten)]
    pub owner: Option<UsageOwner>,
    /// Of which money.
    pub currency: String,
    /// How many were answered and settled.
    pub completed: u64,
    /// How many the provider refused.
    pub refused: u64,
    /// How many ended without a known outcome.
    pub abandoned: u64,
    /// How many of the completed have meters that were counted here.
    pub estimated: u64,
    /// What the completed used.
    pub meters: CountsView,
    /// What they were charged.
    pub charge_micros: i64,
    /// What they cost beyond their holds.
    pub shortfall_micros: i64,
    /// What was given back of their charges, whenever that was.
    pub refunded_micros: i64,
    /// The holds of those that were refused or abandoned: at most so much may they have cost the
    /// operator, and nobody was charged.
    pub exposure_micros: i64,
    /// Of how many of the completed it is known what they cost the operator.
    pub costed: u64,
    /// What those cost the operator.
    pub provider_cost_micros: i64,
    /// What those were charged, less what was given back of it, less what they cost.
    pub margin_micros: i64,
}

/// Whose operations they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum UsageOwner {
    /// An API key's.
    ApiKey {
        /// Its id.
        api_key_id: String,
        /// Its name.
        api_key_name: String,
    },
    /// A wallet's.
    Wallet {
        /// Its id.
        wallet_id: String,
        /// Its name.
        wallet_name: String,
    },
}

/// Sums of counts by the label of their kind, all of them, in the order of [`MeterKind::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountsView(pub [u64; MeterKind::COUNT]);

impl Serialize for CountsView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(MeterKind::ALL.into_iter().map(MeterKind::label).zip(self.0))
    }
}

/// A deposit, refund or adjustment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostingView {
    id: String,
    wallet_id: String,
    kind: &'static str,
    amount_micros: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    replayed: bool,
}

impl PostingView {
    /// Shows a posting, with the operation that is refunded or the reason of an adjustment;
    /// `replayed` where it had been made before.
    #[must_use]
    pub fn of(posting: &Posting, replayed: bool) -> Self {
        let (operation, reason) = match &posting.kind {
            PostingKind::Deposit => (None, None),
            PostingKind::Refund(operation) => (Some(operation.to_string()), None),
            PostingKind::Adjustment(reason) => (None, Some(reason.clone())),
        };
        Self {
            id: posting.id.to_string(),
            wallet_id: posting.wallet.to_string(),
            kind: posting.kind.label(),
            amount_micros: posting.amount.get(),
            operation_id: operation,
            reason,
            replayed,
        }
    }
}

/// What a check of the whole book found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerificationView {
    ok: bool,
    wallets: u64,
    operations: u64,
    transfers: u64,
    mismatches: Vec<MismatchView>,
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
        Self { ok: mismatches.is_empty(), wallets, operations, transfers, mismatches }
    }
}

/// One thing that does not match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MismatchView {
    /// Whose balance, where it is one wallet's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet_id: Option<String>,
    /// Whose row, where it is one operation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// What was expected and what was found.
    pub text: String,
}
