//! Random choices that a number repeats: the same history on every store and every machine.

/// SplitMix64.
///
/// ```
/// use holdfast_testkit::Dice;
///
/// let (mut one, mut other) = (Dice::new(7), Dice::new(7));
/// assert!((0..100).all(|_| one.roll(6) == other.roll(6)));
/// ```
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The dice of this number.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `sides`, which is not zero.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The few lowest numbers are a little likelier: no test counts on an even share.
        (mixed ^ (mixed >> 31)) % sides
    }
}
