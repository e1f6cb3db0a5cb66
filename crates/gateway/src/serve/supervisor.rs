//! Notices to a supervisor that requests them by `NOTIFY_SOCKET`, as systemd does of `Type=notify`: that the
//! process serves, and that it has begun to end. Without the variable no notice is sent.
//!
//! A supervisor that cannot be reached is no reason to end: it has its own timeouts.

use holdfast_domain::ErrorChain;
use sd_notify::NotifyState;

/// Sends a notice to the supervisor.
pub(super) fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(error = %ErrorChain(&error), "the supervisor in NOTIFY_SOCKET was not notified");
    }
}
