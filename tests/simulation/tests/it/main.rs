//! The simulation itself: a seed is one run, the unbroken engine keeps every invariant, and each defect is found.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends, at the line that says why")]

mod defects;
mod runs;
