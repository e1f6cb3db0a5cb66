//! Cancelling: the wish goes to the row, and from there to the task that runs the operation, wherever
//! that is. What comes of it is that task's word.

use holdfast_domain::operation::{Phase, Snapshot};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{OperationId, RequestKey};
use tokio::time::timeout;

use super::Front;
use super::views::{LookupError, OperationLookup, refuse_unknown};
use crate::authentication::Caller;
use crate::options::Options;

impl Front {
    /// Marks an operation of this API key for cancelling, and shows its row: leased if its owner has the request.
    /// An owner in this process learns of it at once, another one at its next heartbeat; a claim here that the
    /// store has not judged yet is waited for. Stale work is reconciled as a look-up would. Cancel safe: the mark
    /// stays.
    pub(crate) async fn cancel(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<OperationLookup, LookupError> {
        let id = OperationId::of(caller.api_key.id, request_key);
        if caller.unknown_until.is_some() {
            // Before the mark: an open row of the copy that is ended would say for good that it never ran.
            let found = self.membership.reconcile_operation(id).await;
            refuse_unknown(&found.map_err(LookupError::Unavailable)?, caller)?;
        }
        let marked = timeout(Options::COMMIT_WAIT, self.request_cancel(id));
        let marked = marked.await.unwrap_or_else(|elapsed| Err(Unavailable(elapsed.into())));
        let snapshot = marked.map_err(LookupError::Unavailable)?;
        if let Some(row) = &snapshot.operation
            && row.phase == Phase::Leased
        {
            self.runner.running.cancel(id, row.owner.claim);
        }
        self.operation_lookup(snapshot, caller).await
    }

    /// Marks the row, and returns it only once no claim of this process waits for its verdict. Such a claim could
    /// be committed after the row was read, and run although its caller was informed that there is no run.
    async fn request_cancel(&self, id: OperationId) -> Result<Snapshot, Unavailable> {
        let mut judged = None;
        loop {
            // Looked for before the row is read and after: a claim may be registered, or judged, in between.
            let before = self.runner.running.find(id);
            let marked = self
                .membership
                .conduct_of(id)
                .cancel_while_running(id, self.runner.running.live_claim(id))
                .await?;
            let snapshot = self.membership.found(marked);
            let at_rest = snapshot.operation.as_ref().is_none_or(|row| row.phase == Phase::Open);
            let offered = before.or_else(|| self.runner.running.find(id)).filter(|_tape| at_rest);
            match offered.filter(|tape| judged != Some(tape.claim)) {
                Some(tape) => {
                    tape.wait_judged().await;
                    judged = Some(tape.claim);
                }
                None => return Ok(snapshot),
            }
        }
    }
}
