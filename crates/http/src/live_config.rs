//! What requests are served by at this moment. It is replaced as a whole, never changed: a request keeps
//! what it began with to its end.

use std::sync::{Arc, PoisonError, RwLock};

use holdfast_engine::ServingConfig;

use crate::Options;
use crate::peers::Network;

/// Everything that a configuration says about requests.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Limits of connections and requests.
    pub options: Options,
    /// Proxies whose word is taken for who their clients are.
    pub trusted: Arc<[Network]>,
    /// The models and who answers for them.
    pub offer: Arc<ServingConfig>,
}

/// Where requests find it. The lock is held for a copy of a pointer.
#[derive(Debug)]
pub struct LiveConfig(RwLock<Arc<HttpConfig>>);

impl LiveConfig {
    /// Begins with this.
    #[must_use]
    pub fn new(serving: HttpConfig) -> Self {
        serving.offer.begin_metrics(None);
        Self(RwLock::new(Arc::new(serving)))
    }

    /// What a request that begins now is served by.
    #[must_use]
    pub fn get(&self) -> Arc<HttpConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Requests that begin from now on are served by this.
    pub fn replace(&self, serving: HttpConfig) {
        serving.offer.begin_metrics(Some(&self.get().offer));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(serving);
    }
}
