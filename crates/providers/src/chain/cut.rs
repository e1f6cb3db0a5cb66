//! End of a run at the gateway behind: a cancel under the key of the call, repeated until the
//! operation there has ended.
//!
//! | answer | meaning |
//! |---|---|
//! | 200 with the key | ended, with its charge: zero if it was not completed |
//! | 202 | runs still |
//! | 404, 408, 429, 5xx | not bound yet, or no word of the operation: the request may be on its way |
//! | none, unreadable | the same |
//! | any other | the gateway does not take the cancel |
//!
//! Never: a cancel while the call may be repeated under its key. The sender of the cancel has dropped the call.
//!
//! Limits: `END_TIME_MAX` for all cancels of a run, `ASK_TIME_MAX` for one.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_domain::{Micros, RequestKey};
use holdfast_wire::chat::upstream::{OperationEnd, read_operation_end};
use http::StatusCode;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{ChainProvider, KeyUse};
use holdfast_net::UpstreamResponse;

/// Time in which an operation may end, and time of one cancel.
const END_TIME_MAX: Duration = Duration::from_secs(15);
const ASK_TIME_MAX: Duration = Duration::from_secs(5);
/// The first pause between two cancels, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Length up to which the view of an operation is read: it may hold the answer.
const VIEW_BYTES_MAX: usize = 64 << 20;

/// Outcome of one cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CancelOutcome {
    /// Ended, with this charge.
    Ended(Option<Micros>),
    /// May run, or begin.
    Pending,
    /// Not taken.
    Denied,
}

impl ChainProvider {
    /// Cancels the operation of a key until it has ended, and returns its charge; `None` if that is not known
    /// in time.
    pub(super) async fn cancel_until_ended(&self, key: RequestKey) -> Option<Micros> {
        let end = Instant::now() + END_TIME_MAX;
        let mut pause = PAUSE_MIN;
        let cancelling = async {
            loop {
                match timeout(ASK_TIME_MAX, self.cancel_once(key)).await {
                    Ok(CancelOutcome::Ended(charge)) => return charge,
                    Ok(CancelOutcome::Denied) => return None,
                    Ok(CancelOutcome::Pending) | Err(_) => {}
                }
                sleep(pause).await;
                pause = pause.saturating_mul(2).min(PAUSE_MAX);
            }
        };
        timeout_at(end, cancelling).await.ok().flatten()
    }

    async fn cancel_once(&self, key: RequestKey) -> CancelOutcome {
        if !self.keeps_keys.load(Ordering::Relaxed) {
            match self.probe_keys().await {
                KeyUse::Required => {}
                KeyUse::Ignored => return CancelOutcome::Denied,
                KeyUse::Unknown => return CancelOutcome::Pending,
            }
        }
        let path = format!("/operations/{key}/cancel");
        let Some(request) = self.http.post_empty(&path) else { return CancelOutcome::Denied };
        let sent = self.http.transport().send(request, ASK_TIME_MAX, None, &mut || {}).await;
        let Ok(reply) = sent else { return CancelOutcome::Pending };
        match of_status(reply.status) {
            CancelOutcome::Ended(_) => read_end(reply, key).await,
            other @ (CancelOutcome::Pending | CancelOutcome::Denied) => other,
        }
    }
}

fn of_status(status: StatusCode) -> CancelOutcome {
    const PENDING: [u16; 4] = [202, 404, 408, 429];
    if status == StatusCode::OK {
        return CancelOutcome::Ended(None);
    }
    let is_pending = PENDING.contains(&status.as_u16()) || status.is_server_error();
    if is_pending { CancelOutcome::Pending } else { CancelOutcome::Denied }
}

async fn read_end(reply: UpstreamResponse, key: RequestKey) -> CancelOutcome {
    let body = reply.read(VIEW_BYTES_MAX, &mut |_bytes| {}).await;
    match body.ok().and_then(|body| read_operation_end(&body, key)) {
        Some(OperationEnd { charge }) => CancelOutcome::Ended(charge),
        None => CancelOutcome::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_is_repeated_while_the_operation_may_begin_or_run() {
        for status in [202, 404, 429, 500, 502, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of_status(status), CancelOutcome::Pending, "{status}");
        }
        for status in [301, 400, 401, 403] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of_status(status), CancelOutcome::Denied, "{status}");
        }
    }
}
