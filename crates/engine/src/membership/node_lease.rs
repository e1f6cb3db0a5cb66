//! Lease of this process as a node: how it takes its name, and the rights of its last acknowledged heartbeat.
//!
//! ```text
//!        sent       the database reads its clock       acknowledged
//! own ────┼───────────────────┼─────────────────────────────┼────────────► now
//!         └ the lease begins no earlier                     └ the clock read `now` no later
//! ```
//!
//! A reading of the database's clock is of some unknown moment between the sending and the acknowledgement. So each
//! check takes the end that errs to the safe side: the own lease, and the right to call a provider, count from the
//! sending; the estimate that is never ahead of the database counts from the acknowledgement. Time in between is
//! the own monotonic clock's, which is never set. Clocks of two processes are never compared.
//!
//! A start waits for its name as long as the row's end stays the same: an end that moves was renewed, so another
//! process with the name is alive.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, Nodes, Unavailable};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::options::Options;

/// Interval of polls while a start waits for its name.
const NAME_POLL: Duration = Duration::from_millis(500);

/// Failure of a start: the process did not become a node.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Name held by another live process.
    #[error("node name in use: another process renews the lease of {0}")]
    NameInUse(String),
    /// Store not writable.
    #[error("the node's row could not be written")]
    Unavailable(#[source] Unavailable),
}

/// Node lease: this process's reading of its own row.
#[derive(Debug)]
pub(crate) struct NodeLease {
    node: Node,
    /// Exclusive mode: a lock outside the database proves that no other process has the name, so that the lease
    /// never ends here.
    exclusive: bool,
    lease: Duration,
    state: Mutex<LeaseReading>,
    /// Signal that another incarnation has taken the name.
    pub(crate) superseded: CancellationToken,
}

#[derive(Debug, Clone)]
struct LeaseReading {
    lease: Lease,
    /// Reading of the database's clock in that acknowledgement.
    now: Timestamp,
    /// Sending time of the last acknowledged heartbeat: the lease began no earlier.
    sent: Instant,
    /// Acknowledgement time: the database's clock read `now` no later.
    acknowledged: Instant,
    /// Start of the unbroken time in touch with the database.
    in_touch_since: Instant,
    /// Failure mark of the newest heartbeat.
    is_failing: bool,
}

impl NodeLease {
    /// Takes the node's name under the options, and waits at most one lease for another's to end.
    pub(crate) async fn enter(nodes: &dyn Nodes, options: &Options) -> Result<Self, StartError> {
        let mut first_end = None;
        loop {
            let sent = Instant::now();
            let beat = nodes.heartbeat(&options.node, options.lease, options.entry).await;
            match beat.map_err(StartError::Unavailable)? {
                HeartbeatOutcome::Held { lease, now, .. } => {
                    return Ok(Self::new(options, sent, lease, now));
                }
                HeartbeatOutcome::Lost { lease, .. } => {
                    let end = lease.map(|lease| lease.ends_at);
                    if *first_end.get_or_insert(end) != end {
                        let name = options.node.name.to_string();
                        return Err(StartError::NameInUse(name));
                    }
                }
            }
            tokio::time::sleep(NAME_POLL.min(options.heartbeat)).await;
        }
    }

    fn new(options: &Options, sent: Instant, lease: Lease, now: Timestamp) -> Self {
        let state = LeaseReading {
            lease,
            now,
            sent,
            acknowledged: Instant::now(),
            in_touch_since: sent,
            is_failing: false,
        };
        Self {
            node: options.node.clone(),
            exclusive: options.entry == LeaseMode::Take,
            lease: options.lease,
            state: Mutex::new(state),
            superseded: CancellationToken::new(),
        }
    }

    /// Length of the lease: one heartbeat keeps the name for so long.
    pub(crate) const fn length(&self) -> Duration {
        self.lease
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Takes the acknowledgement of the heartbeat that was sent at `sent`.
    pub(crate) fn on_heartbeat(&self, sent: Instant, lease: Lease, now: Timestamp) {
        let mut state = self.lock();
        // The lease had run out before this answer came: for that time this process could not read the others'
        // leases, and must not take their silence for death.
        if state.sent.elapsed() >= self.lease {
            state.in_touch_since = Instant::now();
        }
        state.lease = lease;
        state.now = now;
        state.sent = sent;
        state.acknowledged = Instant::now();
        state.is_failing = false;
    }

    /// Marks the newest heartbeat as failed, until one is acknowledged.
    pub(crate) fn on_heartbeat_failure(&self) {
        self.lock().is_failing = true;
    }

    /// Estimate of the database's clock: never ahead of it, and behind by less than the last
    /// heartbeat took.
    pub(crate) fn now(&self) -> Timestamp {
        let state = self.lock();
        // The clock was read before this came: no less time can have gone by.
        state.now.after(state.acknowledged.elapsed())
    }

    /// Latest time that the database's clock can show; the own lease is judged by it.
    pub(crate) fn now_at_the_latest(&self) -> Timestamp {
        let state = self.lock();
        // The database read its clock after this was sent: no more time can have gone by there.
        state.now.after(state.sent.elapsed())
    }

    /// Lease that a claim is judged by; without an end in exclusive mode.
    pub(crate) fn lease(&self) -> Lease {
        let mut lease = self.lock().lease.clone();
        if self.exclusive {
            lease.ends_at = Timestamp::from_micros(i64::MAX);
        }
        lease
    }

    /// True if a provider may be called: not superseded, and the last acknowledged heartbeat was sent less than the
    /// lease less its margin ago.
    pub(crate) fn may_send(&self) -> bool {
        let silent = self.lock().sent.elapsed();
        // From the sending, not the acknowledgement: the database counts from no earlier.
        // At most a third of a lease that is short: one no longer than the margin would never allow to send.
        let margin = self.lease.saturating_sub(Options::LEASE_MARGIN.min(self.lease / 3));
        !self.superseded.is_cancelled() && (self.exclusive || silent < margin)
    }

    /// True if the newest heartbeat was acknowledged, and sent within the last lease.
    pub(crate) fn is_in_touch(&self) -> bool {
        let state = self.lock();
        !state.is_failing && state.sent.elapsed() < self.lease
    }

    /// True if other nodes' dead leases may be believed: only after a whole lease in touch, because an outage of
    /// the database looks like the death of all.
    pub(crate) fn believes_dead_leases(&self) -> bool {
        let (state, now) = (self.lock(), Instant::now());
        now.duration_since(state.sent) < self.lease
            && now.duration_since(state.in_touch_since) >= self.lease
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LeaseReading> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
