//! Everything that is SQLite's: connections and their settings, the writer and its scripts, the
//! ports' statements.

mod batch;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod connect;
mod journal;
mod keys;
mod nodes;
mod pack;
#[cfg(test)]
mod plans;
mod prices;
mod reading;
mod records;
mod report;
mod script;
mod statement;
mod usage;
mod verify;
mod wallets;
pub(crate) mod writer;

use sea_orm::{DbBackend, Statement, Value};

/// A statement for the readers.
pub(crate) fn statement<const N: usize>(sql: &str, values: [Value; N]) -> Statement {
    Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)
}

/// An id as a bind.
pub(crate) fn blob<const N: usize>(id: [u8; N]) -> Value {
    id.to_vec().into()
}
