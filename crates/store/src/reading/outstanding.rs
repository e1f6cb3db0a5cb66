//! The queries behind [`crate::reading::report`].

use std::time::Duration;

use holdfast_domain::admin::listing::LiveCredential;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{Currency, Micros, Timestamp};
use sea_orm::sea_query::{Expr, ExprTrait, Func, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, RelationTrait, Select,
};

use crate::reading::report::OutstandingHolds;
use crate::rows::FromCells;
use crate::rows::entity::{api_key, credential, operation, posting, price};
use crate::rows::{self, BadRow, Cells};
use crate::store::Store;

impl Store {
    /// Every credential that is in force, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read.
    pub async fn live_credentials(&self) -> Result<Vec<LiveCredential>, Unavailable> {
        self.read_transaction(move |db| {
            Box::pin(async move {
                let now = db.now().await?.as_micros();
                db.select(in_force(now).as_query()).await
            })
        })
        .await
    }

    /// Sums over the holds of running operations.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read.
    pub async fn outstanding(&self) -> Result<OutstandingHolds, Unavailable> {
        use operation::Column;
        let held = operation::Entity::find()
            .select_only()
            .column(price::Column::Currency)
            .expr(Expr::cust(self.dialect().clock()))
            .expr(Column::Seq.count())
            .exprs(wide_total(&Column::Hold.into_expr()))
            .expr(Column::AdmittedAt.min())
            .join(JoinType::InnerJoin, operation::Relation::Price.def())
            .filter(Expr::cust(self.dialect().is_running("operations")))
            .group_by(price::Column::Currency);
        let mut outstanding = OutstandingHolds::default();
        for held in self.select::<HeldRow>(held.as_query()).await? {
            outstanding.count = outstanding.count.saturating_add(held.count);
            outstanding.amounts.insert(held.currency, held.amount);
            let age = held.now.as_micros().saturating_sub(held.oldest.as_micros());
            let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
            outstanding.oldest_age = outstanding.oldest_age.max(age);
        }
        Ok(outstanding)
    }
}

/// Sum of the refunds of one operation, of which `id` is the id.
pub(super) fn refunds(id: impl Into<Expr>) -> Expr {
    use posting::Column;
    let sum = Query::select()
        .expr(total(Column::Amount.into_expr()))
        .from(posting::Entity)
        .and_where(Column::OperationId.into_expr().eq(id.into()))
        .take();
    subquery(sum)
}

/// Sum of 64 bits, or an error of the database.
fn total(of: Expr) -> Expr {
    // Explicit, since a sum of bigint is NUMERIC on PostgreSQL, which is not read as 64 bits.
    Expr::from(Func::coalesce([of.sum(), 0.into()])).cast_as("bigint")
}

/// Sum in two halves of 64 bits, which no number of rows overflows; read by [`Cells::wide`].
pub(super) fn wide_total(of: &Expr) -> [Expr; 2] {
    // Of 64 bits: a number of a statement has 32 on PostgreSQL, and is not moved by as many.
    let wide = || of.clone().cast_as("bigint");
    [total(wide().right_shift(32)), total(wide().bit_and(4_294_967_295_i64))]
}

pub(super) fn subquery(select: SelectStatement) -> Expr {
    Expr::SubQuery(None, Box::new(select.into()))
}

/// Credentials in force of API keys in force, the oldest first.
pub(super) fn in_force(now: i64) -> Select<credential::Entity> {
    use credential::Column;
    let columns =
        [Column::Id, Column::ApiKeyId, Column::ServerSecret, Column::CreatedAt, Column::EndsAt];
    credential::Entity::find()
        .select_only()
        .columns(columns)
        .join(JoinType::InnerJoin, credential::Relation::ApiKey.def())
        .filter(is_in_force(now))
        .filter(Column::EndsAt.is_null().or(Column::EndsAt.gt(now)))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
}

/// Condition: an API key is neither revoked nor past its end.
pub(super) fn is_in_force(now: i64) -> Condition {
    use api_key::Column;
    let has_time = Column::EndsAt.is_null().or(Column::EndsAt.gt(now));
    Condition::all().add(Column::RevokedAt.is_null()).add(has_time)
}

/// Holds of one currency.
struct HeldRow {
    currency: Currency,
    now: Timestamp,
    count: u64,
    amount: Micros,
    oldest: Timestamp,
}

impl FromCells for HeldRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self {
            currency: rows::currency(cells)?,
            now: cells.timestamp()?,
            count: cells.small()?,
            // More than an amount can be only over several wallets.
            amount: Micros::saturating_from(u128::try_from(cells.wide()?).unwrap_or(0)),
            oldest: cells.timestamp()?,
        })
    }
}
