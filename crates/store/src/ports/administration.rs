//! The port of administration: a command is offered until the database gives a verdict.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_domain::account::{
    AccountCommand, AccountReceipt, ActorId, KnownAdminCredential, RequestRecord, WalletRecord,
};
use holdfast_domain::audit::{RefusedAttempts, TrailHead};
use holdfast_domain::ports::{Administration, Cause, CommandError, Unavailable};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{CommandKey, CredentialId, WalletId};
use holdfast_failpoint::{Step, reach};

use crate::dialect::blob;
use crate::errand::{Errand, Mode, OfferError, WAITING_MAX, admin_key, reads, trail};
use crate::rows::{self, Cells};
use crate::{Store, WriteBackend, unavailable};

/// Offers of one command to a database that gave no verdict.
const OFFERS_MAX: u32 = 3;

#[async_trait]
impl Administration for Store {
    async fn administer(
        &self,
        command: &AccountCommand,
        secret: &ServerSecret,
    ) -> Result<AccountReceipt, CommandError> {
        offer(self, command, secret, Mode::Commit).await
    }

    async fn rehearse(
        &self,
        command: &AccountCommand,
        secret: &ServerSecret,
    ) -> Result<AccountReceipt, CommandError> {
        offer(self, command, secret, Mode::Rehearse).await
    }

    async fn request_record(
        &self,
        actor: ActorId,
        key: CommandKey,
    ) -> Result<Option<RequestRecord>, Unavailable> {
        let binds = [actor.to_string().into(), blob(key.to_bytes())];
        let rows = self.query(reads::REQUEST, binds).await?;
        let record = |row| reads::request(&mut Cells::new(row));
        rows.first().map(record).transpose().map_err(unavailable)
    }

    async fn admin_credential(
        &self,
        id: CredentialId,
    ) -> Result<Option<KnownAdminCredential>, Unavailable> {
        let sql = admin_key::known_statement(self.dialect());
        let rows = self.quick_query(&sql, [blob(id.to_bytes())]).await?;
        let known = rows.first().map(|row| admin_key::known(&mut Cells::new(row)));
        let known = known.transpose().map_err(unavailable)?;
        Ok(known.map(|known| KnownAdminCredential { now: self.seen(known.now), ..known }))
    }

    async fn wallet_record(&self, id: WalletId) -> Result<Option<WalletRecord>, Unavailable> {
        let sql = format!("SELECT {} FROM wallets AS w WHERE w.id = $1", rows::WALLET_RECORD);
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        let record = |row| rows::wallet_record(&mut Cells::new(row));
        rows.first().map(record).transpose().map_err(unavailable)
    }

    async fn count_refused(&self, attempts: &[RefusedAttempts]) -> Result<(), Unavailable> {
        let statements = attempts.iter().map(|it| trail::count_refused(self.dialect(), it));
        let statements = statements.collect();
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.run(statements).await,
            WriteBackend::Postgres(postgres) => postgres.run(statements).await,
        }
    }

    async fn trail_head(&self) -> Result<TrailHead, Unavailable> {
        let rows = self.query(reads::HEAD, []).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        trail::head(&mut Cells::new(row)).map_err(unavailable)
    }
}

/// As many commands as may wait are waiting.
#[derive(Debug, thiserror::Error)]
#[error("{WAITING_MAX} commands of administration wait already")]
struct TooManyCommands;

/// Offers a command until the database gives a verdict.
async fn offer(
    store: &Store,
    command: &AccountCommand,
    secret: &ServerSecret,
    mode: Mode,
) -> Result<AccountReceipt, CommandError> {
    // Refused and not queued: whoever sent it has a request key, and sends it again.
    let place = Arc::clone(store.errands()).try_acquire_owned();
    let place = place.map_err(|_full| CommandError::Unavailable(Box::new(TooManyCommands)))?;
    let errand = Errand::new(store.dialect(), command, secret, (mode, place));
    let errand = errand.with_interest(store.inner.interest.get());
    let mut lost: Option<Cause> = None;
    for _offer in 0..OFFERS_MAX {
        let offered = match store.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.administer(errand.clone()).await,
            WriteBackend::Postgres(postgres) => postgres.administer(errand.clone()).await,
        };
        match offered {
            Ok(Ok(receipt)) => {
                reach(Step::CommandCommitted);
                return Ok(errand.told(receipt, lost.is_some()));
            }
            Ok(Err(refusal)) => return Err(refusal.into()),
            Err(OfferError::Uncertain(cause)) => lost = Some(cause),
            Err(OfferError::Unavailable(cause)) => {
                // A lost offer may have landed, whatever is said of a later one.
                return Err(match lost {
                    Some(lost) => CommandError::Uncertain(lost),
                    None => CommandError::Unavailable(cause),
                });
            }
        }
    }
    let never = || "the database gave no verdict".into();
    Err(CommandError::Uncertain(lost.unwrap_or_else(never)))
}
