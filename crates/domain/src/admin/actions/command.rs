//! Commands: an action with all that its transaction needs, and the record of what was done.
//!
//! A command has the ids and verifiers of new resources too: it may be offered again after a lost answer, and
//! then must be the same one.

use super::AccountAction;
use crate::Timestamp;
use crate::admin::{ActorId, CanonicalDigest, RequestBinding, ResourceId, WalletBounds};

/// Command of an administrator: one change, and all that the trail keeps of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountCommand {
    /// Actor, already authorized. Authorization was judged before.
    pub actor: ActorId,
    /// Network address of the actor, if there is one. It is kept apart from the audit log for a while.
    pub address: Option<String>,
    /// Request that it is bound to.
    pub request: RequestBinding,
    /// Reason that the actor gives.
    pub reason: Option<String>,
    /// Bounds on the wallet of a new resource, as its process is configured.
    pub bounds: WalletBounds,
    /// True if the actor knows that the request was not done before a restore, or has it done once more.
    pub is_after_restore: bool,
    /// The change.
    pub action: AccountAction,
}

/// Record of a request that was done: its digests, and what it was done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Digest of the request.
    pub digest: [u8; 32],
    /// Canonical digest of the request; `None` if a node of a version without it did the request.
    pub canonical: Option<CanonicalDigest>,
    /// Resources that the command created or changed.
    pub things: Vec<ResourceId>,
    /// Moment of the command.
    pub at: Timestamp,
}

impl RequestRecord {
    /// True if the record is of this request.
    #[must_use]
    pub fn is_of(&self, request: &RequestBinding) -> bool {
        request.is_of(self.digest, self.canonical)
    }
}
