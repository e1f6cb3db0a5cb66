//! The wait between two offers to a store: from 50 ms to 2 s.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::ports::Pause;

/// Exponential back-off, doubled with every attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackOff;

impl BackOff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(2);

    fn wait(attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(16);
        Self::FIRST.saturating_mul(1_u32 << doublings).min(Self::LONGEST)
    }
}

#[async_trait]
impl Pause for BackOff {
    async fn pause(&self, attempt: u32) {
        tokio::time::sleep(Self::wait(attempt)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_two_seconds() {
        let waits: Vec<_> = (1..=8).map(|n| BackOff::wait(n).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(BackOff::wait(u32::MAX), BackOff::LONGEST);
    }
}
