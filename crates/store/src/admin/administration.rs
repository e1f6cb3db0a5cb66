//! The port of administration: a command is offered until the database gives a verdict.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_domain::admin::audit::{RefusedAttempts, TrailHead};
use holdfast_domain::admin::ports::{Administration, CommandError};
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, ActorId, ApiKeyAction, KnownAdminCredential,
    RequestRecord, WalletRecord,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::ports::{Cause, Unavailable};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{CommandKey, CredentialId, WalletId};
use holdfast_failpoint::{Step, reach};

use crate::error::unavailable;
use crate::rows::{BadRow, Cells, FromCells, Row};
use crate::schema::blob;
use crate::store::Store;
use crate::transaction::command::seed::EndedSums;
use crate::transaction::command::{
    CommandTransaction, Mode, OfferError, WAITING_MAX, admin_key, reads, trail,
};

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
        let sql = format!("SELECT {} FROM wallets AS w WHERE w.id = $1", WalletRecord::COLUMNS);
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        let record = |row| WalletRecord::from_cells(&mut Cells::new(row));
        rows.first().map(record).transpose().map_err(unavailable)
    }

    async fn count_refused(&self, attempts: &[RefusedAttempts]) -> Result<(), Unavailable> {
        let statements = attempts.iter().map(|it| trail::count_refused(self.dialect(), it));
        let statements = statements.collect();
        self.run(move |_now| statements).await
    }

    async fn trail_head(&self) -> Result<TrailHead, Unavailable> {
        let rows = self.query(reads::HEAD, []).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        trail::head(&mut Cells::new(row)).map_err(unavailable)
    }
}

/// Sums for a command were outdated each time that its transaction had begun.
#[derive(Debug, thiserror::Error)]
#[error("the limits or their windows changed while the operations of the API key were summed")]
struct OutdatedSums;

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
    // Refused and not queued: its sender has a request key, and sends it again.
    let place = Arc::clone(&store.inner.commands).try_acquire_owned();
    let place = place.map_err(|_full| CommandError::Unavailable(Box::new(TooManyCommands)))?;
    let command_tx = CommandTransaction::new(store.dialect(), command, secret, (mode, place));
    let command_tx = command_tx.with_interest(store.inner.interest.get());
    let ended = ended_sums(store, command, mode).await;
    let mut command_tx =
        command_tx.with_ended(ended.map_err(|error| CommandError::Unavailable(Box::new(error)))?);
    let mut lost: Option<Cause> = None;
    for _offer in 0..OFFERS_MAX {
        match store.inner.backend.administer(command_tx.clone()).await {
            Ok(Some(Ok(receipt))) => {
                reach(Step::CommandCommitted);
                // Most commands write one, and they are few.
                store.inner.interest.on_written();
                return Ok(command_tx.receipt_for_caller(receipt, lost.is_some()));
            }
            Ok(Some(Err(refusal))) => return Err(refusal.into()),
            // Its limits were edited meanwhile, or its windows have passed: the lock is not kept for another pass.
            Ok(None) => match (ended_sums(store, command, mode).await, lost.take()) {
                (Ok(ended), before) => (command_tx, lost) = (command_tx.with_ended(ended), before),
                (Err(_cause), Some(lost)) => return Err(CommandError::Uncertain(lost)),
                (Err(cause), None) => return Err(CommandError::Unavailable(Box::new(cause))),
            },
            Err(OfferError::Uncertain(cause)) => lost = Some(cause),
            Err(OfferError::Unavailable(cause)) => {
                // A lost offer may have landed, so a later failure must not report it as undone.
                return Err(match lost {
                    Some(lost) => CommandError::Uncertain(lost),
                    None => CommandError::Unavailable(cause),
                });
            }
        }
    }
    // Not one offer was lost: each has met outdated sums.
    let outdated = || CommandError::Unavailable(Box::new(OutdatedSums));
    Err(lost.map_or_else(outdated, CommandError::Uncertain))
}

/// Sums for the counters that a command seeds, taken without any lock: a key may have very many rows.
async fn ended_sums(
    store: &Store,
    command: &AccountCommand,
    mode: Mode,
) -> Result<Option<Arc<EndedSums>>, Unavailable> {
    let AccountAction::ApiKey(ApiKeyAction::Edit { api_key: id, patch, .. }) = &command.action
    else {
        return Ok(None);
    };
    if mode == Mode::Rehearse || !patch.concerns_limits() {
        return Ok(None);
    }
    let sql = format!(
        "SELECT {}, {} FROM api_keys AS k WHERE k.id = $1",
        store.dialect().clock(),
        ApiKey::COLUMNS
    );
    let rows = store.query(&sql, [blob(id.to_bytes())]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let clock_and_key =
        |cells: &mut Cells<'_>| Ok::<_, BadRow>((cells.timestamp()?, ApiKey::from_cells(cells)?));
    let (now, before) = clock_and_key(&mut Cells::new(row)).map_err(unavailable)?;
    // What is refused by then is refused under the lock.
    let Ok(after) = before.edit(patch) else { return Ok(None) };
    let counters = after.grant.limits.seeded_since(&before.grant.limits);
    if counters.is_empty() {
        return Ok(None);
    }
    let mut ended = EndedSums::new(*id, &counters, store.seen(now));
    loop {
        let rows = store.inner.pools.summing.query(ended.chunk(store.dialect())).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        if ended.add(&mut Cells::new(row)).map_err(unavailable)? {
            return Ok(Some(Arc::new(ended)));
        }
    }
}
