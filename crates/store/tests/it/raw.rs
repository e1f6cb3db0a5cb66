//! A hand at the SQL prompt: a connection that knows nothing of the store.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

use crate::scratch::Scratch;

pub(crate) struct Raw(SqliteConnection);

impl Raw {
    pub(crate) async fn open(scratch: &Scratch) -> Self {
        let options = SqliteConnectOptions::new().filename(scratch.file()).foreign_keys(true);
        Self(options.connect().await.unwrap())
    }

    /// One that minds no constraint: what a broken disk or a broken program could leave behind.
    pub(crate) async fn reckless(scratch: &Scratch) -> Self {
        let mut raw = Self::open(scratch).await;
        raw.run("PRAGMA foreign_keys = OFF").await;
        raw.run("PRAGMA ignore_check_constraints = ON").await;
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
        let triggers: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut raw.0).await.unwrap();
        for trigger in triggers {
            raw.run(&format!("DROP TRIGGER {trigger}")).await;
        }
        raw
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    pub(crate) async fn try_run(&mut self, sql: &str) -> Result<u64, sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        self.0.execute(sql).await.map(|done| done.rows_affected())
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql).fetch_one(&mut self.0).await.unwrap()
    }

    pub(crate) async fn text(&mut self, sql: &str) -> String {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql).fetch_one(&mut self.0).await.unwrap()
    }
}
