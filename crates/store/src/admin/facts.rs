//! Facts of the database that gauges show. A pass reads the wallets, the running operations and the waiting rows,
//! so only a periodic task may call it, never a scrape.

use holdfast_domain::Restores as _;
use holdfast_domain::admin::job::JobKind;
use holdfast_domain::ports::Unavailable;

use crate::audit::verify::Verification;
use crate::backend::Readers;
use crate::error::unavailable;
use crate::reading::report::{DatabaseFacts, PoolReading, VerificationFacts};
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
        let row = |rows: Vec<_>| rows.into_iter().next();
        let counts = row(self.query(&counts(self.dialect()), []).await?);
        let kind = JobKind::Verification.label().into();
        let verified = row(self.query(LAST_VERIFICATION, [kind]).await?);
        let mut facts = DatabaseFacts::default();
        if let Some(row) = counts {
            let mut cells = Cells::new(&row);
            let mut count = || cells.int().map(|count| u64::try_from(count).unwrap_or(0));
            let (wallets, events, deliveries) = (count(), count(), count());
            facts.low_wallets = wallets.map_err(unavailable)?;
            facts.events = events.map_err(unavailable)?;
            facts.deliveries = deliveries.map_err(unavailable)?;
        }
        facts.verification = match verified {
            Some(row) => verification(&mut Cells::new(&row))?,
            None => None,
        };
        facts.restore = self.open_window().await?;
        Ok(facts)
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

/// Statement whose row has the counts.
fn counts(dialect: Dialect) -> String {
    let open = match dialect {
        Dialect::Sqlite => "is_fanned_out = 0",
        Dialect::Postgres => "NOT is_fanned_out",
    };
    // Low as `LowBalance::is_low` judges it, and as the list of such wallets has them.
    format!(
        "SELECT (SELECT count(*) FROM wallets WHERE low_balance IS NOT NULL AND closed_at IS NULL
             AND held < CASE WHEN low_balance > 1 THEN low_balance ELSE 1 END - available),
         (SELECT count(*) FROM events WHERE {open}),
         (SELECT count(*) FROM deliveries WHERE state = 'pending')"
    )
}

/// At most a thousand jobs are kept.
const LAST_VERIFICATION: &str = "SELECT finished_at, report FROM jobs
     WHERE kind = $1 AND state = 'done' ORDER BY finished_at DESC, seq DESC LIMIT 1";

fn verification(cells: &mut Cells<'_>) -> Result<Option<VerificationFacts>, Unavailable> {
    let finished_at = cells.timestamp().map_err(unavailable)?;
    let report: Result<Option<String>, BadRow> = cells.opt_text();
    let Some(report) = report.map_err(unavailable)? else { return Ok(None) };
    let found = Verification::from_json(&report).map_err(unavailable)?;
    let listed = u64::try_from(found.mismatches.len()).unwrap_or(u64::MAX);
    let mismatches = listed.saturating_add(found.unlisted);
    Ok(Some(VerificationFacts { finished_at, mismatches }))
}
