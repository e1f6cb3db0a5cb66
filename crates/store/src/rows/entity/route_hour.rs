//! `route_hours`: attempts by hour, route, model and outcome.

use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::ports::FailureNote;
use holdfast_domain::statistics::{AttemptOutcome, Latencies, RouteHour};

row! {
    "route_hours" as "h", row: RouteHour;
    listed {}
    made {
        #[sea_orm(primary_key)] hour: Timestamp = row.hour,
        #[sea_orm(primary_key)] route: Arc<str> = row.route,
        #[sea_orm(primary_key)] model: PublicModelId = row.model,
        #[sea_orm(primary_key)] outcome: AttemptOutcome = row.outcome,
    }
    set {
        attempts: u64 = row.attempts,
        ms_sum: u64 = row.ms_sum,
        buckets: Latencies = row.latencies,
        first_token_buckets: Latencies = row.first_token,
        failing_since: Option<Timestamp> = row.failing_since,
        last_at: Timestamp = row.last_at,
        last_error: Option<FailureNote> = row.last_error,
    }
    RouteHour {
        hour,
        route,
        model,
        outcome,
        attempts,
        ms_sum,
        latencies: buckets,
        first_token: first_token_buckets,
        failing_since,
        last_at,
        last_error,
    }
}
