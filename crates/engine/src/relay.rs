//! Relays: the text of a run, sent to another process on the same database while it is generated, so that a
//! stream which is joined there is as live as here. Two nodes share no secret and do not trust addresses.
//! The asking node proves that it knows the operation's result key, which only the bearer of the credential
//! yields. The records are sealed under a key of both nodes' nonces. A relay therefore travels without TLS:
//! whoever listens, answers or asks without the credential gains nothing.
//!
//! ```text
//! asks:    operation, claim, nonce, K("relay ask", result key ‖ claim ‖ nonce)
//! answers: nonce, then records sealed under K("relay tape", result key ‖ claim ‖ both nonces)
//! ```
//!
//! A relay carries text and no ending: the outcome of an operation is in its row alone. The transport is
//! behind [`RelayTransport`].

mod client;
mod record;
mod server;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::secret::RelayProof;
use holdfast_domain::{ClaimId, NodeAddress, OperationId, RelayNonce};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

pub(crate) use self::client::RelayEvent;

/// Relays of a process at once, those that it tells and those that it hears each for themselves.
const RELAYS_MAX: usize = 256;

/// How long a run may say nothing until the asking node gets a sign of life.
const PING_AFTER: Duration = Duration::from_secs(15);
/// How long the asking node waits for a record before it takes the relay for cut.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// How processes on one database tell each other what their runs say.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// Where the others reach this process.
    pub address: NodeAddress,
    /// How this one reaches them.
    pub transport: Arc<dyn RelayTransport>,
}

/// What a node says to hear a run of another: no credential, and nothing of the request.
#[derive(Debug, Clone, Copy)]
pub struct RelayRequest {
    /// Which operation.
    pub operation: OperationId,
    /// Under which claim it runs there.
    pub claim: ClaimId,
    /// The asking node's, of this relay alone.
    pub nonce: RelayNonce,
    /// That it knows the operation's result key.
    pub proof: RelayProof,
}

/// What a node tells of a run: bytes in pieces of any size, which are whole or not.
pub struct RelayAnswer {
    /// The telling node's, of this relay alone.
    pub nonce: RelayNonce,
    /// Sealed records. That it ends says nothing: the last record does.
    pub records: BoxStream<'static, Bytes>,
}

impl fmt::Debug for RelayAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayAnswer")
    }
}

/// Reaches other nodes.
pub trait RelayTransport: fmt::Debug + Send + Sync {
    /// Asks the node at this address, directly; `None` where it tells nothing to whoever asks so.
    fn ask(&self, address: NodeAddress, request: RelayRequest) -> RelayFuture;
}

/// What comes of asking a node.
pub type RelayFuture = BoxFuture<'static, Result<Option<RelayAnswer>, Unavailable>>;

/// The relays of a process.
#[derive(Debug)]
pub(crate) struct Relays {
    options: RelayOptions,
    told: Arc<Semaphore>,
    heard: Arc<Semaphore>,
}

impl Relays {
    pub(crate) fn new(options: RelayOptions) -> Self {
        let places = || Arc::new(Semaphore::new(RELAYS_MAX));
        Self { options, told: places(), heard: places() }
    }

    pub(crate) const fn address(&self) -> &NodeAddress {
        &self.options.address
    }
}

/// A place among the relays of a process; `None` when there is none.
fn try_permit(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).try_acquire_owned().ok()
}

fn nonce() -> RelayNonce {
    RelayNonce::from(Uuid::new_v4())
}
