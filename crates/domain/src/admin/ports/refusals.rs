//! The port that reads refused requests: those of the rings, and the counts of all of them.

use async_trait::async_trait;

use crate::admin::listing::{Page, PageRequest, Period};
use crate::ports::Unavailable;
use crate::statistics::RefusedRequest;
use crate::{ApiKeyId, RequestId, Timestamp, WalletId};

/// Filter of refused requests. All parts of it apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusalFilter {
    /// Wallet of all requests.
    pub wallet: Option<WalletId>,
    /// API key of all requests.
    pub api_key: Option<ApiKeyId>,
    /// Error code of all requests.
    pub code: Option<String>,
    /// Period of the refusals; counts are of each hour that begins in it.
    pub period: Period,
}

impl RefusalFilter {
    /// True if all parts of the filter apply to this request.
    #[must_use]
    pub fn admits(&self, request: &RefusedRequest) -> bool {
        let (from, to) = self.period.bounds();
        self.wallet.is_none_or(|wallet| wallet == request.wallet)
            && self.api_key.is_none_or(|api_key| api_key == request.api_key)
            && self.code.as_deref().is_none_or(|code| code == request.code)
            && (from..to).contains(&request.at.as_micros())
    }
}

/// Number of refusals with one code in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourlyRefusals {
    /// Beginning of the hour.
    pub hour: Timestamp,
    /// Error code.
    pub code: String,
    /// Number of all of them, listed or not.
    pub count: u64,
}

/// Reads refused requests. They are statistics: a second old, and each page is read at its own moment.
#[async_trait]
pub trait RefusedRequests: Send + Sync {
    /// Lists the requests that the rings have.
    async fn refused_requests(
        &self,
        filter: RefusalFilter,
        page: PageRequest,
    ) -> Result<Page<RefusedRequest>, Unavailable>;

    /// Finds a refused request, if a ring has it.
    async fn refused_request(&self, id: RequestId) -> Result<Option<RefusedRequest>, Unavailable>;

    /// Counts all refusals by hour and code, the newest hour first; at most `limit` rows.
    async fn refusal_hours(
        &self,
        filter: RefusalFilter,
        limit: u32,
    ) -> Result<Vec<HourlyRefusals>, Unavailable>;
}
