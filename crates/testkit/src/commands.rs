//! Commands of administration for tests: every wallet, API key and posting is created through here.
//!
//! ```text
//! issue, rotate, revoke, create_wallet, post, edit_limits ─▶ AccountAction ─▶ administer
//! ```
//!
//! A store with the port of administration does a command of the actor `local` under a fresh request key. A journal
//! that has no such port does the actions that its laws need, in its own way.
//!
//! ```
//! use holdfast_domain::admin::{AccountRefusal, CommandError};
//! use holdfast_testkit::{Commands as _, MemoryJournal, sample};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), CommandError> {
//! let journal = MemoryJournal::new();
//! let [acme, other] = [sample::fresh(), sample::fresh()];
//! journal.create_wallet(acme, "acme", sample::usd()).await?;
//! assert_eq!(journal.wallet(acme).unwrap().available.get(), 0);
//!
//! // A name is taken once, and a refusal leaves no trace.
//! assert!(journal.create_wallet(other, "acme", sample::usd()).await.is_err());
//! assert_eq!(journal.wallet(other), None);
//! # Ok(())
//! # }
//! ```

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::ports::{Administration, CommandError};
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, ActorId, ApiKeyAction, ApiKeyPatch, NewPosting,
    PostingDetails, RequestBinding, WalletAction, WalletBounds, WalletPatch, WalletRecord,
};
use holdfast_domain::credential::{Credential, NewApiKey};
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::Limits;
use holdfast_domain::{ApiKeyId, Currency, WalletId};

use crate::sample;

/// Receipt of a command, or why it was not done.
pub type CommandResult = Result<AccountReceipt, CommandError>;

/// Commands of a store, each service's in its own way.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Runs an action, under a request key of its own.
    async fn administer(&self, action: AccountAction) -> CommandResult;

    /// Turns the clock on; false if the clock cannot be turned.
    fn turn(&self, _span: Duration) -> bool {
        false
    }

    /// Makes an empty wallet.
    async fn create_wallet(&self, id: WalletId, name: &str, currency: Currency) -> CommandResult {
        self.administer(AccountAction::Wallet(WalletAction::Create(WalletRecord::new(
            id,
            name.to_owned(),
            currency,
            WalletPatch::default(),
        ))))
        .await
    }

    /// Issues an API key with its first credential.
    async fn issue(&self, key: &NewApiKey, credential: &Credential) -> CommandResult {
        let keys = vec![(key.clone(), credential.clone())];
        let wallet = key.wallet;
        self.administer(AccountAction::ApiKey(ApiKeyAction::Issue {
            wallet,
            keys,
            is_bounded: false,
        }))
        .await
    }

    /// Adds a credential to an API key of this wallet, and ends its other ones after the grace.
    async fn rotate(
        &self,
        credential: &Credential,
        wallet: WalletId,
        grace: Duration,
    ) -> CommandResult {
        let credential = credential.clone();
        let rotate = AccountAction::ApiKey(ApiKeyAction::Rotate {
            credential,
            wallet,
            grace,
            is_bounded: false,
        });
        self.administer(rotate).await
    }

    /// Ends an API key for good.
    async fn revoke(&self, api_key: ApiKeyId) -> CommandResult {
        self.administer(AccountAction::ApiKey(ApiKeyAction::Revoke(api_key))).await
    }

    /// Posts money.
    async fn post(&self, posting: &Posting) -> CommandResult {
        self.administer(AccountAction::Post(NewPosting {
            posting: posting.clone(),
            details: PostingDetails::default(),
            allowance: None,
            currency: None,
        }))
        .await
    }

    /// Sets the limits of an API key of this wallet.
    async fn edit_limits(
        &self,
        api_key: ApiKeyId,
        wallet: WalletId,
        limits: Limits,
    ) -> CommandResult {
        let patch = ApiKeyPatch {
            counts: limits.counts(),
            spend: Some(limits.spend),
            ..ApiKeyPatch::default()
        };
        let (expected, is_bounded) = (None, false);
        self.administer(AccountAction::ApiKey(ApiKeyAction::Edit {
            api_key,
            wallet,
            patch,
            expected,
            is_bounded,
        }))
        .await
    }
}

#[async_trait]
impl<T: Administration> Commands for T {
    async fn administer(&self, action: AccountAction) -> CommandResult {
        Administration::administer(self, &command(action), &sample::secret()).await
    }
}

/// A command of the actor `local` under a fresh request key.
pub(crate) fn command(action: AccountAction) -> AccountCommand {
    // As a door would: another action is another request.
    let mut hasher = DefaultHasher::new();
    format!("{action:?}").hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_be_bytes());
    AccountCommand {
        actor: ActorId::Local,
        address: None,
        request: RequestBinding { key: sample::fresh(), digest, canonical: None },
        reason: None,
        bounds: WalletBounds::DEFAULT,
        // Laws of restores issue keys within a window.
        is_after_restore: true,
        action,
    }
}
