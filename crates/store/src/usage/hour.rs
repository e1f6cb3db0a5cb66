//! Rows of `usage_hours`, and a step of summing as it is written: what is added to which rows, and
//! how far that brings the summing.

use std::collections::BTreeMap;

use super::SumOverflow;
use crate::rows::{BadRow, Cells};

/// Numbers in a row: the sums, in the order of [`Totals`](super::Totals).
pub(crate) const SUMS: usize = 20;

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

/// Rows that are added. Sorted: of two processes that add at once, none waits for a row of the other
/// that waits for one of its own.
#[derive(Debug, Default)]
pub(crate) struct HourSums(BTreeMap<HourKey, [i64; SUMS]>);

/// State of the summing: the first numbers that are not summed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SummingPosition {
    /// Steps that were made.
    pub(crate) steps: i64,
    pub(crate) operations_to: i64,
    pub(crate) postings_to: i64,
}

/// Step of the summing: written in one transaction, if nobody has made another since it was read.
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
    pub(crate) fn add(&mut self, key: HourKey, more: [i64; SUMS]) -> Result<(), SumOverflow> {
        let sums = self.0.entry(key).or_insert([0; SUMS]);
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.checked_add(more).ok_or(SumOverflow)?;
        }
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HourKey, &[i64; SUMS])> {
        self.0.iter()
    }
}

/// Reads the sums of a row.
pub(crate) fn sums(cells: &mut Cells<'_>) -> Result<[i64; SUMS], BadRow> {
    let mut sums = [0; SUMS];
    for sum in &mut sums {
        *sum = cells.int()?;
    }
    Ok(sums)
}
