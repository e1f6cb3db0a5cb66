//! Events: what happened, listed and shown. A holder sees those of their own wallet.

use holdfast_domain::EventId;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::event::{EventFilter, EventRecord};
use holdfast_domain::admin::listing::{Page, PageRequest};

use crate::{Accounts, AccountsError, Principal, ResourceKind, Result};

impl Accounts {
    /// The event of this id.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one of a wallet that is out of reach and for the operator's own
    /// too.
    pub async fn event(&self, principal: &Principal, id: EventId) -> Result<EventRecord> {
        principal.authorize(UseCase::EventRead)?;
        let event = self.book.event(id).await?;
        let is_seen = |event: &EventRecord| match principal.only_wallet() {
            None => true,
            Some(own) => event.wallet == Some(own),
        };
        event.filter(is_seen).ok_or(AccountsError::NotFound(ResourceKind::Event))
    }

    /// Events, a page at a time.
    pub async fn events(
        &self,
        principal: &Principal,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<EventRecord>> {
        principal.authorize(UseCase::EventRead)?;
        let wallet = match (principal.only_wallet(), filter.wallet) {
            (Some(own), Some(requested)) if own != requested => {
                return Ok(Page::empty());
            }
            (own, requested) => own.or(requested),
        };
        Ok(self.book.events(EventFilter { wallet, ..filter }, page).await?)
    }
}
