//! The receiver of a call: gets the model's output, and the facts that the call learns while it lasts.

use std::time::Duration;

use super::FailureNote;
use crate::answer::Delta;
use crate::usage::UsageReport;
use crate::{Currency, Micros};

/// Receiver of an answer, as the model streams it. Never makes the provider wait.
pub trait Sink: Send {
    /// Notified before the first byte of the request may leave: a call that is dropped without it did not run.
    // Too early is safe: the call then counts as perhaps run. Too late lets a run be repeated.
    fn on_send(&mut self);

    /// Adds a piece.
    fn on_delta(&mut self, delta: Delta);

    /// Takes the usage report of an answer that is whole, if it comes before the call ends: a call that
    /// is dropped meanwhile is charged by that. Unless it is overridden, it is left unused.
    fn on_usage(&mut self, _report: UsageReport) {}

    /// Notified of so many more bytes of the answer, before their content: some bytes have none. Unless it is
    /// overridden, it is left unused.
    fn on_bytes(&mut self, _bytes: usize) {}

    /// Receives the pause that the provider requests. Unless it is overridden, it is left unused.
    fn on_retry_after(&mut self, _time: Duration) {}

    /// Receives the field of the request that the provider turns away, if it names one: by the name that
    /// callers have for it, never in the provider's words. Unless it is overridden, it is left unused.
    fn on_rejected_field(&mut self, _field: &'static str) {}

    /// Takes the note of a call that fails, for the statistics of its route. Unless it is overridden, it is
    /// left unused.
    fn on_failure_note(&mut self, _note: FailureNote) {}

    /// Receives the provider's charge for the call, if it reports one itself. Unless it is overridden, it is
    /// left unused.
    fn on_charge(&mut self, _currency: Currency, _charge: Micros) {}

    /// Checked before a request is sent once more under its key: true if its operation still may send. Unless
    /// it is overridden, no request is sent once more.
    fn may_send_again(&self) -> bool {
        false
    }
}
