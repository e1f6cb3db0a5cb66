//! What an operator sets about operations, with the meaning that `docs/operations.md` gives it.

use std::time::Duration;

use holdfast_domain::operation::Node;
use holdfast_domain::ports::LeaseMode;
use tokio::runtime::Handle;

use crate::relay_transport::RelayOptions;

/// Times and limits of an engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// This process.
    pub node: Node,
    /// How its name is taken at the start. With [`LeaseMode::Take`] something else proves that nobody
    /// else has the name, and the process never expires itself.
    pub entry: LeaseMode,
    /// How long a heartbeat keeps the name.
    pub lease: Duration,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// The runtime that heartbeats run on; without one, that of the engine. One of its own is held up by
    /// nothing that the engine's does, so that a lease does not end under a process that works.
    pub heartbeat_runtime: Option<Handle>,
    /// How this process and the others on its database tell each other what their runs say; they do not
    /// where this is unset.
    pub relay: Option<RelayOptions>,
    /// After the end of a dead lease, before its operations are reaped.
    pub orphan_grace: Duration,
    /// How long sealed results are kept, until [`Engine::keep_results`](crate::Engine::keep_results)
    /// says otherwise.
    pub results: Duration,
    /// Bytes of large results that are on their way to callers at once.
    pub result_bytes: usize,
    /// The same for one API key.
    pub result_bytes_per_key: usize,
}

impl Options {
    /// How long before its lease ends a process without an acknowledged heartbeat stops sending.
    pub const LEASE_MARGIN: Duration = Duration::from_secs(5);
    /// How long a caller waits for the store to take a claim or a result.
    pub const COMMIT_WAIT: Duration = Duration::from_secs(10);
    /// The largest result that is not counted, in bytes: a load brings it along, and a connection hands it
    /// to the kernel at once.
    pub const SMALL_RESULT: usize = 64 << 10;
    /// The most of a streamed answer that is kept for its readers, as rendered chunks. A longer answer
    /// is ended there. Its text grows in one piece, and is copied as it does: twice as much would keep a
    /// worker of the runtime for more than the 10 ms that no upstream may.
    pub const STREAM_BYTES_MAX: usize = 32 << 20;
    /// The most that is read of an answer, as its provider sends it. A longer one is ended there.
    pub const RECEIVED_BYTES_MAX: usize = 2 * Self::STREAM_BYTES_MAX;
    /// Earlier operations that one request looks up for what its provider wants back: those of its newest
    /// turns.
    pub const LOOK_UPS_MAX: usize = 256;
    /// How many of them are looked up at once.
    pub const LOOK_UPS_AT_ONCE: usize = 8;
    /// The most bytes that are kept of what a provider wants back of one answer.
    pub const STATE_BYTES_MAX: usize = 4 << 20;
    /// What a deadline adds to a model's total timeout.
    pub const DEADLINE_MARGIN: Duration = Duration::from_secs(60);
}
