//! Digests of all migrations, which are frozen: a database notes the digest of each migration that it has, and a program
//! with another text refuses that database.
//!
//! A new migration gets a row at the end of [`FROZEN`]; the failing test prints it. No row ever changes. On PostgreSQL
//! migrations only add, so that nodes of the version before work on until they are replaced: they write without the
//! new columns and read the old ones. A file is served by one process, so a migration of SQLite may build a table anew.

use super::steps::{MIGRATIONS, Migration};
use crate::schema::Dialect;

/// Name of each migration's file, and its digests for SQLite and for PostgreSQL.
const FROZEN: &[(&str, &str, &str)] = &[
    (
        "0001_ledger",
        "8eb217d435c379586ded9bfe656f046172ef5ff4a99727eb2cafbf6933503bb6",
        "5bd85e0ff2674c42819b702be2cd201ac4ac1464259241af41a17ee47a3e34c5",
    ),
    (
        "0002_administration",
        "17b888371a6cdf16a8354407b8161fcc7afa8e8683147c2e6a3ff49285ccd99d",
        "968b45a5b9234622200d10278efe72b3ccc488888e77015ee6cfc952abc06be6",
    ),
    (
        "0003_jobs",
        "2355721f843a37e3da9fb34774618a6b0edf583caed17555e7e2647714c102ed",
        "4c573a2bc6144371d83ebc21ab4fdfe6d5108e0b8ee04f550bfb5a9709639553",
    ),
    (
        "0004_usage_hours",
        "86115a849938bc8a1f3a426e1680a1a12893a887b69d7477bd618ec85e8b6513",
        "b385774628d58f9a29bcc13fb7a47c6967a9b8fe88d202417af6b1778b8bffcb",
    ),
    (
        "0005_events",
        "3299a7d1cdf39d76e88f05de6ea604325ca7f0e76162699a6f229f640fb2e5c9",
        "7ef102083dec53df89b3971d86e02d2d5cf80adb3019e4a075f51849935c1cef",
    ),
    (
        "0006_webhooks",
        "52930188114c48c20c3294c51d5dca97596071308eb4d31c6e5618040d1b68cc",
        "8d99901193f54d44bc6356e07cc32a5ff9d68ce75e84e1df2ae82ce23caf5a26",
    ),
    (
        "0007_refusals",
        "8ed9cd34b7476bb64b3530d004c9f3bde171d2f499ac3e8b1890c05298ccbae7",
        "a9247ced5f4f5932c8d9ccc9dc16527b28faa6cd789306b08487b1d1f97413cf",
    ),
    (
        "0008_people",
        "b04e0256466453e7def8f2470c7d2d5df2f436d2eb27134ebccb5cf8c50d9b4b",
        "b3f668cbbaf1ebecb0ed436a5362ca081c5b226f2a8154887612dedc0ccd90e0",
    ),
    (
        "0009_usage_reasons",
        "0cbdd046b86c3847348feb6592e28f728177c92141e00b513f8ad027023d0997",
        "8cdae6090613100bec0a69728b97019aa31bb9cfac6cd9dba78a03a36b55dd73",
    ),
    (
        "0010_deliveries_due_of_webhook",
        "68beef4fd96880ba4a992526bd467b84ff12546b0c2aa96df1b14b3eab03a690",
        "68beef4fd96880ba4a992526bd467b84ff12546b0c2aa96df1b14b3eab03a690",
    ),
    (
        "0011_sums",
        "26713e614533508b7de32d8dbfc75c7037f66af6dce8f96dd73644bc0387fa9e",
        "d52d568302926e58c27cd1b2d065aa06f2843efb3f7290b392d053dd8e2e09d8",
    ),
    (
        "0012_late_costs",
        "56281035d0674a9656f949b5507860ea4ed9b9e6310cea50922551ddbc4404d3",
        "7b1a8287b602083439c1d3f3ad2faa310ecc60130a6d712e94e93257b9c82e52",
    ),
    (
        "0013_later_limits",
        "dafa301fb3cedbcb28e57cea4ce297ab93230d6a32e8d8220c3fb6a6a226ddae",
        "7629ed1a3b718f99778e6b61886361ad836cd5bc1495dd52f25eacf6c8f1c7e5",
    ),
    (
        "0014_open_cancels",
        "3a8824e3b8225764e9584d8935970e016abcbd805e472540a59b237851acc788",
        "e6f44d8856488184e4c0958501a4d75ebe5f234055361b8c40fbf8f731a688f4",
    ),
    (
        "0015_limits_revision",
        "233620a026f0ece6cefc70fd6f43f5a7f8bad1dcd1eb4b5604a1f6daeb48630a",
        "b6677a2dbd642f0cad56239a79111b01be425258ac882d5d30c2c9d5adf78592",
    ),
    (
        "0016_requests",
        "7c0a0fdccf94552b075d479adceb4dd9f1356111b1a9d3b032df5eccb9a8cbe1",
        "1edf230d51d76889fbfaca197c8e4afde74da9a8361354303fd7b00233e1ddd4",
    ),
    (
        "0017_entry_numbers",
        "a94d2b5fa0657b868f010db4989fe1eaf4046fc591007ed863f0aaf9cd83a0a2",
        "3f4cccb006043ca382067a6d5ba4b0ac9f7aff5ca974ceb248592e578e63a4e6",
    ),
    (
        "0018_browser_marks",
        "d383914bc23cac74fd6c46dda330652af008a197bef1f8ac524f438be0c59392",
        "7f84f60f3a0b391ca290adc6e3bf7ccc056853a02a0730046dc7af1050fc1569",
    ),
    (
        "0019_person_wallets",
        "cb2634286a604f390744b76be5762d3711b8ef4420213f04bb8b6ef924d5487d",
        "91ba348e4051ffbc05c5e414ebf0192015a64839d61e91bc93332f2050543750",
    ),
    (
        "0020_model_aliases",
        "3e8bbd2567a869a1e4f9217fc4789d5248caf279cf1be9dc8329cdde3f0aa2f2",
        "55f84e5b8ade1fbdcd7705fcaead77ccf2eee4b8395d53f0cba4c1b1e7ec377c",
    ),
    (
        "0021_in_force",
        "acfd2a98910b4dac819bdceb400138d46a4ad89c248f566dd1bbb33c31bb6c7d",
        "acfd2a98910b4dac819bdceb400138d46a4ad89c248f566dd1bbb33c31bb6c7d",
    ),
    (
        "0022_limits_of_every_edit",
        "bc4b5ec04a541a0d7244cd5179da165ec87b42b600ddb0f14a8dd1c59e7c3a1e",
        "1635d258ace39953574c1f22ea623888bdb1128619a886187280cb97b6fbbc26",
    ),
    (
        "0023_refusals_of_requests",
        "5bc191b8475fc08f9767cf6aa02153880a9984231db34d3c7a28333ce9fb5c24",
        "f8ec848db832b2b0500a9be04313b80eebbd86e239dc318e17022458688c2a90",
    ),
    (
        "0024_routes",
        "6fee967f02ae2924689f4fb2cb2570f5dbe6c55ec31d074402930ecfba4f0b7a",
        "bfc289184ab593566a21da1e69ab4e434f5d2950ed5b4bd0e6cf5654e712d8cd",
    ),
    (
        "0025_restores",
        "1ca468a7cd1a46b4f9d1d406a1d6a532f2185e3d76d0874f48e16949fe64b5b8",
        "c5bdf01f8ef0b7848f56cb57b7db1a4d22cef1babec72ad5058ebb0403460a57",
    ),
    (
        "0026_ledger_roots",
        "dcbcf2b6398ca4de8d8ae11c8162a888ef68fad21b28a540d5e1e4253f9b9169",
        "68ada75c60409115983bbcd6b9c190ab5bdbeb9855d7b45ec6b8a8a7885a20f9",
    ),
];
/// Migrations up to this one were released together, before there was a version to work next to.
const FIRST_RELEASE: u32 = 8;
/// Beginnings of clauses that take away what nodes of the version before rely on, in capitals.
const TAKING_AWAY: [&str; 6] =
    ["DROP TABLE", "DROP COLUMN", "DROP DEFAULT", "RENAME", "SET NOT NULL", "TRUNCATE"];

fn row(migration: &Migration) -> (String, String, String) {
    let name = format!("{:04}_{}", migration.version, migration.name);
    let hex = |dialect| {
        let digest = migration.digest(dialect);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    (name, hex(Dialect::Sqlite), hex(Dialect::Postgres))
}

#[test]
fn released_migrations_never_change() {
    for (migration, frozen) in MIGRATIONS.iter().zip(FROZEN) {
        let (name, sqlite, postgres) = row(migration);
        assert_eq!(name, frozen.0, "migrations keep their order, numbers and names");
        for (database, digest, frozen) in
            [("SQLite", sqlite, frozen.1), ("PostgreSQL", postgres, frozen.2)]
        {
            assert!(
                digest == frozen,
                "migration {name} has changed for {database}, and databases that have it would be refused. Restore \
                 its text, and write what is to change as a new migration: number {}",
                MIGRATIONS.len() + 1
            );
        }
    }
    assert!(FROZEN.len() <= MIGRATIONS.len(), "a released migration was removed: restore it");
}

#[test]
fn every_migration_is_frozen() {
    let new: String = MIGRATIONS
        .iter()
        .skip(FROZEN.len())
        .map(row)
        .map(|(name, sqlite, postgres)| {
            format!("    (\n        \"{name}\",\n        \"{sqlite}\",\n        \"{postgres}\",\n    ),\n")
        })
        .collect();
    assert!(new.is_empty(), "append to FROZEN in {}:\n{new}", file!());
}

/// Columns and tables that a text removes from nodes of the version before.
fn taken_away(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join(" ").to_uppercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found: Vec<_> =
        TAKING_AWAY.iter().filter(|it| text.contains(**it)).map(|it| (*it).to_owned()).collect();
    let added = text.split("ADD COLUMN ").skip(1).map(|rest| {
        let end = rest.find(';').unwrap_or(rest.len());
        rest.split_at(end).0
    });
    let is_missed = |column: &&str| column.contains("NOT NULL") && !column.contains("DEFAULT ");
    found.extend(added.filter(is_missed).map(|column| format!("ADD COLUMN {column}")));
    found
}

#[test]
fn migrations_of_postgresql_only_add() {
    for migration in MIGRATIONS.iter().filter(|it| it.version > FIRST_RELEASE) {
        let [up, _down] = migration.texts(Dialect::Postgres);
        let taken = taken_away(up);
        assert!(
            taken.is_empty(),
            "migration {} takes away what nodes of the version before rely on: {taken:?}. Add beside it, and take \
             away in a version after the next",
            migration.version
        );
    }
}

#[test]
fn a_clause_that_takes_away_is_found() {
    for (text, found) in [
        ("alter table a\n  drop  column b;", "DROP COLUMN"),
        ("ALTER TABLE a RENAME COLUMN b TO c;", "RENAME"),
        ("ALTER TABLE a ALTER COLUMN b SET NOT NULL", "SET NOT NULL"),
        ("ALTER TABLE a ADD COLUMN b bigint NOT NULL;", "ADD COLUMN B BIGINT NOT NULL"),
    ] {
        assert_eq!(taken_away(text), [found], "{text}");
    }
    for text in [
        "CREATE TABLE a (b bigint NOT NULL); -- DROP TABLE c",
        "ALTER TABLE a ADD COLUMN b bigint; CREATE INDEX c ON a (b) WHERE b IS NOT NULL;",
        "ALTER TABLE a ADD COLUMN b bigint NOT NULL DEFAULT 0, ADD COLUMN c text;",
    ] {
        assert_eq!(taken_away(text), Vec::<String>::new(), "{text}");
    }
}
