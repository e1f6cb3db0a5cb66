//! In-flight requests, counted for each API key. A count is given back when its guard is dropped, whatever ends the
//! request; a key without requests has no entry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_domain::ApiKeyId;

/// Counts of requests in flight by API key. A std mutex: never held across an await.
#[derive(Debug, Default)]
pub(super) struct InFlightCounts(Arc<Mutex<HashMap<ApiKeyId, usize>>>);

impl InFlightCounts {
    /// Counts one more; `None` if `max` are in flight already.
    pub(super) fn enter(&self, api_key: ApiKeyId, max: usize) -> Option<InFlight> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(api_key).or_default();
        if *count >= max {
            return None;
        }
        // Under the lock that compared it: of two that come for the last place one gets it.
        *count = count.saturating_add(1);
        Some(InFlight { counts: Arc::clone(&self.0), api_key })
    }
}

/// In-flight guard: one request of an API key, counted until it is dropped.
#[derive(Debug)]
pub struct InFlight {
    counts: Arc<Mutex<HashMap<ApiKeyId, usize>>>,
    api_key: ApiKeyId,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.api_key) {
            *count = count.saturating_sub(1);
            // Keys come and go; what is at zero would stay for as long as the process.
            if *count == 0 {
                counts.remove(&self.api_key);
            }
        }
    }
}
