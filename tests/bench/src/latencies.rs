//! Latencies of many answers, as the few numbers that are compared: no mean, which one slow answer moves.

use serde_json::{Value, json};

/// Latencies of answers, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Number of answers.
    pub count: u64,
    /// The middle one.
    pub p50: u64,
    /// The slowest of a hundred but one.
    pub p99: u64,
    /// The slowest.
    pub max: u64,
}

impl Latencies {
    /// Latencies of these answers, in any order.
    #[must_use]
    pub fn of(mut all: Vec<u32>) -> Self {
        all.sort_unstable();
        let last = all.len().saturating_sub(1);
        let at = |index: usize| all.get(index).copied().map_or(0, u64::from);
        Self {
            count: u64::try_from(all.len()).unwrap_or(u64::MAX),
            p50: at(last / 2),
            p99: at(last - last / 100),
            max: at(last),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        let Self { count, p50, p99, max } = self;
        json!({ "count": count, "p50": p50, "p99": p99, "max": max })
    }

    pub(crate) fn read(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name)?.as_u64();
        let (count, p50) = (number("count")?, number("p50")?);
        Some(Self { count, p50, p99: number("p99")?, max: number("max")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_back_as_they_were_told() {
        let latencies = Latencies::of((1..=1_000).rev().collect());
        assert_eq!(latencies, Latencies { count: 1_000, p50: 500, p99: 991, max: 1_000 });
        assert_eq!(Latencies::read(&latencies.to_json()), Some(latencies));
        assert_eq!(Latencies::of(Vec::new()), Latencies::default());
    }
}
