//! Wallets, their statements and postings. Balances are moved by the writer's batches alone.

use async_trait::async_trait;
use holdfast_domain::ledger::{Account, Posting};
use holdfast_domain::ports::{CreateError, LedgerEntry, LedgerSource, Unavailable};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Micros, OperationId, PostingId, WalletId, Wallets};
use sea_orm::QueryResult;

use super::blob;
use super::connect::is_taken;
use crate::rows::{self, BadRow, Cells};
use crate::{Store, unavailable};

const CREATE: &str = "INSERT INTO wallets (id, name, currency, available, held, created_at)
    VALUES (?1, ?2, ?3, 0, 0, ?4)";

/// Both kinds of transfers as one list. Those of one moment were committed together: what pays comes
/// before what is paid from it, and refunds come last. The whole of a wallet's book is sorted, which
/// only a person at a prompt asks for.
pub(super) const TRANSFERS: &str = "SELECT * FROM (
    SELECT t.created_at AS at, 1 AS place, o.seq AS seq, t.leg AS leg, t.amount AS amount,
        o.id AS id, t.debit AS debit, t.credit AS credit, NULL AS kind, NULL AS operation_id,
        NULL AS reason FROM operations AS o JOIN transfers AS t ON t.op_seq = o.seq WHERE o.wallet_id = $1
    UNION ALL
    SELECT t.created_at, iif(t.kind = 'refund', 2, 0), t.seq, 0, t.amount,
        t.id, NULL, NULL, t.kind, t.operation_id, t.reason
    FROM postings AS t WHERE t.wallet_id = $1
) ORDER BY at DESC, place DESC, seq DESC, leg DESC LIMIT $2";

#[async_trait]
impl Wallets for Store {
    async fn create(
        &self,
        id: WalletId,
        name: &str,
        currency: Currency,
    ) -> Result<Wallet, CreateError> {
        let name = name.to_owned();
        let created = self.write(move |connection, now| {
            Box::pin(async move {
                sqlx::query(CREATE)
                    .bind(id.to_bytes().to_vec())
                    .bind(&name)
                    .bind(currency.as_str())
                    .bind(now.as_micros())
                    .execute(connection)
                    .await?;
                let zero = Micros::ZERO;
                Ok(Wallet { id, name, currency, available: zero, held: zero })
            })
        });
        created.await.map_err(|error| {
            if is_taken(&error) {
                CreateError::NameTaken
            } else {
                CreateError::Unavailable(Box::new(error))
            }
        })
    }

    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        let sql = format!("SELECT {} FROM wallets AS w WHERE w.id = $1", rows::WALLET);
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        let wallet = |row| rows::wallet(&mut Cells::new(row));
        rows.first().map(wallet).transpose().map_err(unavailable)
    }

    async fn list(&self) -> Result<Vec<Wallet>, Unavailable> {
        let sql = format!("SELECT {} FROM wallets AS w ORDER BY w.seq", rows::WALLET);
        let rows = self.query(&sql, []).await?;
        let wallets = rows.iter().map(|row| rows::wallet(&mut Cells::new(row)));
        wallets.collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        let values = [blob(id.to_bytes()), i64::from(limit).into()];
        let rows = self.query(TRANSFERS, values).await?;
        rows.iter().rev().map(entry).collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        let sql = format!(
            "SELECT t.id, t.wallet_id, t.amount, {} FROM postings AS t WHERE t.id = $1",
            rows::POSTING_KIND
        );
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        rows.first().map(posting).transpose().map_err(unavailable)
    }
}

pub(crate) fn posting(row: &QueryResult) -> Result<Posting, BadRow> {
    let mut cells = Cells::new(row);
    Ok(Posting {
        id: PostingId::from_bytes(cells.bytes()?),
        wallet: WalletId::from_bytes(cells.bytes()?),
        amount: cells.micros()?,
        kind: rows::posting_kind(&mut cells)?,
    })
}

fn entry(row: &QueryResult) -> Result<LedgerEntry, BadRow> {
    let mut cells = Cells::new(row);
    let at = cells.timestamp()?;
    let is_transfer = cells.int()? == 1;
    cells.skip(1);
    let leg = cells.int()?;
    let amount = cells.micros()?;
    let id = cells.bytes()?;
    if is_transfer {
        let (generation, kind) = rows::transfer(leg).ok_or(BadRow::Value(3))?;
        let (debit, credit) = (rows::account(&mut cells)?, rows::account(&mut cells)?);
        let source = LedgerSource::Operation(OperationId::from_bytes(id), generation);
        return Ok(LedgerEntry { at, source, kind: kind.label(), debit, credit, amount });
    }
    cells.skip(2);
    let kind = rows::posting_kind(&mut cells)?;
    let source = LedgerSource::Posting(PostingId::from_bytes(id));
    let (debit, credit, amount) = if amount < Micros::ZERO {
        (Account::Available, kind.counterpart(), amount.negated())
    } else {
        (kind.counterpart(), Account::Available, amount)
    };
    Ok(LedgerEntry { at, source, kind: kind.label(), debit, credit, amount })
}
