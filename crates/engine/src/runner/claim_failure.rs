//! Failures of a claim, in the form for its caller. Not here: the outcome of an operation that was claimed.

use holdfast_domain::admin::event::{SpendLimitReached, spend_window};
use holdfast_domain::conduct::ClaimError;
use holdfast_domain::credential::BalanceVisibility;
use holdfast_domain::limits::{ReachedLimit, SpendLimit};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{ErrorChain, Micros};

use super::Runner;
use crate::authentication::Caller;
use crate::failure::{HeldBalance, RequestFailure};
use crate::request_context::{PreparedClaim, RequestContext};

impl Runner {
    /// Turns an error of a claim into the caller's failure, and logs the cause behind it.
    pub(crate) async fn claim_failure(
        &self,
        error: &ClaimError,
        prepared: &PreparedClaim,
        context: &RequestContext,
    ) -> RequestFailure {
        if let ClaimError::Commit(CommitError::LimitReached(reached)) = error {
            self.note_limit(reached, &context.caller);
        }
        self.with_available(failure_of_claim(error, prepared, &context.caller), &context.caller)
            .await
    }

    /// Notes that the key has reached its spend limit. A claim beyond every window proves nothing about the spend.
    fn note_limit(&self, reached: &ReachedLimit, caller: &Caller) {
        let Some(window) = spend_window(reached.counter).filter(|_| reached.may_fit_later()) else {
            return;
        };
        self.membership.notices.note_limit(&SpendLimitReached {
            api_key: caller.api_key.id,
            wallet: caller.api_key.wallet,
            currency: caller.currency,
            limit: SpendLimit { micros: Micros::new(reached.bound), window },
            at: reached.at,
        });
    }

    /// Adds the available balance to a refusal for want of funds, if the API key may see it: no request pays for a
    /// read that only statistics would use. A read that fails, or finds enough by now, adds none: the refusal stays
    /// as it is.
    async fn with_available(&self, failure: RequestFailure, caller: &Caller) -> RequestFailure {
        let RequestFailure::InsufficientFunds {
            hold,
            visibility: visibility @ BalanceVisibility::Shown,
            ..
        } = &failure
        else {
            return failure;
        };
        let available = match self.wallets.find(caller.api_key.wallet).await {
            Ok(wallet) => wallet.map(|wallet| wallet.available).filter(|there| there < hold),
            Err(error) => {
                tracing::warn!(error = %ErrorChain(&error), "a wallet could not be read");
                None
            }
        };
        RequestFailure::InsufficientFunds { hold: *hold, available, visibility: *visibility }
    }
}

fn failure_of_claim(
    error: &ClaimError,
    prepared: &PreparedClaim,
    caller: &Caller,
) -> RequestFailure {
    let visibility = caller.api_key.grant.balance;
    let failure = match error {
        ClaimError::Commit(CommitError::InsufficientFunds) => {
            return RequestFailure::InsufficientFunds {
                hold: prepared.claim.hold,
                available: None,
                visibility,
            };
        }
        ClaimError::Commit(CommitError::FundsHeld { available, held }) => {
            let balance = HeldBalance { available: *available, held: *held };
            return RequestFailure::FundsHeld { hold: prepared.claim.hold, balance, visibility };
        }
        ClaimError::Commit(CommitError::LimitReached(reached)) => {
            return RequestFailure::LimitReached(*reached);
        }
        ClaimError::Commit(CommitError::Overloaded) => return RequestFailure::Overloaded,
        ClaimError::LedgerRestored => {
            return RequestFailure::LedgerRestored { until: prepared.claim.unknown_until };
        }
        ClaimError::Commit(CommitError::TooLarge) | ClaimError::Misjudged(_) => {
            RequestFailure::Internal(None)
        }
        // Tables that refuse a claim are the operator's to mend: the same request may come again.
        ClaimError::Commit(
            CommitError::Conflict
            | CommitError::LimitsEdited
            | CommitError::Collision
            | CommitError::Unavailable(_)
            | CommitError::Uncertain(_),
        )
        | ClaimError::Load(_)
        | ClaimError::LeaseLost
        | ClaimError::UnknownVersion
        | ClaimError::Contended => RequestFailure::Storage(None),
    };
    tracing::warn!(error = %ErrorChain(error), "a claim was not committed");
    failure
}
