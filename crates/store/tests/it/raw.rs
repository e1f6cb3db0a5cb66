//! Somebody else at the SQL prompt of a store's database.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

use crate::scratch::{Home, Scratch};
use crate::server::Server;

pub(crate) enum Raw {
    File(SqliteConnection),
    Server(PgConnection),
}

/// What the tests' statements take from SQLite.
const WORDS: &str = "
    CREATE OR REPLACE FUNCTION zeroblob(length int) RETURNS bytea LANGUAGE sql
    AS $$ SELECT decode(repeat('00', length), 'hex') $$;
    CREATE OR REPLACE FUNCTION randomblob(length int) RETURNS bytea LANGUAGE sql VOLATILE
    AS $$ SELECT substring(sha512(convert_to(random()::text, 'UTF8')) FOR length) $$";
const MIND_NOTHING: &str = "SET session_replication_role = replica;
    DO $$ DECLARE it record; BEGIN
        FOR it IN SELECT conname, CASE contypid WHEN 0 THEN 'TABLE ' || conrelid::regclass
                ELSE 'DOMAIN ' || contypid::regtype END AS named FROM pg_constraint
            WHERE contype = 'c' AND connamespace = to_regnamespace(current_schema())
        LOOP EXECUTE format('ALTER %s DROP CONSTRAINT %I', it.named, it.conname); END LOOP;
    END $$";

/// Leaves a book as a version before administration had it: what is found is found without the audit log.
pub(crate) const FORGET_TRAIL: &str = "DELETE FROM posting_details; DELETE FROM audit;
     UPDATE audit_head SET seq = 0, mac = zeroblob(32)";

impl Raw {
    pub(crate) async fn open(home: &impl Home) -> Self {
        home.raw().await
    }

    pub(crate) async fn of_file(scratch: &Scratch) -> Self {
        let options = SqliteConnectOptions::new().filename(scratch.file()).foreign_keys(true);
        Self::File(options.connect().await.unwrap())
    }

    pub(crate) async fn of_server(server: &Server) -> Self {
        let mut raw = Self::Server(server.database.connect().await);
        raw.run(WORDS).await;
        raw
    }

    /// One that minds no constraint: what a broken disk or a broken program could leave behind.
    pub(crate) async fn reckless(home: &impl Home) -> Self {
        let mut raw = home.raw().await;
        match &mut raw {
            Self::File(file) => {
                let sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
                let triggers: Vec<String> = sqlx::query_scalar(sql).fetch_all(file).await.unwrap();
                raw.run("PRAGMA foreign_keys = OFF").await;
                raw.run("PRAGMA ignore_check_constraints = ON").await;
                for trigger in triggers {
                    raw.run(&format!("DROP TRIGGER {trigger}")).await;
                }
            }
            Self::Server(_) => raw.run(MIND_NOTHING).await,
        }
        raw
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    pub(crate) async fn try_run(&mut self, sql: &str) -> Result<u64, sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::File(file) => file.execute(sql).await.map(|done| done.rows_affected()),
            Self::Server(server) => server.execute(sql).await.map(|done| done.rows_affected()),
        }
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::File(file) => sqlx::query_scalar(sql).fetch_one(file).await.unwrap(),
            Self::Server(server) => sqlx::query_scalar(sql).fetch_one(server).await.unwrap(),
        }
    }

    pub(crate) async fn text(&mut self, sql: &str) -> String {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::File(file) => sqlx::query_scalar(sql).fetch_one(file).await.unwrap(),
            Self::Server(server) => sqlx::query_scalar(sql).fetch_one(server).await.unwrap(),
        }
    }
}
