//! Writes API keys and their credentials.

use std::time::Duration;

use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::ports::{CreateError, NewApiKey, RotateError, Rotation, Unavailable};
use holdfast_domain::{ApiKeyId, Micros, Timestamp};
use sea_orm::QueryResult;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::Postgres;
use super::error::is_taken;
use crate::rows::{Cell, Cells, FromCells, Row};
use crate::unavailable;

const ISSUE: &str = "INSERT INTO api_keys (id, wallet_id, name, requests_per_minute,
    tokens_per_minute, concurrency, spend_micros, spend_window, models, balance, ends_at,
    created_at, external_id, usage) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12, $13, $14)";
const ADD: &str = "INSERT INTO credentials (id, api_key_id, verifier, server_secret, created_at,
    ends_at) VALUES ($1, $2, $3, $4, $5, $6)";
const REVOKE: &str = "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
const END: &str = "UPDATE credentials SET ends_at = $2
    WHERE api_key_id = $1 AND (ends_at IS NULL OR ends_at > $2)";

impl Postgres {
    pub(crate) async fn issue(
        &self,
        key: &NewApiKey,
        credential: &Credential,
    ) -> Result<ApiKey, CreateError> {
        let (key, credential) = (key.clone(), credential.clone());
        let issued = self.errands.write(move |connection, now| {
            Box::pin(async move { issue(connection, key, &credential, now).await })
        });
        match issued.await {
            Ok(Some(api_key)) => Ok(api_key),
            Ok(None) => Err(CreateError::NoWallet),
            Err(error) if is_taken(&error) => Err(CreateError::NameTaken),
            Err(error) => Err(CreateError::Unavailable(Box::new(error))),
        }
    }

    pub(crate) async fn rotate(
        &self,
        credential: &Credential,
        grace: Duration,
    ) -> Result<Rotation, RotateError> {
        let credential = credential.clone();
        let rotated = self.errands.write(move |connection, now| {
            Box::pin(async move { rotate(connection, &credential, now, grace).await })
        });
        match rotated.await {
            Ok(rotated) => rotated,
            Err(error) if is_taken(&error) => Err(RotateError::Taken),
            Err(error) => Err(RotateError::Unavailable(Box::new(error))),
        }
    }

    pub(crate) async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        let revoked = self.errands.write(move |connection, now| {
            Box::pin(async move {
                let id = api_key.to_bytes().to_vec();
                // In one transaction: no credential of a revoked key outlives it.
                for sql in [REVOKE, END] {
                    let query = sqlx::query(sql).bind(id.clone()).bind(now.as_micros());
                    query.execute(&mut *connection).await?;
                }
                let since: Option<i64> =
                    sqlx::query_scalar("SELECT revoked_at FROM api_keys WHERE id = $1")
                        .bind(id)
                        .fetch_optional(connection)
                        .await?;
                Ok(since.map(Timestamp::from_micros))
            })
        });
        revoked.await.map_err(unavailable)
    }
}

/// `None` when there is no such wallet.
async fn issue(
    connection: &mut PgConnection,
    key: NewApiKey,
    credential: &Credential,
    now: Timestamp,
) -> Result<Option<ApiKey>, sqlx::Error> {
    let api_key = key.issued_at(now);
    let ApiKey { id, wallet, name, grant, .. } = &api_key;
    let limits = grant.limits;
    let found: Option<i64> = sqlx::query_scalar("SELECT seq FROM wallets WHERE id = $1")
        .bind(wallet.to_bytes().to_vec())
        .fetch_optional(&mut *connection)
        .await?;
    if found.is_none() {
        return Ok(None);
    }
    let count = |limit: Option<u64>| limit.map(|max| i64::try_from(max).unwrap_or(i64::MAX));
    sqlx::query(ISSUE)
        .bind(id.to_bytes().to_vec())
        .bind(wallet.to_bytes().to_vec())
        .bind(name)
        .bind(count(limits.requests_per_minute))
        .bind(count(limits.tokens_per_minute))
        .bind(count(limits.concurrency))
        .bind(limits.spend.map(|spend| Micros::get(spend.micros)))
        .bind(limits.spend.map(|spend| spend.window.label()))
        .bind(grant.models.as_ref().map(Cell::to_raw))
        .bind(grant.balance.label())
        .bind(grant.ends_at.map(Timestamp::as_micros))
        .bind(now.as_micros())
        .bind(&api_key.external_id)
        .bind(grant.usage.label())
        .execute(&mut *connection)
        .await?;
    add(connection, credential, now).await?;
    Ok(Some(api_key))
}

async fn rotate(
    connection: &mut PgConnection,
    credential: &Credential,
    now: Timestamp,
    grace: Duration,
) -> Result<Result<Rotation, RotateError>, sqlx::Error> {
    let id = credential.api_key.to_bytes().to_vec();
    // Locked: a rotation and a revocation at once do not pass each other by.
    let sql =
        format!("SELECT {} FROM api_keys AS k WHERE k.id = $1 FOR NO KEY UPDATE", ApiKey::COLUMNS);
    let found = sqlx::query(AssertSqlSafe(sql))
        .bind(id.clone())
        .fetch_optional(&mut *connection)
        .await?
        .map(QueryResult::from);
    let Some(row) = found else { return Ok(Err(RotateError::NoKey)) };
    let api_key = ApiKey::from_cells(&mut Cells::new(&row))
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    if api_key.has_ended(now) {
        return Ok(Err(RotateError::Ended));
    }
    let others_end_at = now.after(grace);
    let ended = sqlx::query(END).bind(id).bind(others_end_at.as_micros());
    // Before the new one is added, or it would end as well.
    ended.execute(&mut *connection).await?;
    add(connection, credential, now).await?;
    Ok(Ok(Rotation { api_key, others_end_at }))
}

async fn add(
    connection: &mut PgConnection,
    credential: &Credential,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let added = sqlx::query(ADD)
        .bind(credential.id.to_bytes().to_vec())
        .bind(credential.api_key.to_bytes().to_vec())
        .bind(credential.verifier.to_bytes().to_vec())
        .bind(credential.server_secret.to_bytes().to_vec())
        .bind(now.as_micros())
        .bind(credential.ends_at.map(Timestamp::as_micros));
    added.execute(connection).await.map(drop)
}
