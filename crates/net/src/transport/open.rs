//! Count of a pool's open connections, without a lock: each connection has a clone of the pointer, wherever it is.

use std::sync::Arc;

/// Counter of open connections, and the mark that each of them bears. One of HTTP/2 counts until its pool lets go
/// of it.
#[derive(Clone, Default)]
pub(super) struct OpenConnections(Arc<()>);

impl OpenConnections {
    pub(super) fn count(&self) -> usize {
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}
