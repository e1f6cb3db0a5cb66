//! Refused requests of callers: listed, found by their `x-request-id`, and counted by the hour. A holder sees those of
//! their own wallet.
//!
//! They are statistics of the sale. Attempts of administration that a role has refused are in
//! [`refusals`](crate::refusals).

use holdfast_domain::RequestId;
use holdfast_domain::admin::listing::{Page, PageRequest};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter, UseCase};
use holdfast_domain::statistics::RefusedRequest;

use crate::{Accounts, AccountsError, Principal, ResourceKind, Result};

/// Rows of one report of refusals by the hour.
pub const REFUSAL_HOURS_MAX: u32 = 10_000;

impl Accounts {
    /// The refused request with this value of `x-request-id`, if it is one of the newest of its API key.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one of a wallet that is out of reach too.
    pub async fn refused_request(
        &self,
        principal: &Principal,
        id: RequestId,
    ) -> Result<RefusedRequest> {
        principal.authorize(UseCase::RefusalRead)?;
        let missing = || AccountsError::NotFound(ResourceKind::RefusedRequest);
        let request = self.book.refused_request(id).await?.ok_or_else(missing)?;
        principal.reach(request.wallet, ResourceKind::RefusedRequest)?;
        Ok(request)
    }

    /// Refused requests, a page at a time.
    pub async fn refused_requests(
        &self,
        principal: &Principal,
        filter: RefusalFilter,
        page: PageRequest,
    ) -> Result<Page<RefusedRequest>> {
        principal.authorize(UseCase::RefusalRead)?;
        match within_reach(principal, filter) {
            Some(filter) => Ok(self.book.refused_requests(filter, page).await?),
            None => Ok(Page::empty()),
        }
    }

    /// Numbers of all refusals by hour and code, newest hour first: at most [`REFUSAL_HOURS_MAX`] rows and one more,
    /// which shows that there are more.
    pub async fn refusal_hours(
        &self,
        principal: &Principal,
        filter: RefusalFilter,
    ) -> Result<Vec<HourlyRefusals>> {
        principal.authorize(UseCase::RefusalRead)?;
        let limit = REFUSAL_HOURS_MAX.saturating_add(1);
        match within_reach(principal, filter) {
            Some(filter) => Ok(self.book.refusal_hours(filter, limit).await?),
            None => Ok(Vec::new()),
        }
    }
}

/// The filter within the wallet of a holder; `None` if it is for another wallet.
fn within_reach(principal: &Principal, filter: RefusalFilter) -> Option<RefusalFilter> {
    match (principal.only_wallet(), filter.wallet) {
        (Some(own), Some(other)) if own != other => None,
        (own, of_filter) => Some(RefusalFilter { wallet: own.or(of_filter), ..filter }),
    }
}
