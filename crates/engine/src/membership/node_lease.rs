//! Node lease: how this process takes its name, and what its last acknowledged heartbeat allows.
//!
//! ```text
//! sent ───────── acknowledged ──────────── lease − LEASE_MARGIN ───── lease
//!  the lease counts from here   may send                   sends nothing new  others may reap, after a grace
//! ```
//!
//! The lease is counted from when the heartbeat was *sent*, because the database may have written it at any moment
//! since; its clock is read from when it was *acknowledged*. Each is the pessimistic end: a process stops sending
//! before others can think it dead, and never says that it is later than the database does.
//!
//! Other nodes' dead leases are believed only by a process that was itself in touch for a whole lease. After an outage
//! of the database every lease has ended, and nobody is dead.
//!
//! A name is waited for at the start for one lease at most: a lease that is renewed meanwhile has a living holder.
//! With an exclusive lock (SQLite) a lock outside the database proves that nobody else has the name, and the process
//! never expires itself.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, Nodes, Unavailable};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::options::Options;

/// How often a start that waits for its name looks again.
const NAME_POLL: Duration = Duration::from_millis(500);

/// Why a process did not become a node.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another live process has the name.
    #[error("node name in use: another process renews the lease of {0}")]
    NameInUse(String),
    /// The store does not work.
    #[error("the node's row could not be written")]
    Unavailable(#[source] Unavailable),
}

/// What a process knows of its own row.
#[derive(Debug)]
pub(crate) struct NodeLease {
    node: Node,
    /// A lock outside the database proves that nobody else has the name: its lease never ends here.
    exclusive: bool,
    lease: Duration,
    state: Mutex<LeaseReading>,
    /// Another incarnation has the name.
    pub(crate) superseded: CancellationToken,
}

#[derive(Debug, Clone)]
struct LeaseReading {
    lease: Lease,
    /// The database's clock as it acknowledged that heartbeat.
    now: Timestamp,
    /// When the last acknowledged heartbeat was sent: the lease began no earlier.
    sent: Instant,
    /// When it was acknowledged: the clock said `now` no later.
    acknowledged: Instant,
    /// Since when every heartbeat has been acknowledged.
    in_touch_since: Instant,
    /// Whether the newest heartbeat failed.
    is_failing: bool,
}

impl NodeLease {
    /// Takes the node's name as the options say; waits at most one lease for another process's to end.
    pub(crate) async fn enter(nodes: &dyn Nodes, options: &Options) -> Result<Self, StartError> {
        let mut first_end = None;
        loop {
            let sent = Instant::now();
            let beat = nodes.heartbeat(&options.node, options.lease, options.entry).await;
            match beat.map_err(StartError::Unavailable)? {
                HeartbeatOutcome::Held { lease, now } => {
                    return Ok(Self::new(options, sent, lease, now));
                }
                HeartbeatOutcome::Lost { lease, .. } => {
                    let end = lease.map(|lease| lease.ends_at);
                    // The end has moved while this start waited: somebody renews it, and lives.
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

    /// How long one heartbeat keeps the name.
    pub(crate) const fn length(&self) -> Duration {
        self.lease
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The heartbeat that was sent then was acknowledged.
    pub(crate) fn on_heartbeat(&self, sent: Instant, lease: Lease, now: Timestamp) {
        let mut state = self.lock();
        // A lease had ended before this one was acknowledged: as after an outage, others seem dead who are not.
        if state.sent.elapsed() >= self.lease {
            state.in_touch_since = Instant::now();
        }
        state.lease = lease;
        state.now = now;
        state.sent = sent;
        state.acknowledged = Instant::now();
        state.is_failing = false;
    }

    /// A heartbeat was not acknowledged.
    pub(crate) fn on_heartbeat_failure(&self) {
        self.lock().is_failing = true;
    }

    /// The database's clock, as well as this process can tell: behind it, by less than the last
    /// heartbeat took, and never ahead.
    pub(crate) fn now(&self) -> Timestamp {
        let state = self.lock();
        state.now.after(state.acknowledged.elapsed())
    }

    /// The latest that the database's clock can say: the own lease is judged by it.
    pub(crate) fn now_at_the_latest(&self) -> Timestamp {
        let state = self.lock();
        state.now.after(state.sent.elapsed())
    }

    /// The own row to judge a claim by.
    pub(crate) fn lease(&self) -> Lease {
        let mut lease = self.lock().lease.clone();
        if self.exclusive {
            lease.ends_at = Timestamp::from_micros(i64::MAX);
        }
        lease
    }

    /// Whether anything new may be sent to a provider.
    pub(crate) fn may_send(&self) -> bool {
        let silent = self.lock().sent.elapsed();
        // A third at most, so that a short lease leaves time to send.
        let margin = self.lease.saturating_sub(Options::LEASE_MARGIN.min(self.lease / 3));
        !self.superseded.is_cancelled() && (self.exclusive || silent < margin)
    }

    /// Whether the newest heartbeat was acknowledged, and within the last lease.
    pub(crate) fn is_in_touch(&self) -> bool {
        let state = self.lock();
        !state.is_failing && state.sent.elapsed() < self.lease
    }

    /// Whether other nodes' dead leases may be believed: only when this process itself is in touch and
    /// has been for a lease, so that an outage of the database does not look like the death of all.
    pub(crate) fn believes_dead_leases(&self) -> bool {
        let (state, now) = (self.lock(), Instant::now());
        now.duration_since(state.sent) < self.lease
            && now.duration_since(state.in_touch_since) >= self.lease
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LeaseReading> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
