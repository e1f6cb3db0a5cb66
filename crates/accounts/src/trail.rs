//! The audit log: read by owners and auditors, and never edited.

use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::listing::{Page, PageRequest, TrailFilter, TrailListing};

use crate::{Accounts, Principal, Result};

impl Accounts {
    /// Rows of the trail, a page at a time.
    pub async fn trail(
        &self,
        principal: &Principal,
        filter: TrailFilter,
        page: PageRequest,
    ) -> Result<Page<TrailListing>> {
        principal.authorize(UseCase::AuditRead)?;
        let page = self.book.trail(filter, page).await?;
        self.note_read(principal, UseCase::AuditRead, None).await?;
        Ok(page)
    }
}
