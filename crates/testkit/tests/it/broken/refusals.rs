//! Statistics of refused requests, with what can be wrong about them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::listing::{Page, PageRequest};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter, RefusedRequests};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{AdditionError, Unavailable};
use holdfast_domain::statistics::{
    BreakerReport, RefusalBatch, RefusedRequest, RouteFailure, RouteHour,
};
use holdfast_domain::{RequestId, Statistics};

use super::BrokenJournal;
use super::defect::Defect;

#[async_trait]
impl Statistics for BrokenJournal {
    async fn add_refusals(&self, refusals: Arc<RefusalBatch>) -> Result<(), AdditionError> {
        if self.has(Defect::OtherKeysAreNotCounted) {
            let mut batch = RefusalBatch::clone(&refusals);
            batch.counts.truncate(1);
            return self.inner.add_refusals(Arc::new(batch)).await;
        }
        self.inner.add_refusals(refusals).await
    }

    async fn add_route_hours(&self, hours: Arc<Vec<RouteHour>>) -> Result<(), AdditionError> {
        self.inner.add_route_hours(hours).await
    }

    async fn add_route_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError> {
        self.inner.add_route_failures(failures).await
    }

    async fn set_route_states(
        &self,
        node: &Node,
        breakers: &[BreakerReport],
    ) -> Result<(), Unavailable> {
        self.inner.set_route_states(node, breakers).await
    }

    async fn purge_hours(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let age = if self.has(Defect::YoungHoursArePurged) { Duration::ZERO } else { age };
        self.inner.purge_hours(age, limit).await
    }
}

#[async_trait]
impl RefusedRequests for BrokenJournal {
    async fn refused_requests(
        &self,
        mut filter: RefusalFilter,
        page: PageRequest,
    ) -> Result<Page<RefusedRequest>, Unavailable> {
        if self.has(Defect::WalletsAreNotFiltered) {
            filter.wallet = None;
        }
        if self.has(Defect::RareCodesAreForgotten) {
            filter.code = Some("rate_limit_exceeded".to_owned());
        }
        self.inner.refused_requests(filter, page).await
    }

    async fn refused_request(&self, id: RequestId) -> Result<Option<RefusedRequest>, Unavailable> {
        self.inner.refused_request(id).await
    }

    async fn refusal_hours(
        &self,
        filter: RefusalFilter,
        limit: u32,
    ) -> Result<Vec<HourlyRefusals>, Unavailable> {
        self.inner.refusal_hours(filter, limit).await
    }
}
