//! API keys and their credentials.

use std::sync::LazyLock;

use async_trait::async_trait;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::limits::{Counter, CounterReadings};
use holdfast_domain::ports::{CounterSnapshot, KnownCredential, Unavailable};
use holdfast_domain::{ApiKeyId, ApiKeys, CredentialId, Timestamp};
use sea_orm::{QueryResult, Statement, Value};

use crate::error::unavailable;
use crate::rows::restore::LAST_WINDOW;
use crate::rows::{self, BadRow, Cells, FromCells, Row as _};
use crate::schema::blob;
use crate::store::Store;

/// Reads the counters of an API key, each in a window: after the key come the code and the window of each counter.
pub(crate) static STANDING: LazyLock<String> = LazyLock::new(|| {
    let places = (2..).step_by(2).take(Counter::ALL.len());
    let pairs = places.map(|code| format!("(${code}, ${})", code + 1)).collect::<Vec<_>>();
    format!(
        "SELECT counter, used FROM counters WHERE api_key_id = $1
         AND (counter, window_start) IN (VALUES {})",
        pairs.join(", ")
    )
});

#[async_trait]
impl ApiKeys for Store {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let sql = format!(
            "SELECT {}, {}, {},
             (SELECT w.limits_revision FROM wallets AS w WHERE w.id = k.wallet_id), {} FROM credentials AS c
             JOIN api_keys AS k ON k.id = c.api_key_id WHERE c.id = $1",
            self.dialect().clock(),
            rows::CREDENTIAL,
            ApiKey::COLUMNS,
            LAST_WINDOW
        );
        let rows = self.quick_query(&sql, [blob(id.to_bytes())]).await?;
        let known = rows.first().map(known).transpose().map_err(unavailable)?;
        Ok(known.map(|known| {
            let now = self.seen(known.now);
            let unknown_until = known.unknown_until.filter(|until| *until > now);
            KnownCredential { unknown_until, now, ..known }
        }))
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        // The clock first: it determines the windows to read.
        let clock = self.query(&format!("SELECT {}", self.dialect().clock()), []).await?;
        let now = clock.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        let now = self.seen(Cells::new(now).timestamp().map_err(unavailable)?);
        let window = |counter: Counter| {
            [rows::counter_code(counter), counter.window(now).as_micros()].map(Value::from)
        };
        let id = std::iter::once(blob(api_key.to_bytes()));
        let binds = id.chain(Counter::ALL.into_iter().flat_map(window));
        let backend = self.dialect().backend();
        let read = Statement::from_sql_and_values(backend, STANDING.as_str(), binds);
        let rows = self.inner.pools.readers.query(read).await?;
        let nothing: CounterReadings =
            Counter::ALL.into_iter().map(|counter| (counter, 0)).collect();
        let tally = rows.iter().try_fold(nothing, |tally, row| {
            let mut cells = Cells::new(row);
            let counter = rows::counter(cells.int()?).ok_or(BadRow::Value(0))?;
            Ok(tally.with(counter, cells.int()?))
        });
        Ok(CounterSnapshot { counters: tally.map_err(|bad: BadRow| unavailable(bad))?, now })
    }
}

impl Store {
    /// An API key, with the revision of its wallet's limits and the window of a restore in the same read.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read.
    pub async fn api_key_at_revision(
        &self,
        id: ApiKeyId,
    ) -> Result<Option<ApiKeyReading>, Unavailable> {
        let sql = format!(
            "SELECT {}, {}, (SELECT w.limits_revision FROM wallets AS w WHERE w.id = k.wallet_id), {LAST_WINDOW}
             FROM api_keys AS k WHERE k.id = $1",
            self.dialect().clock(),
            ApiKey::COLUMNS
        );
        let rows = self.quick_query(&sql, [blob(id.to_bytes())]).await?;
        let read = |row: &QueryResult| -> Result<ApiKeyReading, BadRow> {
            let mut cells = Cells::new(row);
            let now = self.seen(cells.timestamp()?);
            let api_key = ApiKey::from_cells(&mut cells)?;
            let limits_revision = cells.small()?;
            let unknown_until = cells.opt_timestamp()?.filter(|until| *until > now);
            Ok(ApiKeyReading { api_key, limits_revision, unknown_until })
        };
        rows.first().map(read).transpose().map_err(unavailable)
    }
}

/// An API key with all of one read that a claim carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyReading {
    /// The key.
    pub api_key: ApiKey,
    /// Revision of the limits of its wallet's API keys.
    pub limits_revision: u64,
    /// End of the window of a restore that lost request keys of the key, if one is open.
    pub unknown_until: Option<Timestamp>,
}

fn known(row: &QueryResult) -> Result<KnownCredential, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let credential = rows::credential(&mut cells)?;
    let api_key = ApiKey::from_cells(&mut cells)?;
    let (limits_revision, unknown_until) = (cells.small()?, cells.opt_timestamp()?);
    Ok(KnownCredential { credential, api_key, limits_revision, unknown_until, now })
}
