//! Migrations: every step of the schema as text, for both databases. [`super`] applies them.
//!
//! A text that was applied anywhere never changes: its digest is in that database, which is refused
//! from then on. What has to be mended is mended by a further step.

use holdfast_domain::Timestamp;

use super::MigrationStatus;
use super::loss::LostTable;
use crate::dialect::Dialect;

/// Migration of the schema from one version to the next, and back, for both databases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    pub(super) version: u32,
    pub(super) name: &'static str,
    /// Texts to this schema and back, in SQLite's words and in PostgreSQL's.
    pub(super) sqlite: [&'static str; 2],
    pub(super) postgres: [&'static str; 2],
    /// Tables whose rows taking it back deletes, as far as people would miss them.
    pub(super) loss: &'static [LostTable],
}

pub(super) const MIGRATIONS: &[Migration] = &[
    LEDGER,
    ADMINISTRATION,
    JOBS,
    USAGE_HOURS,
    EVENTS,
    WEBHOOKS,
    REFUSALS,
    PEOPLE,
    USAGE_REASONS,
    DELIVERIES_DUE_OF_WEBHOOK,
    SUMS,
    LATE_COSTS,
    LATER_LIMITS,
    OPEN_CANCELS,
    LIMITS_REVISION,
    REQUESTS,
    ENTRY_NUMBERS,
    BROWSER_MARKS,
    PERSON_WALLETS,
    MODEL_ALIASES,
    IN_FORCE,
];

const LEDGER: Migration = Migration {
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
    loss: &[
        LostTable { table: "wallets", nouns: ["wallet", "wallets"] },
        LostTable { table: "api_keys", nouns: ["API key", "API keys"] },
        LostTable { table: "operations", nouns: ["operation", "operations"] },
        LostTable { table: "postings", nouns: ["posting", "postings"] },
    ],
};

const ADMINISTRATION: Migration = Migration {
    version: 2,
    name: "administration",
    sqlite: [
        include_str!("../../migrations/sqlite/0002_administration.up.sql"),
        include_str!("../../migrations/sqlite/0002_administration.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0002_administration.up.sql"),
        include_str!("../../migrations/postgres/0002_administration.down.sql"),
    ],
    loss: &[
        LostTable { table: "admin_keys", nouns: ["admin key", "admin keys"] },
        LostTable { table: "audit", nouns: ["row of the trail", "rows of the trail"] },
    ],
};

const JOBS: Migration = Migration {
    version: 3,
    name: "jobs",
    sqlite: [
        include_str!("../../migrations/sqlite/0003_jobs.up.sql"),
        include_str!("../../migrations/sqlite/0003_jobs.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0003_jobs.up.sql"),
        include_str!("../../migrations/postgres/0003_jobs.down.sql"),
    ],
    // Reports of what is in the book, and nothing of the book.
    loss: &[],
};

const USAGE_HOURS: Migration = Migration {
    version: 4,
    name: "usage_hours",
    sqlite: [
        include_str!("../../migrations/sqlite/0004_usage_hours.up.sql"),
        include_str!("../../migrations/sqlite/0004_usage_hours.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0004_usage_hours.up.sql"),
        include_str!("../../migrations/postgres/0004_usage_hours.down.sql"),
    ],
    // Sums of rows that stay, made again by the next way there.
    loss: &[],
};

/// Schema that all migrations make together, for tests that look at it without a store.
#[cfg(test)]
pub(crate) fn schema(dialect: Dialect) -> String {
    MIGRATIONS.iter().map(|migration| migration.texts(dialect)[0]).collect::<Vec<_>>().join("\n")
}

const EVENTS: Migration = Migration {
    version: 5,
    name: "events",
    sqlite: [
        include_str!("../../migrations/sqlite/0005_events.up.sql"),
        include_str!("../../migrations/sqlite/0005_events.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0005_events.up.sql"),
        include_str!("../../migrations/postgres/0005_events.down.sql"),
    ],
    loss: &[LostTable { table: "events", nouns: ["event", "events"] }],
};

const WEBHOOKS: Migration = Migration {
    version: 6,
    name: "webhooks",
    sqlite: [
        include_str!("../../migrations/sqlite/0006_webhooks.up.sql"),
        include_str!("../../migrations/sqlite/0006_webhooks.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0006_webhooks.up.sql"),
        include_str!("../../migrations/postgres/0006_webhooks.down.sql"),
    ],
    // Their deliveries go with them: nobody misses those without the webhook.
    loss: &[LostTable { table: "webhooks", nouns: ["webhook", "webhooks"] }],
};

const REFUSALS: Migration = Migration {
    version: 7,
    name: "refusals",
    sqlite: [
        include_str!("../../migrations/sqlite/0007_refusals.up.sql"),
        include_str!("../../migrations/sqlite/0007_refusals.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0007_refusals.up.sql"),
        include_str!("../../migrations/postgres/0007_refusals.down.sql"),
    ],
    // Counts of what did not happen, which the log has as well.
    loss: &[],
};

const PEOPLE: Migration = Migration {
    version: 8,
    name: "people",
    sqlite: [
        include_str!("../../migrations/sqlite/0008_people.up.sql"),
        include_str!("../../migrations/sqlite/0008_people.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0008_people.up.sql"),
        include_str!("../../migrations/postgres/0008_people.down.sql"),
    ],
    // All that belongs to them goes with them.
    loss: &[LostTable { table: "people", nouns: ["person", "people"] }],
};

const USAGE_REASONS: Migration = Migration {
    version: 9,
    name: "usage_reasons",
    sqlite: [
        include_str!("../../migrations/sqlite/0009_usage_reasons.up.sql"),
        include_str!("../../migrations/sqlite/0009_usage_reasons.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0009_usage_reasons.up.sql"),
        include_str!("../../migrations/postgres/0009_usage_reasons.down.sql"),
    ],
    // Explanations of usage records, which stay, and which the log has as well.
    loss: &[],
};

const DELIVERIES_DUE_OF_WEBHOOK: Migration = Migration {
    version: 10,
    name: "deliveries_due_of_webhook",
    sqlite: [
        include_str!("../../migrations/sqlite/0010_deliveries_due_of_webhook.up.sql"),
        include_str!("../../migrations/sqlite/0010_deliveries_due_of_webhook.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0010_deliveries_due_of_webhook.up.sql"),
        include_str!("../../migrations/postgres/0010_deliveries_due_of_webhook.down.sql"),
    ],
    loss: &[],
};

const SUMS: Migration = Migration {
    version: 11,
    name: "sums",
    sqlite: [
        include_str!("../../migrations/sqlite/0011_sums.up.sql"),
        include_str!("../../migrations/sqlite/0011_sums.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0011_sums.up.sql"),
        include_str!("../../migrations/postgres/0011_sums.down.sql"),
    ],
    loss: &[LostTable { table: "excluded_costs", nouns: ["excluded cost", "excluded costs"] }],
};

const LATE_COSTS: Migration = Migration {
    version: 12,
    name: "late_costs",
    sqlite: [
        include_str!("../../migrations/sqlite/0012_late_costs.up.sql"),
        include_str!("../../migrations/sqlite/0012_late_costs.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0012_late_costs.up.sql"),
        include_str!("../../migrations/postgres/0012_late_costs.down.sql"),
    ],
    loss: &[LostTable { table: "late_costs", nouns: ["late cost", "late costs"] }],
};

const LATER_LIMITS: Migration = Migration {
    version: 13,
    name: "later_limits",
    sqlite: [
        include_str!("../../migrations/sqlite/0013_later_limits.up.sql"),
        include_str!("../../migrations/sqlite/0013_later_limits.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0013_later_limits.up.sql"),
        include_str!("../../migrations/postgres/0013_later_limits.down.sql"),
    ],
    // A rule about rows, and no row.
    loss: &[],
};

const OPEN_CANCELS: Migration = Migration {
    version: 14,
    name: "open_cancels",
    sqlite: [
        include_str!("../../migrations/sqlite/0014_open_cancels.up.sql"),
        include_str!("../../migrations/sqlite/0014_open_cancels.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0014_open_cancels.up.sql"),
        include_str!("../../migrations/postgres/0014_open_cancels.down.sql"),
    ],
    // A rule about rows, and no row.
    loss: &[],
};

const LIMITS_REVISION: Migration = Migration {
    version: 15,
    name: "limits_revision",
    sqlite: [
        include_str!("../../migrations/sqlite/0015_limits_revision.up.sql"),
        include_str!("../../migrations/sqlite/0015_limits_revision.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0015_limits_revision.up.sql"),
        include_str!("../../migrations/postgres/0015_limits_revision.down.sql"),
    ],
    // A count of edits: without it claims are not compared.
    loss: &[],
};

const REQUESTS: Migration = Migration {
    version: 16,
    name: "requests",
    sqlite: [
        include_str!("../../migrations/sqlite/0016_requests.up.sql"),
        include_str!("../../migrations/sqlite/0016_requests.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0016_requests.up.sql"),
        include_str!("../../migrations/postgres/0016_requests.down.sql"),
    ],
    // Every request keeps the digest that it had before, and is compared by that one again.
    loss: &[],
};

const ENTRY_NUMBERS: Migration = Migration {
    version: 17,
    name: "entry_numbers",
    sqlite: [
        include_str!("../../migrations/sqlite/0017_entry_numbers.up.sql"),
        include_str!("../../migrations/sqlite/0017_entry_numbers.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0017_entry_numbers.up.sql"),
        include_str!("../../migrations/postgres/0017_entry_numbers.down.sql"),
    ],
    // The order of entries, which their moments have as well if no clock was set.
    loss: &[],
};

const BROWSER_MARKS: Migration = Migration {
    version: 18,
    name: "browser_marks",
    sqlite: [
        include_str!("../../migrations/sqlite/0018_browser_marks.up.sql"),
        include_str!("../../migrations/sqlite/0018_browser_marks.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0018_browser_marks.up.sql"),
        include_str!("../../migrations/postgres/0018_browser_marks.down.sql"),
    ],
    // A browser without a mark is one that the person has not signed in from.
    loss: &[],
};

const PERSON_WALLETS: Migration = Migration {
    version: 19,
    name: "person_wallets",
    sqlite: [
        include_str!("../../migrations/sqlite/0019_person_wallets.up.sql"),
        include_str!("../../migrations/sqlite/0019_person_wallets.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0019_person_wallets.up.sql"),
        include_str!("../../migrations/postgres/0019_person_wallets.down.sql"),
    ],
    loss: &[LostTable {
        table: "person_wallet_links",
        nouns: ["link of a wallet", "links of wallets"],
    }],
};

const MODEL_ALIASES: Migration = Migration {
    version: 20,
    name: "model_aliases",
    sqlite: [
        include_str!("../../migrations/sqlite/0020_model_aliases.up.sql"),
        include_str!("../../migrations/sqlite/0020_model_aliases.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0020_model_aliases.up.sql"),
        include_str!("../../migrations/postgres/0020_model_aliases.down.sql"),
    ],
    // The names of open operations' models: stored answers have theirs.
    loss: &[],
};

const IN_FORCE: Migration = Migration {
    version: 21,
    name: "in_force",
    sqlite: [
        include_str!("../../migrations/sqlite/0021_in_force.up.sql"),
        include_str!("../../migrations/sqlite/0021_in_force.down.sql"),
    ],
    postgres: [
        include_str!("../../migrations/postgres/0021_in_force.up.sql"),
        include_str!("../../migrations/postgres/0021_in_force.down.sql"),
    ],
    // Indices alone.
    loss: &[],
};

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
