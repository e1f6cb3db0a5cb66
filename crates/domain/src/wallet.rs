//! A prepaid balance. Its two numbers are the only shared rows that money moves through.

use crate::{Currency, Micros, WalletId};

/// A wallet as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wallet {
    /// Its id.
    pub id: WalletId,
    /// For people; unique.
    pub name: String,
    /// Fixed at creation.
    pub currency: Currency,
    /// What new holds may use.
    pub available: Micros,
    /// What running operations reserve.
    pub held: Micros,
}
