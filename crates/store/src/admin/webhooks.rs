//! Webhooks and their deliveries: read here, and worked through by the outbox.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::WebhookRecord;
use holdfast_domain::admin::listing::{Order, PAGE_MAX, Page, PageCursor, PageRequest};
use holdfast_domain::admin::ports::{Deliveries, DueDelivery, Outbox, Webhooks};
use holdfast_domain::admin::webhook::{DeliveryRecord, DeliveryRoom, FinishedTry, FollowUp};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{EventId, WalletId, WebhookId};
use sea_orm::{QueryResult, Value};

use crate::error::unavailable;
use crate::rows::webhook::{DELIVERY, delivery};
use crate::rows::{BadRow, Cells, FromCells, Row};
use crate::schema::blob;
use crate::store::Store;
use crate::transaction::outbox::{self, finish};

impl Store {
    /// Publishes the kinds of events that webhooks receive to readers of the outbox. Every kind is written until
    /// the first read.
    async fn learn_wanted_kinds(&self) -> Result<(), Unavailable> {
        if self.inner.interest.is_known() {
            return Ok(());
        }
        let rows = self.query(outbox::WANTED, []).await?;
        let kinds: Result<Vec<String>, BadRow> =
            rows.iter().map(|row| Cells::new(row).text()).collect();
        self.send_events(outbox::wanted(&kinds.map_err(unavailable)?));
        self.inner.interest.learnt();
        Ok(())
    }
}

/// A page of a table `t`, by its numbers: order, bound and limit as SQL, behind `$1` and `$2`.
fn paged(t: &str, PageRequest { order, after, limit }: PageRequest) -> (String, [Value; 2]) {
    let (direction, beyond, open_end) = match order {
        Order::Newest => ("DESC", "<", i64::MAX),
        Order::Oldest => ("ASC", ">", i64::MIN),
    };
    let PageCursor(after) = after.unwrap_or(PageCursor(open_end));
    // One row more than a page shows that there is a next page.
    let rows = i64::from(limit.clamp(1, PAGE_MAX)).saturating_add(1);
    let sql = format!("AND {t}.seq {beyond} $1 ORDER BY {t}.seq {direction} LIMIT $2");
    (sql, [after.into(), rows.into()])
}

/// Reads a page of rows that begin with their number.
fn read_page<T>(
    rows: &[QueryResult],
    request: PageRequest,
    read: fn(&mut Cells<'_>) -> Result<T, BadRow>,
) -> Result<Page<T>, Unavailable> {
    let numbered = |row| {
        let mut cells = Cells::new(row);
        Ok((PageCursor(cells.int()?), read(&mut cells)?))
    };
    let found: Result<Vec<_>, BadRow> = rows.iter().map(numbered).collect();
    let limit = usize::try_from(request.limit.clamp(1, PAGE_MAX)).unwrap_or(usize::MAX);
    Ok(Page::of(found.map_err(unavailable)?, limit))
}

#[async_trait]
impl Webhooks for Store {
    async fn webhook(&self, id: WebhookId) -> Result<Option<WebhookRecord>, Unavailable> {
        let columns = WebhookRecord::COLUMNS;
        let sql = format!("SELECT {columns} FROM webhooks AS h WHERE h.id = $1");
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        rows.first()
            .map(|row| WebhookRecord::from_cells(&mut Cells::new(row)))
            .transpose()
            .map_err(unavailable)
    }

    async fn webhooks(
        &self,
        wallet: Option<WalletId>,
        request: PageRequest,
    ) -> Result<Page<WebhookRecord>, Unavailable> {
        self.webhook_page(wallet, request).await
    }

    async fn delivery(
        &self,
        webhook: WebhookId,
        event: EventId,
    ) -> Result<Option<DeliveryRecord>, Unavailable> {
        let sql = format!(
            "SELECT {DELIVERY} FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
             WHERE d.webhook_id = $1 AND e.id = $2"
        );
        let rows = self.query(&sql, [blob(webhook.to_bytes()), blob(event.to_bytes())]).await?;
        rows.first().map(|row| delivery(&mut Cells::new(row))).transpose().map_err(unavailable)
    }

    async fn deliveries(
        &self,
        webhook: WebhookId,
        request: PageRequest,
    ) -> Result<Page<DeliveryRecord>, Unavailable> {
        let (page, [after, limit]) = paged("d", request);
        let sql = format!(
            "SELECT d.seq, {DELIVERY} FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
             WHERE d.webhook_id = $3 {page}"
        );
        let rows = self.query(&sql, [after, limit, blob(webhook.to_bytes())]).await?;
        read_page(&rows, request, delivery)
    }
}

#[async_trait]
impl Deliveries for Store {
    async fn outbox(&self) -> Result<Outbox, Unavailable> {
        self.learn_wanted_kinds().await?;
        let rows = self.query(&outbox::look(self.dialect()), []).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        let mut cells = Cells::new(row);
        let mut read = || {
            let has_events = cells.int()? != 0;
            let next_due_at = cells.opt_timestamp()?;
            Ok::<_, BadRow>(Outbox { has_events, next_due_at, now: cells.timestamp()? })
        };
        read().map_err(unavailable)
    }

    async fn event_written(&self) {
        self.inner.interest.written().await;
    }

    async fn fan_out(&self, events_max: u32) -> Result<usize, Unavailable> {
        self.exchange(outbox::fan_out(self.dialect(), events_max)).await
    }

    async fn lease_deliveries(
        &self,
        owner: &Node,
        lease: Duration,
        room: &DeliveryRoom,
    ) -> Result<Vec<DueDelivery>, Unavailable> {
        self.exchange(outbox::lease(self.dialect(), owner, lease, room)).await
    }

    async fn finish_tries(
        &self,
        owner: &Node,
        finished: &[FinishedTry],
    ) -> Result<Vec<Option<FollowUp>>, Unavailable> {
        if finished.is_empty() {
            return Ok(Vec::new());
        }
        self.exchange(finish::finish(self.dialect(), owner, finished)).await
    }

    async fn give_back(&self, owner: &Node) -> Result<(), Unavailable> {
        self.exchange(outbox::give_back(self.dialect(), owner)).await
    }
}
