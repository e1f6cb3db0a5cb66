//! What happens when something dies, fills up or races: the real binary, killed at named steps and at
//! any moment, on a disk that takes nothing, under callers that all want the same.
#![expect(
    clippy::indexing_slicing,
    reason = "helpers of tests end the test where something is not as it should be"
)]

mod kills;
mod steps;

use std::time::{Duration, Instant};

use holdfast_tests::PATIENCE;

/// Looks again and again at what tells no one when it changes.
#[track_caller]
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
