//! Health of a sidecar: whether its gateway is in reach, and what it counts.
//!
//! The log has one line if the gateway is lost, and one if it is back. It is lost if no connection to it can be
//! made, or after [`BROKEN_MAX`] connections in a row that broke before an answer: a single one may be a kept
//! connection that the other side has closed.
//!
//! `/sidecar/healthz` answers 200 as long as the process serves, even if the gateway fails: a supervisor that
//! restarted the sidecar would not repair the gateway.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_net::PassedFailure;
use tokio::time::Instant;

use crate::attendance::SlotCounts;

/// Path prefix of what the sidecar answers by itself.
const OWN: &str = "/sidecar/";
/// Broken connections in a row that count as a lost gateway.
const BROKEN_MAX: u32 = 3;

/// Page that the sidecar answers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnPage {
    Health,
    Metrics,
    /// A path below the prefix that is not served.
    Unknown,
}

impl OwnPage {
    /// The page of a path; `None` for a path of the gateway.
    pub(crate) fn of(path: &str) -> Option<Self> {
        Some(match path.strip_prefix(OWN)? {
            "healthz" => Self::Health,
            "metrics" => Self::Metrics,
            _unknown => Self::Unknown,
        })
    }
}

/// Kind of a request, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Completion,
    Passed,
    Refused,
}

#[derive(Debug, Default)]
struct Reach {
    is_known: bool,
    /// Failures since the last answer.
    n_failed: u32,
    lost: Option<Instant>,
}

/// State and counters of a sidecar.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Released before a line is logged: the log may block on its writer.
    reach: Mutex<Reach>,
    completions: AtomicU64,
    passed: AtomicU64,
    refused: AtomicU64,
    upstream_requests: AtomicU64,
    failed_requests: AtomicU64,
    losses: AtomicU64,
    connections: AtomicU64,
}

/// Guard of one connection; dropping it ends the connection's count.
#[derive(Debug)]
pub(crate) struct ConnectionGuard<'h>(&'h Health);

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Health {
    pub(crate) fn connect(&self) -> ConnectionGuard<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard(self)
    }

    pub(crate) fn count(&self, kind: RequestKind) {
        let counter = match kind {
            RequestKind::Completion => &self.completions,
            RequestKind::Passed => &self.passed,
            RequestKind::Refused => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the result of one request to the gateway, up to the head of its answer.
    pub(crate) fn note<T>(&self, sent: Result<T, PassedFailure>) -> Result<T, PassedFailure> {
        self.upstream_requests.fetch_add(1, Ordering::Relaxed);
        match &sent {
            Ok(_answer) => self.note_answer(),
            Err(failure) => self.note_failure(*failure),
        }
        sent
    }

    fn note_answer(&self) {
        let mut reach = self.lock();
        (reach.is_known, reach.n_failed) = (true, 0);
        let lost = reach.lost.take();
        drop(reach);
        if let Some(lost) = lost {
            tracing::info!(seconds = lost.elapsed().as_secs(), "the gateway is back");
        }
    }

    fn note_failure(&self, failure: PassedFailure) {
        self.failed_requests.fetch_add(1, Ordering::Relaxed);
        let mut reach = self.lock();
        reach.n_failed = reach.n_failed.saturating_add(1);
        let is_lost = match failure {
            PassedFailure::Unsent => true,
            // One may be a kept connection that the other side had closed: no proof of a loss.
            PassedFailure::Broken => reach.n_failed >= BROKEN_MAX,
        };
        if !is_lost || reach.lost.is_some() {
            return;
        }
        (reach.is_known, reach.lost) = (true, Some(Instant::now()));
        drop(reach);
        self.losses.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            "the gateway is unreachable: calls are repeated until their retry time ends"
        );
    }

    fn lock(&self) -> MutexGuard<'_, Reach> {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Body of `/sidecar/healthz`.
    pub(crate) fn render_health(&self) -> String {
        let reach = self.lock();
        let gateway = match (reach.is_known, reach.lost) {
            (_, Some(_)) => "unreachable",
            (true, None) => "reachable",
            (false, None) => "unknown",
        };
        format!("{{\"status\":\"ok\",\"gateway\":\"{gateway}\"}}")
    }

    /// Body of `/sidecar/metrics`, in the text format of Prometheus.
    pub(crate) fn render_metrics(&self, slots: SlotCounts) -> String {
        let is_lost = self.lock().lost.is_some();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        let mut write = |name: &str, kind: &str, help: &str, rows: &[(&str, u64)]| {
            let name = format!("holdfast_sidecar_{name}");
            let written = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            let rows = rows.iter().map(|(label, value)| writeln!(text, "{name}{label} {value}"));
            let is_written = [written].into_iter().chain(rows).all(|written| written.is_ok());
            debug_assert!(is_written, "a string takes everything");
        };
        write(
            "requests_total",
            "counter",
            "Requests of clients",
            &[
                ("{kind=\"completion\"}", of(&self.completions)),
                ("{kind=\"passed\"}", of(&self.passed)),
                ("{kind=\"refused\"}", of(&self.refused)),
            ],
        );
        let unlabelled = |value: u64| [("", value)];
        let upstream_requests = unlabelled(of(&self.upstream_requests));
        write("upstream_requests_total", "counter", "Requests to the gateway", &upstream_requests);
        let failed = unlabelled(of(&self.failed_requests));
        let help = "Requests to the gateway without an answer";
        write("upstream_failures_total", "counter", help, &failed);
        let losses = unlabelled(of(&self.losses));
        write("gateway_losses_total", "counter", "Times that the gateway was lost", &losses);
        let help = "1 unless the gateway is unreachable";
        write("gateway_reachable", "gauge", help, &unlabelled(u64::from(!is_lost)));
        let connections = unlabelled(of(&self.connections));
        write("connections", "gauge", "Connections of clients", &connections);
        write(
            "slots",
            "gauge",
            "Calls that are remembered",
            &[("{stage=\"open\"}", slots.open), ("{stage=\"ended\"}", slots.ended)],
        );
        let help = "Calls that a client waits for";
        write("calls", "gauge", help, &unlabelled(slots.callers));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_gateway_is_lost_at_once_without_a_connection_and_after_three_that_broke() {
        let health = Health::default();
        let gateway = |word: &str| health.render_health().contains(&format!("\"{word}\""));
        assert!(gateway("unknown"));
        for _ in 0..2 {
            assert!(health.note::<()>(Err(PassedFailure::Broken)).is_err());
            assert!(!gateway("unreachable"));
        }
        assert!(health.note::<()>(Err(PassedFailure::Broken)).is_err());
        assert!(gateway("unreachable"));
        assert!(health.note(Ok(())).is_ok());
        assert!(gateway("reachable"));
        assert!(health.note::<()>(Err(PassedFailure::Unsent)).is_err());
        assert!(health.note::<()>(Err(PassedFailure::Unsent)).is_err());
        assert!(gateway("unreachable"));
        let slots = SlotCounts { open: 1, ended: 2, callers: 3 };
        let metrics = health.render_metrics(slots);
        for row in [
            "holdfast_sidecar_gateway_losses_total 2\n",
            "holdfast_sidecar_gateway_reachable 0\n",
            "holdfast_sidecar_upstream_requests_total 6\n",
            "holdfast_sidecar_upstream_failures_total 5\n",
            "holdfast_sidecar_slots{stage=\"ended\"} 2\n",
            "holdfast_sidecar_calls 3\n",
        ] {
            assert!(metrics.contains(row), "{row}: {metrics}");
        }
    }
}
