//! Check of `holdfast ledger verify`: the sums of `usage_hours` are those of the operations and refunds that are
//! summed.
//!
//! Both sides are read row by row in one snapshot, and added up hour by hour, so that the memory depends only on
//! the number of hours. For each hour two differences must be zero: that of the sums, and that of the sums weighted
//! with a digest of wallet, API key, model and route, which differs if a sum is under another key than it should
//! be. Sums are 128 bits wide, so that a damaged row is reported without an overflow.

use std::collections::BTreeMap;

use blake3::Hasher;
use sea_orm::{ConnectionTrait, QueryResult, Value};

use super::facts::{HOUR, Scope};
use super::summing::KEYS;
use super::{pages, summed};
use crate::reading::{ReadError, ReadTransaction, read};
use crate::rows::{BadRow, Cells};
use crate::transaction::hour::{HourKey, SUM_COLUMNS, SUMS};
use holdfast_domain::admin::report::UsageFilter;

/// Hours whose mismatches are listed; more are counted. Fewer than an audit lists, so that the count is listed.
const TOLD: usize = 500;
/// Rows that are read at once.
const PAGE: usize = 4_000;

const HOURS: &str = "SELECT wallet_id, hour, api_key_id, model, route, completed, refused,
    abandoned, estimated, input, cached_input, cache_write, audio_input, output, reasoning,
    audio_output, request, image, charge, shortfall, refunded, exposure, costs_excluded, costed,
    provider_cost, margin FROM usage_hours
    WHERE (wallet_id, hour, api_key_id, model, route) > ($1, $2, $3, $4, $5)
    ORDER BY wallet_id, hour, api_key_id, model, route LIMIT $6";

/// Sums of an operation, a refund or a row.
type Wide = [i128; SUMS];

/// Sums of an hour's operations and refunds, less those of its rows.
#[derive(Debug, Clone, Copy)]
struct Difference {
    sums: Wide,
    /// By key; modulo 2^128.
    weighted: Wide,
}

/// Differences by the moment at which the hour begins.
#[derive(Debug, Default)]
struct Differences(BTreeMap<i64, Difference>);

/// Sentences about the ledger, one for each hour whose sums are not those of its operations.
pub(crate) async fn mismatches(db: &ReadTransaction) -> Result<Vec<String>, ReadError> {
    let filter = UsageFilter::default();
    let summed = summed(db).await?;
    let summed_to = summed.operations_to;
    let scope =
        Scope { dialect: db.dialect(), keys: &KEYS, filter: &filter, wallets: None, summed_to };
    let mut found = Differences::default();
    let mut unreadable: u64 = 0;
    for page in pages(0..summed.operations_to, PAGE) {
        let page = db.query_all(&scope.each_operation(page)).await.map_err(read)?;
        unreadable += found.add_all(&page, operation);
    }
    for page in pages(0..summed.postings_to, PAGE) {
        let page = db.query_all(&scope.each_refund(page)).await.map_err(read)?;
        unreadable += found.add_all(&page, refund);
    }
    let mut after = None;
    loop {
        let page = db.query(HOURS, binds(after)).await?;
        let Some(last) = page.last() else { break };
        unreadable += found.add_all(&page, row);
        // A row that cannot be read leads to no next one: it is counted, and reported as a mismatch.
        let Ok(next) = HourKey::from_cells(&mut Cells::new(last)) else { break };
        after = Some(next);
    }
    Ok(found.sentences(unreadable))
}

/// Binds of [`HOURS`]. No wallet's id is first of all: not even a damaged one comes before it.
fn binds(after: Option<HourKey>) -> [Value; 6] {
    let wallet = after.as_ref().map_or_else(Vec::new, |after| after.wallet.to_vec());
    let HourKey { hour, api_key, model, route, .. } = after.unwrap_or(HourKey::BEFORE_ALL);
    let page = i64::try_from(PAGE).unwrap_or(i64::MAX);
    [
        wallet.into(),
        hour.into(),
        api_key.to_vec().into(),
        model.as_str().into(),
        route.as_str().into(),
        page.into(),
    ]
}

/// An operation's own sums: all but the margin, which follows from two of them.
fn operation(cells: &mut Cells<'_>) -> Result<Wide, BadRow> {
    let mut sums = [0; SUMS];
    for sum in sums.iter_mut().take(SUMS - 1) {
        *sum = i128::from(cells.int()?);
    }
    let [.., charge, _shortfall, _refunded, _exposure, _excluded, costed, cost, margin] = &mut sums;
    *margin = if *costed == 0 { 0 } else { *charge - *cost };
    Ok(sums)
}

/// A refund returns money, and reduces a margin if there is one.
fn refund(cells: &mut Cells<'_>) -> Result<Wide, BadRow> {
    let mut sums = [0; SUMS];
    let (amount, costed) = (i128::from(cells.int()?), i128::from(cells.int()?));
    let [.., refunded, _exposure, _excluded, _costed, _cost, margin] = &mut sums;
    *refunded = amount;
    *margin = -amount * costed;
    Ok(sums)
}

/// The sums of a row, to be taken away.
fn row(cells: &mut Cells<'_>) -> Result<Wide, BadRow> {
    let mut sums = [0; SUMS];
    for sum in &mut sums {
        *sum = -i128::from(cells.int()?);
    }
    Ok(sums)
}

impl Differences {
    /// Adds up the rows of a page, and counts those that cannot be read.
    fn add_all(
        &mut self,
        page: &[QueryResult],
        sums: fn(&mut Cells<'_>) -> Result<Wide, BadRow>,
    ) -> u64 {
        let mut unreadable = 0;
        for row in page {
            let mut cells = Cells::new(row);
            let read = HourKey::from_cells(&mut cells).and_then(|key| Ok((key, sums(&mut cells)?)));
            match read {
                Ok((key, sums)) => self.add(&key, sums),
                Err(_bad) => unreadable += 1,
            }
        }
        unreadable
    }

    fn add(&mut self, key: &HourKey, sums: Wide) {
        let hour = key.hour.saturating_sub(key.hour.rem_euclid(HOUR));
        let nothing = Difference { sums: [0; SUMS], weighted: [0; SUMS] };
        let difference = self.0.entry(hour).or_insert(nothing);
        let weight = weight(key);
        let pairs = difference.sums.iter_mut().zip(&mut difference.weighted);
        for ((sum, weighted), more) in pairs.zip(sums) {
            *sum = sum.saturating_add(more);
            *weighted = weighted.wrapping_add(weight.wrapping_mul(more));
        }
    }

    fn sentences(self, unreadable: u64) -> Vec<String> {
        let mut wrong: Vec<_> =
            self.0.into_iter().filter_map(|(hour, it)| it.sentence(hour)).collect();
        let more = wrong.len().saturating_sub(TOLD);
        wrong.truncate(TOLD);
        if more > 0 {
            wrong.push(format!("its usage of {more} more hours is not that of its operations"));
        }
        if unreadable > 0 {
            wrong.push(format!("{unreadable} rows of its usage cannot be read"));
        }
        wrong
    }
}

impl Difference {
    fn sentence(&self, hour: i64) -> Option<String> {
        let apart = SUM_COLUMNS.into_iter().zip(self.sums).filter(|(_, sum)| *sum != 0);
        // What the rows have beyond the operations, in units or micros.
        let apart: Vec<_> = apart.map(|(name, sum)| format!("{name} {:+}", -sum)).collect();
        let start = hour.div_euclid(1_000_000);
        if !apart.is_empty() {
            let apart = apart.join(", ");
            return Some(format!(
                "its usage of the hour at {start} s is not that of its operations: {apart}"
            ));
        }
        self.weighted.iter().any(|sum| *sum != 0).then(|| {
            format!(
                "its usage of the hour at {start} s stands under other keys than its operations"
            )
        })
    }
}

/// A digest of the key: two keys have another one but for a chance of 2^-128.
fn weight(HourKey { wallet, hour: _, api_key, model, route }: &HourKey) -> i128 {
    let mut digest = Hasher::new();
    digest.update(wallet).update(api_key);
    // With its length, so that no part of the model is taken for one of the route.
    digest.update(&model.len().to_le_bytes()).update(model.as_bytes()).update(route.as_bytes());
    let mut bytes = [0; 16];
    digest.finalize_xof().fill(&mut bytes);
    // Odd, so that it has an inverse: no sum but zero has a weighted sum of zero.
    i128::from_le_bytes(bytes) | 1
}
