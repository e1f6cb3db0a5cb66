//! Chance: every choice of a run, from its seed and the place of the choice.
//!
//! A choice is named by its place: a store call by process, kind, object and number, an upstream call by key and
//! route. Two tasks that wake in the same millisecond therefore cannot take each other's numbers, and a choice that is
//! added to the simulation changes no other one. Never: a number from a clock, an address or a thread.

use std::time::Duration;

use holdfast_testkit::Dice;

/// Source of the choices of a run, or of a part of it.
#[derive(Debug, Clone, Copy)]
pub struct Chance(u64);

impl Chance {
    /// Source of a whole run.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Source of a named part.
    #[must_use]
    pub fn part(self, name: &str, number: u64) -> Self {
        let named = name.bytes().fold(self.0, |sum, byte| mix(sum ^ u64::from(byte)));
        Self(mix(named ^ number))
    }

    /// Choices of this part, in their order.
    #[must_use]
    pub const fn draws(self) -> Draws {
        Draws(Dice::new(self.0))
    }

    /// A number that no other part has, as good as surely.
    #[must_use]
    pub fn id(self) -> u128 {
        (u128::from(mix(self.0)) << 64) | u128::from(mix(self.0 ^ 1))
    }
}

/// Step of SplitMix64.
const fn mix(number: u64) -> u64 {
    let sum = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Choices in their order.
#[derive(Debug)]
pub struct Draws(Dice);

impl Draws {
    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.roll(bound)
    }

    /// True in so many of a thousand cases.
    pub fn permille(&mut self, share: u64) -> bool {
        self.below(1_000) < share
    }

    /// A time of whole milliseconds between two bounds, both included.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }

    /// One of several values by their weights, of which one is above zero.
    pub fn pick<T: Copy>(&mut self, weighted: &[(u64, T)]) -> T {
        let sum = weighted.iter().map(|(weight, _)| weight).sum();
        let mut point = self.below(sum);
        for (weight, value) in weighted {
            match point.checked_sub(*weight) {
                Some(rest) => point = rest,
                None => return *value,
            }
        }
        panic!("a point below the sum of weights is in one of them")
    }

    /// Time of a message on its way: one millisecond or a few, seldom much longer.
    pub fn latency(&mut self) -> Duration {
        match self.below(100) {
            0 => self.millis(500, 3_000),
            1..=5 => self.millis(20, 200),
            _ => self.millis(1, 5),
        }
    }
}
