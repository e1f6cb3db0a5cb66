//! Reports of usage, the queries behind [`holdfast_domain::admin::report`].
//!
//! ```text
//!             period.from            whole hours            period.to
//! summed           |--edge--|==========================|--edge--|      usage_hours; edges: operations
//! not summed       |--------------------------------------------|      operations, from the first number
//! ended late       |--------------------------------------------|      operations that are noted
//! ```
//!
//! Every operation that has finished is in one of the three (`summing`), and so is every refund.
//! All is read in one transaction: what is summed meanwhile is neither missed nor read twice.
//! Operations are read page by page, so that no more than a page is ever sorted or held. Of each
//! statement no more groups are read than the report may have and one: the one more ends it.

mod check;
mod exclusion;
pub(crate) mod facts;
mod summing;
mod sums;

use std::ops::Range;

use holdfast_domain::limits::Counter;
use holdfast_domain::{ApiKeyId, OperationId, Timestamp, WalletId};
use sea_orm::sea_query::SelectStatement;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect, QueryTrait,
};

pub(crate) use self::check::mismatches;
use self::facts::{HOUR, Scope, Selection};
pub(crate) use self::summing::SETTLED;
use super::names::of_kind;
use super::page::numbers;
use super::{ReadError, ReadTransaction};
use crate::reading::usage::sums::{GroupKey, GroupNames, Sums};
use crate::rows::FromCells;
use crate::rows::entity::{api_key, operation, posting, wallet};
use crate::rows::{self, BadRow, Cells};
use crate::transaction::hour::{self, SummingPosition};
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{GroupBy, UsageFilter, UsageQuery, UsageRow};

/// Operations whose cost no run can have caused, and which are not noted as excluded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsurdCosts {
    /// The first of them.
    pub first: OperationId,
    /// Number of them.
    pub operations: u64,
}

/// Progress of summing what has finished, which makes reports fast and changes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummingProgress {
    /// A step was made, by this process or another; there may be more to sum.
    Step,
    /// Everything that is old enough is summed.
    Done,
}

/// Operations that are summed at once.
const PAGE: usize = 20_000;

/// Days of the longest month.
const DAYS_OF_MONTH: u64 = 31;

const SUMMED: &str = "SELECT steps, operations_to, postings_to FROM usage_summed";

/// Wallets of a part of a report: those after the first id, up to the second one.
pub(super) type WalletRange = [WalletId; 2];

/// A report in the making.
struct Report<'r> {
    db: &'r ReadTransaction,
    keys: Vec<GroupBy>,
    filter: UsageFilter,
    summed_to: i64,
    sums: Sums,
    rows_max: Option<u32>,
    wallets: Option<WalletRange>,
    /// True if there are more groups than rows may be.
    is_too_long: bool,
}

/// The rows of a report, or of the part of it with some wallets; `None` if there are more of them than it may have.
pub(super) async fn report(
    db: &ReadTransaction,
    UsageQuery { by, filter, period, rows_max }: UsageQuery,
    wallets: Option<WalletRange>,
) -> Result<Option<Vec<UsageRow>>, ReadError> {
    let filter = with_wallet(db, filter).await?;
    let keys = by.keys().collect();
    let sums = Sums::default();
    let summed = summed(db).await?;
    let summed_to = summed.operations_to;
    let is_too_long = false;
    let mut report = Report { db, keys, filter, summed_to, sums, rows_max, wallets, is_too_long };
    let (from, to) = period.bounds();
    let all = numbers::<operation::Entity>(db, operation::Column::Seq).await?;
    let postings = numbers::<posting::Entity>(db, posting::Column::Seq).await?;
    let Split { hours, edges } = Split::of(period);
    report.add(|scope| scope.hours(&hours)).await?;
    report.walk(summed.operations_to..all.end, from..to).await?;
    report.add(|scope| scope.operations(&Selection::Late, &(from..to))).await?;
    report.add(|scope| scope.refunds(&(summed.postings_to..postings.end), &(from..to))).await?;
    for edge in edges.into_iter().flatten() {
        report.walk(all.start..summed.operations_to, edge.clone()).await?;
        report.add(|scope| scope.refunds(&(postings.start..summed.postings_to), &edge)).await?;
    }
    // Never summed: the costs that come late are few.
    report.add(|scope| scope.late_costs(&(from..to))).await?;
    if report.is_too_long {
        return Ok(None);
    }
    let names = names(db, report.sums.ids()).await?;
    Ok(Some(report.sums.with_names(&names)))
}

impl Report<'_> {
    /// Adds up the operations with these numbers that finished then.
    async fn walk(&mut self, numbers: Range<i64>, finished: Range<i64>) -> Result<(), ReadError> {
        for page in pages(numbers, PAGE) {
            if self.is_too_long {
                break;
            }
            let page = Selection::Numbers(page);
            self.add(|scope| scope.operations(&page, &finished)).await?;
        }
        Ok(())
    }

    async fn add(
        &mut self,
        statement: impl FnOnce(&Scope<'_>) -> SelectStatement,
    ) -> Result<(), ReadError> {
        if self.is_too_long {
            return Ok(());
        }
        let groups_max = self.groups_max();
        let Self { db, keys, filter, sums, rows_max, wallets, is_too_long, summed_to } = self;
        let (summed_to, wallets) = (*summed_to, *wallets);
        let mut select =
            statement(&Scope { dialect: db.dialect(), keys, filter, wallets, summed_to });
        if let Some(groups_max) = groups_max {
            select.limit(groups_max.saturating_add(1));
        }
        let rows = db.query_all(&select).await.map_err(super::read)?;
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        if groups_max.is_some_and(|most| count > most) {
            *is_too_long = true;
            return Ok(());
        }
        for row in rows {
            let mut cells = Cells::new(&row);
            let mut key = |by: &GroupBy| key(*by, &mut cells).map_err(ReadError::Row);
            let mut keys = keys.iter();
            let first = keys.next().map_or(Err(ReadError::Row(BadRow::Value(0))), &mut key)?;
            let second = keys.next().map(&mut key).transpose()?;
            let currency = rows::currency(&mut cells).map_err(ReadError::Row)?;
            let more = hour::sums(&mut cells).map_err(ReadError::Row)?;
            sums.add((first, second), currency, more);
        }
        let count = u32::try_from(sums.len()).unwrap_or(u32::MAX);
        *is_too_long = rows_max.is_some_and(|most| count > most);
        Ok(())
    }

    /// Most groups that one statement may find, if the report has a bound. Months are found by their days.
    fn groups_max(&self) -> Option<u64> {
        let days = if self.keys.contains(&GroupBy::Month) { DAYS_OF_MONTH } else { 1 };
        self.rows_max.map(|most| u64::from(most).saturating_mul(days))
    }
}

/// A period in whole hours, and the parts of hours before and after them.
#[derive(Debug, PartialEq, Eq)]
struct Split {
    hours: Range<i64>,
    edges: [Option<Range<i64>>; 2],
}

impl Split {
    fn of(period: Period) -> Self {
        let (from, to) = period.bounds();
        let before = |moment: i64| moment.saturating_sub(moment.rem_euclid(HOUR));
        let first = match period.from {
            Some(_) if before(from) < from => before(from).saturating_add(HOUR),
            Some(_) | None => from,
        };
        let last = period.to.map_or(to, |_bounded| before(to));
        if first > last {
            // Within one hour.
            return Self { hours: 0..0, edges: [Some(from..to), None] };
        }
        let edge = |edge: Range<i64>| (!edge.is_empty()).then_some(edge);
        Self { hours: first..last, edges: [edge(from..first), edge(last..to)] }
    }
}

/// Numbers by the page.
fn pages(numbers: Range<i64>, page: usize) -> impl Iterator<Item = Range<i64>> {
    let (end, width) = (numbers.end, i64::try_from(page).unwrap_or(i64::MAX));
    numbers.step_by(page).map(move |start| start..start.saturating_add(width).min(end))
}

/// Numbers to which operations and postings are summed.
async fn summed(db: &ReadTransaction) -> Result<SummingPosition, ReadError> {
    let rows = db.query(SUMMED, []).await?;
    let row = rows.first().ok_or(ReadError::Row(BadRow::Value(0)))?;
    let mut cells = Cells::new(row);
    let mut number = || cells.int().map_err(ReadError::Row);
    Ok(SummingPosition { steps: number()?, operations_to: number()?, postings_to: number()? })
}

/// The filter with the wallet of its API key: sums are found by their wallet.
async fn with_wallet(db: &ReadTransaction, filter: UsageFilter) -> Result<UsageFilter, ReadError> {
    let (None, Some(id)) = (filter.wallet, filter.api_key) else { return Ok(filter) };
    let found: Vec<WalletId> = db.select(wallet_of(id).as_query()).await?;
    Ok(UsageFilter { wallet: found.first().copied(), ..filter })
}

fn wallet_of(id: ApiKeyId) -> sea_orm::Select<api_key::Entity> {
    use api_key::Column;
    api_key::Entity::find()
        .select_only()
        .column(Column::WalletId)
        .filter(Column::Id.eq(id.to_bytes().to_vec()))
}

fn key(by: GroupBy, cells: &mut Cells<'_>) -> Result<GroupKey, BadRow> {
    Ok(match by {
        GroupBy::Hour => GroupKey::Hour(cells.timestamp()?),
        GroupBy::Day => GroupKey::Day(cells.timestamp()?),
        GroupBy::Month => GroupKey::Month(month(cells.timestamp()?)),
        GroupBy::Model => GroupKey::Model(cells.text()?),
        GroupBy::ApiKey => GroupKey::ApiKey(ApiKeyId::from_bytes(cells.bytes()?)),
        GroupBy::Wallet => GroupKey::Wallet(WalletId::from_bytes(cells.bytes()?)),
        GroupBy::Route => GroupKey::Route(cells.text()?),
    })
}

/// The month of a day, as spend limits have it.
fn month(day: Timestamp) -> Timestamp {
    Counter::SpendMonth.window(day)
}

impl FromCells for WalletId {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        cells.bytes().map(Self::from_bytes)
    }
}

/// The names of what is grouped by id.
async fn names(
    db: &ReadTransaction,
    [api_keys, wallets]: [Vec<[u8; 16]>; 2],
) -> Result<GroupNames, ReadError> {
    let columns = [api_key::Column::Id, api_key::Column::Name];
    let mut names = of_kind::<api_key::Entity>(db, columns, &api_keys, Condition::all()).await?;
    let columns = [wallet::Column::Id, wallet::Column::Name];
    names.extend(of_kind::<wallet::Entity>(db, columns, &wallets, Condition::all()).await?);
    Ok(names)
}
