//! The port that reads the statistics of routes: for operators only.

use async_trait::async_trait;

use crate::Timestamp;
use crate::ports::Unavailable;
use crate::statistics::{NodeBreaker, RouteFailure, RouteHour};

/// Reads the statistics of routes. They are a second old, and each list is read at its own moment.
#[async_trait]
pub trait RouteReports: Send + Sync {
    /// Attempts of the hours that begin at this moment or later, of one route or of all.
    async fn route_hours(
        &self,
        from: Timestamp,
        route: Option<&str>,
    ) -> Result<Vec<RouteHour>, Unavailable>;

    /// Failures of a route that are kept, the newest first.
    async fn route_failures(&self, route: &str) -> Result<Vec<RouteFailure>, Unavailable>;

    /// Circuit breakers as nodes have reported them, by route and node.
    async fn node_breakers(&self) -> Result<Vec<NodeBreaker>, Unavailable>;
}
