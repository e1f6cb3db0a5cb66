//! The statements behind [`crate::usage`]. They read the rows of all operations: an index by the
//! moment of finishing would cost every request a write, and nobody waits for a report. Rows are
//! summed page by page, so that no more than a page is ever sorted or held.

use std::collections::BTreeMap;

use holdfast_domain::ports::Unavailable;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ApiKeyId, Currency, WalletId};
use sea_orm::QueryResult;

use super::{ReadError, ReadTransaction};
use crate::Store;
use crate::rows::{self, BadRow, Cells};
use crate::statement::Period;
use crate::usage::{DAY_MICROS, GroupBy, GroupKey, Sums, Totals, UsageRow};

/// Operations that are summed at once.
const PAGE: i64 = 20_000;

/// Sum of an operation's refunds; NULL where there are none.
const REFUNDED: &str = "(SELECT sum(t.amount) FROM postings AS t WHERE t.operation_id = o.id)";

/// Exposure: a run that may have cost something, and that nobody was charged for.
const EXPOSURE: &str = "CASE WHEN o.phase IN ('refused', 'abandoned') THEN o.hold END";

const LAST: &str = "SELECT coalesce(max(seq), 0) FROM operations";

impl Store {
    /// Usage that finished in a period, summed for each group and currency, sorted by both.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read, or a sum does not fit into 64 bits.
    pub async fn usage(&self, by: GroupBy, period: Period) -> Result<Vec<UsageRow>, Unavailable> {
        self.read_transaction(move |db| Box::pin(read(db, by, period))).await
    }
}

async fn read(
    db: &mut ReadTransaction,
    by: GroupBy,
    period: Period,
) -> Result<Vec<UsageRow>, ReadError> {
    let sql = page(by);
    let (from, to) = period.bounds();
    let last = db.query(LAST, []).await?;
    let last = last.first().map_or(Ok(0), |row| Cells::new(row).int()).map_err(ReadError::Row)?;
    let mut sums = Sums::default();
    let mut after = 0;
    while after < last {
        let until = last.min(after.saturating_add(PAGE));
        let values = [after.into(), until.into(), from.into(), to.into()];
        for row in db.query(&sql, values).await? {
            let (part, currency, totals) = summed(by, &row).map_err(ReadError::Row)?;
            sums.add(part, currency, &totals).map_err(ReadError::Usage)?;
        }
        after = until;
    }
    Ok(sums.with_names(&names(db, by).await?))
}

/// Sums over a page. Operations come first in the join, whatever the planner thinks of wallets.
pub(crate) fn page(by: GroupBy) -> String {
    let part = match by {
        GroupBy::Day => format!("o.finished_at / {DAY_MICROS}"),
        GroupBy::Model => "o.model".to_owned(),
        GroupBy::ApiKey => "o.api_key_id".to_owned(),
        GroupBy::Wallet => "o.wallet_id".to_owned(),
    };
    let meters = MeterKind::ALL.map(|kind| sum(&format!("o.{}", kind.label()))).join(", ");
    format!(
        "SELECT {part} AS part, w.currency,
            count(*) FILTER (WHERE o.phase = 'completed'),
            count(*) FILTER (WHERE o.phase = 'refused'),
            count(*) FILTER (WHERE o.phase = 'abandoned'),
            count(*) FILTER (WHERE o.meters_source = 'estimated'),
            {meters}, {}, {}, {}, {}, count(o.provider_cost), {}, {}
         FROM operations AS o CROSS JOIN wallets AS w
         WHERE w.id = o.wallet_id AND o.seq > $1 AND o.seq <= $2 AND o.finished_at >= $3 AND o.finished_at < $4
         GROUP BY part, w.currency",
        sum("o.charge"),
        sum("o.shortfall"),
        sum(REFUNDED),
        sum(EXPOSURE),
        sum("o.provider_cost"),
        // Nothing of what has no cost: it is absent there, and so is the difference.
        sum(&format!("o.charge - coalesce({REFUNDED}, 0) - o.provider_cost"))
    )
}

/// A sum that is a 64-bit integer or an error.
fn sum(of: &str) -> String {
    format!("CAST(coalesce(sum({of}), 0) AS bigint)")
}

fn summed(by: GroupBy, row: &QueryResult) -> Result<(GroupKey, Currency, Totals), BadRow> {
    let mut cells = Cells::new(row);
    let part = match by {
        GroupBy::Day => GroupKey::Day(cells.int()?),
        GroupBy::Model => GroupKey::Model(cells.text()?),
        GroupBy::ApiKey => GroupKey::ApiKey(ApiKeyId::from_bytes(cells.bytes()?)),
        GroupBy::Wallet => GroupKey::Wallet(WalletId::from_bytes(cells.bytes()?)),
    };
    let currency = rows::currency(&mut cells)?;
    let (completed, refused, abandoned) = (cells.small()?, cells.small()?, cells.small()?);
    let estimated = cells.small()?;
    let mut meters = [0; MeterKind::COUNT];
    for count in &mut meters {
        *count = cells.small()?;
    }
    let (charge, shortfall, refunded) = (cells.micros()?, cells.micros()?, cells.micros()?);
    let exposure = cells.micros()?;
    let (costed, provider_cost, margin) = (cells.small()?, cells.micros()?, cells.micros()?);
    let totals = Totals {
        completed,
        refused,
        abandoned,
        estimated,
        meters,
        charge,
        shortfall,
        refunded,
        exposure,
        costed,
        provider_cost,
        margin,
    };
    Ok((part, currency, totals))
}

/// The names of what is grouped by id.
async fn names(
    db: &mut ReadTransaction,
    by: GroupBy,
) -> Result<BTreeMap<[u8; 16], String>, ReadError> {
    let sql = match by {
        GroupBy::Day | GroupBy::Model => return Ok(BTreeMap::new()),
        GroupBy::ApiKey => "SELECT id, name FROM api_keys",
        GroupBy::Wallet => "SELECT id, name FROM wallets",
    };
    let name = |row: &QueryResult| {
        let mut cells = Cells::new(row);
        Ok((cells.bytes()?, cells.text()?))
    };
    db.query(sql, []).await?.iter().map(name).collect::<Result<_, _>>().map_err(ReadError::Row)
}
