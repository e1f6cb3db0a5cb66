//! `route_failures`: the newest failures of each route, a slot each.

use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::ports::FailureNote;
use holdfast_domain::statistics::RouteFailure;

/// Failure with its slot.
#[derive(Debug, Clone)]
pub(crate) struct SlottedFailure {
    pub(crate) slot: u32,
    pub(crate) failure: RouteFailure,
}

row! {
    "route_failures" as "f", row: SlottedFailure;
    listed {}
    made {
        #[sea_orm(primary_key)] route: Arc<str> = row.failure.route,
        #[sea_orm(primary_key)] slot: u32 = row.slot,
    }
    set {
        failed_at: Timestamp = row.failure.at,
        model: PublicModelId = row.failure.model,
        class: String = row.failure.class,
        error: FailureNote = row.failure.error,
    }
    SlottedFailure { slot, failure: RouteFailure { route, at: failed_at, model, class, error } }
}
