//! Wallets, what moved through them, and what a check of the book found.

use holdfast_domain::ledger::Posting;
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::wallet::Wallet;
use serde::Serialize;

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

/// One transfer of a wallet's statement.
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
}

impl LedgerEntryView {
    /// Shows an entry.
    #[must_use]
    pub fn of(entry: &LedgerEntry) -> Self {
        let (operation, posting) = match entry.source {
            LedgerSource::Operation(id, generation) => (Some((id, generation)), None),
            LedgerSource::Posting(id) => (None, Some(id)),
        };
        Self {
            at: rfc3339(entry.at),
            kind: entry.kind,
            debit: entry.debit.label(),
            credit: entry.credit.label(),
            amount_micros: entry.amount.get(),
            operation_id: operation.map(|(id, _)| id.to_string()),
            generation: operation.map(|(_, generation)| generation),
            posting_id: posting.map(|id| id.to_string()),
        }
    }
}

/// A deposit, refund or adjustment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostingView {
    id: String,
    wallet_id: String,
    kind: &'static str,
    amount_micros: i64,
    replayed: bool,
}

impl PostingView {
    /// Shows a posting; `replayed` where it had been made before.
    #[must_use]
    pub fn of(posting: &Posting, replayed: bool) -> Self {
        Self {
            id: posting.id.to_string(),
            wallet_id: posting.wallet.to_string(),
            kind: posting.kind.label(),
            amount_micros: posting.amount.get(),
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
