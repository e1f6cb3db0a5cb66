//! Live configuration: the place at which a request finds the [`ServingConfig`] of its moment.
//!
//! ```text
//! reload ──▶ replace ──▶ current ──▶ taken once by each request, and kept to the end of its operation
//! ```
//!
//! A reload replaces it as a whole and never changes it in place: a request is judged, routed and billed by one set
//! of models and prices, and two configurations live at once while older requests end. Never in here: reading or
//! checking of a configuration, and the limits of connections, which are the listeners' own.

use std::sync::{Arc, PoisonError, RwLock};

use crate::metrics::Metrics;
use crate::serving_config::ServingConfig;

/// Holder of the current serving configuration.
#[derive(Debug)]
pub(crate) struct LiveConfig(RwLock<Arc<ServingConfig>>);

impl LiveConfig {
    /// Starts with this configuration, and registers the metrics of its routes.
    pub(crate) fn new(serving: ServingConfig, metrics: &Metrics) -> Self {
        serving.begin_metrics(metrics, None);
        Self(RwLock::new(Arc::new(serving)))
    }

    /// Current configuration. Its lock is held for a copy of a pointer, never across an await.
    pub(crate) fn get(&self) -> Arc<ServingConfig> {
        // A panic elsewhere leaves the pointer whole: it is written in one step.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration for requests that begin from now on.
    pub(crate) fn replace(&self, serving: ServingConfig, metrics: &Metrics) {
        // Before it can be taken: a route has its series by its first call.
        serving.begin_metrics(metrics, Some(&self.get()));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(serving);
    }
}
