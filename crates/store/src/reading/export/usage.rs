//! Usage as an export: sums of groups, a part of the period and of the wallets at a time.
//!
//! ```text
//! by hour, model     [from … | … | … to)                each part of whole hours, days or months
//! by wallet          [from … to)  ids (…] (…] (…]       each part of some wallets
//! by day, API key    days first, the wallets of a day then
//! by model, route    [from … to)                        one part: models and routes are few
//! ```
//!
//! A part is halved until it has at most a page of summed rows, so that no group is in two parts and no statement reads
//! many pages. Each part is a report of its own, in a snapshot of its own.

use std::collections::VecDeque;

use async_trait::async_trait;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    EXPORT_PAGE, ExportError, ExportPages, GroupBy, UsageExport, UsageQuery, UsageRow,
};
use holdfast_domain::limits::Counter;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{Timestamp, WalletId};
use sea_orm::Value;

use super::{BoundPassed, ExportReader, room_after};
use crate::backend::{Pools, Readers};
use crate::error::unavailable;
use crate::options::READ_STATEMENT;
use crate::reading::usage::facts::HOUR;
use crate::reading::usage::{self, WalletRange};
use crate::rows::Cells;
use crate::schema::blob;

/// Operations that are in no row of the sums yet.
const UNSUMMED: &str = "SELECT coalesce((SELECT max(seq) FROM operations), 0)
    - (SELECT operations_to FROM usage_summed) + 1 + (SELECT count(*) FROM late_ends)";
/// The wallet in the middle of a range.
const MEDIAN: &str = "SELECT id FROM wallets WHERE id > $1 AND id <= $2 ORDER BY id LIMIT 1
    OFFSET (SELECT (count(*) - 1) / 2 FROM wallets WHERE id > $1 AND id <= $2)";
const ALL_WALLETS: WalletRange = [WalletId::from_bytes([0; 16]), WalletId::from_bytes([0xff; 16])];

/// Sums of usage, a part at a time.
pub(in crate::reading) struct UsagePages {
    reader: ExportReader,
    query: UsageQuery,
    /// Moment of the beginning.
    now: i64,
    /// Parts that are not read yet.
    parts: VecDeque<UsagePart>,
    /// Rows that may come yet.
    room: u64,
}

/// Part of a report.
#[derive(Debug, Clone, Copy)]
struct UsagePart {
    from: i64,
    to: i64,
    wallets: Option<WalletRange>,
}

impl UsagePages {
    /// Finds the parts, and refuses more rows than the bound.
    pub(in crate::reading) async fn begin(
        reader: ExportReader,
        query: UsageQuery,
        rows_max: u64,
    ) -> Result<UsageExport, ExportError> {
        let now = reader.now().await?.as_micros();
        let (from, to) = query.period.bounds();
        let mut pages = Self { reader, query, now, parts: VecDeque::new(), room: u64::MAX };
        let mut possible: u64 = pages.reader.row(UNSUMMED, [], |cells| cells.small()).await?;
        let mut unplanned = vec![UsagePart { from, to, wallets: None }];
        while let Some(part) = unplanned.pop() {
            let mut rows = pages.summed_rows(part, EXPORT_PAGE.into()).await?;
            if rows > EXPORT_PAGE.into() {
                if let Some([first, second]) = pages.halves(part).await? {
                    unplanned.extend([second, first]);
                    continue;
                }
                rows = pages.summed_rows(part, rows_max).await?;
            }
            possible = possible.saturating_add(rows);
            pages.parts.push_back(part);
        }
        if possible > rows_max {
            let rows = pages.count().await?;
            if rows > rows_max {
                return Err(ExportError::TooManyRows { rows, rows_max });
            }
        }
        pages.room = rows_max;
        Ok(UsageExport { pages: Box::new(pages) })
    }

    /// Number of the groups.
    async fn count(&mut self) -> Result<u64, Unavailable> {
        let (parts, mut rows) = (self.parts.clone(), 0_u64);
        while let Some(page) = self.next_page().await? {
            rows = rows.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        }
        self.parts = parts;
        Ok(rows)
    }

    /// Number of the summed rows of a part, or one more than so many.
    async fn summed_rows(&self, part: UsagePart, most: u64) -> Result<u64, Unavailable> {
        let most = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
        let whole_hour = part.from.saturating_sub(HOUR - 1);
        let mut binds: Vec<Value> = vec![whole_hour.into(), part.to.into(), most.into()];
        let of_wallets = match (part.wallets, self.query.filter.wallet) {
            (Some(range), _) => {
                binds.extend(range.map(|id| blob(id.to_bytes())));
                "AND wallet_id > $4 AND wallet_id <= $5"
            }
            (None, Some(wallet)) => {
                binds.push(blob(wallet.to_bytes()));
                "AND wallet_id = $4"
            }
            (None, None) => "",
        };
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM usage_hours
                WHERE hour >= $1 AND hour < $2 {of_wallets} LIMIT $3) AS part"
        );
        self.reader.row(&sql, binds, |cells| cells.small()).await
    }

    /// Both halves of a part; `None` for one that cannot be halved without halving a group.
    async fn halves(&self, part: UsagePart) -> Result<Option<[UsagePart; 2]>, Unavailable> {
        if let Some(at) = self.middle(part) {
            return Ok(Some([UsagePart { to: at, ..part }, UsagePart { from: at, ..part }]));
        }
        let is_of_wallet = |by| matches!(by, GroupBy::Wallet | GroupBy::ApiKey);
        if self.query.filter.wallet.is_some() || !self.query.by.keys().any(is_of_wallet) {
            return Ok(None);
        }
        let [after, up_to] = part.wallets.unwrap_or(ALL_WALLETS);
        let rows = self.reader.query(MEDIAN, [after, up_to].map(|id| blob(id.to_bytes()))).await?;
        let median = rows.first().map(|row| Cells::new(row).bytes()).transpose();
        let median = median.map_err(unavailable)?.map(WalletId::from_bytes);
        let halves = |at| [[after, at], [at, up_to]];
        let halves = median.filter(|at| *at != up_to).map(halves);
        Ok(halves.map(|both| both.map(|range| UsagePart { wallets: Some(range), ..part })))
    }

    /// Moment between the groups in the middle of a part, if groups are of hours, days or months.
    fn middle(&self, part: UsagePart) -> Option<i64> {
        let [low, high] = [part.from, part.to].map(|bound| bound.clamp(0, self.now));
        let middle = low.midpoint(high);
        let ends = self.query.by.keys().find_map(|by| ends(by, middle))?;
        ends.into_iter().find(|at| low < high && part.from < *at && *at < part.to)
    }

    async fn report(
        &self,
        UsagePart { from, to, wallets }: UsagePart,
        rows_max: u64,
    ) -> Result<Option<Vec<UsageRow>>, Unavailable> {
        let period = Period {
            from: (from != i64::MIN).then(|| Timestamp::from_micros(from)),
            to: (to != i64::MAX).then(|| Timestamp::from_micros(to)),
        };
        // A bound that no report can reach is the largest one, never none.
        let rows_max = Some(u32::try_from(rows_max).unwrap_or(u32::MAX));
        let query = UsageQuery { period, rows_max, ..self.query.clone() };
        let store = &self.reader.store;
        let pool: fn(&Pools) -> &Readers = |pools| &pools.exports;
        let report = store.read_through(pool, READ_STATEMENT, move |db| {
            Box::pin(usage::report(db, query, wallets))
        });
        report.await
    }
}

#[async_trait]
impl ExportPages<UsageRow> for UsagePages {
    async fn next_page(&mut self) -> Result<Option<Vec<UsageRow>>, Unavailable> {
        while let Some(part) = self.parts.pop_front() {
            let page = match self.report(part, EXPORT_PAGE.into()).await? {
                Some(page) => page,
                None => match self.halves(part).await? {
                    Some([first, second]) => {
                        self.parts.push_front(second);
                        self.parts.push_front(first);
                        continue;
                    }
                    None => {
                        let page = self.report(part, self.room).await?;
                        page.ok_or_else(|| unavailable(BoundPassed))?
                    }
                },
            };
            self.room = room_after(self.room, page.len())?;
            if !page.is_empty() {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

/// Beginning and end of the group that has this moment, if groups of this kind are of hours, days or months.
fn ends(by: GroupBy, at: i64) -> Option<[i64; 2]> {
    let counter = match by {
        GroupBy::Hour => {
            let start = at.saturating_sub(at.rem_euclid(HOUR));
            return Some([start, start.saturating_add(HOUR)]);
        }
        GroupBy::Day => Counter::SpendDay,
        GroupBy::Month => Counter::SpendMonth,
        GroupBy::Model | GroupBy::ApiKey | GroupBy::Wallet | GroupBy::Route => return None,
    };
    let at = Timestamp::from_micros(at);
    Some([counter.window(at), counter.window_end(at)?].map(Timestamp::as_micros))
}
