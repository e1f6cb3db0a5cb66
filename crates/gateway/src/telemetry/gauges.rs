//! Gauges that are set whenever the metrics are rendered: waiters, connections, the process. So they are as
//! fresh as the request for them, and cost no work otherwise.
//!
//! The database is never read here: metrics matter most while it is away.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use holdfast_domain::Journal as _;
use holdfast_domain::ports::{ConnectionCounts, Durability};
use holdfast_engine::{Engine, Readiness, ServingConfig};
use holdfast_http::Metrics;
use holdfast_store::Store;
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;

use super::float::as_float;
use super::process;

/// Renders the metrics, with the current readings of engine, system and the store's pools.
pub(crate) fn rendered(handle: PrometheusHandle, store: Store, engine: Arc<Engine>) -> Metrics {
    // Providers that were shown once. A gauge keeps its last value until it is set: without this, one that a reload
    // took away would show its connections for ever.
    let providers = Arc::new(Mutex::new(BTreeSet::new()));
    Arc::new(move || {
        let (handle, store, engine) = (handle.clone(), store.clone(), Arc::clone(&engine));
        let providers = Arc::clone(&providers);
        async move {
            gauge!("holdfast_waiters").set(as_float(engine.waiters()));
            process::set_gauges();
            set_pools(&store);
            let is_replicated = store.durability() == Durability::Replicated;
            gauge!("holdfast_commits_replicated").set(if is_replicated { 1.0 } else { 0.0 });
            let is_ready = engine.presumed_readiness() == Readiness::Ready;
            gauge!("holdfast_ready").set(if is_ready { 1.0 } else { 0.0 });
            set_provider_connections(&engine.serving(), &providers);
            handle.render()
        }
        .boxed()
    })
}

fn set_provider_connections(serving: &ServingConfig, shown: &Mutex<BTreeSet<String>>) {
    let connections = |name: &String| serving.providers.get(name)?.connections();
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    shown.extend(serving.providers.keys().filter(|name| connections(name).is_some()).cloned());
    for name in &*shown {
        let ConnectionCounts { idle, used } =
            connections(name).unwrap_or(ConnectionCounts { idle: 0, used: 0 });
        for (state, count) in [("idle", idle), ("used", used)] {
            let labels = [("provider", name.clone()), ("state", state.to_owned())];
            gauge!("holdfast_provider_connections", &labels).set(as_float(count));
        }
    }
}

fn set_pools(store: &Store) {
    for pool in store.pools() {
        for (state, count) in [("idle", pool.idle), ("used", pool.used)] {
            let labels = [("pool", pool.name), ("state", state)];
            gauge!("holdfast_pool_connections", &labels).set(as_float(count));
        }
    }
}
