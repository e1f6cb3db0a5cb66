//! Gate that replies wait for until the test opens it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::PATIENCE;

/// Closed at first; once open it stays open.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody through, from now on.
    pub fn open(&self) {
        let (is_open, changed) = &*self.0;
        *is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits until it is open; false if that never happens.
    pub(crate) fn wait(&self) -> bool {
        let (is_open, changed) = &*self.0;
        let is_open = is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
