//! Wallets, their transfers and postings. Only the writer's batches move balances.

use async_trait::async_trait;
use holdfast_domain::ledger::Posting;
use holdfast_domain::ports::{LedgerEntry, Unavailable};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{PostingId, WalletId, Wallets};

use crate::error::unavailable;
use crate::reading::statement::{self, EntryBounds};
use crate::rows::{self, Cells};
use crate::schema::blob;
use crate::store::Store;

#[async_trait]
impl Wallets for Store {
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        let sql = format!("SELECT {} FROM wallets AS w WHERE w.id = $1", rows::WALLET);
        // Through the short reads: each authentication that misses its cache waits for this.
        let rows = self.quick_query(&sql, [blob(id.to_bytes())]).await?;
        let wallet = |row| rows::wallet(&mut Cells::new(row));
        rows.first().map(wallet).transpose().map_err(unavailable)
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        let values = statement::values(id, EntryBounds::NONE, limit);
        let rows = self.query(statement::LINES, values).await?;
        let entry = |row| statement::line(row).map(|line| line.transfer);
        rows.iter().map(entry).collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        let sql = format!("SELECT {} FROM postings AS t WHERE t.id = $1", rows::POSTING);
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        let posting = |row| rows::posting(&mut Cells::new(row));
        rows.first().map(posting).transpose().map_err(unavailable)
    }
}
