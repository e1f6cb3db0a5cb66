//! A database server of a world's own: how nodes reach it, and the clocks that it and they go by.
//!
//! What is done to it under load is in `server.rs`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Clocks;
use crate::cluster::Cluster;
use crate::line::Line;

/// The clock of the server, and by how many seconds clocks are wrong.
pub(super) const SERVERS: &str = "server";
pub(super) const HOUR: i64 = 3_600;

/// The server, and how it is reached.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) line: Line,
    cluster: Mutex<Cluster>,
    pub(super) clocks: Option<Clocks>,
}

impl Supply {
    /// A server with the time of day.
    pub(super) fn start() -> Self {
        Self::of(Cluster::start_with(Vec::new()), None)
    }

    /// A server with a clock of its own, and clocks for each node: an hour behind, right, an hour ahead.
    pub(super) fn start_with_clocks() -> Self {
        let clocks = Clocks::build();
        clocks.set(SERVERS, 0);
        for (node, seconds) in [-HOUR, 0, HOUR].into_iter().enumerate() {
            clocks.set(&node_clock(node), seconds);
        }
        Self::of(Cluster::start_with(clocks.env(SERVERS).to_vec()), Some(clocks))
    }

    fn of(cluster: Cluster, clocks: Option<Clocks>) -> Self {
        Self { line: Line::to(cluster.socket()), cluster: Mutex::new(cluster), clocks }
    }

    /// Environment of a node.
    pub(super) fn env(&self, node: usize) -> Vec<(&'static str, PathBuf)> {
        let clocks = self.clocks.iter();
        clocks.flat_map(|clocks| clocks.env(&node_clock(node))).collect()
    }

    pub(super) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn node_clock(node: usize) -> String {
    format!("node-{node}")
}
