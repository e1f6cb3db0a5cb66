//! Live configuration of the HTTP front. A reload replaces it as a whole and never changes it in
//! place: a request keeps the configuration that it began with to its end, so that it is judged
//! and billed by one set of models and prices.

use std::sync::{Arc, PoisonError, RwLock};

use holdfast_engine::ServingConfig;

use crate::Options;
use crate::peers::Network;

/// Part of the configuration that requests are served by.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Limits of connections and requests. A connection keeps those that it was accepted with.
    pub options: Options,
    /// Networks of proxies whose `X-Forwarded-For` is believed.
    pub trusted: Arc<[Network]>,
    /// Models, prices and provider routes.
    pub offer: Arc<ServingConfig>,
}

/// Holder of the current [`HttpConfig`]. Its lock is held for a copy of a pointer, never across
/// an await.
#[derive(Debug)]
pub struct LiveConfig(RwLock<Arc<HttpConfig>>);

impl LiveConfig {
    /// Starts with this configuration, and registers the metrics of its routes.
    #[must_use]
    pub fn new(serving: HttpConfig) -> Self {
        serving.offer.begin_metrics(None);
        Self(RwLock::new(Arc::new(serving)))
    }

    /// Current configuration. A request takes it once and keeps it.
    #[must_use]
    pub fn get(&self) -> Arc<HttpConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration for requests that begin from now on.
    pub fn replace(&self, serving: HttpConfig) {
        serving.offer.begin_metrics(Some(&self.get().offer));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(serving);
    }
}
