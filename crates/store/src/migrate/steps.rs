//! Migrations: every step of the schema as text, for both databases. [`super`] applies them.
//!
//! A text that was applied anywhere never changes: its digest is in that database, which is refused
//! from then on. What has to be mended is mended by a further step.

use holdfast_domain::Timestamp;

use super::MigrationStatus;
use crate::dialect::Dialect;

/// Migration of the schema from one version to the next, and back, for both databases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    pub(super) version: u32,
    pub(super) name: &'static str,
    /// Texts to this schema and back, in SQLite's words and in PostgreSQL's.
    pub(super) sqlite: [&'static str; 2],
    pub(super) postgres: [&'static str; 2],
    /// Counts what taking it back deletes, as [`Loss`](super::Loss) tells it.
    pub(super) loss: &'static str,
}

pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "ledger",
    sqlite: [
        include_str!("../../migrations/sqlite/0001_ledger.up.sql"),
        include_str!("../../migrations/sqlite/0001_ledger.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0001_ledger.up.sql"),
        include_str!("../../migrations/postgres/0001_ledger.down.sql"),
    ],
    loss: "SELECT (SELECT count(*) FROM wallets), (SELECT count(*) FROM api_keys),
            (SELECT count(*) FROM operations)",
}];

/// Schema that all migrations make together, for tests that look at it without a store.
#[cfg(test)]
pub(crate) fn schema(dialect: Dialect) -> String {
    MIGRATIONS.iter().map(|migration| migration.texts(dialect)[0]).collect::<Vec<_>>().join("\n")
}

impl Migration {
    pub(super) const fn texts(&self, dialect: Dialect) -> [&'static str; 2] {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }

    pub(super) fn digest(&self, dialect: Dialect) -> Vec<u8> {
        // Only of the way there: the way back may be mended later.
        let [up, _down] = self.texts(dialect);
        blake3::hash(up.as_bytes()).as_bytes().to_vec()
    }

    pub(super) fn step(&self, applied_at: Option<Timestamp>) -> MigrationStatus {
        MigrationStatus { version: self.version, name: self.name.to_owned(), applied_at }
    }
}
