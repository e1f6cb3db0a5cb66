//! The port between processes of one database: what a node asks for, what it is told, and how it is reached.
//! What is proven and sealed in it is the business of [`relay`](crate::relay); HTTP implements the transport.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::secret::RelayProof;
use holdfast_domain::{ClaimId, NodeAddress, OperationId, RelayNonce};

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
