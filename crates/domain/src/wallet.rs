//! A prepaid balance. Its two numbers are the only shared rows that money moves through.

use crate::{Currency, Micros, Timestamp, WalletId};

/// Wallet as it is kept. Never overdrawn: `available` and `held` are at least zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wallet {
    /// Id of the wallet.
    pub id: WalletId,
    /// Name for people; unique.
    pub name: String,
    /// Currency of both amounts, fixed at creation.
    pub currency: Currency,
    /// Amount that new holds may use.
    pub available: Micros,
    /// Amount that running operations reserve.
    pub held: Micros,
    /// Moment since which no new operation runs on it. Active ones go on.
    pub suspended_at: Option<Timestamp>,
}
