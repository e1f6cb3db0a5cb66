//! Nodes as several pages show them.

use holdfast_domain::admin::listing::NodeListing;

use crate::kit::{Cell, Table, Tone};

/// True if no node is alive, if one of them is gone, or if one has other settings.
pub(crate) fn need_attention(nodes: &[NodeListing]) -> bool {
    let differs = |node: &NodeListing| node.settings_differ(nodes) == Some(true);
    nodes.is_empty() || nodes.iter().any(|node| !node.is_alive() || differs(node))
}

pub(crate) fn table(nodes: &[NodeListing]) -> Table {
    Table::of("Nodes", nodes.iter().map(|node| row(node, nodes)), "No live node.")
}

fn row(node: &NodeListing, nodes: &[NodeListing]) -> [(&'static str, Cell); 5] {
    let state = if node.is_alive() {
        Cell::badge("alive", Tone::Good)
    } else {
        Cell::badge("gone", Tone::Bad)
    };
    let settings = match node.settings_differ(nodes) {
        Some(true) => Cell::badge("differ from others", Tone::Warning),
        Some(false) => Cell::badge("as all others", Tone::Good),
        None => Cell::Nothing,
    };
    [
        ("Node", Cell::text(node.lease.node.name.as_str())),
        ("State", state),
        ("Address", Cell::some_text(node.address.as_deref())),
        ("Settings", settings),
        ("Lease until", Cell::moment(node.lease.ends_at)),
    ]
}
