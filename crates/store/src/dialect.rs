//! The two dialects: the parts of shared statements that differ from database to database.

use sea_orm::{DbBackend, Statement, Value};

/// The SQL dialect of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Microseconds since the epoch by the database's clock, as it reads while the statement runs.
    pub(crate) const fn clock(self) -> &'static str {
        match self {
            // It counts milliseconds.
            Self::Sqlite => "CAST(round(unixepoch('subsec') * 1000.0) AS INTEGER) * 1000",
            // Read as the expression is evaluated: after the rows that are seen were committed, and
            // after the locks that were waited for.
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
        }
    }

    /// Condition: `o` is leased or recorded, spelled so that finished operations are not read.
    pub(crate) const fn is_running(self) -> &'static str {
        match self {
            // Spelled as in the partial index, or that would not be used.
            Self::Sqlite => "o.phase IN ('leased', 'recorded')",
            Self::Postgres => {
                "o.seq IN (SELECT op_seq FROM running) AND o.phase IN ('leased', 'recorded')"
            }
        }
    }

    /// Condition: `o` is where [`Self::is_running`] looks, whatever its phase says.
    pub(crate) const fn is_listed(self) -> &'static str {
        match self {
            Self::Sqlite => "o.phase IN ('leased', 'recorded')",
            Self::Postgres => "EXISTS (SELECT 1 FROM running AS r WHERE r.op_seq = o.seq)",
        }
    }

    /// A statement. Its binds are `$1` and so on.
    pub(crate) fn statement<const N: usize>(self, sql: &str, binds: [Bind; N]) -> Statement {
        let backend = match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        };
        Statement::from_sql_and_values(backend, sql, binds.map(Value::from))
    }
}

/// An argument of a statement.
#[derive(Clone)]
pub(crate) enum Bind {
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Bind {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<&str> for Bind {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for Bind {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl From<Bind> for Value {
    fn from(bind: Bind) -> Self {
        match bind {
            Bind::Int(int) => int.into(),
            Bind::Text(text) => text.into(),
            Bind::Blob(bytes) => bytes.into(),
        }
    }
}

/// An id as a bind.
pub(crate) fn blob<const N: usize>(id: [u8; N]) -> Bind {
    Bind::Blob(id.to_vec())
}
