//! Claiming: a claim on its way to the store, under the limits of its API key as they are.
//!
//! A caller is remembered for some seconds, and its limits with it. A claim by limits that were edited meanwhile is
//! refused: it would reserve nothing of a counter that the edit has begun. The caller is then read again, and the
//! claim offered under the new limits.
//!
//! A restore that was declared meanwhile is noticed in the same way, at the cost of no instruction of its own: it moves
//! the revision of every wallet's limits, and the caller that is read again has the window. Within a window the claim
//! reads its row first (`Conduct::claim`).

use holdfast_domain::ErrorChain;
use holdfast_domain::conduct::{ClaimError, ClaimOffer, ClaimOutcome};
use holdfast_domain::operation::Operation;
use holdfast_domain::ports::CommitError;

use super::Runner;
use super::rebinding::Rebinder;
use crate::request_context::{PreparedClaim, RequestContext};

/// Offers of one claim, each but the first after an edit of limits, or after a large body was bound anew.
const OFFERS_MAX: u32 = 20;

impl Runner {
    /// Offers a claim until there is a verdict.
    pub(super) async fn claim(
        &self,
        prepared: &mut PreparedClaim,
        context: &mut RequestContext,
        rebinder: &Rebinder,
    ) -> Result<ClaimOutcome, ClaimError> {
        let mut offers = 1;
        let rebind = |row: &Operation| rebinder.rebind(row);
        loop {
            let offer = ClaimOffer {
                claim: &prepared.claim,
                // The latest moment that the database's clock may have: a lease that may have ended there claims no
                // row.
                now: self.membership.node.now_at_the_latest(),
                rebind: &rebind,
            };
            let claimed = self.membership.conduct().claim(&offer).await;
            let is_uncompared = matches!(claimed, Err(ClaimError::UnknownVersion));
            // In a box: few bodies are large.
            if is_uncompared
                && offers < OFFERS_MAX
                && Box::pin(rebinder.prepare(&self.parsing)).await
            {
                offers += 1;
                continue;
            }
            let is_outdated = matches!(claimed, Err(ClaimError::Commit(CommitError::LimitsEdited)));
            if !is_outdated || offers >= OFFERS_MAX {
                return claimed;
            }
            offers += 1;
            // In a box: few claims come to it.
            match Box::pin(self.authentication.renew(&context.caller)).await {
                Ok(caller) => {
                    prepared.claim.limits = caller.api_key.grant.limits;
                    prepared.claim.limits_revision = Some(caller.limits_revision);
                    prepared.claim.unknown_until = caller.unknown_until;
                    context.caller = caller;
                }
                Err(error) => {
                    tracing::warn!(error = %ErrorChain(&error), "edited limits could not be read");
                    return claimed;
                }
            }
        }
    }
}
