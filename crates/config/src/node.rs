//! `[node]`: the relay between nodes on one database: the address on which this one listens, and the address at
//! which the others reach it.

use holdfast_domain::NodeAddress;
use holdfast_store::DatabaseUrl;

use crate::document::ConfigTable;
use crate::listen::ListenAddress;

/// `[node]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayConfig {
    pub listen: ListenAddress,
    /// Unset: the address on which it listens.
    pub advertise: Option<NodeAddress>,
}

pub(crate) fn node(table: &ConfigTable<'_>) -> Option<RelayConfig> {
    let listen = table
        .required("listen", "listen = \"10.0.0.1:8082\"")
        .and_then(|field| field.parse(ListenAddress::parse));
    let advertise = table.field("advertise").map(|field| {
        let written = field.expanded()?;
        let address = NodeAddress::try_from(written.expose());
        if let Err(error) = &address {
            field.mistake(format_args!("is {error}"));
        }
        address.ok()
    });
    // The address is written into the database for other hosts: 0.0.0.0 would send each to itself.
    if advertise.is_none() && listen.is_some_and(|listen| listen.first().ip().is_unspecified()) {
        table.mistake(
            "`node.listen` is every address of this host: write the one at which the other nodes \
             reach it, like advertise = \"gw-1:8082\"",
        );
    }
    table.refuse_unknown();
    Some(RelayConfig {
        listen: listen?,
        advertise: advertise.map_or(Some(None), |it| it.map(Some))?,
    })
}

/// Refuses `[node]` beside an SQLite database: a file has one process, and no other node to reach.
pub(crate) fn needs_server(database: &DatabaseUrl, table: &ConfigTable<'_>) {
    if database.file().is_some() {
        table.mistake(
            "`[node]` is for several gateways on one PostgreSQL database: one process alone serves an \
             SQLite file, so remove the table",
        );
    }
}
