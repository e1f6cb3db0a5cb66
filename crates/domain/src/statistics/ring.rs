//! Ring of the refused requests of one API key: the newest [`NEWEST`] of all, and of each code the newest [`OF_CODE`].
//!
//! ```text
//! slots   0  1  2  3 …     a new request takes the slot of one that is listed no longer, or the first free one
//! ```
//!
//! A key that runs into its rate limit a thousand times an hour still shows why its one request for a missing
//! model failed. The rows of a key are bounded by the number of codes, for any number of requests.
//!
//! ```
//! use holdfast_domain::statistics::ring::{NEWEST, Slot, place};
//!
//! let rare = Slot { number: 0, code: "model_not_found".to_owned() };
//! let change = place(&[rare], &["rate_limit_exceeded"; 250]);
//! // The newest 100 are listed, and the one request with another code stays.
//! assert_eq!((change.placed.len(), change.freed), (NEWEST, Vec::new()));
//! ```

use std::collections::{BTreeMap, BTreeSet};

/// Requests of an API key that are listed, of all codes together.
pub const NEWEST: usize = 100;
/// Requests of each code that are listed, however many others came later.
pub const OF_CODE: usize = 10;

/// Slot that has a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Number of the slot.
    pub number: u32,
    /// Code of its request.
    pub code: String,
}

/// Changes of a ring by new requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RingChange {
    /// Slots that lose their request.
    pub freed: Vec<u32>,
    /// Slots of the new requests, by the place of each among the new ones. A place that is missing is not listed.
    pub placed: Vec<(u32, usize)>,
}

/// Places new requests, by their codes, in a ring of `kept` ones; both oldest first.
#[must_use]
pub fn place(kept: &[Slot], new: &[&str]) -> RingChange {
    let mut by_code: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen: usize = 0;
    let mut is_listed = |code| {
        let of_code = by_code.entry(code).or_default();
        *of_code = of_code.saturating_add(1);
        seen = seen.saturating_add(1);
        seen <= NEWEST || *of_code <= OF_CODE
    };
    // Newest first: each is listed unless enough newer ones are.
    let mut listed: Vec<usize> = (0..new.len())
        .rev()
        .filter(|place| new.get(*place).is_some_and(|code| is_listed(code)))
        .collect();
    listed.reverse();
    let (mut freed, mut taken) = (Vec::new(), BTreeSet::new());
    // After the new requests, all of which are newer: the counts go on from theirs.
    for slot in kept.iter().rev() {
        if is_listed(&slot.code) {
            taken.insert(slot.number);
        } else {
            freed.push(slot.number);
        }
    }
    let free = (0..).filter(|number| !taken.contains(number));
    RingChange { placed: free.zip(listed).collect(), freed }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places requests one batch after the other; returns the codes in the ring, oldest first.
    fn filled(batches: &[Vec<&str>]) -> Vec<Slot> {
        let mut ring: Vec<Slot> = Vec::new();
        for new in batches {
            let change = place(&ring, new);
            ring.retain(|slot| !change.freed.contains(&slot.number));
            for (number, at) in change.placed {
                assert!(ring.iter().all(|slot| slot.number != number), "slot {number} is taken");
                ring.push(Slot { number, code: new[at].to_owned() });
            }
        }
        ring
    }

    fn count(ring: &[Slot], code: &str) -> usize {
        ring.iter().filter(|slot| slot.code == code).count()
    }

    #[test]
    fn the_newest_of_all_and_of_each_code_are_listed() {
        let ring = filled(&[vec!["rare"; 12], vec!["often"; 70], vec!["often"; 70]]);
        assert_eq!(count(&ring, "often"), NEWEST);
        assert_eq!(count(&ring, "rare"), OF_CODE);
        // Slots are used again.
        assert!(ring.iter().all(|slot| usize::try_from(slot.number).unwrap() < NEWEST + 12));
    }

    #[test]
    fn a_batch_larger_than_the_ring_leaves_its_newest() {
        let mut new = vec!["first"; 3];
        new.extend(vec!["then"; 500]);
        new.push("last");
        let change = place(&[], &new);
        let places: Vec<usize> = change.placed.iter().map(|(_, at)| *at).collect();
        assert_eq!(places.len(), NEWEST + 3);
        assert!(places.is_sorted() && places.starts_with(&[0, 1, 2]) && places.ends_with(&[503]));
    }

    #[test]
    fn slots_stay_few_however_long_it_goes_on() {
        let codes = ["a", "b", "c", "d"];
        let batches: Vec<Vec<&str>> =
            (0..400).map(|at: usize| vec![codes[(at * at) % 4]; at % 13]).collect();
        let ring = filled(&batches);
        assert!(ring.len() <= NEWEST + 3 * OF_CODE, "{}", ring.len());
        let most = NEWEST + 4 * OF_CODE;
        assert!(ring.iter().all(|slot| usize::try_from(slot.number).unwrap() < most));
    }
}
