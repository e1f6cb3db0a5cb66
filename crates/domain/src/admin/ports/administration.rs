//! The port of administration.

use async_trait::async_trait;

use crate::admin::audit::{RefusedAttempts, TrailHead};
use crate::admin::{
    AccountCommand, AccountReceipt, AccountRefusal, ActorId, KnownAdminCredential, RequestRecord,
    WalletRecord,
};
use crate::ports::{Cause, Unavailable};
use crate::secret::ServerSecret;
use crate::{CommandKey, CredentialId, WalletId};

/// Reason why a command was not done.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command was judged, and refused: no key was bound and no row changed.
    #[error(transparent)]
    Refused(#[from] AccountRefusal),
    /// The store cannot be reached or does not work: no row was changed.
    #[error("the store is unavailable")]
    Unavailable(#[source] Cause),
    /// The answer to the commit was lost: it may have happened. The same command again finds out,
    /// by its request key.
    #[error("the store did not report whether it committed")]
    Uncertain(#[source] Cause),
}

/// Keeps what people change, and the trail of it.
#[async_trait]
pub trait Administration: Send + Sync {
    /// Does a command: judges it by [`decide`](crate::admin::decide), and writes what follows, the
    /// binding of its request key and its rows of the trail in one transaction. Cancel safe: a
    /// dropped future does not undo it. A repetition is answered from the request key, for ever.
    ///
    /// # Errors
    ///
    /// [`CommandError::Refused`] for a command that the rules refuse, [`CommandError::Unavailable`] if no row was
    /// changed, and [`CommandError::Uncertain`] if the answer to the commit was lost.
    async fn administer(
        &self,
        command: &AccountCommand,
        secret: &ServerSecret,
    ) -> Result<AccountReceipt, CommandError>;

    /// Judges a command as [`Administration::administer`] would, and changes no row: the receipt names the
    /// resources that it would have changed.
    ///
    /// # Errors
    ///
    /// [`CommandError::Refused`] and [`CommandError::Unavailable`], as [`Administration::administer`].
    async fn rehearse(
        &self,
        command: &AccountCommand,
        secret: &ServerSecret,
    ) -> Result<AccountReceipt, CommandError>;

    /// Reads the record to which a request key of this actor is bound, for any request. A caller that judges by
    /// more than the ledger, such as by the names of hosts, reads this first: a done command is answered again,
    /// even if the facts have changed since. The command is still judged by its binding.
    async fn request_record(
        &self,
        actor: ActorId,
        key: CommandKey,
    ) -> Result<Option<RequestRecord>, Unavailable>;

    /// Looks an admin credential up.
    async fn admin_credential(
        &self,
        id: CredentialId,
    ) -> Result<Option<KnownAdminCredential>, Unavailable>;

    /// Reads a wallet with all that people set on it.
    async fn wallet_record(&self, id: WalletId) -> Result<Option<WalletRecord>, Unavailable>;

    /// Adds attempts to those of this hour, by the database's clock. No decision depends on them.
    async fn count_refused(&self, attempts: &[RefusedAttempts]) -> Result<(), Unavailable>;

    /// Reads the head of the trail.
    async fn trail_head(&self) -> Result<TrailHead, Unavailable>;
}
