//! Recorded events: one transaction for all that have a reader.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::event::{EventKinds, NewEvent};
use holdfast_domain::admin::ports::EventOutbox;
use holdfast_domain::ports::Unavailable;

use crate::store::Store;
use crate::transaction::event;

impl Store {
    /// Lists events for so long from now on, or none. It holds from the next transaction on.
    pub fn list_events(&self, kept: Option<Duration>) {
        self.inner.interest.change(|interest| interest.listed = kept);
    }

    /// Takes the kinds that some webhook is sent, as they are known by now. Without a list no others
    /// are written; and none of these is purged before it was fanned out.
    pub fn send_events(&self, webhooks: EventKinds) {
        self.inner.interest.change(|interest| interest.webhooks = webhooks);
    }
}

#[async_trait]
impl EventOutbox for Store {
    async fn record(&self, noticed: &[NewEvent]) -> Result<(), Unavailable> {
        let wanted: Vec<_> = self.inner.interest.wanted(noticed).into_iter().cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let dialect = self.dialect();
        let inserts = move |now| wanted.iter().map(|it| event::insert(dialect, it, now)).collect();
        self.run(inserts).await?;
        self.inner.interest.on_written();
        Ok(())
    }
}
