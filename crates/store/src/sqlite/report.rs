//! The statements behind [`crate::report`].

use holdfast_domain::ports::Unavailable;
use holdfast_domain::usage::Kind;
use holdfast_domain::{Journal, Micros, OperationId, Snapshot, Timestamp};
use sea_orm::QueryResult;

use super::connect::CLOCK;
use crate::report::{By, Filter, Listed, Outstanding, Scope, UsageSum};
use crate::rows::{self, BadRow, Cells};
use crate::{Store, unavailable};

impl Store {
    /// Operations, the newest first.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn operations(&self, filter: &Filter) -> Result<Vec<Listed>, Unavailable> {
        // The condition is spelled as in the partial index, or it would not be used.
        let scope = match filter.scope {
            Scope::All => "TRUE",
            Scope::Stale => {
                "o.phase IN ('leased', 'recorded') AND (o.phase = 'recorded' OR n.name IS NULL
                 OR n.incarnation <> o.incarnation OR n.ends_at <= now)"
            }
        };
        let sql = format!(
            "WITH clock(now) AS MATERIALIZED (SELECT {CLOCK})
             SELECT now, {}, {} FROM operations AS o CROSS JOIN clock
             LEFT JOIN prices AS p ON p.price_version = o.price_version
             LEFT JOIN nodes AS n ON n.name = o.node
             WHERE {scope} AND o.seq <
             iif(length($1) = 0, $2, (SELECT seq FROM operations WHERE id = $1))
             ORDER BY o.seq DESC LIMIT $3",
            rows::LEASE,
            rows::OPERATION
        );
        let before = filter.before.map_or_else(Vec::new, |id| id.to_bytes().to_vec());
        let values = [before.into(), i64::MAX.into(), i64::from(filter.limit).into()];
        let rows = self.query(&sql, values).await?;
        rows.iter().map(listed).collect::<Result<_, _>>().map_err(unavailable)
    }

    /// One operation with what its situation depends on.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn operation(&self, id: OperationId) -> Result<Option<Listed>, Unavailable> {
        let Snapshot { operation, lease, now, .. } = self.load(id).await?;
        Ok(operation.map(|operation| Listed { operation, lease, now }))
    }

    /// What running operations hold.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn outstanding(&self) -> Result<Outstanding, Unavailable> {
        let sql = format!(
            "SELECT {CLOCK}, count(*), coalesce(sum(hold), 0), min(admitted_at)
             FROM operations WHERE phase IN ('leased', 'recorded')"
        );
        let rows = self.query(&sql, []).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        outstanding(row).map_err(unavailable)
    }

    /// Usage that was settled from one moment until before another, summed.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn usage(
        &self,
        from: Timestamp,
        until: Timestamp,
        by: By,
    ) -> Result<Vec<UsageSum>, Unavailable> {
        let subject = match by {
            By::Day => "strftime('%Y-%m-%d', o.finished_at / 1000000, 'unixepoch')",
            By::Model => "o.model",
            By::Key => "(SELECT k.name FROM api_keys AS k WHERE k.id = o.api_key_id)",
            By::Wallet => "(SELECT w.name FROM wallets AS w WHERE w.id = o.wallet_id)",
        };
        let sums: String =
            Kind::ALL.iter().map(|kind| format!("sum(o.{}), ", kind.label())).collect();
        let sql = format!(
            "SELECT {subject} AS subject, p.currency, count(*), {sums} sum(o.charge),
             sum(o.shortfall) FROM operations AS o
             JOIN prices AS p ON p.price_version = o.price_version
             WHERE o.phase = 'completed' AND o.finished_at >= $1 AND o.finished_at < $2
             GROUP BY 1, 2 ORDER BY 1, 2"
        );
        let values = [from, until].map(|at| at.as_micros().into());
        let rows = self.query(&sql, values).await?;
        rows.iter().map(sum).collect::<Result<_, _>>().map_err(unavailable)
    }
}

fn listed(row: &QueryResult) -> Result<Listed, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let lease = rows::lease(&mut cells)?;
    Ok(Listed { operation: rows::operation(&mut cells)?, lease, now })
}

fn outstanding(row: &QueryResult) -> Result<Outstanding, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let count = cells.small()?;
    let amount = cells.micros()?;
    Ok(Outstanding { count, amount, oldest_admitted_at: cells.opt_timestamp()?, now })
}

fn sum(row: &QueryResult) -> Result<UsageSum, BadRow> {
    let mut cells = Cells::new(row);
    let subject = cells.text()?;
    let currency = rows::currency(&mut cells)?;
    let operations = cells.small()?;
    let mut meters = Vec::new();
    for kind in Kind::ALL {
        meters.push((kind, cells.small()?));
    }
    let charge: Micros = cells.micros()?;
    Ok(UsageSum { subject, currency, operations, meters, charge, shortfall: cells.micros()? })
}
