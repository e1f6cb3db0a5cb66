//! The simulation itself: a seed is one run, the unbroken engine keeps every invariant, and each defect is found.

mod defects;
mod runs;
