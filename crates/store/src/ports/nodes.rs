//! The leases of running processes.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, Unavailable};
use holdfast_domain::secret::SettingsDigest;
use holdfast_domain::{NodeAddress, Nodes};

use crate::dialect::blob;
use crate::rows::Cells;
use crate::{Store, WriteBackend, unavailable};

impl Store {
    /// Writes into the row of a process, if it is still this incarnation's, a digest of the settings that
    /// it runs under. It stays for as long as the incarnation has the name. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] where the database did not take it.
    pub async fn note_settings(
        &self,
        node: &Node,
        settings: SettingsDigest,
    ) -> Result<(), Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.note_settings(node, settings).await,
            WriteBackend::Postgres(postgres) => postgres.note_settings(node, settings).await,
        }
    }
}

#[async_trait]
impl Nodes for Store {
    async fn heartbeat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.beat(node, lease, entry).await,
            WriteBackend::Postgres(postgres) => postgres.beat(node, lease, entry).await,
        }
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.leave(node).await,
            WriteBackend::Postgres(postgres) => postgres.leave(node).await,
        }
    }

    async fn advertise(&self, node: &Node, address: &NodeAddress) -> Result<(), Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.advertise(node, address).await,
            WriteBackend::Postgres(postgres) => postgres.advertise(node, address).await,
        }
    }

    async fn address(&self, node: &Node) -> Result<Option<NodeAddress>, Unavailable> {
        // By its incarnation: a successor of that name runs none of what this one ran.
        let sql = "SELECT address FROM nodes
            WHERE name = $1 AND incarnation = $2 AND address IS NOT NULL";
        let binds = [node.name.as_str().into(), blob(node.incarnation.to_bytes())];
        let rows = self.query(sql, binds).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let address = Cells::new(row).text().map_err(unavailable)?;
        NodeAddress::try_from(&*address).map(Some).map_err(unavailable)
    }
}
