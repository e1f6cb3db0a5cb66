//! Laws of the statistics of routes: additions add up, the newest failures stay, and breakers go with their lease.
//! A store runs them through its own tests, because not every journal keeps statistics.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, route_laws};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! route_laws::attempts_add_up(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, clippy::panic, reason = "a law that fails panics")]

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::RouteReports;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{FailureNote, HeartbeatOutcome, LeaseMode};
use holdfast_domain::statistics::{
    AttemptOutcome, BreakerCondition, BreakerReport, FAILURES_KEPT, Latencies, NodeBreaker,
    RouteFailure, RouteHour,
};
use holdfast_domain::{Incarnation, NodeName, Nodes, Statistics, Timestamp};

use crate::join::join_all;
use crate::sample;

/// Ports that these laws need.
pub trait RouteStore: Statistics + RouteReports + Nodes {}

impl<T: Statistics + RouteReports + Nodes> RouteStore for T {}

const HOUR: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

fn hour(outcome: AttemptOutcome, latencies_ms: &[u64], last_at: u64) -> RouteHour {
    let mut latencies = Latencies::default();
    latencies_ms.iter().for_each(|ms| latencies.observe(Duration::from_millis(*ms)));
    let at = HOUR.after(Duration::from_secs(last_at));
    RouteHour {
        hour: HOUR,
        route: "upstream/large".into(),
        model: model(),
        outcome,
        attempts: u64::try_from(latencies_ms.len()).unwrap(),
        ms_sum: latencies_ms.iter().sum(),
        latencies,
        first_token: Latencies::default(),
        failing_since: outcome.is_failure().then_some(at),
        last_at: at,
        last_error: outcome.is_failure().then(|| FailureNote::new(&format!("HTTP 503 {last_at}"))),
    }
}

fn model() -> PublicModelId {
    sample::model()
}

/// Rows of one key become one row with the sums of both, in any order and from any node.
pub async fn attempts_add_up(store: &dyn RouteStore) {
    let answered = |ms: &[u64], at| Arc::new(vec![hour(AttemptOutcome::Answered, ms, at)]);
    store.add_route_hours(answered(&[10, 90], 1)).await.unwrap();
    store.add_route_hours(answered(&[10, 7_000], 2)).await.unwrap();
    let many = (0..8).map(|_| store.add_route_hours(answered(&[60], 3)));
    for added in join_all(many).await {
        added.unwrap();
    }
    let failed = Arc::new(vec![hour(AttemptOutcome::Unknown, &[5], 4)]);
    store.add_route_hours(failed).await.unwrap();
    let late = Arc::new(vec![hour(AttemptOutcome::Unknown, &[5], 2)]);
    store.add_route_hours(late).await.unwrap();
    let mut rows = store.route_hours(HOUR, Some("upstream/large")).await.unwrap();
    rows.sort_by_key(|row| row.outcome);
    let [answered, failed] = &*rows else { panic!("{rows:?} are not two rows") };
    let all = [10, 90, 10, 7_000, 60, 60, 60, 60, 60, 60, 60, 60];
    assert_eq!(answered, &hour(AttemptOutcome::Answered, &all, 3));
    // The last failure is the latest, not the one that was added last.
    assert_eq!(failed, &hour(AttemptOutcome::Unknown, &[5, 5], 4));
    assert_eq!(store.route_hours(HOUR, Some("other/large")).await.unwrap(), []);
    let later = HOUR.after(Duration::from_secs(1));
    assert_eq!(store.route_hours(later, None).await.unwrap(), []);
}

fn failure(route: &str, second: u64) -> RouteFailure {
    RouteFailure {
        route: route.into(),
        at: HOUR.after(Duration::from_secs(second)),
        model: model(),
        class: "unknown_status".to_owned(),
        error: FailureNote::new(&format!("HTTP 500: number {second}")),
    }
}

/// Of each route the newest failures are kept.
pub async fn the_newest_failures_are_kept(store: &dyn RouteStore) {
    let one = [failure("other/large", 1)];
    store.add_route_failures(Arc::new(one.to_vec())).await.unwrap();
    for part in [0..15, 15..18, 18..60, 60..61] {
        let part = part.map(|second| failure("upstream/large", second)).collect();
        store.add_route_failures(Arc::new(part)).await.unwrap();
    }
    let newest = (0..61).rev().take(FAILURES_KEPT);
    let newest: Vec<_> = newest.map(|second| failure("upstream/large", second)).collect();
    assert_eq!(store.route_failures("upstream/large").await.unwrap(), newest);
    assert_eq!(store.route_failures("other/large").await.unwrap(), one);
}

/// Breakers are known while the lease of their process is live, and are deleted with it.
pub async fn breakers_go_with_their_lease(store: &dyn RouteStore) {
    let node = |incarnation| Node {
        name: NodeName::try_from("one").unwrap(),
        incarnation: Incarnation::from_bytes([incarnation; 16]),
    };
    let (first, second) = (node(1), node(2));
    let open = BreakerReport {
        route: "upstream/large".into(),
        state: BreakerCondition::Open,
        since: HOUR,
        retry_at: Some(HOUR.after(Duration::from_secs(9))),
        successes_since: 0,
    };
    let healthy = BreakerReport {
        state: BreakerCondition::Healthy,
        retry_at: None,
        successes_since: 3,
        ..open.clone()
    };
    let known = |report: &BreakerReport, is_known| NodeBreaker {
        node: NodeName::try_from("one").unwrap(),
        is_known,
        report: report.clone(),
    };
    // Without a lease no row is written.
    store.set_route_states(&first, std::slice::from_ref(&open)).await.unwrap();
    assert_eq!(store.node_breakers().await.unwrap(), []);
    store.heartbeat(&first, sample::LEASE, LeaseMode::Take).await.unwrap();
    for report in [&open, &healthy] {
        store.set_route_states(&first, std::slice::from_ref(report)).await.unwrap();
        assert_eq!(store.node_breakers().await.unwrap(), [known(report, true)]);
    }
    // A successor of that name does not know them, and its predecessor writes no more.
    store.heartbeat(&second, sample::LEASE, LeaseMode::Take).await.unwrap();
    assert_eq!(store.node_breakers().await.unwrap(), [known(&healthy, false)]);
    store.set_route_states(&first, std::slice::from_ref(&open)).await.unwrap();
    assert_eq!(store.node_breakers().await.unwrap(), [known(&healthy, false)]);
    store.set_route_states(&second, std::slice::from_ref(&open)).await.unwrap();
    assert_eq!(store.node_breakers().await.unwrap(), [known(&open, true)]);
    // A lease that has ended is no evidence of the present.
    store.heartbeat(&second, Duration::ZERO, LeaseMode::Renew).await.unwrap();
    assert_eq!(store.node_breakers().await.unwrap(), [known(&open, false)]);
    store.leave(&second).await.unwrap();
    assert_eq!(store.node_breakers().await.unwrap(), []);
}

/// Attempts of old hours and old failures are deleted, a few of each kind at a time, and all of them are counted.
pub async fn old_attempts_are_purged(store: &dyn RouteStore) {
    let outcomes = [AttemptOutcome::Answered, AttemptOutcome::NotRun, AttemptOutcome::Unknown];
    let old = outcomes.map(|outcome| hour(outcome, &[1], 1)).to_vec();
    store.add_route_hours(Arc::new(old)).await.unwrap();
    let failures = [1, 2, 3].map(|second| failure("upstream/large", second)).to_vec();
    store.add_route_failures(Arc::new(failures)).await.unwrap();
    let purge = async |age| store.purge_hours(age, 2).await.unwrap();
    assert_eq!(purge(Duration::from_secs(10 * 365 * 86_400)).await, 0);
    assert_eq!(store.route_hours(HOUR, None).await.unwrap().len(), 3);
    assert_eq!(store.route_failures("upstream/large").await.unwrap().len(), 3);
    let now = Duration::ZERO;
    let purged = [purge(now).await, purge(now).await, purge(now).await];
    let left = store.route_hours(HOUR, None).await.unwrap().len()
        + store.route_failures("upstream/large").await.unwrap().len();
    let node = Node {
        name: NodeName::try_from("clock").unwrap(),
        incarnation: Incarnation::from_bytes([9; 16]),
    };
    let beat = store.heartbeat(&node, sample::LEASE, LeaseMode::Take).await.unwrap();
    // The clock of a fake may stand before that hour.
    let is_past =
        matches!(beat, HeartbeatOutcome::Held { now, .. } if now > HOUR.after(sample::LEASE));
    let expected = if is_past { ([4, 2, 0], 0) } else { ([0; 3], 6) };
    assert_eq!((purged, left), expected);
}
