//! The query behind [`Store::operations`]: operations with their price, lease, refunds and the name
//! of their API key, one row each.
//!
//! A moment becomes a number by bisection, since there is no index by time: numbers follow moments
//! of creation, but for [`CREATION_DISORDER`]. A clock that was set back by more than that makes a
//! filter by time leave rows out.

use std::ops::Range;

use holdfast_domain::operation::{Lease, Operation};
use holdfast_domain::{Micros, Timestamp};
use sea_orm::sea_query::{Expr, ExprTrait as _, Func};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, Iterable, JoinType, QueryFilter, QuerySelect, QueryTrait,
    RelationTrait, Select,
};

use super::outstanding::refunds;
use super::page::{PageWindow, first_at, numbers, page, sparse_page};
use super::{ReadError, ReadTransaction};
use crate::options::CREATION_DISORDER;
use crate::rows::FromCells;
use crate::rows::entity::operation::{Column, Entity, Relation};
use crate::rows::entity::{api_key, node, price};
use crate::rows::late_cost::LATE_COST;
use crate::rows::{self, BadRow, Cells};
use crate::schema::Dialect;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::listing::{
    OperationFilter, OperationListing, Page, PageRequest, ROWS_READ_MAX, SCATTERED_ROWS_READ_MAX,
    Scope,
};

/// A page of operations.
pub(super) async fn operations(
    db: &ReadTransaction,
    filter: OperationFilter,
    request: PageRequest,
) -> Result<Page<OperationListing>, ReadError> {
    // Before the rows: on SQLite a lease that is renewed meanwhile is in them, and on a server the clock
    // and the rows are of one snapshot. None is shown as over too early.
    let now = db.now().await?;
    let select = select(db.dialect(), &filter, now);
    let found: Page<OperationRow> = if filter.is_sparse() {
        let window = window(&filter, created_in(db, filter.created).await?);
        sparse_page(db, select, window, Column::Seq, request).await?
    } else {
        page(db, select, Column::Seq, request).await?
    };
    let listing = |OperationRow { operation, lease, api_key_name, refunded, late_cost }| {
        OperationListing { operation, api_key_name, refunded, late_cost, lease, now }
    };
    Ok(found.map(listing))
}

/// Operations with these numbers that an index leads to: of an API key, of a wallet, all.
pub(super) fn window(filter: &OperationFilter, numbers: Range<i64>) -> PageWindow<Entity> {
    let all = Entity::find();
    let (indexed, rows_max) = match (filter.api_key, filter.wallet) {
        (Some(api_key), _) => {
            let of_key = all.filter(Column::ApiKeyId.eq(api_key.to_bytes().to_vec()));
            (of_key, SCATTERED_ROWS_READ_MAX)
        }
        (None, Some(wallet)) => {
            let of_wallet = all.filter(Column::WalletId.eq(wallet.to_bytes().to_vec()));
            (of_wallet, SCATTERED_ROWS_READ_MAX)
        }
        (None, None) => (all, ROWS_READ_MAX),
    };
    PageWindow { indexed, numbers, rows_max }
}

/// Every column that [`OperationRow`] reads, of what the filter lets through.
pub(super) fn select(dialect: Dialect, filter: &OperationFilter, now: Timestamp) -> Select<Entity> {
    let is_stale = Condition::any()
        .add(Column::Phase.eq("recorded"))
        .add(node::Column::Name.is_null())
        .add(node::Column::Incarnation.into_expr().ne(Column::Incarnation.into_expr()))
        .add(node::Column::EndsAt.lte(now.as_micros()));
    let is_running = || Expr::cust(dialect.is_running("operations"));
    let Period { from, to } = filter.created;
    let operations = Entity::find()
        .columns(price::Column::iter())
        .columns([node::Column::Name, node::Column::Incarnation, node::Column::EndsAt])
        .column(api_key::Column::Name)
        .expr(refunds(Column::Id.into_expr()))
        .expr(Expr::cust(LATE_COST))
        // Outer joins: none of these is a foreign key, and no row may be hidden by what it lacks.
        .join(JoinType::LeftJoin, Relation::Price.def())
        .join(JoinType::LeftJoin, Relation::Node.def())
        .join(JoinType::LeftJoin, Relation::ApiKey.def())
        .apply_if(filter.wallet, |all, id| {
            let is_led_by = filter.scope == Scope::All && filter.api_key.is_none();
            all.filter(led_by(Column::WalletId, is_led_by).eq(id.to_bytes().to_vec()))
        })
        .apply_if(filter.api_key, |all, id| {
            let is_led_by = filter.scope == Scope::All;
            all.filter(led_by(Column::ApiKeyId, is_led_by).eq(id.to_bytes().to_vec()))
        })
        .apply_if(from, |all, from| all.filter(Column::CreatedAt.gte(from.as_micros())))
        .apply_if(to, |all, to| all.filter(Column::CreatedAt.lt(to.as_micros())))
        .apply_if(filter.model.as_ref(), |all, id| all.filter(Column::Model.eq(id.to_string())))
        .apply_if(filter.status, |all, status| all.filter(Column::Phase.eq(status.label())))
        .apply_if(filter.charge.from, |all, from| all.filter(Column::Charge.gte(from.get())))
        .apply_if(filter.charge.to, |all, to| all.filter(Column::Charge.lt(to.get())));
    match filter.scope {
        Scope::All => operations,
        Scope::Running => operations.filter(is_running()),
        Scope::Stale => operations.filter(is_running()).filter(is_stale),
    }
}

/// A column that its index leads by, or, hidden from planners, one that is only compared: few operations run, and
/// an index of wallets or keys would lead through all operations of that one; and of the two, that of the keys
/// finds fewer.
fn led_by(column: Column, is_led_by: bool) -> Expr {
    let of = || column.into_expr();
    if is_led_by { of() } else { Expr::from(Func::coalesce([of(), of()])) }
}

/// The numbers of all operations that were created in a period, and of some before and after it.
async fn created_in(db: &ReadTransaction, period: Period) -> Result<Range<i64>, ReadError> {
    let all = numbers::<Entity>(db, Column::Seq).await?;
    let disorder = i64::try_from(CREATION_DISORDER.as_micros()).unwrap_or(i64::MAX);
    let columns = [Column::Seq, Column::CreatedAt];
    let created_at = |moment| first_at::<Entity>(db, columns, moment, all.clone());
    // Rows from after now stand anywhere: a clock was ahead when they were created.
    let now = db.now().await?;
    let start = match period.from {
        Some(from) if from > now => all.start,
        Some(from) => created_at(from.as_micros().saturating_sub(disorder)).await?,
        None => all.start,
    };
    let end = match period.to {
        Some(to) if to > now => all.end,
        Some(to) => created_at(to.as_micros().saturating_add(disorder)).await?,
        None => all.end,
    };
    Ok(start..end)
}

/// A row of the list without what all rows share.
pub(super) struct OperationRow {
    operation: Operation,
    lease: Option<Lease>,
    api_key_name: Option<String>,
    refunded: Micros,
    late_cost: Option<Micros>,
}

impl FromCells for OperationRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        // `released` and the version of the price, which comes again with the price.
        cells.skip(2);
        Ok(Self {
            operation: rows::operation(cells)?,
            lease: rows::lease(cells)?,
            api_key_name: cells.opt_text()?,
            refunded: cells.micros()?,
            late_cost: cells.opt_int()?.map(Micros::new),
        })
    }
}
