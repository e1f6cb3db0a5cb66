//! Writes API keys and their credentials.

use std::time::Duration;

use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::ports::{CreateError, NewApiKey, RotateError, Rotation, Unavailable};
use holdfast_domain::{ApiKeyId, Micros, Timestamp};
use rusqlite::{OptionalExtension, Transaction, params};

use super::Sqlite;
use super::write_task::WriteError;
use crate::rows::{Cell, Cells, FromCells, Row};
use crate::unavailable;

const ISSUE: &str = "INSERT INTO api_keys (id, wallet_id, name, requests_per_minute,
    tokens_per_minute, concurrency, spend_micros, spend_window, models, balance, ends_at,
    created_at, external_id, usage) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    ?10, ?11, ?12, ?13, ?14)";
const ADD: &str = "INSERT INTO credentials (id, api_key_id, verifier, server_secret, created_at,
    ends_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const REVOKE: &str = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
const END: &str = "UPDATE credentials SET ends_at = ?2
    WHERE api_key_id = ?1 AND (ends_at IS NULL OR ends_at > ?2)";

impl Sqlite {
    pub(crate) async fn issue(
        &self,
        key: &NewApiKey,
        credential: &Credential,
    ) -> Result<ApiKey, CreateError> {
        let (key, credential) = (key.clone(), credential.clone());
        match self.write(move |transaction, now| issue(transaction, key, &credential, now)).await {
            Ok(Some(api_key)) => Ok(api_key),
            Ok(None) => Err(CreateError::NoWallet),
            Err(error) if error.is_taken() => Err(CreateError::NameTaken),
            Err(error) => Err(CreateError::Unavailable(Box::new(error))),
        }
    }

    pub(crate) async fn rotate(
        &self,
        credential: &Credential,
        grace: Duration,
    ) -> Result<Rotation, RotateError> {
        let credential = credential.clone();
        let rotated =
            self.write(move |transaction, now| rotate(transaction, &credential, now, grace));
        match rotated.await {
            Ok(rotated) => rotated,
            Err(error) if error.is_taken() => Err(RotateError::Taken),
            Err(error) => Err(RotateError::Unavailable(Box::new(error))),
        }
    }

    pub(crate) async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        let revoked = self.write(move |transaction, now| {
            let id = api_key.to_bytes();
            // In one transaction: no credential of a revoked key outlives it.
            for sql in [REVOKE, END] {
                transaction.execute(sql, (id, now.as_micros()))?;
            }
            let sql = "SELECT revoked_at FROM api_keys WHERE id = ?1";
            let since = transaction.query_row(sql, [id], |row| row.get(0)).optional()?;
            Ok(since.map(Timestamp::from_micros))
        });
        revoked.await.map_err(unavailable)
    }
}

/// `None` when there is no such wallet.
fn issue(
    transaction: &Transaction<'_>,
    key: NewApiKey,
    credential: &Credential,
    now: Timestamp,
) -> Result<Option<ApiKey>, WriteError> {
    let api_key = key.issued_at(now);
    let ApiKey { id, wallet, name, grant, .. } = &api_key;
    let limits = grant.limits;
    let mut find = transaction.prepare("SELECT 1 FROM wallets WHERE id = ?1")?;
    // Asked first: the foreign key would only say that something is missing, as a failure of the database.
    if !find.exists([wallet.to_bytes()])? {
        return Ok(None);
    }
    let count = |limit: Option<u64>| limit.map(|max| i64::try_from(max).unwrap_or(i64::MAX));
    let row = params![
        id.to_bytes(),
        wallet.to_bytes(),
        name,
        count(limits.requests_per_minute),
        count(limits.tokens_per_minute),
        count(limits.concurrency),
        limits.spend.map(|spend| Micros::get(spend.micros)),
        limits.spend.map(|spend| spend.window.label()),
        grant.models.as_ref().map(Cell::to_raw),
        grant.balance.label(),
        grant.ends_at.map(Timestamp::as_micros),
        now.as_micros(),
        api_key.external_id,
        grant.usage.label(),
    ];
    transaction.execute(ISSUE, row)?;
    add(transaction, credential, now)?;
    Ok(Some(api_key))
}

fn rotate(
    transaction: &Transaction<'_>,
    credential: &Credential,
    now: Timestamp,
    grace: Duration,
) -> Result<Result<Rotation, RotateError>, WriteError> {
    let id = credential.api_key.to_bytes();
    let sql = format!("SELECT {} FROM api_keys AS k WHERE k.id = ?1", ApiKey::COLUMNS);
    let mut find = transaction.prepare(&sql)?;
    let mut found = find.query([id])?;
    let Some(row) = found.next()? else { return Ok(Err(RotateError::NoKey)) };
    let api_key = ApiKey::from_cells(&mut Cells::written(row))?;
    if api_key.has_ended(now) {
        return Ok(Err(RotateError::Ended));
    }
    let others_end_at = now.after(grace);
    // Before the new one is added, or it would end as well.
    transaction.execute(END, (id, others_end_at.as_micros()))?;
    add(transaction, credential, now)?;
    Ok(Ok(Rotation { api_key, others_end_at }))
}

fn add(
    transaction: &Transaction<'_>,
    credential: &Credential,
    now: Timestamp,
) -> Result<(), WriteError> {
    let row = (
        credential.id.to_bytes(),
        credential.api_key.to_bytes(),
        credential.verifier.to_bytes(),
        credential.server_secret.to_bytes(),
        now.as_micros(),
        credential.ends_at.map(Timestamp::as_micros),
    );
    transaction.execute(ADD, row)?;
    Ok(())
}
