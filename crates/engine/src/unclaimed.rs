//! Why a claim was not made: what its caller is told. Not here: what an operation that was claimed comes to.

use holdfast_domain::conduct::ClaimError;
use holdfast_domain::credential::Balance;
use holdfast_domain::ports::CommitError;

use crate::Engine;
use crate::admission::Bid;
use crate::callers::Caller;
use crate::reply::Failure;
use crate::submit::Ask;

impl Engine {
    /// Why no key was bound, for the caller; what is behind it, for the log.
    pub(crate) async fn unclaimed(&self, error: &ClaimError, bid: &Bid, ask: &Ask) -> Failure {
        self.with_available(unbound(error, bid), &ask.caller).await
    }

    /// Adds to a refusal for want of funds how much there is, where the caller may know that. A look that
    /// fails, or that finds enough by now, adds nothing: the refusal stands.
    async fn with_available(&self, failure: Failure, caller: &Caller) -> Failure {
        let (Failure::InsufficientFunds { hold, .. }, Balance::Shown) =
            (&failure, caller.api_key.grant.balance)
        else {
            return failure;
        };
        let available = match self.ports.wallets.find(caller.api_key.wallet).await {
            Ok(wallet) => wallet.map(|wallet| wallet.available).filter(|there| there < hold),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "a wallet could not be read");
                None
            }
        };
        Failure::InsufficientFunds { hold: *hold, available }
    }
}

fn unbound(error: &ClaimError, bid: &Bid) -> Failure {
    let failure = match error {
        ClaimError::Commit(CommitError::InsufficientFunds) => {
            return Failure::InsufficientFunds { hold: bid.claim.hold, available: None };
        }
        ClaimError::Commit(CommitError::LimitReached(reached)) => {
            return Failure::LimitReached(*reached);
        }
        ClaimError::Commit(CommitError::Overloaded) => return Failure::Overloaded,
        ClaimError::Commit(CommitError::TooLarge) | ClaimError::Misjudged(_) => {
            Failure::Internal(None)
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
        | ClaimError::Contended => Failure::Storage(None),
    };
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "a claim was not committed");
    failure
}
