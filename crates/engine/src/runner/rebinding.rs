//! Rebinding: the request of a claim, bound under the terms of the row that its key has already.
//!
//! The conduct compares within one poll. A large body may have to be read again for that, which takes a thread: the
//! claim then fails as one that cannot be compared, the thread makes the binding, and the claim is offered once more.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdfast_domain::conduct::Rebinding;
use holdfast_domain::operation::Operation;
use holdfast_domain::request::Request;

use crate::authentication::{BoundRequest, Caller, OwnedBoundRequest, Secrets};
use crate::parsing::ParsePlaces;
use crate::serving_config::PARSED_INLINE_MAX;

/// Request of a claim until its verdict. It owns the raw body.
pub(super) struct Rebinder {
    pub(super) secrets: Arc<Secrets>,
    pub(super) caller: Arc<Caller>,
    pub(super) request: Arc<Request>,
    pub(super) body: Bytes,
    pub(super) large: Mutex<Option<LargeRebinding>>,
}

/// Row that a large request is compared with.
pub(super) struct LargeRebinding {
    bound: OwnedBoundRequest,
    /// Rebinding of the request; `None` until a thread has made it.
    made: Option<Rebinding>,
}

impl Rebinder {
    /// Binds the request under the terms of a row. One with a large body that no thread has bound yet has an unknown
    /// version.
    pub(super) fn rebind(&self, row: &Operation) -> Rebinding {
        if self.body.len() <= PARSED_INLINE_MAX {
            return self.secrets.rebind(row.into(), &self.caller, Some(&self.request), &self.body);
        }
        let bound = OwnedBoundRequest::from(BoundRequest::from(row));
        // The lock is held over no await, so the comparison of a poll never waits for the thread.
        let mut large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        let made = large.as_ref().filter(|large| large.bound == bound).and_then(|large| large.made);
        made.unwrap_or_else(|| {
            *large = Some(LargeRebinding { bound, made: None });
            Rebinding::UnknownVersion(None)
        })
    }

    /// Binds a large request under the terms of the row that it was compared with last, on a thread of its own.
    /// `false` if there is no such request, or if the thread panicked.
    pub(super) async fn prepare(&self, parsing: &ParsePlaces) -> bool {
        // Taken out: if the thread panics, the next comparison begins anew with its row.
        let large = self.large.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(LargeRebinding { bound, made: None }) = large else { return false };
        let (secrets, caller) = (Arc::clone(&self.secrets), Arc::clone(&self.caller));
        let (request, body) = (Arc::clone(&self.request), self.body.clone());
        let work = move || {
            let made = secrets.rebind(bound.as_bound(), &caller, Some(&request), &body);
            LargeRebinding { bound, made: Some(made) }
        };
        let made = parsing.run(self.caller.api_key.id, (), work).await;
        let is_made = made.is_some();
        *self.large.lock().unwrap_or_else(PoisonError::into_inner) = made;
        is_made
    }
}
