//! The statements behind [`crate::report`].

use std::time::Duration;

use holdfast_domain::ports::Unavailable;
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{ApiKeyId, CredentialId, Micros, OperationId};
use sea_orm::QueryResult;

use crate::dialect::blob;
use crate::report::{Filter, LiveCredential, OperationListing, OutstandingHolds, Scope};
use crate::rows::{self, BadRow, Cells};
use crate::{Store, unavailable};

impl Store {
    /// Operations, the newest first.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn operations(&self, filter: &Filter) -> Result<Vec<OperationListing>, Unavailable> {
        let scope = match filter.scope {
            Scope::All => "TRUE".to_owned(),
            Scope::Stale => format!(
                "{} AND (o.phase = 'recorded' OR n.name IS NULL
                 OR n.incarnation <> o.incarnation OR n.ends_at <= now)",
                self.dialect().is_running()
            ),
        };
        let clock = self.dialect().clock();
        let sql = format!(
            "WITH clock(now) AS MATERIALIZED (SELECT {clock})
             SELECT now, (SELECT CAST(coalesce(sum(amount), 0) AS bigint) FROM postings WHERE operation_id = o.id),
                {}, {} FROM operations AS o CROSS JOIN clock
             LEFT JOIN prices AS p ON p.price_version = o.price_version
             LEFT JOIN nodes AS n ON n.name = o.node
             WHERE {scope} ORDER BY o.seq DESC LIMIT $1",
            rows::LEASE,
            rows::OPERATION
        );
        let rows = self.query(&sql, [i64::from(filter.limit).into()]).await?;
        rows.iter().map(listed).collect::<Result<_, _>>().map_err(unavailable)
    }

    /// Every credential that is in force, the oldest first.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn live_credentials(&self) -> Result<Vec<LiveCredential>, Unavailable> {
        let clock = self.dialect().clock();
        let sql = format!(
            "WITH clock(now) AS MATERIALIZED (SELECT {clock})
             SELECT c.id, c.api_key_id, c.server_secret, c.created_at, c.ends_at
             FROM credentials AS c JOIN api_keys AS k ON k.id = c.api_key_id CROSS JOIN clock
             WHERE k.revoked_at IS NULL AND (k.ends_at IS NULL OR k.ends_at > now)
                AND (c.ends_at IS NULL OR c.ends_at > now) ORDER BY c.created_at, c.id"
        );
        let rows = self.query(&sql, []).await?;
        rows.iter().map(live).collect::<Result<_, _>>().map_err(unavailable)
    }

    /// Sums over the holds of running operations.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn outstanding(&self) -> Result<OutstandingHolds, Unavailable> {
        let clock = self.dialect().clock();
        let sql = format!(
            "SELECT p.currency, {clock}, count(*), CAST(sum(o.hold) AS bigint), min(o.admitted_at)
             FROM operations AS o JOIN prices AS p ON p.price_version = o.price_version
             WHERE {} GROUP BY p.currency",
            self.dialect().is_running()
        );
        let mut outstanding = OutstandingHolds::default();
        for row in self.query(&sql, []).await? {
            add(&mut outstanding, &row).map_err(unavailable)?;
        }
        Ok(outstanding)
    }

    /// Sum of the refunds of an operation's charge.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn refunded(&self, operation: OperationId) -> Result<Micros, Unavailable> {
        let sql =
            "SELECT CAST(coalesce(sum(amount), 0) AS bigint) FROM postings WHERE operation_id = $1";
        let rows = self.query(sql, [blob(operation.to_bytes())]).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        Cells::new(row).micros().map_err(unavailable)
    }
}

fn listed(row: &QueryResult) -> Result<OperationListing, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let refunded = cells.micros()?;
    let lease = rows::lease(&mut cells)?;
    Ok(OperationListing { operation: rows::operation(&mut cells)?, refunded, lease, now })
}

fn live(row: &QueryResult) -> Result<LiveCredential, BadRow> {
    let mut cells = Cells::new(row);
    Ok(LiveCredential {
        id: CredentialId::from_bytes(cells.bytes()?),
        api_key: ApiKeyId::from_bytes(cells.bytes()?),
        server_secret: ServerSecretId::from_bytes(cells.bytes()?),
        created_at: cells.timestamp()?,
        ends_at: cells.opt_timestamp()?,
    })
}

/// Adds what is held of one currency.
fn add(outstanding: &mut OutstandingHolds, row: &QueryResult) -> Result<(), BadRow> {
    let mut cells = Cells::new(row);
    let (currency, now) = (rows::currency(&mut cells)?, cells.timestamp()?);
    outstanding.count = outstanding.count.saturating_add(cells.small()?);
    outstanding.amounts.insert(currency, cells.micros()?);
    let age = now.as_micros().saturating_sub(cells.timestamp()?.as_micros());
    let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
    outstanding.oldest_age = outstanding.oldest_age.max(age);
    Ok(())
}
