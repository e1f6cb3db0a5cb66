//! Facts of the database that gauges show. A pass reads the wallets, the running operations and the waiting rows,
//! so only a periodic task may call it, never a scrape.

use holdfast_domain::admin::job::JobKind;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::restore::Restore;

use crate::audit::verify::Verification;
use crate::backend::Readers;
use crate::error::unavailable;
use crate::reading::report::{DatabaseFacts, PoolReading, VerificationFacts};
use crate::rows::restore::LAST;
use crate::rows::{BadRow, Cells};
use crate::schema::Dialect;
use crate::store::Store;

impl Store {
    /// Reads the facts.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read.
    pub async fn facts(&self) -> Result<DatabaseFacts, Unavailable> {
        let kind = JobKind::Verification.label().into();
        let rows = self.query(&statement(self.dialect()), [kind]).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        let mut cells = Cells::new(row);
        let mut count = || {
            let count = cells.int().map_err(unavailable)?;
            Ok::<_, Unavailable>(u64::try_from(count).unwrap_or(0))
        };
        let (low_wallets, events, deliveries) = (count()?, count()?, count()?);
        let verification = verification(&mut cells)?;
        let mut window = || {
            let now = self.seen(cells.timestamp()?);
            let (restored_at, unknown_until) = (cells.opt_timestamp()?, cells.opt_timestamp()?);
            let window = restored_at.zip(unknown_until).filter(|(_, until)| *until > now);
            let window =
                window.map(|(restored_at, unknown_until)| Restore { restored_at, unknown_until });
            Ok::<_, BadRow>(window)
        };
        let restore = window().map_err(unavailable)?;
        let has_holds = cells.int().map_err(unavailable)? != 0;
        Ok(DatabaseFacts { low_wallets, events, deliveries, verification, restore, has_holds })
    }

    /// Connections of each pool of readers. It does not access the database.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolReading> {
        let reading = |(name, readers): (_, &Readers)| {
            let (idle, used) = readers.counts();
            PoolReading { name, idle, used }
        };
        self.inner.pools.named().map(reading).into()
    }
}

/// Statement whose row has the facts: one, because each costs a round trip at every gateway.
fn statement(dialect: Dialect) -> String {
    let (open, running) = match dialect {
        Dialect::Sqlite => {
            ("is_fanned_out = 0", "operations WHERE phase IN ('leased', 'recorded')")
        }
        Dialect::Postgres => ("NOT is_fanned_out", "running"),
    };
    // Low as `LowBalance::is_low` judges it, and as the list of such wallets has them.
    format!(
        "SELECT (SELECT count(*) FROM wallets WHERE low_balance IS NOT NULL AND closed_at IS NULL
             AND held < CASE WHEN low_balance > 1 THEN low_balance ELSE 1 END - available),
         (SELECT count(*) FROM events WHERE {open}),
         (SELECT count(*) FROM deliveries WHERE state = 'pending'),
         v.finished_at, v.report, {}, w.restored_at, w.unknown_until,
         CASE WHEN EXISTS (SELECT 1 FROM {running}) THEN CAST(1 AS bigint) ELSE 0 END
         FROM (SELECT 1) AS once LEFT JOIN ({LAST_VERIFICATION}) AS v ON TRUE
         LEFT JOIN ({LAST}) AS w ON TRUE",
        dialect.clock()
    )
}

/// At most a thousand jobs are kept.
const LAST_VERIFICATION: &str = "SELECT finished_at, report FROM jobs
     WHERE kind = $1 AND state = 'done' ORDER BY finished_at DESC, seq DESC LIMIT 1";

fn verification(cells: &mut Cells<'_>) -> Result<Option<VerificationFacts>, Unavailable> {
    let finished_at = cells.opt_timestamp().map_err(unavailable)?;
    let report = cells.opt_text().map_err(unavailable)?;
    let Some((finished_at, report)) = finished_at.zip(report) else { return Ok(None) };
    let found = Verification::from_json(&report).map_err(unavailable)?;
    let listed = u64::try_from(found.mismatches.len()).unwrap_or(u64::MAX);
    let mismatches = listed.saturating_add(found.unlisted);
    Ok(Some(VerificationFacts { finished_at, mismatches }))
}
