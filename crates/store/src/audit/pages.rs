//! Reads the rows of an audit, page by page, each in a read transaction of its own: a ledger has more rows than
//! memory holds, and a snapshot that stays open for all of them would keep the log of SQLite growing, and dead rows
//! of PostgreSQL alive.
//!
//! ```text
//! operations  1,000 rows with their transfers, results and refunds; rows leave the database
//! postings    1,000 rows
//! wallets     500 rows, and the sums of all that moved them; sums leave the database
//! API keys    so many that they have 50,000 counters; sums over all operations, 20,000 at a time,
//!             and the rows of the audit log, of 200 keys at a time
//! admin keys, people, webhooks
//!             200 rows, and the rows of the audit log about them
//! trail       1,000 rows
//! roots       one root, and the rows that it is of
//! ```
//!
//! [`PARTS`] lists the parts: a new part is a line there, with a function that checks a page of it. The next page
//! must need no result of it: all that leads on is a number.
//!
//! A wallet, posting or operation that cannot be read is a mismatch, not an error.

mod counters;
mod operations;
mod people;
mod postings;
mod roots;
mod tracked;
mod trail;
mod trail_record;
mod wallets;

use std::time::Duration;

use futures_util::future::BoxFuture;
use holdfast_domain::ports::Unavailable;
use sea_orm::QueryResult;

use crate::audit::verify::{
    AuditOptions, AuditPage, AuditPosition, Progress, Subject, Verification,
};
use crate::options::AUDIT_STATEMENT;
use crate::reading::{ReadError, ReadTransaction, from_row, usage};
use crate::rows::restore::LAST;
use crate::rows::{BadRow, Cells};
use crate::schema::Dialect;
use crate::store::Store;

/// The parts of an audit, in their order.
const PARTS: [Part; 10] = [
    Part {
        name: "operations",
        table: "operations",
        check: |db, page, found| Box::pin(operations::check(db, page, found)),
    },
    Part {
        name: "postings",
        table: "postings",
        check: |db, page, found| Box::pin(postings::check(db, page, found)),
    },
    Part {
        name: "wallets",
        table: "wallets",
        check: |db, page, found| Box::pin(wallets::check(db, page, found)),
    },
    Part {
        name: "API keys",
        table: "api_keys",
        check: |db, page, found| Box::pin(counters::check(db, page, found)),
    },
    Part {
        name: "admin keys",
        table: "admin_keys",
        check: |db, page, found| Box::pin(tracked::check_admin_keys(db, page, found)),
    },
    Part {
        name: "people",
        table: "people",
        check: |db, page, found| Box::pin(people::check(db, page, found)),
    },
    Part {
        name: "webhooks",
        table: "webhooks",
        check: |db, page, found| Box::pin(tracked::check_webhooks(db, page, found)),
    },
    Part {
        name: "trail",
        table: "audit",
        check: |db, page, found| Box::pin(trail::check(db, page, found)),
    },
    Part {
        name: "roots",
        table: "ledger_roots",
        check: |db, page, found| Box::pin(roots::check(db, page, found)),
    },
    // One page: sums of hours against sums of rows, and the window of a restore, all of one moment.
    Part {
        name: "usage",
        table: "operations",
        check: |db, _page, found| {
            Box::pin(async {
                note_window(db, found).await?;
                usage_hours(db, found).await
            })
        },
    },
];

/// Part of an audit: rows of a table, in the order of their numbers.
struct Part {
    name: &'static str,
    /// Table whose last number is the end of the part.
    table: &'static str,
    check: PageCheck,
}

/// Check of one page: the number of its last row, or none if it was the last page.
type PageCheck = for<'t> fn(
    &'t ReadTransaction,
    PageBounds,
    &'t mut Verification,
) -> BoxFuture<'t, Result<Option<i64>, ReadError>>;

/// Rows that a page may read.
#[derive(Debug, Clone)]
struct PageBounds {
    options: AuditOptions,
    after: i64,
    until: i64,
}

/// Position in a part that there is not: another version of the program wrote it.
#[derive(Debug, thiserror::Error)]
#[error("an audit has no part of this name")]
struct UnknownPart;

impl Store {
    /// Recomputes every balance and every invariant from the rows. A result that is gone before older ones is a
    /// mismatch, however long results are kept.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read. A mismatch in it is not an error.
    pub async fn verify(&self) -> Result<Verification, Unavailable> {
        self.verify_by(AuditOptions::keeping(Duration::MAX), |_progress| {}).await
    }

    /// The same under these terms. Its progress is reported after each page.
    ///
    /// # Errors
    ///
    /// As [`Self::verify`].
    pub async fn verify_by(
        &self,
        options: AuditOptions,
        mut on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Verification, Unavailable> {
        let (mut found, mut position) = (Verification::default(), None);
        loop {
            let page = self.verify_page(options.clone(), position).await?;
            found.add(page.found);
            on_progress(page.progress);
            position = match page.next {
                Some(next) => Some(next),
                None => return Ok(found),
            };
        }
    }

    /// Checks the page at a position, or the first one.
    ///
    /// # Errors
    ///
    /// As [`Self::verify`].
    pub async fn verify_page(
        &self,
        options: AuditOptions,
        position: Option<AuditPosition>,
    ) -> Result<AuditPage, Unavailable> {
        self.read_through(
            |pools| &pools.audits,
            AUDIT_STATEMENT,
            move |db| Box::pin(page(db, options, position)),
        )
        .await
    }
}

async fn page(
    db: &ReadTransaction,
    options: AuditOptions,
    position: Option<AuditPosition>,
) -> Result<AuditPage, ReadError> {
    let mut parts = PARTS.iter();
    let part = match &position {
        Some(position) => parts.find(|part| *part.name == *position.part),
        None => parts.next(),
    };
    let part = part.ok_or_else(|| crate::reading::read(UnknownPart))?;
    let AuditPosition { after, until, .. } = match position {
        Some(position) => position,
        None => begin(db, part).await?,
    };
    let mut found = Verification::default();
    let after = (part.check)(db, PageBounds { options, after, until }, &mut found).await?;
    let next = match (after, parts.next()) {
        (Some(after), _) => Some(AuditPosition { part: part.name.into(), after, until }),
        (None, Some(next)) => Some(begin(db, next).await?),
        (None, None) => None,
    };
    let number = |number: i64| u64::try_from(number).unwrap_or(0);
    let done = number(after.unwrap_or(until));
    Ok(AuditPage { found, progress: Progress { part: part.name, done, of: number(until) }, next })
}

/// Notes the window of a restore that is open: an operator who verifies a restored ledger finds it there.
async fn note_window(db: &ReadTransaction, found: &mut Verification) -> Result<(), ReadError> {
    let dialect = db.dialect();
    let sql = format!(
        "SELECT {} FROM ({LAST}) AS r WHERE r.unknown_until > {}",
        dialect.rfc3339("r.unknown_until"),
        dialect.clock()
    );
    for row in db.query(&sql, []).await? {
        let until = Cells::new(&row).text().map_err(ReadError::Row)?;
        let sentence = format!("it was restored: unknown request keys are refused until {until}");
        found.note(Subject::Ledger, sentence);
    }
    Ok(())
}

/// Compares the sums that reports read with the rows that they are of.
async fn usage_hours(
    db: &ReadTransaction,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    for sentence in usage::mismatches(db).await? {
        found.report(Subject::Ledger, sentence);
    }
    Ok(None)
}

/// Position before the first row of a part.
async fn begin(db: &ReadTransaction, part: &Part) -> Result<AuditPosition, ReadError> {
    let rows = db.query(&format!("SELECT max(seq) FROM {}", part.table), []).await?;
    let last = rows.first().map_or(Ok(None), |row| Cells::new(row).opt_int());
    // The end is fixed as the part begins: rows that are added meanwhile are the next audit's, or
    // this one would follow a busy ledger without end.
    let until = last.map_err(ReadError::Row)?.unwrap_or(0);
    Ok(AuditPosition { part: part.name.into(), after: i64::MIN, until })
}

/// Reports the numbers between two rows of a file: SQLite gives each row the next one, and these are
/// never deleted. Sequences of a server have gaps.
fn report_gap(db: &ReadTransaction, found: &mut Verification, table: &str, [after, seq]: [i64; 2]) {
    let next = after.max(0).saturating_add(1);
    if db.dialect() == Dialect::Sqlite && seq > next {
        found.missing(table, next, seq.saturating_sub(1));
    }
}

/// Condition: there is such a row. No EXISTS, of which PostgreSQL may make a table of its own: it then reads all of
/// the audit log for each page, although an index leads to the few rows of interest.
fn has_row(of: &str) -> String {
    format!("(SELECT 1 FROM {of} LIMIT 1) IS NOT NULL")
}

/// Text of a sum in two halves, which no number of rows overflows: see [`wide`].
fn wide_sum(amount: &str) -> String {
    format!(
        "CAST(coalesce(sum(({amount}) >> 32), 0) AS bigint), \
         CAST(coalesce(sum(({amount}) & 4294967295), 0) AS bigint)"
    )
}

/// Reads a [`wide_sum`].
fn wide(cells: &mut Cells<'_>) -> Result<i128, BadRow> {
    cells.wide()
}

/// Reads an id that each of our rows has; without one, the row is not ours.
fn id<T>(row: &QueryResult, at: usize, read: fn([u8; 16]) -> T) -> Result<T, ReadError> {
    let mut cells = Cells::new(row);
    cells.skip(at);
    cells.bytes().map(read).map_err(ReadError::Row)
}

/// Reads the number in the first column.
fn number(row: &QueryResult) -> Result<i64, ReadError> {
    from_row(row).map_err(ReadError::Row)
}
