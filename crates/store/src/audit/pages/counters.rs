//! Counters of API keys, compared with sums over all operations of those keys.
//!
//! There is no index by API key that every request would pay for, so a page of keys is one pass over all
//! operations: the database sums `OPERATIONS` of them at a time, which bounds what it sorts, and the sums are added
//! up here. A page has as many keys as have `WINDOWS_MAX` counters together, which is most often all of them: more
//! keys cost more passes, and never more memory.
//!
//! All of a page is read in one snapshot, since a counter moves with its operation.

use std::ops::RangeInclusive;

use holdfast_domain::ApiKeyId;
use holdfast_domain::limits::Counter;
use sea_orm::{QueryResult, Value};

use super::{PageBounds, id, number, report_gap, tracked, wide, wide_sum};
use crate::audit::verify::counters::{CountedEnding, ExpectedCounters, OperationSums};
use crate::audit::verify::{Subject, Verification};
use crate::batch::judge::Window;
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{self, BadRow, Cells};

/// Counters of a page of keys, but for those of its last key.
const WINDOWS_MAX: i64 = 50_000;
/// Counters that are read at once, but for those of the last key.
const WINDOWS_PAGE: i64 = 5_000;
/// API keys of a page.
const KEYS: usize = 10_000;
/// Operations that are summed at once.
const OPERATIONS: i64 = 20_000;

/// API key of a page.
struct AuditedKey {
    seq: i64,
    id: ApiKeyId,
    has_wallet: bool,
    counters: i64,
}

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { after, until, .. }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let mut expected = ExpectedCounters::new(db.now().await?);
    let keys = keys(db, after, until, &is_compared(&expected)).await?;
    let is_last = keys.len() < KEYS;
    let (keys, rest) = keys.split_at(split(&keys, WINDOWS_MAX));
    let end = keys.last().map_or(after, |key| key.seq);
    let mut before = after;
    for AuditedKey { seq, id, has_wallet, .. } in keys {
        report_gap(db, found, "API keys", [before, *seq]);
        before = *seq;
        if !has_wallet {
            found.report(Subject::ApiKey(*id), "its wallet does not exist");
        }
    }
    let mut compared = after;
    for some in keys.chunks(tracked::PAGE) {
        let last = some.last().map_or(compared, |key| key.seq);
        tracked::check_api_keys(db, [compared, last], found).await?;
        compared = last;
    }
    if !keys.is_empty() {
        sum(db, &mut expected, after..=end).await?;
    }
    let mut counted = keys;
    while !counted.is_empty() {
        let (page, later) = counted.split_at(split(counted, WINDOWS_PAGE));
        let last = page.last().map_or(before, |key| key.seq);
        let first = page.first().map_or(before, |key| key.seq);
        compare(db, &mut expected, first..=last, found).await?;
        counted = later;
    }
    for (api_key, sentence) in expected.missing_counters() {
        found.report(Subject::ApiKey(api_key), sentence);
    }
    if is_last && rest.is_empty() {
        orphans(db, found).await?;
        return Ok(None);
    }
    Ok(Some(end))
}

/// Number of keys, at least one, until which their counters come to so many.
fn split(keys: &[AuditedKey], counters: i64) -> usize {
    let mut sum: i64 = 0;
    let fitting = keys.iter().take_while(|key| {
        // Compared before its counters are added: one key with more than all of them has a page
        // too, or the audit would never get past it.
        let fits = sum < counters;
        sum = sum.saturating_add(key.counters);
        fits
    });
    fitting.count()
}

async fn keys(
    db: &ReadTransaction,
    after: i64,
    until: i64,
    is_compared: &str,
) -> Result<Vec<AuditedKey>, ReadError> {
    let sql = format!(
        "SELECT k.seq, k.id, w.seq, (SELECT count(*) FROM counters AS c WHERE c.api_key_id = k.id
         AND {is_compared}) FROM api_keys AS k LEFT JOIN wallets AS w ON w.id = k.wallet_id
         WHERE k.seq > $1 AND k.seq <= $2 ORDER BY k.seq LIMIT $3"
    );
    let limit = i64::try_from(KEYS).unwrap_or(i64::MAX);
    let key = |row: &QueryResult| {
        let mut cells = Cells::new(row);
        cells.skip(2);
        let mut read = || Ok::<_, BadRow>((cells.opt_int()?.is_some(), cells.int()?));
        let (has_wallet, counters) = read().map_err(ReadError::Row)?;
        let (seq, id) = (number(row)?, id(row, 1, ApiKeyId::from_bytes)?);
        Ok::<_, ReadError>(AuditedKey { seq, id, has_wallet, counters })
    };
    db.query(&sql, [after.into(), until.into(), limit.into()]).await?.iter().map(key).collect()
}

/// Condition: operations determine the counter `c`.
fn is_compared(expected: &ExpectedCounters) -> String {
    let is_one = |counter: Counter| {
        let is_it = format!("c.counter = {}", rows::counter_code(counter));
        match expected.since(counter) {
            Some(since) => format!("{is_it} AND c.window_start >= {}", since.as_micros()),
            None => is_it,
        }
    };
    format!("({})", Counter::ALL.map(is_one).join(" OR "))
}

/// Sums over all operations of the keys with these numbers but for the first.
async fn sum(
    db: &ReadTransaction,
    expected: &mut ExpectedCounters,
    keys: RangeInclusive<i64>,
) -> Result<(), ReadError> {
    let bounds = db.query("SELECT min(seq), max(seq) FROM operations", []).await?;
    let bound = |row: &QueryResult| {
        let mut cells = Cells::new(row);
        Ok::<_, BadRow>(cells.opt_int()?.zip(cells.opt_int()?))
    };
    let bounds = bounds.first().map_or(Ok(None), bound).map_err(ReadError::Row)?;
    let Some((first, last)) = bounds else { return Ok(()) };
    let texts = Texts::of(expected);
    let mut after = first.saturating_sub(1);
    while after < last {
        let end = after.saturating_add(OPERATIONS);
        let binds: [Value; 4] = [after, end, *keys.start(), *keys.end()].map(Into::into);
        for row in db.query(&texts.sums, binds.clone()).await? {
            // A row that cannot be read is reported with its operation.
            if let Ok(Some(sums)) = sums(&row) {
                expected.operations(&sums);
            }
        }
        for row in db.query(&texts.reopened, binds.clone()).await? {
            let mut cells = Cells::new(&row);
            let mut read = || Ok::<_, BadRow>((cells.bytes()?, cells.timestamp()?, cells.int()?));
            let (api_key, minute, count) = read().map_err(ReadError::Row)?;
            expected.reopened(ApiKeyId::from_bytes(api_key), minute, i128::from(count));
        }
        for row in db.query(&texts.untold, binds).await? {
            expected.untold(id(&row, 0, ApiKeyId::from_bytes)?);
        }
        after = end;
    }
    Ok(())
}

/// Statements over the operations after `$1` up to `$2`, of the keys after `$3` up to `$4`.
struct Texts {
    sums: String,
    /// Generations between the first and the last, by the minutes of their admission.
    reopened: String,
    /// API keys of which such a generation left no transfer, since it held no amount.
    untold: String,
}

impl Texts {
    fn of(expected: &ExpectedCounters) -> Self {
        let (recent, since) =
            (expected.recent().as_micros(), expected.reopened_since().as_micros());
        let tables = "FROM operations AS o CROSS JOIN api_keys AS k";
        let page =
            "o.seq > $1 AND o.seq <= $2 AND k.id = o.api_key_id AND k.seq > $3 AND k.seq <= $4";
        let [hold, charge, reserved, used] =
            ["o.hold", "coalesce(o.charge, 0)", "o.reserved_tokens", rows::COUNTED_TOKENS]
                .map(wide_sum);
        let sums = format!(
            "SELECT o.api_key_id, CASE WHEN o.admitted_at >= {recent}
                THEN o.admitted_at - o.admitted_at % 60000000
                ELSE o.admitted_at - o.admitted_at % 86400000000 END, o.reserved_counters, o.phase,
             CASE WHEN o.generation = 1 THEN CAST(1 AS bigint) ELSE 0 END, count(*),
             {hold}, {charge}, {reserved}, {used}
             {tables} WHERE {page} AND (o.reserved_counters <> 0
                OR EXISTS (SELECT 1 FROM counters AS c WHERE c.api_key_id = k.id)) GROUP BY 1, 2, 3, 4, 5"
        );
        let reopened = format!("{page} AND o.generation > 2 AND o.admitted_at >= {since}");
        let between = "t.op_seq = o.seq AND t.leg >= 16 AND t.leg < o.generation * 8
            AND (t.leg & 7) = 0";
        let untold = format!(
            "SELECT DISTINCT o.api_key_id {tables} WHERE {reopened}
             AND (SELECT count(*) FROM transfers AS t WHERE {between}) < o.generation - 2"
        );
        let reopened = format!(
            "SELECT m.api_key_id, m.minute, count(*) FROM (
                SELECT o.api_key_id, t.created_at - t.created_at % 60000000 AS minute
                {tables} CROSS JOIN transfers AS t
                WHERE {reopened} AND {between} AND t.created_at >= {since}) AS m
             GROUP BY m.api_key_id, m.minute"
        );
        Self { sums, reopened, untold }
    }
}

fn sums(row: &QueryResult) -> Result<Option<OperationSums>, BadRow> {
    let mut cells = Cells::new(row);
    let api_key = ApiKeyId::from_bytes(cells.bytes()?);
    let admitted = cells.timestamp()?;
    let counters = cells.small()?;
    let phase = cells.text()?;
    let Some(end) = CountedEnding::of(&phase, counters, cells.int()? == 1) else { return Ok(None) };
    let count = i128::from(cells.int()?);
    Ok(Some(OperationSums {
        api_key,
        admitted,
        counters,
        end,
        count,
        hold: wide(&mut cells)?,
        charge: wide(&mut cells)?,
        reserved_tokens: wide(&mut cells)?,
        used_tokens: wide(&mut cells)?,
    }))
}

/// Compares the counters of the keys with these numbers.
async fn compare(
    db: &ReadTransaction,
    expected: &mut ExpectedCounters,
    keys: RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let sql = format!(
        "SELECT c.api_key_id, c.counter, c.window_start, c.used
         FROM api_keys AS k CROSS JOIN counters AS c
         WHERE k.seq >= $1 AND k.seq <= $2 AND c.api_key_id = k.id AND {}",
        is_compared(expected)
    );
    for row in db.query(&sql, [(*keys.start()).into(), (*keys.end()).into()]).await? {
        let (window, used) = counter(&row).map_err(ReadError::Row)?;
        let (api_key, ..) = window;
        if let Some(sentence) = expected.compare(window, used) {
            found.report(Subject::ApiKey(api_key), sentence);
        }
    }
    Ok(())
}

fn counter(row: &QueryResult) -> Result<(Window, i64), BadRow> {
    let mut cells = Cells::new(row);
    let api_key = ApiKeyId::from_bytes(cells.bytes()?);
    let counter: Counter = rows::counter(cells.int()?).ok_or(BadRow::Value(1))?;
    let window = (api_key, counter, cells.timestamp()?);
    Ok((window, cells.int()?))
}

/// Counts counters that belong to no API key, or that have no known kind.
async fn orphans(db: &ReadTransaction, found: &mut Verification) -> Result<(), ReadError> {
    let of_nobody = |table: &str| {
        format!("NOT EXISTS (SELECT 1 FROM api_keys AS k WHERE k.id = {table}.api_key_id)")
    };
    let lengths = " OR length(verifier) <> 32 OR length(server_secret) <> 8";
    let codes = Counter::ALL.map(|counter| rows::counter_code(counter).to_string()).join(", ");
    let unknown = format!(" OR counters.counter NOT IN ({codes})");
    for (table, also) in [("counters", unknown.as_str()), ("credentials", lengths)] {
        let sql = format!("SELECT count(*) FROM {table} WHERE {}{also}", of_nobody(table));
        let rows = db.query(&sql, []).await?;
        let count = rows.first().map(number).transpose()?.unwrap_or(0);
        if count > 0 {
            let sentence = format!("{count} {table} belong to no API key, or can be none");
            found.report(Subject::Ledger, sentence);
        }
    }
    Ok(())
}
