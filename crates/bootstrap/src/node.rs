//! Name of this node: what a process takes its lease and its operations under.
//!
//! ```text
//! server.node          ──▶ that name
//! a file as database   ──▶ one name: the lock of the file admits one process
//! a server's database  ──▶ a new name at each start
//! ```

use anyhow::Context;
use holdfast_config::Config;
use holdfast_domain::NodeName;
use uuid::Uuid;

/// The name of a process whose database has one process.
const NODE_NAME: &str = "embedded";
/// Prefix of the names that are made up for processes which share a database and were given none.
const NODE_PREFIX: &str = "gw";

/// The name that this process's operations are leased through.
pub fn name(config: &Config) -> anyhow::Result<NodeName> {
    match &config.server.node {
        Some(name) => Ok(name.clone()),
        None if config.database.file().is_some() => {
            NodeName::try_from(NODE_NAME).context("the node has no name")
        }
        // Another one at each start: it never waits for the lease of the one before.
        None => {
            let name = format!("{NODE_PREFIX}-{}", Uuid::new_v4().as_simple());
            NodeName::try_from(name.as_str()).context("the node has no name")
        }
    }
}
