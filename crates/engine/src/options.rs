//! Options of an engine, and its fixed times and limits. `docs/reference/configuration.md` has those that an operator
//! sets.

use std::time::Duration;

use holdfast_domain::cell::Cell;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::LeaseMode;
use tokio::runtime::Handle;

use crate::relay_transport::RelayOptions;

/// Times and limits of an engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// Node name and incarnation of this process.
    pub node: Node,
    /// Cell of this installation's credentials. A credential of another cell that is unknown here is logged.
    pub cell: Option<Cell>,
    /// Mode in which the name is taken. With [`LeaseMode::Take`] a lock outside the database proves that no other
    /// process has it, and the process never expires itself.
    pub entry: LeaseMode,
    /// Length of the lease that one heartbeat renews.
    pub lease: Duration,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// The runtime that heartbeats run on; without one, that of the engine. One of its own is never held up by the
    /// engine's work, so that a lease does not end under a process that works.
    pub heartbeat_runtime: Option<Handle>,
    /// Relays between the processes on one database; none if this is unset.
    pub relay: Option<RelayOptions>,
    /// After the end of a dead lease, before its operations are reaped.
    pub orphan_grace: Duration,
    /// Retention of sealed results, until [`Engine::keep_results`](crate::Engine::keep_results)
    /// changes it.
    pub results: Duration,
    /// Retention of hours of statistics, until [`Engine::keep_statistics`](crate::Engine::keep_statistics) changes it.
    pub statistics: Duration,
    /// Bytes of large results that are on their way to callers at once.
    pub result_bytes: usize,
    /// The same for one API key.
    pub result_bytes_per_key: usize,
}

impl Options {
    /// Margin before the end of its lease at which a silent process stops sending.
    pub const LEASE_MARGIN: Duration = Duration::from_secs(5);
    /// Wait of a caller for the store to take a claim or a result.
    pub const COMMIT_WAIT: Duration = Duration::from_secs(10);
    /// Wait of a drain for the ends of cut runs at gateways behind.
    pub const CHAIN_END_WAIT: Duration = Duration::from_secs(5);
    /// The largest result that is not counted, in bytes: a load brings it along, and a connection hands it
    /// to the kernel at once.
    pub const SMALL_RESULT: usize = 64 << 10;
    /// The most of a streamed answer that is kept for its readers, as rendered chunks. A longer answer
    /// is ended there. Its text grows in one piece, and is copied as it does: twice as much would keep a
    /// worker of the runtime for more than the 10 ms that no upstream may.
    pub const STREAM_BYTES_MAX: usize = 32 << 20;
    /// The most that is read of an answer, as its provider sends it. A longer one is ended there.
    pub const RECEIVED_BYTES_MAX: usize = 2 * Self::STREAM_BYTES_MAX;
    /// Earlier operations that one request looks up for the states of its provider: those of its newest turns.
    pub const LOOK_UPS_MAX: usize = 256;
    /// Look-ups of one request that run at once.
    pub const LOOK_UPS_AT_ONCE: usize = 8;
    /// The most bytes that are kept of a provider's state of one answer.
    pub const STATE_BYTES_MAX: usize = 4 << 20;
    /// Time that a deadline adds to a model's total timeout.
    pub const DEADLINE_MARGIN: Duration = Duration::from_secs(60);
}
