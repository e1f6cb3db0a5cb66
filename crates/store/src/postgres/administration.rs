//! A command on PostgreSQL: an errand on a connection of its own.

use holdfast_domain::Timestamp;
use holdfast_failpoint::{Step, reach};
use sea_orm::{QueryResult, Statement, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::Postgres;
use super::session::CLOCK;
use crate::errand::reads::{Findings, Read, bound, facts, opening};
use crate::errand::{Errand, OfferError, Verdict};
use crate::rows::{BadRow, Cells};

impl Postgres {
    /// Does a command in one transaction. An error may be of its COMMIT. None: its sums are outdated, and
    /// nothing was written.
    pub(crate) async fn administer(&self, errand: Errand) -> Result<Option<Verdict>, OfferError> {
        let done = self.errands.commit(move |connection, _begun| {
            Box::pin(async move { administer(connection, &errand).await })
        });
        done.await.map_err(|failure| {
            let is_undone = failure.is_undone();
            let cause = Box::new(failure.error);
            if is_undone { OfferError::Unavailable(cause) } else { OfferError::Uncertain(cause) }
        })
    }
}

async fn administer(
    connection: &mut PgConnection,
    errand: &Errand,
) -> Result<Option<Verdict>, sqlx::Error> {
    let mut findings = Findings::at(Timestamp::from_micros(0));
    for read in opening(errand.dialect, &errand.command) {
        take(connection, read, &mut findings).await?;
    }
    for read in bound(errand.dialect, &errand.command, findings.request.as_ref()) {
        take(connection, read, &mut findings).await?;
    }
    if let Some(replayed) = errand.replay(&findings) {
        return Ok(Some(replayed));
    }
    // After the head's lock: the moments of the trail follow its numbers.
    let clock = sqlx::query_scalar(AssertSqlSafe(format!("SELECT {CLOCK}")));
    let now = Timestamp::from_micros(clock.fetch_one(&mut *connection).await?);
    findings.facts.now = now;
    for read in facts(errand.dialect, &errand.command, now) {
        take(connection, read, &mut findings).await?;
    }
    let Some((statements, verdict)) = errand.conclude(&findings) else { return Ok(None) };
    reach(Step::CommandJudged);
    for statement in statements {
        execute(connection, statement).await?;
    }
    reach(Step::CommandWritten);
    Ok(Some(verdict))
}

/// Runs a statement that is written for both databases.
pub(super) async fn execute(
    connection: &mut PgConnection,
    Statement { sql, values, .. }: Statement,
) -> Result<(), sqlx::Error> {
    let values = SqlxValues(values.unwrap_or_else(|| Values(Vec::new())));
    sqlx::query_with(AssertSqlSafe(sql), values).execute(connection).await.map(drop)
}

/// Rows of a statement that is written for both databases.
pub(super) async fn rows_of(
    connection: &mut PgConnection,
    Statement { sql, values, .. }: Statement,
) -> Result<Vec<QueryResult>, sqlx::Error> {
    let values = SqlxValues(values.unwrap_or_else(|| Values(Vec::new())));
    let rows = sqlx::query_with(AssertSqlSafe(sql), values).fetch_all(connection).await?;
    Ok(rows.into_iter().map(QueryResult::from).collect())
}

async fn take(
    connection: &mut PgConnection,
    Read { statement, take }: Read,
    findings: &mut Findings,
) -> Result<(), sqlx::Error> {
    for row in rows_of(connection, statement).await? {
        let read: Result<(), BadRow> = take(findings, &mut Cells::new(&row));
        read.map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    }
    Ok(())
}
