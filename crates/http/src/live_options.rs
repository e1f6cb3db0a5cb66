//! Live options of the listeners: limits of connections and requests, the proxies that are believed, and the
//! origins of pages that may call. A reload replaces them together.
//!
//! - A connection keeps the times and the buffer that it was accepted with; a request takes its own limits at
//!   its beginning, also on a connection that is older.
//! - They are apart from the engine's serving configuration, and a request may take one of them before a reload
//!   and the other after it. The largest body is the one limit that both have, and the engine judges again by
//!   the model: the answer is then that of the one or of the other configuration, and never a third.

use std::sync::{PoisonError, RwLock};

use holdfast_net::Network;

use crate::Options;
use crate::cors::AllowedOrigin;

/// Options of the listeners at one moment.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Limits of connections and requests.
    pub options: Options,
    /// Networks of proxies whose `X-Forwarded-For` is believed.
    pub trusted: Box<[Network]>,
    /// Origins of pages in browsers that may call; empty if CORS is off.
    pub origins: Box<[AllowedOrigin]>,
}

/// Holder of the current [`HttpConfig`]. Replaced under the lock as a whole: no request sees parts of two.
#[derive(Debug)]
pub struct LiveOptions(RwLock<HttpConfig>);

impl LiveOptions {
    /// Starts with these options.
    #[must_use]
    pub const fn new(config: HttpConfig) -> Self {
        Self(RwLock::new(config))
    }

    /// Replaces the options for connections and requests that begin from now on.
    pub fn replace(&self, config: HttpConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Reads limits and proxies of one moment.
    // Under the lock: a pointer of its own would be one more count that all threads write with every request.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&HttpConfig) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
