//! Events that were noticed: one transaction for those that somebody could want.

use async_trait::async_trait;
use holdfast_domain::event::{EventInterest, NewEvent};
use holdfast_domain::ports::{EventOutbox, Unavailable};

use crate::{Store, WriteBackend};

impl Store {
    /// Takes what is known by now of who wants events. It holds from the next transaction on.
    pub fn keep_events(&self, interest: EventInterest) {
        self.inner.interest.set(interest);
    }
}

#[async_trait]
impl EventOutbox for Store {
    async fn tell(&self, noticed: &[NewEvent]) -> Result<(), Unavailable> {
        let wanted: Vec<_> = self.inner.interest.wanted(noticed).into_iter().cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.tell(wanted).await,
            WriteBackend::Postgres(postgres) => postgres.tell(wanted).await,
        }
    }
}
