//! The list of events, and one of them by its id.

use async_trait::async_trait;
use holdfast_domain::EventId;
use holdfast_domain::admin::event::{EventFilter, EventRecord};
use holdfast_domain::admin::listing::{Page, PageRequest};
use holdfast_domain::admin::ports::Events;
use holdfast_domain::ports::Unavailable;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryTrait};

use super::page::{PageWindow, page, sparse_page};
use super::{ReadError, ReadTransaction};
use crate::rows::entity::event::{Column, Entity};
use crate::store::Store;

#[async_trait]
impl Events for Store {
    async fn events(
        &self,
        filter: EventFilter,
        request: PageRequest,
    ) -> Result<Page<EventRecord>, Unavailable> {
        self.read_transaction(move |db| Box::pin(events(db, filter, request))).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRecord>, Unavailable> {
        let of_id = Entity::find().filter(Column::Id.eq(id.to_bytes().to_vec()));
        let found: Vec<(i64, EventRecord)> = self.select(of_id.as_query()).await?;
        Ok(found.into_iter().next().map(|(_, event)| event))
    }
}

async fn events(
    db: &ReadTransaction,
    filter: EventFilter,
    request: PageRequest,
) -> Result<Page<EventRecord>, ReadError> {
    let events = Entity::find().apply_if(filter.wallet, |events, wallet| {
        events.filter(Column::WalletId.eq(wallet.to_bytes().to_vec()))
    });
    let Some(kind) = filter.kind else {
        return page(db, events, Column::Seq, request).await;
    };
    // No index leads from a kind to its events.
    let of_kind = events.clone().filter(Column::Kind.eq(kind.label()));
    let all = PageWindow::of_all(db, events, Column::Seq).await?;
    sparse_page(db, of_kind, all, Column::Seq, request).await
}
