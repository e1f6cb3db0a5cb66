//! API keys and their credentials.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::limits::{Counter, CounterReadings};
use holdfast_domain::ports::{
    CounterSnapshot, CreateError, KnownCredential, NewApiKey, RotateError, Rotation, Unavailable,
};
use holdfast_domain::{ApiKeyId, ApiKeys, CredentialId, Timestamp};
use sea_orm::{QueryResult, Statement, Value};

use crate::dialect::{Dialect, blob};
use crate::errand::writes::{end_credentials, insert_credential};
use crate::exchange::{Exchange, ExchangeError};
use crate::rows::{self, BadRow, Cells, FromCells, Row};
use crate::{Store, unavailable};

pub(crate) const STANDING: &str = "SELECT counter, used FROM counters WHERE api_key_id = $1
    AND (counter, window_start) IN (VALUES ($2, $3), ($4, $5), ($6, $7), ($8, $9), ($10, $11),
    ($12, $13))";

const REVOKE: &str = "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";

#[async_trait]
impl ApiKeys for Store {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let sql = format!(
            "SELECT {}, {}, {},
             (SELECT w.limits_revision FROM wallets AS w WHERE w.id = k.wallet_id) FROM credentials AS c
             JOIN api_keys AS k ON k.id = c.api_key_id WHERE c.id = $1",
            self.dialect().clock(),
            rows::CREDENTIAL,
            ApiKey::COLUMNS
        );
        let rows = self.quick_query(&sql, [blob(id.to_bytes())]).await?;
        let known = rows.first().map(known).transpose().map_err(unavailable)?;
        Ok(known.map(|known| KnownCredential { now: self.seen(known.now), ..known }))
    }

    async fn issue(&self, key: &NewApiKey, credential: &Credential) -> Result<ApiKey, CreateError> {
        let (dialect, key, credential) = (self.dialect(), key.clone(), credential.clone());
        // Read first: the foreign key would only say that something is missing, as a failure of the database.
        let sql = "SELECT w.seq FROM wallets AS w WHERE w.id = $1";
        let wallet = dialect.statement(sql, [blob(key.wallet.to_bytes())]);
        let issue = move |wallets: Vec<i64>, now| {
            if wallets.is_empty() {
                return (Vec::new(), None);
            }
            let api_key = key.issued_at(now);
            let first = insert_credential(dialect, &credential, now);
            (vec![api_key.insert(dialect), first], Some(api_key))
        };
        let issued =
            self.try_exchange(Exchange::new(|_now| wallet, |cells| cells.int(), issue)).await;
        issued.map_err(create_error)?.ok_or(CreateError::NoWallet)
    }

    async fn rotate(
        &self,
        credential: &Credential,
        grace: Duration,
    ) -> Result<Rotation, RotateError> {
        let (dialect, credential) = (self.dialect(), credential.clone());
        // Locked: a rotation and a revocation at once do not pass each other by.
        let key = locked_key(dialect, credential.api_key, ApiKey::COLUMNS);
        let rotate = move |mut keys: Vec<ApiKey>, now: Timestamp| match keys.pop() {
            None => (Vec::new(), Err(RotateError::NoKey)),
            Some(key) if key.has_ended(now) => (Vec::new(), Err(RotateError::Ended)),
            Some(api_key) => {
                let others_end_at = now.after(grace);
                // Before the new one is added, or it would end as well.
                let end = end_credentials(dialect, api_key.id, others_end_at);
                let add = insert_credential(dialect, &credential, now);
                (vec![end, add], Ok(Rotation { api_key, others_end_at }))
            }
        };
        let rotated =
            self.try_exchange(Exchange::new(|_now| key, FromCells::from_cells, rotate)).await;
        rotated.map_err(|error| {
            if error.is_taken { RotateError::Taken } else { RotateError::Unavailable(error.cause) }
        })?
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        // The clock first: it says which windows are asked for.
        let clock = self.query(&format!("SELECT {}", self.dialect().clock()), []).await?;
        let now = clock.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        let now = self.seen(Cells::new(now).timestamp().map_err(unavailable)?);
        let id = blob(api_key.to_bytes());
        let windows = Counter::ALL.map(|counter| {
            let window = counter.window(now).as_micros();
            (Value::from(rows::counter_code(counter)), Value::from(window))
        });
        let [(a, b), (c, d), (e, f), (g, h), (i, j), (k, l)] = windows;
        let rows = self.query(STANDING, [id, a, b, c, d, e, f, g, h, i, j, k, l]).await?;
        let nothing: CounterReadings =
            Counter::ALL.into_iter().map(|counter| (counter, 0)).collect();
        let tally = rows.iter().try_fold(nothing, |tally, row| {
            let mut cells = Cells::new(row);
            let counter = rows::counter(cells.int()?).ok_or(BadRow::Value(0))?;
            Ok(tally.with(counter, cells.int()?))
        });
        Ok(CounterSnapshot { counters: tally.map_err(|bad: BadRow| unavailable(bad))?, now })
    }

    async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        let dialect = self.dialect();
        let key = locked_key(dialect, api_key, "k.revoked_at");
        let revoke = move |keys: Vec<Option<Timestamp>>, now: Timestamp| {
            let Some(revoked_at) = keys.first() else { return (Vec::new(), None) };
            // In one transaction: no credential of a revoked key outlives it.
            let binds = [blob(api_key.to_bytes()), now.as_micros().into()];
            let revoke = dialect.statement(REVOKE, binds);
            let end = end_credentials(dialect, api_key, now);
            (vec![revoke, end], Some(revoked_at.unwrap_or(now)))
        };
        self.exchange(Exchange::new(|_now| key, |cells| cells.opt_timestamp(), revoke)).await
    }
}

/// Statement that reads columns of an API key, and locks it.
fn locked_key(dialect: Dialect, id: ApiKeyId, columns: &str) -> Statement {
    let lock = dialect.row_lock();
    let sql = format!("SELECT {columns} FROM api_keys AS k WHERE k.id = $1{lock}");
    dialect.statement(&sql, [blob(id.to_bytes())])
}

pub(super) fn create_error(error: ExchangeError) -> CreateError {
    if error.is_taken { CreateError::NameTaken } else { CreateError::Unavailable(error.cause) }
}

fn known(row: &QueryResult) -> Result<KnownCredential, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let credential = rows::credential(&mut cells)?;
    let api_key = ApiKey::from_cells(&mut cells)?;
    Ok(KnownCredential { credential, api_key, limits_revision: cells.small()?, now })
}
