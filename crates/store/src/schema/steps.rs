//! Migrations: every step of the schema as text, for both databases. [`super`] applies them.
//!
//! A text that was applied to any database never changes: its digest is in that database, which is refused from
//! then on. A mistake in one is mended by a further step.
//!
//! Each step lists the tables whose rows its reversal would delete, with their nouns, because an operator confirms
//! that loss before it happens.

use holdfast_domain::Timestamp;

use super::loss::LostTable;
use crate::schema::Dialect;

/// A migration and whether the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Number of the migration, from one on: the order in which they are applied.
    pub version: u32,
    /// Name of the migration, as in its file name.
    pub name: String,
    /// Moment at which it was applied, by the database's clock; none if it was not.
    pub applied_at: Option<Timestamp>,
}

/// Migration of the schema from one version to the next, and back, for both databases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) version: u32,
    pub(crate) name: &'static str,
    /// Texts to this schema and back, in SQLite's words and in PostgreSQL's.
    pub(crate) texts: [[&'static str; 2]; 2],
    /// Tables whose rows taking it back deletes, as far as people would miss them.
    pub(crate) loss: &'static [LostTable],
}

/// Texts of the files of a migration: `files!("sqlite/0003_jobs")` is those of `0003_jobs.up.sql` and
/// `0003_jobs.down.sql` in the folder `migrations/sqlite`.
macro_rules! files {
    ($name:literal) => {
        [
            include_str!(concat!("../../migrations/", $name, ".up.sql")),
            include_str!(concat!("../../migrations/", $name, ".down.sql")),
        ]
    };
}

/// Texts that both databases take. A column without a bound is one statement there and one back, and needs no file.
const fn both(texts: [&'static str; 2]) -> [[&'static str; 2]; 2] {
    [texts, texts]
}

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "ledger",
        texts: [files!("sqlite/0001_ledger"), files!("postgres/0001_ledger")],
        loss: &[
            LostTable { table: "wallets", nouns: ["wallet", "wallets"] },
            LostTable { table: "api_keys", nouns: ["API key", "API keys"] },
            LostTable { table: "operations", nouns: ["operation", "operations"] },
            LostTable { table: "postings", nouns: ["posting", "postings"] },
        ],
    },
    Migration {
        version: 2,
        name: "administration",
        texts: [files!("sqlite/0002_administration"), files!("postgres/0002_administration")],
        loss: &[
            LostTable { table: "admin_keys", nouns: ["admin key", "admin keys"] },
            LostTable { table: "audit", nouns: ["row of the audit log", "rows of the audit log"] },
        ],
    },
    Migration {
        version: 3,
        name: "jobs",
        texts: [files!("sqlite/0003_jobs"), files!("postgres/0003_jobs")],
        // Reports about the ledger; no rows of the ledger itself.
        loss: &[],
    },
    Migration {
        version: 4,
        name: "usage_hours",
        texts: [files!("sqlite/0004_usage_hours"), files!("postgres/0004_usage_hours")],
        // Sums of rows that stay, made again by the next way there.
        loss: &[],
    },
    Migration {
        version: 5,
        name: "events",
        texts: [files!("sqlite/0005_events"), files!("postgres/0005_events")],
        loss: &[LostTable { table: "events", nouns: ["event", "events"] }],
    },
    Migration {
        version: 6,
        name: "webhooks",
        texts: [files!("sqlite/0006_webhooks"), files!("postgres/0006_webhooks")],
        // Their deliveries go with them: they have no use without the webhook.
        loss: &[LostTable { table: "webhooks", nouns: ["webhook", "webhooks"] }],
    },
    Migration {
        version: 7,
        name: "refusals",
        texts: [files!("sqlite/0007_refusals"), files!("postgres/0007_refusals")],
        // Counts of what did not happen, which the log has as well.
        loss: &[],
    },
    Migration {
        version: 8,
        name: "people",
        texts: [files!("sqlite/0008_people"), files!("postgres/0008_people")],
        // All that belongs to them goes with them.
        loss: &[LostTable { table: "people", nouns: ["person", "people"] }],
    },
    Migration {
        version: 9,
        name: "usage_reasons",
        texts: [files!("sqlite/0009_usage_reasons"), files!("postgres/0009_usage_reasons")],
        // Explanations of usage records, which stay, and which the log has as well.
        loss: &[],
    },
    Migration {
        version: 10,
        name: "deliveries_due_of_webhook",
        texts: both(files!("both/0010_deliveries_due_of_webhook")),
        loss: &[],
    },
    Migration {
        version: 11,
        name: "sums",
        texts: [files!("sqlite/0011_sums"), files!("postgres/0011_sums")],
        loss: &[LostTable { table: "excluded_costs", nouns: ["excluded cost", "excluded costs"] }],
    },
    Migration {
        version: 12,
        name: "late_costs",
        texts: [files!("sqlite/0012_late_costs"), files!("postgres/0012_late_costs")],
        loss: &[LostTable { table: "late_costs", nouns: ["late cost", "late costs"] }],
    },
    Migration {
        version: 13,
        name: "later_limits",
        texts: [files!("sqlite/0013_later_limits"), files!("postgres/0013_later_limits")],
        // A rule about rows, and no row.
        loss: &[],
    },
    Migration {
        version: 14,
        name: "open_cancels",
        texts: [files!("sqlite/0014_open_cancels"), files!("postgres/0014_open_cancels")],
        // A rule about rows, and no row.
        loss: &[],
    },
    Migration {
        version: 15,
        name: "limits_revision",
        texts: [files!("sqlite/0015_limits_revision"), files!("postgres/0015_limits_revision")],
        // A count of edits: without it claims are not compared.
        loss: &[],
    },
    Migration {
        version: 16,
        name: "requests",
        texts: [files!("sqlite/0016_requests"), files!("postgres/0016_requests")],
        // Every request keeps the digest that it had before, and is compared by that one again.
        loss: &[],
    },
    Migration {
        version: 17,
        name: "entry_numbers",
        texts: [files!("sqlite/0017_entry_numbers"), files!("postgres/0017_entry_numbers")],
        // The order of entries, which their moments have as well if no clock was set.
        loss: &[],
    },
    Migration {
        version: 18,
        name: "browser_marks",
        texts: [files!("sqlite/0018_browser_marks"), files!("postgres/0018_browser_marks")],
        // A browser without a mark is one that the person has not signed in from.
        loss: &[],
    },
    Migration {
        version: 19,
        name: "person_wallets",
        texts: [files!("sqlite/0019_person_wallets"), files!("postgres/0019_person_wallets")],
        loss: &[LostTable {
            table: "person_wallet_links",
            nouns: ["link of a wallet", "links of wallets"],
        }],
    },
    Migration {
        version: 20,
        name: "model_aliases",
        texts: [files!("sqlite/0020_model_aliases"), files!("postgres/0020_model_aliases")],
        // The names of open operations' models: stored answers have theirs.
        loss: &[],
    },
    Migration {
        version: 21,
        name: "in_force",
        texts: both(files!("both/0021_in_force")),
        // Only indices.
        loss: &[],
    },
    Migration {
        version: 22,
        name: "limits_of_every_edit",
        texts: [
            files!("sqlite/0022_limits_of_every_edit"),
            files!("postgres/0022_limits_of_every_edit"),
        ],
        // Only a trigger.
        loss: &[],
    },
    Migration {
        version: 23,
        name: "refusals_of_requests",
        texts: [
            files!("sqlite/0023_refusals_of_requests"),
            files!("postgres/0023_refusals_of_requests"),
        ],
        // Statistics of requests that did not run: their ids, codes and numbers are lost, and no money is.
        loss: &[],
    },
    Migration {
        version: 24,
        name: "routes",
        texts: [files!("sqlite/0024_routes"), files!("postgres/0024_routes")],
        // Statistics of attempts: latencies and notes of failures are lost, and no money is.
        loss: &[],
    },
    Migration {
        version: 25,
        name: "restores",
        texts: [files!("sqlite/0025_restores"), files!("postgres/0025_restores")],
        // Without the window of one, request keys run that may have run before.
        loss: &[LostTable { table: "restores", nouns: ["restore", "restores"] }],
    },
    Migration {
        version: 26,
        name: "ledger_roots",
        texts: [files!("sqlite/0026_ledger_roots"), files!("postgres/0026_ledger_roots")],
        loss: &[
            LostTable {
                table: "ledger_roots",
                nouns: ["root of the ledger", "roots of the ledger"],
            },
            LostTable { table: "receipt_keys", nouns: ["key of receipts", "keys of receipts"] },
        ],
    },
];

/// Schema of all migrations together, for tests that read it without a store.
#[cfg(test)]
pub(crate) fn schema(dialect: Dialect) -> String {
    MIGRATIONS.iter().map(|migration| migration.texts(dialect)[0]).collect::<Vec<_>>().join("\n")
}

impl Migration {
    pub(crate) const fn texts(&self, dialect: Dialect) -> [&'static str; 2] {
        let [sqlite, postgres] = self.texts;
        match dialect {
            Dialect::Sqlite => sqlite,
            Dialect::Postgres => postgres,
        }
    }

    pub(crate) fn digest(&self, dialect: Dialect) -> Vec<u8> {
        // Only of the way there: the way back may be mended later.
        let [up, _down] = self.texts(dialect);
        blake3::hash(up.as_bytes()).as_bytes().to_vec()
    }

    pub(crate) fn step(&self, applied_at: Option<Timestamp>) -> MigrationStatus {
        MigrationStatus { version: self.version, name: self.name.to_owned(), applied_at }
    }
}
