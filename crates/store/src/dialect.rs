//! What the statements that both databases understand have to be told of the one that they are for.

use sea_orm::{AccessMode, DbBackend, IsolationLevel, Statement, TransactionOptions, Value};

use crate::{postgres, sqlite};

/// What a database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Microseconds since the epoch by the database's clock, as it reads while the statement runs.
    pub(crate) const fn clock(self) -> &'static str {
        match self {
            Self::Sqlite => sqlite::connect::CLOCK,
            Self::Postgres => postgres::connect::CLOCK,
        }
    }

    /// A statement for the readers. Its binds are `$1` and so on.
    pub(crate) fn statement<const N: usize>(self, sql: &str, values: [Value; N]) -> Statement {
        let backend = match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        };
        Statement::from_sql_and_values(backend, sql, values)
    }

    /// How a transaction begins whose reads all see one moment.
    pub(crate) fn one_moment(self) -> TransactionOptions {
        match self {
            // A transaction of SQLite sees what its first read saw.
            Self::Sqlite => TransactionOptions::default(),
            Self::Postgres => TransactionOptions {
                isolation_level: Some(IsolationLevel::RepeatableRead),
                access_mode: Some(AccessMode::ReadOnly),
                ..TransactionOptions::default()
            },
        }
    }
}

/// An id as a bind.
pub(crate) fn blob<const N: usize>(id: [u8; N]) -> Value {
    id.to_vec().into()
}
