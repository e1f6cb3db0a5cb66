//! Requests on the way, counted by admin key or person: one cannot take all connections' worth of work,
//! nor all readers of reports.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_domain::admin::ActorId;

/// Requests at once of one admin key or person.
const REQUESTS_MAX: u32 = 16;
/// Reports at once of one admin key or person. The database has two readers for them.
const REPORTS_MAX: u32 = 1;

/// Answers of the public API at once that one person has a page relay.
const RELAYS_MAX: u32 = 4;

/// Counter of requests in flight by sender. A sender without any has no entry.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// Counts under a single lock: an actor's count is compared and raised in one step, or two requests could take the last place.
    counts: Arc<Mutex<HashMap<ActorId, u32>>>,
    most: u32,
}

/// Place of one request; dropping it gives it back.
#[derive(Debug)]
pub struct Place {
    counts: InFlight,
    actor: ActorId,
}

impl InFlight {
    /// Counter of requests of every kind.
    #[must_use]
    pub fn of_requests() -> Self {
        Self { counts: Arc::default(), most: REQUESTS_MAX }
    }

    /// Counter of reports alone.
    #[must_use]
    pub fn of_reports() -> Self {
        Self { counts: Arc::default(), most: REPORTS_MAX }
    }

    /// Counter of exports: as many of one admin key or person as of reports.
    #[must_use]
    pub fn of_exports() -> Self {
        Self::of_reports()
    }

    /// Counter of answers that pages relay.
    #[must_use]
    pub fn of_relays() -> Self {
        Self { counts: Arc::default(), most: RELAYS_MAX }
    }

    /// A place, unless the actor has as many as it may.
    #[must_use]
    pub fn enter(&self, actor: ActorId) -> Option<Place> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // A map of counts is whole after a panic. A refused actor has an entry already, so none is
        // left over.
        let count = counts.entry(actor).or_insert(0);
        if *count >= self.most {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Place { counts: self.clone(), actor })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.counts.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = counts.entry(self.actor) {
            *count.get_mut() = count.get().saturating_sub(1);
            // Removed at zero: the map has only actors with requests on the way, and needs no other
            // bound.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::AdminKeyId;

    use super::*;

    #[test]
    fn sixteen_requests_of_one_key_are_on_the_way_and_no_more() {
        let in_flight = InFlight::of_requests();
        let [one, other] = [1, 2].map(|id| ActorId::AdminKey(AdminKeyId::from_u128(id)));
        let places: Vec<_> = (0..16).map(|_| in_flight.enter(one).unwrap()).collect();
        assert!(in_flight.enter(one).is_none());
        assert!(in_flight.enter(other).is_some(), "another key has its own");
        drop(places);
        assert!(in_flight.counts.lock().unwrap().is_empty());
        assert!(in_flight.enter(one).is_some());
    }
}
