//! Reads the rows of an audit in one transaction, since the book is written to meanwhile. Operations
//! and their transfers are read page by page: they are larger than memory. Wallets, API keys, postings
//! and counters are few, and are read at once.

use std::collections::BTreeMap;

use holdfast_domain::ledger::Transfer;
use holdfast_domain::limits::Counter;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{ApiKeyId, OperationId, PostingId, WalletId};
use sea_orm::QueryResult;

use super::{Failed, Read};
use crate::Store;
use crate::ports::wallets::posting;
use crate::rows::{self, BadRow, Cells};
use crate::verify::{Audit, Dossier, Kept, Line, Subject, Verification};

/// Operations read at once.
const PAGE: i64 = 1_000;

const TRANSFERS: &str = "SELECT op_seq, leg, amount FROM transfers
    WHERE op_seq > $1 AND op_seq <= $2 ORDER BY op_seq, leg";
const COUNTERS: &str = "SELECT api_key_id, counter, used FROM counters
    WHERE counter IN (2, 3) ORDER BY api_key_id, counter";
const ORPHANS: &str = "SELECT
    (SELECT count(*) FROM transfers AS t
     WHERE NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.seq = t.op_seq)) +
    (SELECT count(*) FROM results AS r
     WHERE NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.seq = r.op_seq))";

impl Store {
    /// Recomputes every balance and every invariant from the rows as one transaction sees them.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read. What is wrong in it is no error.
    pub async fn verify(&self) -> Result<Verification, Unavailable> {
        self.at_one_moment(|db| Box::pin(audit(db))).await
    }
}

async fn audit(db: &mut Read) -> Result<Verification, Failed> {
    let mut audit = Audit::default();
    for row in db.query(&format!("SELECT {} FROM wallets AS w", rows::WALLET), []).await? {
        let mut cells = Cells::new(&row);
        match rows::wallet(&mut cells) {
            Ok(wallet) => audit.wallet(wallet),
            Err(error) => {
                audit.unreadable(Subject::Wallet(id(&row, 0, WalletId::from_bytes)?), &error);
            }
        }
    }
    for row in db.query("SELECT id FROM api_keys", []).await? {
        audit.api_key(id(&row, 0, ApiKeyId::from_bytes)?);
    }
    let sql =
        format!("SELECT t.id, t.wallet_id, t.amount, {} FROM postings AS t", rows::POSTING_KIND);
    for row in db.query(&sql, []).await? {
        match posting(&row) {
            Ok(posting) => audit.posting(posting),
            Err(error) => {
                audit.unreadable(Subject::Posting(id(&row, 0, PostingId::from_bytes)?), &error);
            }
        }
    }
    operations(db, &mut audit).await?;
    for row in db.query(COUNTERS, []).await? {
        let (api_key, counter, used) = counter(&row).map_err(Failed::Row)?;
        audit.counter(api_key, counter, used);
    }
    let orphans = db.query(ORPHANS, []).await?;
    let orphans = orphans.first().map_or(Ok(0), |row| Cells::new(row).small());
    Ok(audit.finish(orphans.map_err(Failed::Row)?))
}

async fn operations(db: &mut Read, audit: &mut Audit) -> Result<(), Failed> {
    let sql = format!(
        "SELECT o.seq, CASE WHEN {} THEN CAST(1 AS bigint) ELSE 0 END, r.op_seq, r.finished_at, {}
         FROM operations AS o
         LEFT JOIN prices AS p ON p.price_version = o.price_version
         LEFT JOIN results AS r ON r.op_seq = o.seq
         WHERE o.seq > $1 ORDER BY o.seq LIMIT $2",
        db.dialect().is_listed(),
        rows::OPERATION
    );
    let mut after = i64::MIN;
    loop {
        let page = db.query(&sql, [after.into(), PAGE.into()]).await?;
        let Some(last) = page.last() else { return Ok(()) };
        let last = Cells::new(last).int().map_err(Failed::Row)?;
        let mut lines = lines(db, after, last).await?;
        for row in &page {
            let seq = Cells::new(row).int().map_err(Failed::Row)?;
            let lines = lines.remove(&seq).unwrap_or_else(|| Ok(Vec::new()));
            match lines.and_then(|lines| dossier(row, lines)) {
                Ok(dossier) => audit.operation(&dossier),
                Err(error) => {
                    let id = id(row, 4, OperationId::from_bytes)?;
                    audit.unreadable(Subject::Operation(id), &error);
                }
            }
        }
        after = last;
    }
}

/// The transfers of a page by the numbers of their operations.
async fn lines(
    db: &mut Read,
    after: i64,
    last: i64,
) -> Result<BTreeMap<i64, Result<Vec<Line>, BadRow>>, Failed> {
    let mut lines = BTreeMap::new();
    for row in db.query(TRANSFERS, [after.into(), last.into()]).await? {
        let mut cells = Cells::new(&row);
        let seq = cells.int().map_err(Failed::Row)?;
        let of_operation = lines.entry(seq).or_insert_with(|| Ok(Vec::new()));
        match (line(&mut cells), of_operation) {
            (Ok(line), Ok(lines)) => lines.push(line),
            (Err(error), of_operation) => *of_operation = Err(error),
            (Ok(_), Err(_)) => {}
        }
    }
    Ok(lines)
}

fn line(cells: &mut Cells<'_>) -> Result<Line, BadRow> {
    let (generation, kind) = rows::transfer(cells.int()?).ok_or(BadRow::Value(1))?;
    Ok(Line { generation, transfer: Transfer::new(kind, cells.micros()?) })
}

fn dossier(row: &QueryResult, lines: Vec<Line>) -> Result<Dossier, BadRow> {
    let mut cells = Cells::new(row);
    cells.skip(1);
    let is_listed = cells.int()? == 1;
    let result = match cells.opt_int()? {
        Some(_) => Kept::Result { finished_at: cells.opt_timestamp()? },
        None => {
            cells.skip(1);
            Kept::Nothing
        }
    };
    Ok(Dossier { operation: rows::operation(&mut cells)?, lines, result, is_listed })
}

fn counter(row: &QueryResult) -> Result<(ApiKeyId, Counter, i64), BadRow> {
    let mut cells = Cells::new(row);
    let api_key = ApiKeyId::from_bytes(cells.bytes()?);
    let counter = rows::counter(cells.int()?).ok_or(BadRow::Value(1))?;
    Ok((api_key, counter, cells.int()?))
}

fn id<T>(row: &QueryResult, at: usize, read: fn([u8; 16]) -> T) -> Result<T, Failed> {
    let mut cells = Cells::new(row);
    cells.skip(at);
    cells.bytes().map(read).map_err(Failed::Row)
}
