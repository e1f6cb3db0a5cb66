//! Gauges that are set whenever the metrics are rendered: waiters, holds, connections, the process. So
//! they are as fresh as the request for them, and cost nothing otherwise.
//!
//! Of the database only what is short is read here. Metrics matter most while it is away: the others
//! are rendered all the same.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use holdfast_domain::ports::ConnectionCounts;
use holdfast_domain::{Currency, ErrorChain};
use holdfast_engine::{Engine, ServingConfig};
use holdfast_http::Metrics;
use holdfast_store::Store;
use holdfast_store::report::OutstandingHolds;
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;

use super::float::as_float;
use super::process;

/// Renders the metrics, with what store, engine and system say at that moment.
pub(crate) fn rendered(handle: PrometheusHandle, store: Store, engine: Arc<Engine>) -> Metrics {
    // Currencies that were shown once. A gauge keeps its last value until it is set: without this,
    // a currency whose last hold ended would show that hold for ever.
    let shown = Arc::new(Mutex::new(BTreeSet::new()));
    // The same for providers, which a reload takes away.
    let providers = Arc::new(Mutex::new(BTreeSet::new()));
    Arc::new(move || {
        let (handle, store, engine) = (handle.clone(), store.clone(), Arc::clone(&engine));
        let (shown, providers) = (Arc::clone(&shown), Arc::clone(&providers));
        async move {
            gauge!("holdfast_waiters").set(as_float(engine.waiters()));
            process::set_gauges();
            set_pools(&store);
            set_provider_connections(&engine.serving(), &providers);
            match store.outstanding().await {
                Ok(outstanding) => set_holds(&outstanding, &shown),
                Err(error) => {
                    tracing::warn!(
                        error = %ErrorChain(&error),
                        "outstanding holds cannot be read: the last ones are shown"
                    );
                }
            }
            handle.render()
        }
        .boxed()
    })
}

fn set_holds(outstanding: &OutstandingHolds, shown: &Mutex<BTreeSet<Currency>>) {
    gauge!("holdfast_holds_outstanding").set(as_float(outstanding.count));
    gauge!("holdfast_holds_oldest_seconds").set(outstanding.oldest_age.as_secs_f64());
    // Also of what nothing is held of any more.
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    shown.extend(outstanding.amounts.keys().copied());
    for currency in &*shown {
        let held = outstanding.amounts.get(currency).map_or(0, |held| held.get());
        let currency = currency.to_string();
        gauge!("holdfast_holds_outstanding_micros", "currency" => currency).set(as_float(held));
    }
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
