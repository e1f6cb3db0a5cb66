//! A prepaid balance. Its two numbers are the only shared rows that money moves through.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::{Micros, wallet::Wallet};
//! use holdfast_testkit::{MemoryJournal, sample};
//! use holdfast_domain::Wallets as _;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), holdfast_domain::ports::Unavailable> {
//! // 1,000 micros of a currency are 0.001 of its unit.
//! let journal = MemoryJournal::with_funds(1_000);
//! let id = sample::claim().build().wallet;
//! let Wallet { available, held, .. } = journal.find(id).await?.unwrap();
//! assert_eq!((available, held), (Micros::new(1_000), Micros::ZERO));
//! # Ok(())
//! # }
//! ```

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
