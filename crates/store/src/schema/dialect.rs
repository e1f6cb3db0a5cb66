//! The two dialects: the parts of shared statements that differ from database to database.

use sea_orm::{DbBackend, Statement, Value};

/// The SQL dialect of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Condition of a server: a commit of this session waits for a standby. The setting is empty without one that is
    /// synchronous, and each statement sees its last change.
    pub(crate) const IS_REPLICATED: &str =
        "btrim(current_setting('synchronous_standby_names')) <> ''";

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

    /// One if a commit waits for another machine, else zero.
    pub(crate) fn replicated(self) -> String {
        match self {
            Self::Sqlite => "0".to_owned(),
            Self::Postgres => format!("CAST({} AS integer)::bigint", Self::IS_REPLICATED),
        }
    }

    /// Condition: the operation `o` is leased or recorded, spelled so that finished operations are
    /// not read.
    pub(crate) fn is_running(self, o: &str) -> String {
        // Spelled as in the partial index, and never with binds, or that would not be used.
        let is_running = format!("{o}.phase IN ('leased', 'recorded')");
        match self {
            Self::Sqlite => is_running,
            Self::Postgres => format!("{o}.seq IN (SELECT op_seq FROM running) AND {is_running}"),
        }
    }

    /// Condition: `o` is in the index of [`Self::is_running`], whatever its phase.
    pub(crate) const fn is_listed(self) -> &'static str {
        match self {
            Self::Sqlite => "o.phase IN ('leased', 'recorded')",
            Self::Postgres => "EXISTS (SELECT 1 FROM running AS r WHERE r.op_seq = o.seq)",
        }
    }

    /// Lock of the rows that a statement reads, until its transaction ends. A transaction of SQLite
    /// that writes has the whole file.
    pub(crate) const fn row_lock(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR NO KEY UPDATE",
        }
    }

    /// Lock that only the additions of statistics take, until their transaction ends: rows of a ring that do not exist
    /// yet cannot be locked. A transaction of SQLite that writes has the whole file.
    pub(crate) fn statistics_lock(self) -> Option<Statement> {
        // The number is the text "refusals": no other lock of this database has it.
        let sql = "SELECT pg_advisory_xact_lock(8243107347604532339)";
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(self.statement(sql, [])),
        }
    }

    /// Text of a column with the capital letters of ASCII in lower case, and no other character changed: the same
    /// in both databases, whatever the locale of the server.
    pub(crate) fn ascii_lower(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("lower({column})"),
            Self::Postgres => format!("lower({column} COLLATE \"C\")"),
        }
    }

    /// Text of a moment as people read it, to the second.
    pub(crate) fn rfc3339(self, micros: &str) -> String {
        match self {
            Self::Sqlite => {
                format!("strftime('%Y-%m-%dT%H:%M:%SZ', {micros} / 1000000, 'unixepoch')")
            }
            Self::Postgres => format!(
                "to_char(to_timestamp({micros} / 1000000) AT TIME ZONE 'UTC', \
                 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
            ),
        }
    }

    /// The route that an operation tried last, as its attempts name it; empty if it tried none.
    pub(crate) const fn last_route(self) -> &'static str {
        match self {
            Self::Sqlite => "coalesce(json_extract(operations.attempts, '$[#-1][0]'), '')",
            // The server has no character zero, and refuses a text that spells it: it is taken out, and with it the
            // escape that a backslash before it could form.
            Self::Postgres => {
                "coalesce(CASE WHEN strpos(operations.attempts, chr(92) || 'u0000') = 0
                 THEN operations.attempts::json -> -1 ->> 0
                 ELSE replace(replace(operations.attempts, chr(92) || chr(92), '/'),
                      chr(92) || 'u0000', '')::json -> -1 ->> 0 END, '')"
            }
        }
    }

    /// A statement. Its binds are `$1` and so on.
    pub(crate) fn statement<const N: usize>(self, sql: &str, binds: [Value; N]) -> Statement {
        Statement::from_sql_and_values(self.backend(), sql, binds)
    }

    /// The name that SeaORM has for it.
    pub(crate) const fn backend(self) -> DbBackend {
        match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        }
    }
}

/// An id as a bind.
pub(crate) fn blob<const N: usize>(id: [u8; N]) -> Value {
    id.to_vec().into()
}
