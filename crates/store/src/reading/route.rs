//! Statistics of routes, as operators read them.

use async_trait::async_trait;
use holdfast_domain::admin::RouteReports;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::statistics::{BreakerReport, NodeBreaker, RouteFailure, RouteHour};
use holdfast_domain::{NodeName, Timestamp};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QueryTrait};

use crate::error::unavailable;
use crate::rows::entity::route_failure::{self, SlottedFailure};
use crate::rows::entity::route_hour;
use crate::rows::{BadRow, Cells, FromCells};
use crate::store::Store;

/// Breakers with the lease of the process that reported each.
const BREAKERS: &str = "SELECT s.node,
    CAST(CASE WHEN n.incarnation = s.incarnation AND n.ends_at > $1 THEN 1 ELSE 0 END AS bigint),
    s.route, s.state, s.since, s.retry_at, s.successes_since
    FROM route_states AS s JOIN nodes AS n ON n.name = s.node ORDER BY s.route, s.node";

#[async_trait]
impl RouteReports for Store {
    async fn route_hours(
        &self,
        from: Timestamp,
        route: Option<&str>,
    ) -> Result<Vec<RouteHour>, Unavailable> {
        use route_hour::Column;
        let hours = route_hour::Entity::find()
            .filter(Column::Hour.gte(from.as_micros()))
            .apply_if(route, |hours, route| hours.filter(Column::Route.eq(route)))
            .order_by_asc(Column::Hour);
        self.select(hours.as_query()).await
    }

    async fn route_failures(&self, route: &str) -> Result<Vec<RouteFailure>, Unavailable> {
        use route_failure::Column;
        let failures = route_failure::Entity::find()
            .filter(Column::Route.eq(route))
            .order_by_desc(Column::FailedAt);
        let found: Vec<SlottedFailure> = self.select(failures.as_query()).await?;
        Ok(found.into_iter().map(|row| row.failure).collect())
    }

    async fn node_breakers(&self) -> Result<Vec<NodeBreaker>, Unavailable> {
        let now = holdfast_domain::Journal::clock(self).await?;
        let rows = self.query(BREAKERS, [now.as_micros().into()]).await?;
        let read = |row| NodeBreaker::from_cells(&mut Cells::new(row));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(unavailable)
    }
}

impl FromCells for NodeBreaker {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        let node = cells.parse(|name: String| NodeName::try_from(&*name).ok())?;
        let is_known = cells.get::<i64>()? == 1;
        let report = BreakerReport {
            route: cells.get()?,
            state: cells.get()?,
            since: cells.get()?,
            retry_at: cells.get()?,
            successes_since: cells.get()?,
        };
        Ok(Self { node, is_known, report })
    }
}
