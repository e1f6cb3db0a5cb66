//! Reads the rows of an audit in one transaction, since the book is written to meanwhile.
//!
//! Operations and their transfers are read page by page: they are larger than memory, and so may
//! the transfers of one operation be. Both are ordered by the operation's number, so that one pass
//! over each pairs them. Wallets, API keys, postings and counters are few, and are read at once.
//! A wallet, posting or operation that cannot be read is a mismatch, not an error.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_domain::ledger::Transfer;
use holdfast_domain::limits::Counter;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{ApiKeyId, Micros, OperationId, PostingId, Timestamp, WalletId};
use sea_orm::QueryResult;

use super::{ReadError, ReadTransaction};
use crate::Store;
use crate::dialect::Dialect;
use crate::judge::Window;
use crate::rows::{self, BadRow, Cells};
use crate::verify::transfers::{AuditEntry, Sums, Transfers};
use crate::verify::{
    Audit, AuditOptions, AuditedOperation, Progress, RetentionBound, StoredResult, Subject,
    Verification,
};

/// Operations read at once.
const PAGE: i64 = 1_000;
/// Transfers read at once.
const TRANSFERS_PAGE: i64 = 4_000;

const TRANSFERS: &str = "SELECT op_seq, leg, amount, created_at FROM transfers
    WHERE (op_seq, leg) > ($1, $2) ORDER BY op_seq, leg LIMIT $3";
const COUNTERS: &str = "SELECT api_key_id, counter, window_start, used FROM counters
    ORDER BY api_key_id, counter, window_start";
const ORPHANS: &str = "SELECT
    (SELECT count(*) FROM transfers AS t
     WHERE NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.seq = t.op_seq)) +
    (SELECT count(*) FROM results AS r
     WHERE NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.seq = r.op_seq))";

impl Store {
    /// Recomputes every balance and every invariant from the rows as one transaction sees them. A
    /// result that is gone before older ones is a mismatch, however long results are kept.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read. What is wrong in it is no error.
    pub async fn verify(&self) -> Result<Verification, Unavailable> {
        self.verify_by(AuditOptions { retention: Duration::MAX }, |_progress| {}).await
    }

    /// The same by these terms. How far it is, is told after each page.
    ///
    /// # Errors
    ///
    /// As [`Self::verify`].
    pub async fn verify_by(
        &self,
        terms: AuditOptions,
        told: impl FnMut(Progress) + Send + 'static,
    ) -> Result<Verification, Unavailable> {
        self.read_transaction(move |db| Box::pin(audit(db, terms, told))).await
    }
}

async fn audit(
    db: &mut ReadTransaction,
    terms: AuditOptions,
    told: impl FnMut(Progress) + Send,
) -> Result<Verification, ReadError> {
    let mut audit = begin(db, terms).await?;
    for row in db.query(&format!("SELECT {} FROM wallets AS w", rows::WALLET), []).await? {
        let mut cells = Cells::new(&row);
        match rows::wallet(&mut cells) {
            Ok(wallet) => audit.wallet(wallet),
            Err(error) => {
                audit.unreadable(Subject::Wallet(id(&row, 0, WalletId::from_bytes)?), &error);
            }
        }
    }
    for row in db.query("SELECT id, wallet_id FROM api_keys", []).await? {
        let wallet = id(&row, 1, WalletId::from_bytes)?;
        audit.api_key(id(&row, 0, ApiKeyId::from_bytes)?, wallet);
    }
    let sql = format!("SELECT {} FROM postings AS t", rows::POSTING);
    for row in db.query(&sql, []).await? {
        match rows::posting(&mut Cells::new(&row)) {
            Ok(posting) => audit.posting(posting),
            Err(error) => {
                audit.unreadable(Subject::Posting(id(&row, 0, PostingId::from_bytes)?), &error);
            }
        }
    }
    operations(db, &mut audit, told).await?;
    for row in db.query(COUNTERS, []).await? {
        let (window, used) = counter(&row).map_err(ReadError::Row)?;
        audit.counter(window, used);
    }
    let orphans = db.query(ORPHANS, []).await?;
    let orphans = orphans.first().map_or(Ok(0), |row| Cells::new(row).small());
    Ok(audit.finish(orphans.map_err(ReadError::Row)?))
}

async fn begin(db: &mut ReadTransaction, terms: AuditOptions) -> Result<Audit, ReadError> {
    let sql = format!("SELECT {}, (SELECT min(finished_at) FROM results)", db.dialect().clock());
    let rows = db.query(&sql, []).await?;
    let read = |row: &QueryResult| {
        let mut cells = Cells::new(row);
        Ok((cells.timestamp()?, cells.opt_timestamp()?))
    };
    let moments = rows.first().map_or(Ok((Timestamp::from_micros(0), None)), read);
    let (now, oldest) = moments.map_err(ReadError::Row)?;
    let age = i64::try_from(terms.retention.as_micros()).unwrap_or(i64::MAX);
    let due = Timestamp::from_micros(now.as_micros().saturating_sub(age));
    Ok(Audit::new(RetentionBound { oldest, due }, now))
}

async fn operations(
    db: &mut ReadTransaction,
    audit: &mut Audit,
    mut told: impl FnMut(Progress),
) -> Result<(), ReadError> {
    let sql = format!(
        "SELECT o.seq, CASE WHEN {} THEN CAST(1 AS bigint) ELSE 0 END, r.op_seq, r.finished_at,
         o.released, {}
         FROM operations AS o
         LEFT JOIN prices AS p ON p.price_version = o.price_version
         LEFT JOIN results AS r ON r.op_seq = o.seq
         WHERE o.seq > $1 ORDER BY o.seq LIMIT $2",
        db.dialect().is_listed(),
        rows::OPERATION
    );
    let of = db.query("SELECT count(*) FROM operations", []).await?;
    let of = of.first().map_or(Ok(0), |row| Cells::new(row).small()).map_err(ReadError::Row)?;
    let mut transfers = Cursor::default();
    let mut after = None;
    loop {
        let page = db.query(&sql, [after.unwrap_or(i64::MIN).into(), PAGE.into()]).await?;
        if page.is_empty() {
            return Ok(());
        }
        for row in &page {
            let seq = Cells::new(row).int().map_err(ReadError::Row)?;
            let next = after.map_or(1, |after: i64| after.saturating_add(1));
            // SQLite gives each row the next number. Sequences of a server have gaps.
            if db.dialect() == Dialect::Sqlite && seq > next {
                audit.missing(next, seq.saturating_sub(1));
            }
            after = Some(seq);
            let checked = match dossier(row) {
                Ok(dossier) => {
                    transfers.check(db, seq, &dossier).await?.map(|sums| (dossier, sums))
                }
                Err(error) => Err(error),
            };
            match checked {
                Ok((dossier, sums)) => audit.operation(&dossier, sums),
                Err(error) => {
                    let id = id(row, 5, OperationId::from_bytes)?;
                    audit.unreadable(Subject::Operation(id), &error);
                }
            }
        }
        told(Progress { operations: audit.operations(), of });
    }
}

/// All transfers, in the order of their operations, a page at a time.
#[derive(Debug)]
struct Cursor {
    page: VecDeque<(i64, Result<AuditEntry, BadRow>)>,
    after: (i64, i64),
    is_over: bool,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { page: VecDeque::new(), after: (i64::MIN, i64::MIN), is_over: false }
    }
}

impl Cursor {
    /// Sums and checks those of the operation with this number, and passes by those of numbers
    /// before it.
    async fn check(
        &mut self,
        db: &mut ReadTransaction,
        seq: i64,
        dossier: &AuditedOperation,
    ) -> Result<Result<Sums, BadRow>, ReadError> {
        let mut transfers = Transfers::of(&dossier.operation);
        let mut bad = None;
        loop {
            if self.page.is_empty() && !self.is_over {
                self.read(db).await?;
            }
            match self.page.front() {
                Some((of, _line)) if *of <= seq => {}
                Some(_) | None => break,
            }
            match self.page.pop_front() {
                Some((of, Ok(line))) if of == seq => transfers.add(line),
                Some((of, Err(error))) if of == seq => bad = Some(error),
                Some(_) | None => {}
            }
        }
        Ok(bad.map_or_else(|| Ok(transfers.finish()), Err))
    }

    async fn read(&mut self, db: &mut ReadTransaction) -> Result<(), ReadError> {
        let (seq, leg) = self.after;
        let page = db.query(TRANSFERS, [seq.into(), leg.into(), TRANSFERS_PAGE.into()]).await?;
        self.is_over = page.is_empty();
        for row in &page {
            let mut cells = Cells::new(row);
            let mut number = || cells.int().map_err(ReadError::Row);
            self.after = (number()?, number()?);
            self.page.push_back((self.after.0, line(self.after.1, &mut cells)));
        }
        Ok(())
    }
}

fn line(leg: i64, cells: &mut Cells<'_>) -> Result<AuditEntry, BadRow> {
    let (generation, kind) = rows::transfer(leg).ok_or(BadRow::Value(1))?;
    let transfer = Transfer::new(kind, cells.micros()?);
    Ok(AuditEntry { generation, transfer, at: cells.timestamp()? })
}

fn dossier(row: &QueryResult) -> Result<AuditedOperation, BadRow> {
    let mut cells = Cells::new(row);
    cells.skip(1);
    let is_listed = cells.int()? == 1;
    let result = match cells.opt_int()? {
        Some(_) => StoredResult::Result { finished_at: cells.opt_timestamp()? },
        None => {
            cells.skip(1);
            StoredResult::Nothing
        }
    };
    let released = Micros::new(cells.opt_int()?.unwrap_or(0));
    Ok(AuditedOperation { operation: rows::operation(&mut cells)?, released, result, is_listed })
}

fn counter(row: &QueryResult) -> Result<(Window, i64), BadRow> {
    let mut cells = Cells::new(row);
    let api_key = ApiKeyId::from_bytes(cells.bytes()?);
    let counter: Counter = rows::counter(cells.int()?).ok_or(BadRow::Value(1))?;
    let window = (api_key, counter, cells.timestamp()?);
    Ok((window, cells.int()?))
}

fn id<T>(row: &QueryResult, at: usize, read: fn([u8; 16]) -> T) -> Result<T, ReadError> {
    let mut cells = Cells::new(row);
    cells.skip(at);
    cells.bytes().map(read).map_err(ReadError::Row)
}
