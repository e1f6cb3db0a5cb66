//! Wallets, their transfers and postings. Balances are moved by the writer's batches alone.

use async_trait::async_trait;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::ledger::Posting;
use holdfast_domain::ports::{CreateError, LedgerEntry, Unavailable};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Micros, PostingId, Timestamp, WalletId, Wallets};

use super::keys::create_error;
use crate::dialect::blob;
use crate::exchange::Exchange;
use crate::reading::statement::{self, EntryBounds};
use crate::rows::{self, Cells, Row};
use crate::{Store, unavailable};

#[async_trait]
impl Wallets for Store {
    async fn create(
        &self,
        id: WalletId,
        name: &str,
        currency: Currency,
    ) -> Result<Wallet, CreateError> {
        let (dialect, zero, name) = (self.dialect(), Micros::ZERO, name.to_owned());
        let wallet = Wallet { id, name, currency, available: zero, held: zero, suspended_at: None };
        let mut record = WalletRecord {
            wallet: wallet.clone(),
            external_id: None,
            low_balance: None,
            key_spend: None,
            edited: 0,
            created_at: Timestamp::from_micros(0),
            closed_at: None,
        };
        let created = self.try_exchange(Exchange::of(move |now| {
            record.created_at = now;
            vec![record.insert(dialect)]
        }));
        // By the table: of two that take one name at once, a look before would let both pass.
        created.await.map(|()| wallet).map_err(create_error)
    }

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
