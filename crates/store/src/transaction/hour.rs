//! Rows of `usage_hours`, and a step of the summing as it is written: the additions to the rows, and the position
//! that the summing reaches by them.
//!
//! A step and a correction are guarded by the number of steps (`usage_summed`): one that was read before another
//! was written has no effect, so that no operation is summed twice. Rows are written in the order of their keys:
//! two processes that add the same ones wait for each other, and never in a circle.
//!
//! Sums are 128 bits wide in memory, so that a damaged row is reported by the audit and does not overflow here.

use std::collections::BTreeMap;

use sea_orm::{Statement, Value};

use crate::rows::{BadRow, Cells};
use crate::schema::{Dialect, blob};
use crate::transaction::exchange::Exchange;

/// Numbers in a row: the sums, in the order of [`Totals`](holdfast_domain::admin::report::Totals).
pub(crate) const SUMS: usize = 21;

/// Columns of the sums, in their order.
pub(crate) const SUM_COLUMNS: [&str; SUMS] = [
    "completed",
    "refused",
    "abandoned",
    "estimated",
    "input",
    "cached_input",
    "cache_write",
    "audio_input",
    "output",
    "reasoning",
    "audio_output",
    "request",
    "image",
    "charge",
    "shortfall",
    "refunded",
    "exposure",
    "costs_excluded",
    "costed",
    "provider_cost",
    "margin",
];

/// Key of a row, in the order of the primary key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HourKey {
    pub(crate) wallet: [u8; 16],
    pub(crate) hour: i64,
    pub(crate) api_key: [u8; 16],
    pub(crate) model: String,
    pub(crate) route: String,
}

/// Sums of 128 bits, which no number of rows overflows.
pub(crate) type WideSums = [i128; SUMS];

/// Rows that are added. Sorted: of two processes that add at once, none waits for a row of the other
/// that waits for one of its own.
#[derive(Debug, Default)]
pub(crate) struct HourSums(BTreeMap<HourKey, [i128; SUMS]>);

/// State of the summing: the first numbers that are not summed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SummingPosition {
    /// Steps that were made.
    pub(crate) steps: i64,
    pub(crate) operations_to: i64,
    pub(crate) postings_to: i64,
}

/// Step of the summing: written in one transaction, if no other was made since it was read.
#[derive(Debug)]
pub(crate) struct SummingStep {
    pub(crate) before: SummingPosition,
    /// Numbers that the step comes to; it counts the step itself.
    pub(crate) operations_to: i64,
    pub(crate) postings_to: i64,
    pub(crate) rows: HourSums,
    /// Operations that were passed while they ran.
    pub(crate) running: Vec<i64>,
    /// Operations that were passed before, and are in `rows` now.
    pub(crate) ended: Vec<i64>,
    /// Operations in `rows` whose cost is left out.
    pub(crate) excluded: Vec<i64>,
}

/// Correction of hours: costs that are taken out of sums which have them. Written in one transaction, if no step of
/// the summing was made since it was read.
#[derive(Debug)]
pub(crate) struct CostExclusion {
    /// Steps that were made.
    pub(crate) steps: i64,
    pub(crate) rows: HourSums,
    pub(crate) excluded: Vec<i64>,
}

/// Corrects one row, of the key `$1` to `$5`.
const CORRECT: &str = "UPDATE usage_hours SET exposure = exposure + $6,
    costs_excluded = costs_excluded + $7, costed = costed + $8,
    provider_cost = provider_cost + $9, margin = margin + $10
    WHERE wallet_id = $1 AND hour = $2 AND api_key_id = $3 AND model = $4 AND route = $5";

/// Counts a correction among the steps, so that a step that was read before it is dropped.
const COUNT: &str = "UPDATE usage_summed SET steps = steps + 1 WHERE steps = $1
    RETURNING steps";

/// One text for every exclusion, prepared once.
const EXCLUDE: &str = "INSERT INTO excluded_costs (op_seq) VALUES ($1) ON CONFLICT DO NOTHING";

impl CostExclusion {
    /// The transaction; false if a step was made since the sums were read, and no row is written then.
    pub(crate) fn exchange(self, dialect: Dialect) -> Exchange<i64, bool> {
        let Self { steps, rows, excluded } = self;
        let count = move |_now| dialect.statement(COUNT, [steps.into()]);
        let judge = move |counted: Vec<i64>, _now| {
            if counted.is_empty() {
                return (Vec::new(), false);
            }
            let correct = rows.iter().map(|(key, sums)| {
                let [.., exposure, excluded, costed, cost, margin] = sums;
                let more = [exposure, excluded, costed, cost, margin].map(Value::from);
                let binds = key.binds().into_iter().chain(more);
                Statement::from_sql_and_values(dialect.backend(), CORRECT, binds)
            });
            let note = excluded.iter().map(|number| dialect.statement(EXCLUDE, [(*number).into()]));
            (correct.chain(note).collect(), true)
        };
        Exchange::new(count, |cells| cells.int(), judge)
    }
}

impl HourKey {
    /// No row has this key, and all that there are come after it.
    pub(crate) const BEFORE_ALL: Self = Self {
        wallet: [0; 16],
        hour: i64::MIN,
        api_key: [0; 16],
        model: String::new(),
        route: String::new(),
    };

    fn binds(&self) -> [Value; 5] {
        let Self { wallet, hour, api_key, model, route } = self;
        let (model, route) = (model.clone().into(), route.clone().into());
        [blob(*wallet), (*hour).into(), blob(*api_key), model, route]
    }

    pub(crate) fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self {
            wallet: cells.bytes()?,
            hour: cells.int()?,
            api_key: cells.bytes()?,
            model: cells.text()?,
            route: cells.text()?,
        })
    }
}

impl HourSums {
    pub(crate) fn add(&mut self, key: HourKey, more: WideSums) {
        add(self.0.entry(key).or_insert([0; SUMS]), more);
    }

    /// Takes sums away again.
    pub(crate) fn take(&mut self, key: HourKey, less: WideSums) {
        self.add(key, less.map(|sum| sum.saturating_neg()));
    }

    /// The rows. What does not fit into a column is the largest number, which a report marks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HourKey, [i64; SUMS])> {
        self.0.iter().map(|(key, sums)| (key, sums.map(narrow)))
    }
}

/// Reads the sums of a statement, each of which is two halves.
pub(crate) fn sums(cells: &mut Cells<'_>) -> Result<WideSums, BadRow> {
    let mut sums = [0; SUMS];
    for sum in &mut sums {
        *sum = cells.wide()?;
    }
    Ok(sums)
}

/// Adds up sums, column by column.
pub(crate) fn add(sums: &mut WideSums, more: WideSums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

fn narrow(sum: i128) -> i64 {
    let (least, most) = (i128::from(-i64::MAX), i128::from(i64::MAX));
    i64::try_from(sum.clamp(least, most)).unwrap_or(i64::MAX)
}

/// Assignments that add a row to the one that exists, of which `own` is the name. A sum that does not
/// fit stays the largest number.
pub(crate) fn additions(own: &str) -> String {
    let most = i64::MAX;
    let addition = |name: &str| {
        format!(
            "{name} = CASE WHEN excluded.{name} > 0 AND {own}.{name} > {most} - excluded.{name} \
             THEN {most} WHEN excluded.{name} < 0 AND {own}.{name} < -{most} - excluded.{name} \
             THEN -{most} ELSE {own}.{name} + excluded.{name} END"
        )
    };
    SUM_COLUMNS.map(addition).join(", ")
}
