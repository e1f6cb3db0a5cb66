//! The receiver of a call: told what the model says, and what the call learns while it lasts.

use std::time::Duration;

use super::FailureNote;
use crate::answer::Delta;
use crate::usage::UsageReport;
use crate::{Currency, Micros};

/// Receiver of an answer, as the model says it. Never makes the provider wait.
pub trait Sink: Send {
    /// Told before the first byte of the request may leave: a call that is dropped without it did not
    /// run.
    // Too early is safe: the call then counts as perhaps run. Too late lets a run be repeated.
    fn on_send(&mut self);

    /// Adds a piece.
    fn on_delta(&mut self, delta: Delta);

    /// Takes the usage report of an answer that is whole, if it comes before the call ends: a call that
    /// is dropped meanwhile is charged by that. Unless it is overridden, it is left unused.
    fn on_usage(&mut self, _report: UsageReport) {}

    /// Told of so many more bytes of the answer, before what they say: not all of them need say
    /// anything. Unless it is overridden, it is left unused.
    fn on_bytes(&mut self, _bytes: usize) {}

    /// Told how long the provider wants to be left alone. Unless it is overridden, it is left unused.
    fn on_retry_after(&mut self, _time: Duration) {}

    /// Told which field of the request the provider turns away, where it names one: by the name that callers have
    /// for it, never in the provider's words. Unless it is overridden, it is left unused.
    fn on_rejected_field(&mut self, _field: &'static str) {}

    /// Takes the note of a call that fails, for the statistics of its route. Unless it is overridden, it is
    /// left unused.
    fn on_failure_note(&mut self, _note: FailureNote) {}

    /// Told what the provider charges for the call, where it says so itself. Unless it is overridden,
    /// it is left unused.
    fn on_charge(&mut self, _currency: Currency, _charge: Micros) {}

    /// Asked before a request is sent once more under its key: whether its operation still may send.
    /// Unless it is overridden, nothing is sent once more.
    fn may_send_again(&self) -> bool {
        false
    }
}
