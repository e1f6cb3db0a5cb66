//! The list of refused requests, one of them by its id, and the counts of all by the hour.

use async_trait::async_trait;
use holdfast_domain::RequestId;
use holdfast_domain::admin::listing::{Page, PageRequest};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter, RefusedRequests};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::statistics::RefusedRequest;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select};

use super::page::{PageWindow, page, sparse_page};
use super::{ReadError, ReadTransaction};
use crate::rows::entity::refusal::{Column, Entity, SlottedRefusal};
use crate::rows::entity::refusal_hour;
use crate::rows::{BadRow, Cells, FromCells};
use crate::store::Store;

#[async_trait]
impl RefusedRequests for Store {
    async fn refused_requests(
        &self,
        filter: RefusalFilter,
        request: PageRequest,
    ) -> Result<Page<RefusedRequest>, Unavailable> {
        self.read_transaction(move |db| Box::pin(refused_requests(db, filter, request))).await
    }

    async fn refused_request(&self, id: RequestId) -> Result<Option<RefusedRequest>, Unavailable> {
        let of_id = Entity::find().filter(Column::RequestId.eq(id.to_bytes().to_vec()));
        let found: Vec<(i64, SlottedRefusal)> = self.select(of_id.as_query()).await?;
        Ok(found.into_iter().next().map(|(_, row)| row.request))
    }

    async fn refusal_hours(
        &self,
        filter: RefusalFilter,
        limit: u32,
    ) -> Result<Vec<HourlyRefusals>, Unavailable> {
        use refusal_hour::Column;
        let (from, to) = filter.period.bounds();
        let sum = Expr::cust("CAST(sum(count) AS bigint)");
        let hours = refusal_hour::Entity::find()
            .select_only()
            .columns([Column::Hour, Column::Code])
            .expr(sum)
            .filter(Column::Hour.gte(from))
            .filter(Column::Hour.lt(to))
            .apply_if(filter.wallet, |hours, wallet| {
                hours.filter(Column::WalletId.eq(wallet.to_bytes().to_vec()))
            })
            .apply_if(filter.api_key, |hours, api_key| {
                hours.filter(Column::ApiKeyId.eq(api_key.to_bytes().to_vec()))
            })
            .apply_if(filter.code, |hours, code| hours.filter(Column::Code.eq(code)))
            .group_by(Column::Hour)
            .group_by(Column::Code)
            .order_by_desc(Column::Hour)
            .order_by_asc(Column::Code)
            .limit(u64::from(limit));
        // On the connections of reports: many rows may be added up.
        self.report_transaction(move |db| {
            Box::pin(async move { db.select(hours.as_query()).await })
        })
        .await
    }
}

impl FromCells for HourlyRefusals {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self { hour: cells.get()?, code: cells.get()?, count: cells.get()? })
    }
}

async fn refused_requests(
    db: &ReadTransaction,
    filter: RefusalFilter,
    request: PageRequest,
) -> Result<Page<RefusedRequest>, ReadError> {
    let RefusalFilter { wallet, api_key, code, period } = filter;
    // An index leads from a wallet to its requests, and from an API key to its few.
    let indexed = Entity::find()
        .apply_if(wallet, |all, wallet| all.filter(Column::WalletId.eq(wallet.to_bytes().to_vec())))
        .apply_if(api_key, |all, api_key| {
            all.filter(Column::ApiKeyId.eq(api_key.to_bytes().to_vec()))
        });
    let is_sparse = code.is_some() || period.from.is_some() || period.to.is_some();
    let filtered: Select<Entity> = indexed
        .clone()
        .apply_if(code, |all, code| all.filter(Column::Code.eq(code)))
        .apply_if(period.from, |all, from| all.filter(Column::RefusedAt.gte(from.as_micros())))
        .apply_if(period.to, |all, to| all.filter(Column::RefusedAt.lt(to.as_micros())));
    let found: Page<SlottedRefusal> = if is_sparse && api_key.is_none() {
        let all = PageWindow::of_all(db, indexed, Column::Seq).await?;
        sparse_page(db, filtered, all, Column::Seq, request).await?
    } else {
        page(db, filtered, Column::Seq, request).await?
    };
    Ok(found.map(|row| row.request))
}
