//! Laws of restores: within the window of one no unknown request key runs for an API key that the copy knows.
//!
//! An API key that was issued after the restore has no lost request key, and runs at once. A known key gets its answer.
//! A claim that was made before the restore is refused by the store itself, on whatever node it was made.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::restores};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! restores::no_unknown_key_runs_within_a_window(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::time::Duration;

use holdfast_domain::conduct::{ClaimError, ClaimOutcome, Conduct};
use holdfast_domain::operation::Claim;
use holdfast_domain::ports::{CommitError, KnownCredential};
use holdfast_domain::restore::{Restore, UnknownKeys};
use holdfast_domain::{ApiKeyId, CredentialId, Restores};

use super::Stores;
use super::tenant::{Tenant, finish, not_run};
use crate::pause::NoPause;
use crate::sample::{self, ClaimBuilder};

const HOUR: Duration = Duration::from_secs(3_600);

/// Unknown keys of a known API key are refused, and so is one that is open in the copy. Neither leaves a trace. What
/// has ended is answered, and an API key that was issued later runs.
pub async fn no_unknown_key_runs_within_a_window(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let [ended, open] = [tenant.claim().build(), tenant.claim().build()];
    let operation = tenant.admit(&ended).await;
    tenant.step(operation.id, finish(&operation, 20, 10)).await;
    let operation = tenant.admit(&open).await;
    tenant.step(operation.id, not_run(&operation)).await;
    assert_eq!(tenant.restores().open_window().await.unwrap(), None);

    let restore = tenant.restores().declare(UnknownKeys::Refuse(HOUR)).await.unwrap();
    assert_eq!(restore.unknown_until, restore.restored_at.after(HOUR));
    assert_eq!(tenant.restores().open_window().await.unwrap(), Some(restore));
    let balances = tenant.balances().await;
    for unknown in [tenant.claim(), ClaimBuilder::from_claim(open)] {
        let refused = tenant.claim_as_read(unknown).await;
        assert!(matches!(refused, Err(ClaimError::LedgerRestored)), "{refused:?}");
    }
    assert_eq!(tenant.balances().await, balances, "nothing is held");
    let answered = tenant.claim_as_read(ClaimBuilder::from_claim(ended)).await;
    assert!(matches!(answered, Ok(ClaimOutcome::Ended(_))), "{answered:?}");

    let later = tenant.another_api_key().await;
    assert_eq!(tenant.known(later).await.unknown_until, None);
    let runs = tenant.claim_as_read(tenant.claim().api_key(later)).await;
    assert!(matches!(runs, Ok(ClaimOutcome::Mine(..))), "{runs:?}");
}

/// A claim whose API key was read before the restore is refused by the store: its process does not know of the window.
pub async fn a_claim_that_was_made_before_a_restore_is_refused(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let before = tenant.known(tenant.api_key).await.limits_revision;
    for unknown in [UnknownKeys::Refuse(HOUR), UnknownKeys::Allow] {
        let claim = tenant.claim().limits_revision(before).build();
        tenant.restores().declare(unknown).await.unwrap();
        let refused = tenant.offer(&claim).await;
        assert!(matches!(refused, Err(CommitError::LimitsEdited)), "{refused:?}");
        // A process that has read more edits than the copy has is no exception.
        for lost in 1..3 {
            let claim = tenant.claim().limits_revision(before.saturating_add(lost)).build();
            let refused = tenant.offer(&claim).await;
            assert!(matches!(refused, Err(CommitError::LimitsEdited)), "{refused:?}");
        }
    }
}

/// Once its end has passed, unknown keys run.
pub async fn a_window_ends_by_the_clock_of_the_store(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let window = Duration::from_millis(20);
    let Restore { unknown_until, .. } =
        tenant.restores().declare(UnknownKeys::Refuse(window)).await.unwrap();
    let _is_turned = stores.commands().turn(window);
    // If the clock cannot be turned, until it has passed.
    while stores.journal().clock().await.unwrap() < unknown_until {}
    assert_eq!(tenant.known(tenant.api_key).await.unknown_until, None);
    assert_eq!(tenant.restores().open_window().await.unwrap(), None);
    let runs = tenant.claim_as_read(tenant.claim().unknown_until(Some(unknown_until))).await;
    assert!(matches!(runs, Ok(ClaimOutcome::Mine(..))), "{runs:?}");
}

/// The operator takes the risk: windows that are open end at once. A later restore opens another.
pub async fn unknown_keys_that_are_allowed_end_every_window(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    for _restore in 0..2 {
        tenant.restores().declare(UnknownKeys::Refuse(HOUR)).await.unwrap();
        let refused = tenant.claim_as_read(tenant.claim()).await;
        assert!(matches!(refused, Err(ClaimError::LedgerRestored)), "{refused:?}");
        let allowed = tenant.restores().declare(UnknownKeys::Allow).await.unwrap();
        assert_eq!(allowed.restored_at, allowed.unknown_until);
        assert_eq!(tenant.restores().open_window().await.unwrap(), None);
        let runs = tenant.claim_as_read(tenant.claim()).await;
        assert!(matches!(runs, Ok(ClaimOutcome::Mine(..))), "{runs:?}");
    }
}

impl Tenant<'_> {
    fn restores(&self) -> &dyn Restores {
        self.stores.restores().unwrap()
    }

    /// An API key as a process reads it.
    async fn known(&self, api_key: ApiKeyId) -> KnownCredential {
        // The tenant gives a credential the id of its key.
        let id = CredentialId::from_bytes(api_key.to_bytes());
        self.stores.keys().unwrap().credential(id).await.unwrap().unwrap()
    }

    /// Claims as a process does that has just read the API key.
    async fn claim_as_read(&self, claim: ClaimBuilder) -> Result<ClaimOutcome, ClaimError> {
        let claim = claim.claim_id(sample::fresh()).build();
        let known = self.known(claim.api_key).await;
        let claim = Claim {
            limits_revision: Some(known.limits_revision),
            unknown_until: known.unknown_until.or(claim.unknown_until),
            ..claim
        };
        let conduct =
            Conduct { journal: self.stores.journal(), pause: &NoPause, orphan_grace: None };
        conduct.claim(&sample::order(&claim)).await
    }
}
