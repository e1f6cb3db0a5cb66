//! The holds of recorded operations, which decide about a refused claim: they do not go back by themselves.
//!
//! Read only if a claim is refused, and so prepared only then.

use holdfast_domain::{Micros, WalletId};

use super::statements::Statements;

/// By the index of running operations: its condition comes first, word for word.
const RECORDED_HOLDS: &str =
    "SELECT coalesce(sum(hold), 0) FROM operations INDEXED BY operations_active
    WHERE phase IN ('leased', 'recorded') AND phase = 'recorded' AND wallet_id = ?1";

impl Statements<'_> {
    /// Sum of what the recorded operations of a wallet hold.
    pub(super) fn recorded_holds(&self, wallet: WalletId) -> rusqlite::Result<Micros> {
        let mut statement = self.connection.prepare_cached(RECORDED_HOLDS)?;
        statement.query_one([wallet.to_bytes()], |row| row.get(0).map(Micros::new))
    }
}
