//! A command on SQLite: a write task of the writer, between two batches.

use holdfast_domain::Timestamp;
use holdfast_failpoint::{Step, reach};
use rusqlite::Transaction;
use rusqlite::types::Value as Cell;
use sea_orm::{Statement, Value};

use super::Sqlite;
use super::write_task::WriteError;
use crate::errand::reads::{Findings, Read, bound, facts, opening};
use crate::errand::{Errand, OfferError, Verdict};
use crate::rows::Cells;

impl Sqlite {
    /// Does a command in one transaction. An error may be of its COMMIT. None: its sums are outdated, and
    /// nothing was written.
    pub(crate) async fn administer(&self, errand: Errand) -> Result<Option<Verdict>, OfferError> {
        let done = self.write(move |transaction, now| administer(transaction, now, &errand)).await;
        done.map_err(|error| match error {
            // The task was not begun, or a statement of it was refused.
            WriteError::NotTried | WriteError::File(_) | WriteError::Row(_) => {
                OfferError::Unavailable(Box::new(error))
            }
            WriteError::Sql(_) => OfferError::Uncertain(Box::new(error)),
        })
    }
}

fn administer(
    transaction: &Transaction<'_>,
    now: Timestamp,
    errand: &Errand,
) -> Result<Option<Verdict>, WriteError> {
    let mut findings = Findings::at(now);
    for read in opening(errand.dialect, &errand.command) {
        take(transaction, &read, &mut findings)?;
    }
    for read in bound(errand.dialect, &errand.command, findings.request.as_ref()) {
        take(transaction, &read, &mut findings)?;
    }
    if let Some(replayed) = errand.replay(&findings) {
        return Ok(Some(replayed));
    }
    for read in facts(errand.dialect, &errand.command, now) {
        take(transaction, &read, &mut findings)?;
    }
    let Some((statements, verdict)) = errand.conclude(&findings) else { return Ok(None) };
    reach(Step::CommandJudged);
    for statement in statements {
        execute(transaction, &statement)?;
    }
    reach(Step::CommandWritten);
    Ok(Some(verdict))
}

/// Runs a statement that is written for both databases.
pub(super) fn execute(
    transaction: &Transaction<'_>,
    statement: &Statement,
) -> Result<(), WriteError> {
    let mut prepared = transaction.prepare_cached(&statement.sql)?;
    bind(&mut prepared, statement)?;
    prepared.raw_execute()?;
    Ok(())
}

fn take(
    transaction: &Transaction<'_>,
    read: &Read,
    findings: &mut Findings,
) -> Result<(), WriteError> {
    let mut prepared = transaction.prepare_cached(&read.statement.sql)?;
    bind(&mut prepared, &read.statement)?;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next()? {
        (read.take)(findings, &mut Cells::written(row))?;
    }
    Ok(())
}

/// Binds `$1`, `$2` and so on by their names: their places are those of their first use.
pub(super) fn bind(
    prepared: &mut rusqlite::CachedStatement<'_>,
    statement: &Statement,
) -> Result<(), WriteError> {
    let values = statement.values.iter().flat_map(|values| &values.0);
    for (at, value) in values.enumerate() {
        let name = format!("${}", at.saturating_add(1));
        let Some(place) = prepared.parameter_index(&name)? else {
            return Err(rusqlite::Error::InvalidParameterName(name).into());
        };
        prepared.raw_bind_parameter(place, cell(value)?)?;
    }
    Ok(())
}

/// A bind of SeaORM's as SQLite's own: the writer's statements have these kinds and no other.
fn cell(value: &Value) -> Result<Cell, WriteError> {
    Ok(if let Value::BigInt(number) = value {
        number.map_or(Cell::Null, Cell::Integer)
    } else if let Value::String(text) = value {
        text.clone().map_or(Cell::Null, Cell::Text)
    } else if let Value::Bytes(bytes) = value {
        bytes.clone().map_or(Cell::Null, Cell::Blob)
    } else {
        let error = "a bind that is no integer, text or blob".into();
        return Err(rusqlite::Error::ToSqlConversionFailure(error).into());
    })
}
