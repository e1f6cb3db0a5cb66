//! Writes a step of the summing of usage.

use std::sync::LazyLock;

use holdfast_domain::Micros;
use holdfast_domain::ports::{CostNote, Unavailable};
use rusqlite::types::Value;
use rusqlite::{Transaction, params_from_iter};

use super::Sqlite;
use super::write_task::WriteError;
use crate::unavailable;
use crate::usage::hour::{self, CostExclusion, HourKey, SUM_COLUMNS, SUMS, SummingStep, additions};
use crate::usage::late_cost;

const MOVE: &str = "UPDATE usage_summed SET steps = steps + 1, operations_to = ?2, postings_to = ?3
    WHERE steps = ?1";
const NOTE: &str = "INSERT OR IGNORE INTO late_ends (op_seq) VALUES (?1)";
const STRIKE: &str = "DELETE FROM late_ends WHERE op_seq = ?1";
const EXCLUDE: &str = "INSERT OR IGNORE INTO excluded_costs (op_seq) VALUES (?1)";

/// By number: `$1` would be a name here, numbered by its place in the text.
static NOTE_COST: LazyLock<String> = LazyLock::new(|| late_cost::NOTE.replace('$', "?"));
// By number: a name such as `$6` has the place at which it comes first.
static COUNT: LazyLock<String> = LazyLock::new(|| hour::COUNT.replace('$', "?"));
static CORRECT: LazyLock<String> = LazyLock::new(|| hour::CORRECT.replace('$', "?"));

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
    /// Keeps a note on a cost; false if it is kept.
    pub(crate) async fn note_cost(&self, note: CostNote) -> Result<bool, Unavailable> {
        let noted = self.write(move |transaction, now| {
            let CostNote { operation, generation, cost } = note;
            let (known, cost) = (i64::from(cost.is_some()), cost.map(Micros::get));
            let id = operation.to_bytes();
            let binds = (&id[..], generation, known, cost, now.as_micros());
            Ok(transaction.execute(&NOTE_COST, binds)? > 0)
        });
        noted.await.map_err(unavailable)
    }

    /// Makes the step, unless another one was made since it was read.
    pub(crate) async fn sum_usage(&self, step: SummingStep) -> Result<(), Unavailable> {
        self.write(move |transaction, _now| write(transaction, &step)).await.map_err(unavailable)
    }

    /// Takes costs out of the sums; false where a step was made since they were read, and nothing then.
    pub(crate) async fn exclude_costs(&self, it: CostExclusion) -> Result<bool, Unavailable> {
        self.write(move |transaction, _now| exclude(transaction, &it)).await.map_err(unavailable)
    }
}

fn exclude(transaction: &Transaction<'_>, it: &CostExclusion) -> Result<bool, WriteError> {
    if transaction.execute(&COUNT, [it.steps])? == 0 {
        return Ok(false);
    }
    let mut correct = transaction.prepare(&CORRECT)?;
    for (key, sums) in it.rows.iter() {
        let more = hour::corrections(sums).map(Value::Integer);
        correct.execute(params_from_iter(cells(key).into_iter().chain(more)))?;
    }
    let mut note = transaction.prepare(EXCLUDE)?;
    for number in &it.excluded {
        note.execute([number])?;
    }
    Ok(true)
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
