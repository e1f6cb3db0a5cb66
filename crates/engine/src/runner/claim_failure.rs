//! Failures of a claim, as its caller is told them. Not here: what an operation that was claimed comes to.

use holdfast_domain::conduct::ClaimError;
use holdfast_domain::credential::BalanceVisibility;
use holdfast_domain::ports::CommitError;

use super::Runner;
use crate::authentication::Caller;
use crate::failure::RequestFailure;
use crate::request_context::{PreparedClaim, RequestContext};

impl Runner {
    /// Turns an error of a claim into the caller's failure, and logs the cause behind it.
    pub(crate) async fn claim_failure(
        &self,
        error: &ClaimError,
        prepared: &PreparedClaim,
        context: &RequestContext,
    ) -> RequestFailure {
        self.with_available(failure_of_claim(error, prepared), &context.caller).await
    }

    /// Adds the available balance to a refusal for want of funds, where the grant shows balances. A
    /// read that fails, or finds enough by now, adds nothing: the refusal stands.
    async fn with_available(&self, failure: RequestFailure, caller: &Caller) -> RequestFailure {
        let (RequestFailure::InsufficientFunds { hold, .. }, BalanceVisibility::Shown) =
            (&failure, caller.api_key.grant.balance)
        else {
            return failure;
        };
        let available = match self.wallets.find(caller.api_key.wallet).await {
            Ok(wallet) => wallet.map(|wallet| wallet.available).filter(|there| there < hold),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "a wallet could not be read");
                None
            }
        };
        RequestFailure::InsufficientFunds { hold: *hold, available }
    }
}

fn failure_of_claim(error: &ClaimError, prepared: &PreparedClaim) -> RequestFailure {
    let failure = match error {
        ClaimError::Commit(CommitError::InsufficientFunds) => {
            return RequestFailure::InsufficientFunds {
                hold: prepared.claim.hold,
                available: None,
            };
        }
        ClaimError::Commit(CommitError::LimitReached(reached)) => {
            return RequestFailure::LimitReached(*reached);
        }
        ClaimError::Commit(CommitError::Overloaded) => return RequestFailure::Overloaded,
        ClaimError::Commit(CommitError::TooLarge) | ClaimError::Misjudged(_) => {
            RequestFailure::Internal(None)
        }
        // Tables that refuse a claim are the operator's to mend: the same request may come again.
        ClaimError::Commit(
            CommitError::Conflict
            | CommitError::Collision
            | CommitError::Unavailable(_)
            | CommitError::Uncertain(_),
        )
        | ClaimError::Load(_)
        | ClaimError::LeaseLost
        | ClaimError::Contended => RequestFailure::Storage(None),
    };
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "a claim was not committed");
    failure
}
