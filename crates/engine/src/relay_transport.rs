//! The port between processes of one database: a node's request, its answer, and the transport between them. Proofs
//! and seals in it are the business of [`relay`](crate::relay); HTTP implements the transport.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use holdfast_domain::debug_as;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::secret::RelayProof;
use holdfast_domain::{ClaimId, NodeAddress, OperationId, RelayNonce};

/// Options of relays between the processes on one database.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// Address at which the others reach this process.
    pub address: NodeAddress,
    /// Transport by which this process reaches them.
    pub transport: Arc<dyn RelayTransport>,
}

/// Request for a relay: it carries no credential, and no part of the caller's request.
#[derive(Debug, Clone, Copy)]
pub struct RelayRequest {
    /// Operation to be relayed.
    pub operation: OperationId,
    /// Claim under which it runs there.
    pub claim: ClaimId,
    /// Nonce of the requesting node, for one relay.
    pub nonce: RelayNonce,
    /// Proof that the requesting node knows the operation's result key.
    pub proof: RelayProof,
}

/// Answer to a relay request: sealed bytes in pieces of any size, which may be cut.
pub struct RelayAnswer {
    /// Nonce of the answering node, for one relay.
    pub nonce: RelayNonce,
    /// Sealed records. Only the end record proves that they are complete, never the end of this.
    pub records: BoxStream<'static, Bytes>,
}

debug_as!(RelayAnswer: "RelayAnswer");

/// Transport to other nodes.
pub trait RelayTransport: fmt::Debug + Send + Sync {
    /// Sends the request to the node at this address, directly; `None` if the node refuses it.
    fn send(&self, address: NodeAddress, request: RelayRequest) -> RelayFuture;
}

/// Future of an answer; `Ok(None)` is a refusal, an error a node that was not reached.
pub type RelayFuture = BoxFuture<'static, Result<Option<RelayAnswer>, Unavailable>>;
