//! The query behind [`crate::usage`]. It reads the rows of all operations: an index by the moment
//! of finishing would cost every request a write, and nobody waits for a report. Rows are summed
//! page by page, so that no more than a page is ever sorted or held.

use std::collections::BTreeMap;
use std::ops::Range;

use holdfast_domain::ports::Unavailable;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ApiKeyId, Currency, WalletId};
use sea_orm::sea_query::{Expr, ExprTrait as _, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryResult, QuerySelect, QueryTrait,
};

use super::page::numbers;
use super::report::{refunds, total};
use super::{ReadError, ReadTransaction};
use crate::Store;
use crate::entity::operation::{self, Column};
use crate::entity::{api_key, wallet};
use crate::rows::{self, BadRow, Cells};
use crate::statement::Period;
use crate::usage::{DAY_MICROS, GroupBy, GroupKey, Sums, Totals, UsageRow};

/// Operations that are summed at once.
const PAGE: usize = 20_000;

/// Names that are looked up at once.
const NAMES: usize = 500;

/// The meters, in the order of [`MeterKind::ALL`].
const METERS: [Column; MeterKind::COUNT] = [
    Column::Input,
    Column::CachedInput,
    Column::CacheWrite,
    Column::AudioInput,
    Column::Output,
    Column::Reasoning,
    Column::AudioOutput,
    Column::Request,
    Column::Image,
];

impl Store {
    /// Usage that finished in a period, summed for each group and currency, sorted by both.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read, or a sum does not fit into 64 bits.
    pub async fn usage(&self, by: GroupBy, period: Period) -> Result<Vec<UsageRow>, Unavailable> {
        self.read_transaction(move |db| Box::pin(report(db, by, period))).await
    }
}

async fn report(
    db: &ReadTransaction,
    by: GroupBy,
    period: Period,
) -> Result<Vec<UsageRow>, ReadError> {
    let (from, to) = period.bounds();
    let numbers = numbers::<operation::Entity>(db, Column::Seq).await?;
    let mut sums = Sums::default();
    for start in numbers.step_by(PAGE) {
        let end = start.saturating_add(i64::try_from(PAGE).unwrap_or(i64::MAX));
        let page = page(by, start..end, from..to);
        for row in db.query_all(&page).await.map_err(super::read)? {
            let (part, currency, totals) = summed(by, &row).map_err(ReadError::Row)?;
            sums.add(part, currency, &totals).map_err(ReadError::Usage)?;
        }
    }
    let names = names(db, by, sums.ids()).await?;
    Ok(sums.with_names(&names))
}

/// Sums over the operations with these numbers that finished then.
pub(crate) fn page(by: GroupBy, numbers: Range<i64>, finished: Range<i64>) -> SelectStatement {
    let part = match by {
        // Spelled out: a bind would be another one in GROUP BY, and so another expression.
        GroupBy::Day => Expr::cust(format!("operations.finished_at / {DAY_MICROS}")),
        GroupBy::Model => Column::Model.into_expr(),
        GroupBy::ApiKey => Column::ApiKeyId.into_expr(),
        GroupBy::Wallet => Column::WalletId.into_expr(),
    };
    let currency = wallet::Column::Currency.into_expr();
    let only = |those: Expr, then: Expr| -> Expr { Expr::case(those, then).into() };
    let count = |those: Expr| only(those, 1.into()).count();
    let refunded = refunds(Column::Id.into_expr());
    // A run that may have cost something, and that nobody was charged for.
    let is_exposed = Column::Phase.is_in(["refused", "abandoned"]);
    let exposure = only(is_exposed, Column::Hold.into_expr());
    let (charge, cost) = (Column::Charge.into_expr(), Column::ProviderCost.into_expr());
    // Nothing of what has no cost: it is absent there, and so is the difference.
    let margin = charge.clone().sub(refunded.clone()).sub(cost.clone());
    let mut page = Query::select();
    page.exprs([part.clone(), currency.clone()])
        .exprs(["completed", "refused", "abandoned"].map(|phase| count(Column::Phase.eq(phase))))
        .expr(count(Column::MetersSource.eq("estimated")))
        .exprs(METERS.map(|meter| total(meter.into_expr())))
        .exprs([charge, Column::Shortfall.into_expr(), refunded, exposure].map(total))
        .expr(cost.clone().count())
        .exprs([cost, margin].map(total))
        .from(operation::Entity)
        // Operations come first in the join, whatever the planner thinks of wallets.
        .cross_join(wallet::Entity)
        .and_where(wallet::Column::Id.into_expr().eq(Column::WalletId.into_expr()))
        .and_where(Column::Seq.gte(numbers.start))
        .and_where(Column::Seq.lt(numbers.end))
        .and_where(Column::FinishedAt.gte(finished.start))
        .and_where(Column::FinishedAt.lt(finished.end))
        .add_group_by([part, currency]);
    page
}

fn summed(by: GroupBy, row: &QueryResult) -> Result<(GroupKey, Currency, Totals), BadRow> {
    let mut cells = Cells::new(row);
    let part = match by {
        GroupBy::Day => GroupKey::Day(cells.int()?),
        GroupBy::Model => GroupKey::Model(cells.text()?),
        GroupBy::ApiKey => GroupKey::ApiKey(ApiKeyId::from_bytes(cells.bytes()?)),
        GroupBy::Wallet => GroupKey::Wallet(WalletId::from_bytes(cells.bytes()?)),
    };
    let currency = rows::currency(&mut cells)?;
    let (completed, refused, abandoned) = (cells.small()?, cells.small()?, cells.small()?);
    let estimated = cells.small()?;
    let mut meters = [0; MeterKind::COUNT];
    for count in &mut meters {
        *count = cells.small()?;
    }
    let (charge, shortfall, refunded) = (cells.micros()?, cells.micros()?, cells.micros()?);
    let exposure = cells.micros()?;
    let (costed, provider_cost, margin) = (cells.small()?, cells.micros()?, cells.micros()?);
    let totals = Totals {
        completed,
        refused,
        abandoned,
        estimated,
        meters,
        charge,
        shortfall,
        refunded,
        exposure,
        costed,
        provider_cost,
        margin,
    };
    Ok((part, currency, totals))
}

/// The names of what is grouped by id.
async fn names(
    db: &ReadTransaction,
    by: GroupBy,
    ids: Vec<[u8; 16]>,
) -> Result<BTreeMap<[u8; 16], String>, ReadError> {
    let mut names = BTreeMap::new();
    for ids in ids.chunks(NAMES) {
        let ids = ids.iter().map(|id| id.to_vec());
        let named = match by {
            GroupBy::Day | GroupBy::Model => break,
            GroupBy::ApiKey => {
                use api_key::Column::{Id, Name};
                let some = api_key::Entity::find().select_only().columns([Id, Name]);
                some.filter(Id.is_in(ids)).into_query()
            }
            GroupBy::Wallet => {
                use wallet::Column::{Id, Name};
                let some = wallet::Entity::find().select_only().columns([Id, Name]);
                some.filter(Id.is_in(ids)).into_query()
            }
        };
        names.extend(db.select::<([u8; 16], String)>(&named).await?);
    }
    Ok(names)
}
