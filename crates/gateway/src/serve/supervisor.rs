//! Notices to a supervisor that asks for them by `NOTIFY_SOCKET`, as systemd does of `Type=notify`: that the
//! process serves, and that it has begun to end. Without the variable nobody is told.
//!
//! A supervisor that does not hear is no reason to end: it has its own time-outs.

use holdfast_domain::ErrorChain;
use sd_notify::NotifyState;

/// Tells the supervisor.
pub(super) fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(error = %ErrorChain(&error), "the supervisor named by NOTIFY_SOCKET was not told");
    }
}
