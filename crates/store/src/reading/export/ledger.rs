//! Payments and charges as an export: the postings of a period in the order of their numbers, then the settlements
//! of operations in the order of theirs.
//!
//! A settlement may come long after its operation began, so that all operations are passed by, a part at a time.
//! Rows are counted beforehand only if the tables may have more of them than the bound.
//!
//! The period ends at the beginning of the export at the latest. A row has the clock of its transaction and may be
//! committed later, so a row of the last moments may be missing: the closing row names the moment before which all are
//! listed, and the next export begins there.

use std::collections::VecDeque;

use async_trait::async_trait;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::{
    ExportError, ExportPages, LedgerExport, LedgerOperation, LedgerPosting, LedgerQuery, LedgerRow,
    LedgerWallet,
};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{ApiKeyId, OperationId, PostingId, WalletId};
use sea_orm::{QueryResult, Value};

use super::{ExportReader, ExportedTable, Part, TableScan, room_after};
use crate::error::unavailable;
use crate::options::CREATION_DISORDER;
use crate::rows::entity::posting_details;
use crate::rows::{self, BadRow, Cells};
use crate::schema::blob;

/// Columns of every row: its moment, its amount, its wallet, and its operation with the API key.
const COLUMNS: &str = "t.created_at, t.amount, w.id, w.name, w.external_id, w.currency,
    o.id, o.model, o.api_key_id, k.name";
/// Further columns of a posting.
const OF_POSTING: &str =
    "t.id, t.kind, t.operation_id, t.reason, d.posting_id, d.source, d.external_reference,
    d.reason, d.note";
/// Settlements. Wallets and keys come last in the join, whatever the planner estimates.
const CHARGES: &str = "FROM operations AS o CROSS JOIN transfers AS t CROSS JOIN wallets AS w
    LEFT JOIN api_keys AS k ON k.id = o.api_key_id
    WHERE t.op_seq = o.seq AND w.id = o.wallet_id AND (t.leg & 7) = 1 AND o.seq > $1 AND o.seq <= $2";
const POSTINGS: &str = "FROM postings AS t CROSS JOIN wallets AS w
    LEFT JOIN operations AS o ON o.id = t.operation_id
    LEFT JOIN api_keys AS k ON k.id = o.api_key_id
    LEFT JOIN posting_details AS d ON d.posting_id = t.id
    WHERE w.id = t.wallet_id AND t.seq > $1 AND t.seq <= $2";
const IN_PERIOD: &str = "AND t.created_at >= $3 AND t.created_at < $4";

/// Rows of the ledger, a page at a time.
pub(in crate::reading) struct LedgerPages {
    reader: ExportReader,
    query: LedgerQuery,
    /// Rows that are not read yet, in this order.
    scans: VecDeque<TableScan>,
    /// Rows that may come yet.
    room: u64,
}

impl LedgerPages {
    /// Finds the last rows, and refuses more of them than the bound.
    pub(in crate::reading) async fn begin(
        reader: ExportReader,
        query: LedgerQuery,
        rows_max: u64,
    ) -> Result<LedgerExport, ExportError> {
        let now = reader.now().await?;
        // A row has the clock of its transaction, which may commit so much later.
        let settled = now.before(CREATION_DISORDER);
        let until = query.to.min(settled);
        // Rows of this moment too: moments are whole milliseconds, in which a charge and the export may fall.
        let after_now = Timestamp::from_micros(now.as_micros().saturating_add(1));
        let read = LedgerQuery { to: query.to.min(after_now), ..query };
        let query = LedgerQuery { to: query.to.min(now), ..query };
        let mut scans = VecDeque::new();
        for table in [ExportedTable::Postings, ExportedTable::Operations] {
            scans.push_back(TableScan::of_now(&reader, table, query.wallet).await?);
        }
        let pages = Self { reader, query: read, scans, room: rows_max };
        let possible = pages.scans.iter().map(|scan| scan.last.unsigned_abs());
        if possible.fold(0, u64::saturating_add) > rows_max {
            let rows = pages.count().await?;
            if rows > rows_max {
                return Err(ExportError::TooManyRows { rows, rows_max });
            }
        }
        Ok(LedgerExport { query, until, pages: Box::new(pages) })
    }

    /// Number of the rows.
    async fn count(&self) -> Result<u64, Unavailable> {
        let mut count = 0_u64;
        for mut scan in self.scans.iter().copied() {
            while let Some(part) = scan.next(&self.reader).await? {
                let sql = self.sql("count(*)", "", part.table);
                let found = self.reader.row(&sql, self.binds(part), |cells| cells.small()).await?;
                count = count.saturating_add(found);
            }
        }
        Ok(count)
    }

    fn sql(&self, columns: &str, order: &str, table: ExportedTable) -> String {
        let (from, wallet) = match table {
            ExportedTable::Operations => (CHARGES, "o.wallet_id"),
            ExportedTable::Postings => (POSTINGS, "t.wallet_id"),
        };
        let wallet = self.query.wallet.map(|_id| format!("AND {wallet} = $5"));
        let wallet = wallet.as_deref().unwrap_or("");
        format!("SELECT {columns} {from} {IN_PERIOD} {wallet} {order}")
    }

    fn binds(&self, part: Part) -> impl Iterator<Item = Value> {
        let LedgerQuery { wallet, from, to } = self.query;
        let all = [part.after, part.up_to, from.as_micros(), to.as_micros()];
        let wallet = wallet.map(|id| blob(id.to_bytes()));
        all.into_iter().map(Value::from).chain(wallet)
    }

    async fn rows(&self, part: Part) -> Result<Vec<LedgerRow>, Unavailable> {
        let (columns, order) = match part.table {
            ExportedTable::Operations => (COLUMNS.to_owned(), "ORDER BY o.seq, t.leg"),
            ExportedTable::Postings => (format!("{COLUMNS}, {OF_POSTING}"), "ORDER BY t.seq"),
        };
        let sql = self.sql(&columns, order, part.table);
        let rows = self.reader.query(&sql, self.binds(part)).await?;
        let read = |row: &QueryResult| match part.table {
            ExportedTable::Operations => charge(row),
            ExportedTable::Postings => posting(row),
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(unavailable)
    }
}

#[async_trait]
impl ExportPages<LedgerRow> for LedgerPages {
    async fn next_page(&mut self) -> Result<Option<Vec<LedgerRow>>, Unavailable> {
        while let Some(scan) = self.scans.front_mut() {
            let Some(part) = scan.next(&self.reader).await? else {
                self.scans.pop_front();
                continue;
            };
            let rows = self.rows(part).await?;
            if rows.is_empty() {
                continue;
            }
            self.room = room_after(self.room, rows.len())?;
            return Ok(Some(rows));
        }
        Ok(None)
    }
}

/// Reads [`COLUMNS`].
fn row(cells: &mut Cells<'_>) -> Result<LedgerRow, BadRow> {
    let (at, amount): (Timestamp, _) = (cells.timestamp()?, cells.micros()?);
    let wallet = LedgerWallet {
        id: WalletId::from_bytes(cells.bytes()?),
        name: cells.text()?,
        external_id: cells.opt_text()?,
        currency: rows::currency(cells)?,
    };
    let operation = cells.opt_bytes()?.map(OperationId::from_bytes);
    let (model, api_key) = (cells.opt_text()?, cells.opt_bytes()?.map(ApiKeyId::from_bytes));
    let api_key_name = cells.opt_text()?;
    let operation = operation.zip(model).zip(api_key);
    let operation = operation.map(|((id, model), api_key)| LedgerOperation {
        id,
        model,
        api_key,
        api_key_name,
    });
    Ok(LedgerRow { at, wallet, amount, posting: None, operation })
}

/// Reads a settlement, which takes from the wallet.
fn charge(result: &QueryResult) -> Result<LedgerRow, BadRow> {
    let charge = row(&mut Cells::new(result))?;
    Ok(LedgerRow { amount: charge.amount.negated(), ..charge })
}

fn posting(result: &QueryResult) -> Result<LedgerRow, BadRow> {
    let mut cells = Cells::new(result);
    let row = row(&mut cells)?;
    let id = PostingId::from_bytes(cells.bytes()?);
    let kind = rows::posting_kind(&mut cells)?;
    let details = posting_details::joined(&mut cells)?.unwrap_or_default();
    Ok(LedgerRow { posting: Some(LedgerPosting { id, kind, details }), ..row })
}
