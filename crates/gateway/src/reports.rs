//! Reports of holders: the domain's port, filled from the store. It decides what is left out, and how
//! long a report may take.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::Directory;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    Group, GroupBy, Grouping, HolderReports, ModelUsage, Reports as _, UsageError, UsageFilter,
    UsageInterval, UsageQuery, UsageRequest, UsageRow, UsageScope,
};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{Micros, OperationId};
use holdfast_store::Store;
use tokio::time::timeout;

/// Longest time of a report. One that takes longer is read to its end, and discarded.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports from a store.
#[derive(Debug, Clone)]
pub(crate) struct StoreReports(pub(crate) Store);

/// A report that was not made, for the log.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error("the report took too long")]
    TimedOut(#[source] tokio::time::error::Elapsed),
    #[error("a report by two keys is by one")]
    OneKey,
}

#[async_trait]
impl HolderReports for StoreReports {
    async fn usage(&self, request: UsageRequest) -> Result<Vec<ModelUsage>, Unavailable> {
        let UsageRequest { scope, interval, from, to } = request;
        let (wallet, api_key) = match scope {
            UsageScope::ApiKey(id) => (None, Some(id)),
            UsageScope::Wallet(id) => (Some(id), None),
        };
        let interval = match interval {
            UsageInterval::Hour => GroupBy::Hour,
            UsageInterval::Day => GroupBy::Day,
            UsageInterval::Month => GroupBy::Month,
        };
        let by = Grouping::by_both(interval, GroupBy::Model);
        let by = by.ok_or_else(|| Unavailable(Box::new(ReportError::OneKey)))?;
        let filter = UsageFilter { wallet, api_key, ..UsageFilter::default() };
        let period = Period { from: Some(from), to: Some(to) };
        let reading = self.0.usage(UsageQuery { by, filter, period, rows_max: None });
        let late = |elapsed| Unavailable(Box::new(ReportError::TimedOut(elapsed)));
        let rows = timeout(REPORT_TIMEOUT, reading).await.map_err(late)?;
        let rows = rows.map_err(|error| match error {
            UsageError::Unavailable(error) => error,
            error @ UsageError::TooManyRows(_) => Unavailable(Box::new(error)),
        })?;
        Ok(rows.into_iter().filter_map(model_usage).collect())
    }

    async fn refunded(&self, operation: OperationId) -> Result<Micros, Unavailable> {
        Directory::refunded(&self.0, operation).await
    }
}

/// Part of a row that its holder may see.
fn model_usage(UsageRow { group, second, currency, totals }: UsageRow) -> Option<ModelUsage> {
    let start = match group {
        Group::Hour(start) | Group::Day(start) | Group::Month(start) => start,
        Group::Model(_) | Group::ApiKey { .. } | Group::Wallet { .. } | Group::Route(_) => {
            return None;
        }
    };
    let Some(Group::Model(model)) = second else { return None };
    Some(ModelUsage {
        start,
        model,
        currency,
        completed: totals.completed,
        refused: totals.refused,
        abandoned: totals.abandoned,
        estimated: totals.estimated,
        meters: totals.meters,
        charge: totals.charge,
        refunded: totals.refunded,
        // A cost that is left out is the operator's, and in no sum of a holder.
        is_incomplete: totals.is_saturated,
    })
}
