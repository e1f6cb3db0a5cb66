//! The leases of running processes.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, Unavailable};
use holdfast_domain::secret::SettingsDigest;
use holdfast_domain::{NodeAddress, Nodes};
use sea_orm::{Statement, Value};

use crate::error::unavailable;
use crate::rows::Cells;
use crate::schema::blob;
use crate::store::Store;

impl Store {
    /// Writes a digest of its settings into the row of a process, if that is still this incarnation's. It stays for
    /// as long as the incarnation has the name. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database did not take it.
    pub async fn note_settings(
        &self,
        node: &Node,
        settings: SettingsDigest,
    ) -> Result<(), Unavailable> {
        // Not on the connection of the heartbeats: it is driven by their runtime, and never waits for this.
        let noted =
            self.of_node("UPDATE nodes SET settings = $3", node, [blob(settings.to_bytes())]);
        self.run(move |_now| vec![noted]).await
    }

    /// Statement that changes the row of a node by its incarnation: a successor of the same name keeps its lease.
    fn of_node<const N: usize>(&self, change: &str, node: &Node, binds: [Value; N]) -> Statement {
        let Node { name, incarnation } = node;
        let sql = format!("{change} WHERE name = $1 AND incarnation = $2");
        let own = [name.as_str().into(), blob(incarnation.to_bytes())];
        Statement::from_sql_and_values(self.dialect().backend(), sql, own.into_iter().chain(binds))
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
        self.inner.backend.beat(node, lease, entry).await
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        self.inner.backend.touch(self.of_node("DELETE FROM nodes", node, [])).await
    }

    async fn advertise(&self, node: &Node, address: &NodeAddress) -> Result<(), Unavailable> {
        let address = address.as_str().into();
        self.inner
            .backend
            .touch(self.of_node("UPDATE nodes SET address = $3", node, [address]))
            .await
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
