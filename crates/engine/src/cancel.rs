//! Cancelling: the wish goes to the row, and from there to the task that runs the operation, wherever
//! that is. What comes of it is that task's word.

use holdfast_domain::operation::Phase;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{OperationId, RequestKey};
use tokio::time::timeout;

use crate::Engine;
use crate::callers::Caller;
use crate::options::Options;
use crate::views::{LookUp, LookUpError};

impl Engine {
    /// Asks for the end of an operation of this API key, and shows how it stands: leased where its
    /// owner was asked. An owner in this process knows at once, another one at its next heartbeat.
    /// Stale work is reconciled as a look-up would. Cancel safe: what was asked stays asked.
    ///
    /// # Errors
    ///
    /// A [`LookUpError`].
    pub async fn cancel(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<LookUp, LookUpError> {
        let id = OperationId::of(caller.api_key.id, request_key);
        let conduct = self.conduct_of(id);
        let asked = timeout(Options::COMMIT_WAIT, conduct.cancel(id));
        let asked = asked.await.unwrap_or_else(|elapsed| Err(Unavailable(elapsed.into())));
        let snapshot = asked.map_err(LookUpError::Unavailable)?;
        if let Some(row) = &snapshot.operation
            && row.phase == Phase::Leased
        {
            self.running.cancel(id, row.owner.claim);
        }
        LookUp::of(snapshot, caller)
    }
}
