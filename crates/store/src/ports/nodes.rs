//! The leases of running processes.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::Nodes;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{Beat, Entry, Unavailable};

use crate::{Store, Writing};

#[async_trait]
impl Nodes for Store {
    async fn beat(&self, node: &Node, lease: Duration, entry: Entry) -> Result<Beat, Unavailable> {
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.beat(node, lease, entry).await,
            Writing::Postgres(postgres) => postgres.beat(node, lease, entry).await,
        }
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.leave(node).await,
            Writing::Postgres(postgres) => postgres.leave(node).await,
        }
    }
}
