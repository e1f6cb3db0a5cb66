//! Latencies of calls, counted in buckets of fixed bounds: two rows of them are added bucket by bucket.

use std::time::Duration;

/// Upper bounds of the buckets, in milliseconds; one more bucket has what took longer. The only place that states
/// them: a change would make sums of rows before and after it meaningless.
pub const BOUNDS_MS: [u64; 12] =
    [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400];

const BUCKETS: usize = BOUNDS_MS.len() + 1;

/// Counts of calls by their latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latencies([u64; BUCKETS]);

impl Latencies {
    /// Counts a call.
    pub fn observe(&mut self, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MS.iter().position(|bound| ms <= *bound).unwrap_or(BOUNDS_MS.len());
        if let Some(count) = self.0.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the counts of others.
    pub fn add(&mut self, more: &Self) {
        for (count, more) in self.0.iter_mut().zip(more.0) {
            *count = count.saturating_add(more);
        }
    }

    /// Number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Latency that this many per cent of the calls did not exceed, in milliseconds: between the bounds of its bucket
    /// in proportion. The last bound for anything above it; `None` without a call.
    #[must_use]
    pub fn percentile_ms(&self, percent: u64) -> Option<u64> {
        let all = self.count();
        // Rounded up here and below: a percentile is never shown as better than it was.
        let rank = u128::from(all).saturating_mul(u128::from(percent)).div_ceil(100).max(1);
        let (mut before, mut low) = (0_u128, 0_u64);
        for (count, bound) in self.0.iter().zip(BOUNDS_MS) {
            let within = u128::from(*count);
            if within > 0 && before.saturating_add(within) >= rank {
                let width = u128::from(bound.saturating_sub(low));
                let part = width.saturating_mul(rank.saturating_sub(before)).div_ceil(within);
                return Some(low.saturating_add(u64::try_from(part).unwrap_or(0)));
            }
            before = before.saturating_add(within);
            low = bound;
        }
        (all > 0).then_some(low)
    }

    /// Text of a column: the counts in the order of the buckets, without the zeros at the end.
    #[must_use]
    pub fn to_text(&self) -> String {
        let last = self.0.iter().rposition(|count| *count > 0);
        let used = last.and_then(|last| self.0.get(..=last)).unwrap_or(&[]);
        let counts: Vec<_> = used.iter().map(u64::to_string).collect();
        counts.join(" ")
    }

    /// Counts of such a text; `None` for any other.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut latencies = Self::default();
        let counts: Vec<u64> =
            text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        if counts.len() > BUCKETS {
            return None;
        }
        latencies.0.iter_mut().zip(counts).for_each(|(place, count)| *place = count);
        Some(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies_ms: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        latencies_ms.iter().for_each(|ms| latencies.observe(Duration::from_millis(*ms)));
        latencies
    }

    #[test]
    fn percentiles_lie_in_the_bucket_of_their_rank() {
        let latencies = of(&[10, 60, 70, 150, 1_000, 200_000]);
        assert_eq!(latencies.percentile_ms(50), Some(100));
        assert_eq!(latencies.percentile_ms(95), Some(102_400));
        assert_eq!(of(&[]).percentile_ms(50), None);
        assert_eq!(of(&[50]).percentile_ms(50), Some(50));
        let median = of(&[150, 150, 150, 150]).percentile_ms(50);
        assert_eq!(median, Some(150));
    }

    #[test]
    fn text_of_a_column_comes_back_and_sums_are_of_both() {
        let (mut one, other) = (of(&[1, 1, 99, 500_000]), of(&[99, 7_000]));
        for latencies in [one, other, of(&[])] {
            assert_eq!(Latencies::from_text(&latencies.to_text()), Some(latencies));
        }
        one.add(&other);
        assert_eq!(one, of(&[1, 1, 99, 500_000, 99, 7_000]));
        assert_eq!(of(&[1, 99]).to_text(), "1 1");
        for bad in ["1 x", "-1", "0 0 0 0 0 0 0 0 0 0 0 0 0 0"] {
            assert_eq!(Latencies::from_text(bad), None, "{bad}");
        }
    }
}
