//! Choice of a request's route among several: the open ones of the lowest priority share by weight, and if none is
//! open the one that has cooled most is the last resort. Pure: chance is an argument.

use tokio::time::Instant;

/// Candidate route, reduced to what the choice depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Priority; the lowest that is open goes first.
    pub(crate) priority: u32,
    /// Share among candidates of one priority; never zero.
    pub(crate) weight: u32,
    pub(crate) rank: Rank,
}

/// Readiness of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Ready to be taken.
    Ready,
    /// Cooling until then: taken only if no other is ready.
    LastResort(Instant),
    /// Full, or shut by its provider.
    Never,
}

/// Chooses a candidate and returns its index. `draw` is uniform over all of `u64`.
pub(crate) fn choose(candidates: &[Candidate], draw: u64) -> Option<usize> {
    let open = || candidates.iter().enumerate().filter(|(_, route)| route.rank == Rank::Ready);
    let Some(first) = open().map(|(_, route)| route.priority).min() else {
        return last_resort(candidates);
    };
    let equals = || open().filter(|(_, route)| route.priority == first);
    let all: u64 = equals().map(|(_, route)| u64::from(route.weight)).sum();
    // The part of the whole that the draw is of all draws; below the whole.
    let mut point = (u128::from(draw) * u128::from(all)) >> u64::BITS;
    for (at, route) in equals() {
        match point.checked_sub(u128::from(route.weight)) {
            Some(rest) => point = rest,
            None => return Some(at),
        }
    }
    None
}

fn last_resort(candidates: &[Candidate]) -> Option<usize> {
    let cooling = candidates.iter().enumerate().filter_map(|(at, route)| match route.rank {
        Rank::LastResort(until) => Some((until, route.priority, at)),
        Rank::Ready | Rank::Never => None,
    });
    cooling.min().map(|(_until, _priority, at)| at)
}

/// Derives the `nth` draw from one random number (SplitMix64).
pub(crate) fn draw(random: u64, nth: u64) -> u64 {
    let step = nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = random.wrapping_add(step);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use holdfast_testkit::Dice;

    use super::*;

    const fn open(priority: u32, weight: u32) -> Candidate {
        Candidate { priority, weight, rank: Rank::Ready }
    }

    /// Counts how often each candidate is taken, by draws that are spread evenly over `u64`.
    fn shares(candidates: &[Candidate], draws: u64) -> Vec<u64> {
        let mut taken = vec![0; candidates.len()];
        for nth in 0..draws {
            let draw = u64::try_from((u128::from(nth) << u64::BITS) / u128::from(draws)).unwrap();
            taken[choose(candidates, draw).unwrap()] += 1;
        }
        taken
    }

    #[test]
    fn equals_share_by_weight_exactly() {
        let mut dice = Dice::new(7);
        for _case in 0..200 {
            let n = 1 + dice.roll(5);
            let weights: Vec<_> =
                (0..n).map(|_| 1 + u32::try_from(dice.roll(40)).unwrap()).collect();
            let candidates: Vec<_> = weights.iter().map(|weight| open(3, *weight)).collect();
            let all = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>();
            let taken = shares(&candidates, 16 * all);
            for (taken, weight) in taken.iter().zip(&weights) {
                assert!(taken.abs_diff(16 * u64::from(*weight)) <= 1, "{weights:?} {taken}");
            }
        }
        let heavy = [open(0, u32::MAX), open(0, u32::MAX), open(0, 1)];
        assert_eq!([0, u64::MAX].map(|draw| choose(&heavy, draw)), [Some(0), Some(2)]);
    }

    #[test]
    fn the_lowest_priority_that_is_open_is_taken_whatever_it_weighs() {
        let mut candidates = [open(2, 1_000_000), open(1, 1), open(1, 3), open(0, 1)];
        assert_eq!(shares(&candidates, 100), [0, 0, 0, 100]);
        candidates[3].rank = Rank::Never;
        assert_eq!(shares(&candidates, 100), [0, 25, 75, 0]);
        candidates[2].rank = Rank::LastResort(Instant::now());
        assert_eq!(shares(&candidates, 100), [0, 100, 0, 0]);
        candidates[1].rank = Rank::Never;
        assert_eq!(shares(&candidates, 100), [100, 0, 0, 0]);
    }

    #[test]
    fn where_none_is_open_the_one_that_cools_the_shortest_is_the_last_resort() {
        let now = Instant::now();
        let resort = |seconds, priority| Candidate {
            rank: Rank::LastResort(now + Duration::from_secs(seconds)),
            ..open(priority, 1)
        };
        let never = Candidate { rank: Rank::Never, ..open(0, 9) };
        assert_eq!(choose(&[never, resort(9, 0), resort(3, 7), resort(3, 5)], 5), Some(3));
        assert_eq!(choose(&[never, never], 5), None);
        assert_eq!(choose(&[], 5), None);
    }

    #[test]
    fn draws_of_one_number_differ() {
        let draws: std::collections::BTreeSet<_> = (0..1_000).map(|nth| draw(5, nth)).collect();
        assert_eq!(draws.len(), 1_000);
        let low = draws.iter().filter(|draw| **draw < u64::MAX / 4).count();
        assert!((200..300).contains(&low), "{low} of 1000 in the first quarter");
    }
}
