//! Writes a step of the summing of usage.

use std::sync::LazyLock;

use holdfast_domain::ports::Unavailable;
use rusqlite::types::Value;
use rusqlite::{Transaction, params_from_iter};

use super::Sqlite;
use super::write_task::WriteError;
use crate::error::unavailable;
use crate::transaction::hour::{HourKey, SUM_COLUMNS, SUMS, SummingStep, additions};

const MOVE: &str = "UPDATE usage_summed SET steps = steps + 1, operations_to = ?2, postings_to = ?3
    WHERE steps = ?1";
const NOTE: &str = "INSERT OR IGNORE INTO late_ends (op_seq) VALUES (?1)";
const STRIKE: &str = "DELETE FROM late_ends WHERE op_seq = ?1";
const EXCLUDE: &str = "INSERT OR IGNORE INTO excluded_costs (op_seq) VALUES (?1)";

static ADD: LazyLock<String> = LazyLock::new(|| {
    let columns = SUM_COLUMNS.join(", ");
    let values: Vec<_> = (1..=5 + SUMS).map(|at| format!("?{at}")).collect();
    let sums = additions("usage_hours");
    format!(
        "INSERT INTO usage_hours (wallet_id, hour, api_key_id, model, route, {columns})
         VALUES ({}) ON CONFLICT (wallet_id, hour, api_key_id, model, route) DO UPDATE SET {sums}",
        values.join(", ")
    )
});

impl Sqlite {
    /// Makes the step, unless another one was made since it was read.
    pub(crate) async fn sum_usage(&self, step: SummingStep) -> Result<(), Unavailable> {
        self.write(move |transaction, _now| write(transaction, &step)).await.map_err(unavailable)
    }
}

fn cells(HourKey { wallet, hour, api_key, model, route }: &HourKey) -> [Value; 5] {
    [
        Value::Blob(wallet.to_vec()),
        Value::Integer(*hour),
        Value::Blob(api_key.to_vec()),
        Value::Text(model.clone()),
        Value::Text(route.clone()),
    ]
}

fn write(transaction: &Transaction<'_>, step: &SummingStep) -> Result<(), WriteError> {
    let SummingStep { before, operations_to, postings_to, rows, running, ended, excluded } = step;
    if transaction.execute(MOVE, (before.steps, operations_to, postings_to))? == 0 {
        return Ok(());
    }
    let mut add = transaction.prepare(&ADD)?;
    for (key, sums) in rows.iter() {
        add.execute(params_from_iter(cells(key).into_iter().chain(sums.map(Value::Integer))))?;
    }
    for (sql, numbers) in [(NOTE, running), (STRIKE, ended), (EXCLUDE, excluded)] {
        let mut each = transaction.prepare(sql)?;
        for number in numbers {
            each.execute([number])?;
        }
    }
    Ok(())
}
