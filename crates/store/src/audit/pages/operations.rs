//! Operations with what belongs to them, a page by their numbers: transfers, results, refunds, the
//! API key and the wallet. Both sides of what is compared are rows of one snapshot.
//!
//! Transfers are read in pages of their own, since one operation may have more than memory holds.
//! They are ordered by the operation's number as well, so that one pass over each pairs them. Those
//! that no operation has are counted apart, between the first number of a page and its last: the
//! pages cover all numbers there are.

use std::collections::{BTreeMap, VecDeque};

use holdfast_domain::admin::UseCase;
use holdfast_domain::ledger::Transfer;
use holdfast_domain::operation::OWN_RESULT_FORMAT;
use holdfast_domain::{ApiKeyId, CredentialId, Micros, OperationId, Timestamp, WalletId};
use sea_orm::QueryResult;

use super::{PageBounds, has_row, number, report_gap, wide, wide_sum};
use crate::audit::verify::transfers::{AuditEntry, Transfers};
use crate::audit::verify::{
    AuditOptions, AuditedOperation, Refunds, ResultShape, RetentionBound, StoredResult, Subject,
    Verification, rules,
};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{self, BadRow, Cells};
use crate::schema::{Dialect, blob};

/// Credential of results that a service lays out itself.
const NO_CREDENTIAL: CredentialId = CredentialId::from_u128(0);
/// Operations read at once.
const PAGE: usize = 1_000;
/// Transfers read at once.
const TRANSFERS_PAGE: i64 = 4_000;

const TRANSFERS: &str = "SELECT op_seq, leg, amount, created_at FROM transfers
    WHERE (op_seq, leg) > ($1, $2) AND op_seq <= $3 ORDER BY op_seq, leg LIMIT $4";

/// Notes on costs that are wrong: of no generation, of a row with a cost, more than one, absurd. A note that is
/// awaited may be of an operation that still runs.
const LATE_COSTS: &str = "SELECT
    count(CASE WHEN o.seq IS NULL OR o.generation <> l.generation OR (l.known = 1
        AND o.phase NOT IN ('completed', 'refused', 'abandoned')) THEN 1 END),
    count(CASE WHEN l.known = 1 AND o.provider_cost IS NOT NULL THEN 1 END),
    count(CASE WHEN l.place > 1 THEN 1 END),
    count(CASE WHEN l.cost < 0 OR (l.known = 1) <> (l.cost IS NOT NULL) THEN 1 END)
    FROM (SELECT op_seq, generation, known, cost,
        row_number() OVER (PARTITION BY op_seq, generation, known ORDER BY cost) AS place
        FROM late_costs WHERE op_seq > $1 AND op_seq <= $2) AS l
    LEFT JOIN operations AS o ON o.seq = l.op_seq";

/// Place of the operation's id among the columns of [`operations`].
const ID: usize = 12;

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { options, after, until }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let kept = retention(db, &options).await?;
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let bounds = [after.into(), until.into(), limit.into(), blob(NO_CREDENTIAL.to_bytes())];
    let page = db.query(&operations(db), bounds).await?;
    let last = page.last().filter(|_| page.len() == PAGE).map(number).transpose()?;
    let end = last.unwrap_or(until);
    let mut refunds = refunds(db, after, end).await?;
    let mut transfers =
        Cursor { page: VecDeque::new(), after: (after, i64::MAX), end, is_over: false };
    let mut before = after;
    for row in &page {
        let seq = number(row)?;
        report_gap(db, found, "operations", [before, seq]);
        before = seq;
        found.operations += 1;
        let refunded = refunds.remove(&seq).unwrap_or_default();
        let checked = match dossier(row, refunded) {
            Ok(dossier) => {
                let past = transfers.check(db, seq, &dossier, found).await?;
                past.map(|past_holds| rules::check(&dossier, past_holds, kept))
            }
            Err(error) => Err(error),
        };
        let subject = Subject::Operation(super::id(row, ID, OperationId::from_bytes)?);
        match checked {
            Ok(wrong) => wrong.into_iter().for_each(|sentence| found.report(subject, sentence)),
            Err(error) => found.unreadable(subject, &error),
        }
    }
    // Beyond the end of the part, too: no other page reads there, and operations that were added meanwhile have
    // theirs in this snapshot.
    let beyond = last.unwrap_or(i64::MAX);
    orphans(db, after, beyond, found).await?;
    late_costs(db, [after, beyond], found).await?;
    Ok(last)
}

fn operations(db: &ReadTransaction) -> String {
    let issue = UseCase::ApiKeyIssue.label();
    let of_administration =
        has_row(&format!("audit AS a WHERE a.thing_id = o.api_key_id AND a.use_case = '{issue}'"));
    format!(
        "SELECT o.seq, CASE WHEN {} THEN CAST(1 AS bigint) ELSE 0 END, r.op_seq, r.finished_at,
         c.api_key_id, r.format, CAST(length(r.nonce) AS bigint), CAST(length(r.sealed) AS bigint),
         CASE WHEN r.op_seq IS NULL OR c.id IS NOT NULL THEN 0
              WHEN r.format = {OWN_RESULT_FORMAT} AND r.credential_id = $4 THEN 0
              WHEN {of_administration} THEN CAST(1 AS bigint) ELSE 0 END,
         k.wallet_id, w.currency, o.released, {}
         FROM operations AS o
         LEFT JOIN prices AS p ON p.price_version = o.price_version
         LEFT JOIN results AS r ON r.op_seq = o.seq
         LEFT JOIN credentials AS c ON c.id = r.credential_id
         LEFT JOIN api_keys AS k ON k.id = o.api_key_id
         LEFT JOIN wallets AS w ON w.id = o.wallet_id
         WHERE o.seq > $1 AND o.seq <= $2 ORDER BY o.seq LIMIT $3",
        db.dialect().is_listed(),
        rows::OPERATION
    )
}

async fn retention(
    db: &ReadTransaction,
    options: &AuditOptions,
) -> Result<RetentionBound, ReadError> {
    let now = db.now().await?;
    let rows = db.query("SELECT min(finished_at) FROM results", []).await?;
    let oldest = rows.first().map_or(Ok(None), |row| Cells::new(row).opt_timestamp());
    let oldest = oldest.map_err(ReadError::Row)?;
    let rows = db.query("SELECT max(youngest) FROM results_purged", []).await?;
    let purged = rows.first().map_or(Ok(None), |row| Cells::new(row).opt_timestamp());
    let purged = purged.map_err(ReadError::Row)?;
    let age = i64::try_from(options.retention.as_micros()).unwrap_or(i64::MAX);
    let due = Timestamp::from_micros(now.as_micros().saturating_sub(age));
    Ok(RetentionBound { oldest, purged, due })
}

/// Refunds of the operations with these numbers.
async fn refunds(
    db: &ReadTransaction,
    after: i64,
    end: i64,
) -> Result<BTreeMap<i64, Refunds>, ReadError> {
    let sql = format!(
        "SELECT o.seq, {}, count(CASE WHEN t.wallet_id <> o.wallet_id THEN 1 END)
         FROM operations AS o CROSS JOIN postings AS t
         WHERE o.seq > $1 AND o.seq <= $2 AND t.operation_id = o.id AND t.kind = 'refund'
         GROUP BY o.seq",
        wide_sum("t.amount")
    );
    let mut refunds = BTreeMap::new();
    for row in db.query(&sql, [after.into(), end.into()]).await? {
        let mut cells = Cells::new(&row);
        let mut read = || Ok::<_, BadRow>((cells.int()?, wide(&mut cells)?, cells.int()?));
        let (seq, micros, elsewhere) = read().map_err(ReadError::Row)?;
        refunds.insert(seq, Refunds { micros, elsewhere });
    }
    Ok(refunds)
}

/// Counts what belongs to no operation with such a number.
async fn orphans(
    db: &ReadTransaction,
    after: i64,
    end: i64,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let count = |table: &str| {
        format!(
            "(SELECT count(*) FROM {table} AS t WHERE t.op_seq > $1 AND t.op_seq <= $2
              AND NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.seq = t.op_seq))"
        )
    };
    let [transfers, results, late] = ["transfers", "results", "late_ends"].map(count);
    let mut sql = format!("SELECT {transfers} + {results} + {late}");
    if db.dialect() == Dialect::Postgres {
        sql = format!("{sql} + {}", count("running"));
    }
    let rows = db.query(&sql, [after.into(), end.into()]).await?;
    let orphans = rows.first().map(number).transpose()?.unwrap_or(0);
    if orphans > 0 {
        let rows = "transfers, results or notes of what runs or ended late";
        found.report(Subject::Ledger, format!("{orphans} {rows} belong to no operation"));
    }
    Ok(())
}

/// Reports what is wrong in the notes on costs between these numbers.
async fn late_costs(
    db: &ReadTransaction,
    [after, end]: [i64; 2],
    found: &mut Verification,
) -> Result<(), ReadError> {
    let rows = db.query(LATE_COSTS, [after.into(), end.into()]).await?;
    let mut counts = [0; 4];
    if let Some(row) = rows.first() {
        let mut cells = Cells::new(row);
        for count in &mut counts {
            *count = cells.int().map_err(ReadError::Row)?;
        }
    }
    let [of_nothing, twice, again, absurd] = counts;
    for (count, sentence) in [
        (of_nothing, "late costs belong to no ended generation of an operation"),
        (twice, "late costs belong to operations whose rows have their cost"),
        (again, "generations have more than one late cost"),
        (absurd, "late costs are below zero, or absent where they are known"),
    ] {
        if count > 0 {
            found.report(Subject::Ledger, format!("{count} {sentence}"));
        }
    }
    Ok(())
}

/// The transfers of a page of operations, in their order, a page at a time.
#[derive(Debug)]
struct Cursor {
    page: VecDeque<(i64, Result<AuditEntry, BadRow>)>,
    after: (i64, i64),
    end: i64,
    is_over: bool,
}

impl Cursor {
    /// Checks those of the operation with this number, and passes by those of numbers before it.
    async fn check(
        &mut self,
        db: &ReadTransaction,
        seq: i64,
        dossier: &AuditedOperation,
        found: &mut Verification,
    ) -> Result<Result<i128, BadRow>, ReadError> {
        let mut transfers = Transfers::of(&dossier.operation, found);
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
                // The others are still read, or the next operation would meet them.
                Some((of, Err(error))) if of == seq => bad = Some(error),
                // Transfers of numbers without an operation are passed by: `orphans` counts them.
                Some(_) | None => {}
            }
        }
        let past_holds = transfers.finish();
        Ok(bad.map_or(Ok(past_holds), Err))
    }

    async fn read(&mut self, db: &ReadTransaction) -> Result<(), ReadError> {
        let (seq, leg) = self.after;
        let binds = [seq.into(), leg.into(), self.end.into(), TRANSFERS_PAGE.into()];
        let page = db.query(TRANSFERS, binds).await?;
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

fn dossier(row: &QueryResult, refunds: Refunds) -> Result<AuditedOperation, BadRow> {
    let mut cells = Cells::new(row);
    cells.skip(1);
    let is_listed = cells.int()? == 1;
    let has_result = cells.opt_int()?.is_some();
    let finished_at = cells.opt_timestamp()?;
    let api_key = cells.opt_bytes()?.map(ApiKeyId::from_bytes);
    let format = cells.opt_int()?;
    let lengths = cells.opt_int()?.zip(cells.opt_int()?);
    let is_nobodys = cells.int()? == 1;
    let shape = format.zip(lengths);
    let result = match shape.filter(|_| has_result) {
        Some((format, (nonce, sealed))) => {
            let shape = ResultShape { format, nonce, sealed };
            StoredResult::Result { finished_at, api_key, is_nobodys, shape }
        }
        None => StoredResult::Nothing,
    };
    let key_wallet = cells.opt_bytes()?.map(WalletId::from_bytes);
    let currency = cells.opt_text()?;
    let released = Micros::new(cells.opt_int()?.unwrap_or(0));
    let operation = rows::operation(&mut cells)?;
    Ok(AuditedOperation { operation, released, result, is_listed, key_wallet, currency, refunds })
}
