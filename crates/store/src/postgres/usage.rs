//! Writes a step of the summing of usage.

use std::sync::LazyLock;

use holdfast_domain::ports::Unavailable;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::Postgres;
use crate::error::unavailable;
use crate::transaction::hour::{HourSums, SUM_COLUMNS, SUMS, SummingStep, additions};

const MOVE: &str = "UPDATE usage_summed SET steps = steps + 1, operations_to = $2, postings_to = $3
    WHERE steps = $1";
/// A batch notes later generations there too (a trigger), in whatever order its rows are updated: two who add the
/// same numbers in two orders would wait for each other. So a step waits for those who have begun to, and keeps
/// others out for its two statements.
const ALONE: &str = "LOCK TABLE late_ends IN SHARE ROW EXCLUSIVE MODE";
const NOTE: &str = "INSERT INTO late_ends (op_seq) SELECT unnest($1::bigint[])
    ON CONFLICT DO NOTHING";
const STRIKE: &str = "DELETE FROM late_ends WHERE op_seq = ANY($1)";
const EXCLUDE: &str = "INSERT INTO excluded_costs (op_seq) SELECT unnest($1::bigint[])
    ON CONFLICT DO NOTHING";

/// Rows come as arrays, one for each column.
static ADD: LazyLock<String> = LazyLock::new(|| {
    let columns = SUM_COLUMNS.join(", ");
    let arrays: Vec<_> = (6..6 + SUMS).map(|at| format!("${at}::bigint[]")).collect();
    let sums = additions("h");
    format!(
        "INSERT INTO usage_hours AS h (wallet_id, hour, api_key_id, model, route, {columns})
         SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::text[], $5::text[], {})
         ON CONFLICT (wallet_id, hour, api_key_id, model, route) DO UPDATE SET {sums}",
        arrays.join(", ")
    )
});

impl Postgres {
    /// Makes the step, unless another one was made since it was read.
    pub(crate) async fn sum_usage(&self, step: SummingStep) -> Result<(), Unavailable> {
        let written = self
            .commands
            .write(move |connection, _now| Box::pin(async move { write(connection, &step).await }));
        written.await.map_err(unavailable)
    }
}

async fn write(connection: &mut PgConnection, step: &SummingStep) -> Result<(), sqlx::Error> {
    let SummingStep { before, operations_to, postings_to, rows, running, ended, excluded } = step;
    // First: of two nodes with one step the second waits here, and finds it made.
    let moved = sqlx::query(MOVE)
        .bind(before.steps)
        .bind(operations_to)
        .bind(postings_to)
        .execute(&mut *connection)
        .await?;
    if moved.rows_affected() == 0 {
        return Ok(());
    }
    add(connection, rows).await?;
    if !running.is_empty() || !ended.is_empty() {
        sqlx::query(ALONE).execute(&mut *connection).await?;
    }
    for (sql, numbers) in [(NOTE, running), (STRIKE, ended), (EXCLUDE, excluded)] {
        if !numbers.is_empty() {
            sqlx::query(sql).bind(numbers).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

async fn add(connection: &mut PgConnection, rows: &HourSums) -> Result<(), sqlx::Error> {
    let (mut wallets, mut hours, mut api_keys) = (Vec::new(), Vec::new(), Vec::new());
    let (mut models, mut routes) = (Vec::new(), Vec::new());
    let mut columns: [Vec<i64>; SUMS] = std::array::from_fn(|_column| Vec::new());
    for (key, sums) in rows.iter() {
        wallets.push(key.wallet.to_vec());
        hours.push(key.hour);
        api_keys.push(key.api_key.to_vec());
        models.push(key.model.as_str());
        routes.push(key.route.as_str());
        for (column, sum) in columns.iter_mut().zip(sums) {
            column.push(sum);
        }
    }
    let mut query = sqlx::query(AssertSqlSafe(ADD.as_str()))
        .bind(wallets)
        .bind(hours)
        .bind(api_keys)
        .bind(models)
        .bind(routes);
    for column in columns {
        query = query.bind(column);
    }
    query.execute(connection).await.map(drop)
}
