//! API keys and their credentials.

use async_trait::async_trait;
use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::ports::{CreateError, KnownCredential, NewApiKey, Unavailable};
use holdfast_domain::{ApiKeyId, CredentialId, Keys, Micros, Timestamp};
use sea_orm::QueryResult;
use sqlx::sqlite::SqliteConnection;

use super::blob;
use super::connect::{CLOCK, is_taken};
use crate::rows::{self, BadRow, Cells};
use crate::{Store, unavailable};

const ISSUE: &str = "INSERT INTO api_keys (id, wallet_id, name, requests_per_minute,
    tokens_per_minute, concurrency, spend_micros, spend_window, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const ADD: &str = "INSERT INTO credentials (id, api_key_id, verifier, server_secret, created_at,
    ends_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const REVOKE: &str = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
const END: &str = "UPDATE credentials SET ends_at = ?2
    WHERE api_key_id = ?1 AND (ends_at IS NULL OR ends_at > ?2)";

#[async_trait]
impl Keys for Store {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let sql = format!(
            "SELECT {CLOCK}, {}, {} FROM credentials AS c
             JOIN api_keys AS k ON k.id = c.api_key_id WHERE c.id = $1",
            rows::CREDENTIAL,
            rows::API_KEY
        );
        let rows = self.query(&sql, [blob(id.to_bytes())]).await?;
        let known = rows.first().map(known).transpose().map_err(unavailable)?;
        Ok(known.map(|known| KnownCredential { now: self.seen(known.now), ..known }))
    }

    async fn issue(&self, key: &NewApiKey, credential: &Credential) -> Result<ApiKey, CreateError> {
        let (key, credential) = (key.clone(), credential.clone());
        let issued = self.write(move |connection, now| {
            Box::pin(async move { issue(connection, key, &credential, now).await })
        });
        match issued.await {
            Ok(Some(api_key)) => Ok(api_key),
            Ok(None) => Err(CreateError::NoWallet),
            Err(error) if is_taken(&error) => Err(CreateError::NameTaken),
            Err(error) => Err(CreateError::Unavailable(Box::new(error))),
        }
    }

    async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        let revoked = self.write(move |connection, now| {
            Box::pin(async move {
                let id = api_key.to_bytes().to_vec();
                for sql in [REVOKE, END] {
                    let query = sqlx::query(sql).bind(id.clone()).bind(now.as_micros());
                    query.execute(&mut *connection).await?;
                }
                let since: Option<i64> =
                    sqlx::query_scalar("SELECT revoked_at FROM api_keys WHERE id = ?1")
                        .bind(id)
                        .fetch_optional(connection)
                        .await?;
                Ok(since.map(Timestamp::from_micros))
            })
        });
        revoked.await.map_err(unavailable)
    }

    async fn list(&self) -> Result<Vec<ApiKey>, Unavailable> {
        let sql = format!("SELECT {} FROM api_keys AS k ORDER BY k.seq", rows::API_KEY);
        let rows = self.query(&sql, []).await?;
        let api_keys = rows.iter().map(|row| rows::api_key(&mut Cells::new(row)));
        api_keys.collect::<Result<_, _>>().map_err(unavailable)
    }
}

fn known(row: &QueryResult) -> Result<KnownCredential, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let credential = rows::credential(&mut cells)?;
    Ok(KnownCredential { credential, api_key: rows::api_key(&mut cells)?, now })
}

/// `None` when there is no such wallet.
async fn issue(
    connection: &mut SqliteConnection,
    key: NewApiKey,
    credential: &Credential,
    now: Timestamp,
) -> Result<Option<ApiKey>, sqlx::Error> {
    let NewApiKey { id, wallet, name, limits } = key;
    let found: Option<i64> = sqlx::query_scalar("SELECT seq FROM wallets WHERE id = ?1")
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
        .bind(&name)
        .bind(count(limits.requests_per_minute))
        .bind(count(limits.tokens_per_minute))
        .bind(count(limits.concurrency))
        .bind(limits.spend.map(|spend| Micros::get(spend.micros)))
        .bind(limits.spend.map(|spend| spend.window.label()))
        .bind(now.as_micros())
        .execute(&mut *connection)
        .await?;
    sqlx::query(ADD)
        .bind(credential.id.to_bytes().to_vec())
        .bind(credential.api_key.to_bytes().to_vec())
        .bind(credential.verifier.to_bytes().to_vec())
        .bind(credential.server_secret.to_bytes().to_vec())
        .bind(now.as_micros())
        .bind(credential.ends_at.map(Timestamp::as_micros))
        .execute(connection)
        .await?;
    Ok(Some(ApiKey { id, wallet, name, limits, created_at: now, revoked_at: None }))
}
