//! The gateways of a world: which of them run, which can be reached, and whose requests are on their
//! way to which.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Gateway;

/// So many places for gateways.
#[derive(Debug)]
pub(super) struct Fleet(Mutex<Vec<Node>>);

#[derive(Debug, Default)]
struct Node {
    gateway: Option<Gateway>,
    is_frozen: bool,
    /// Keys whose requests were sent there and are without their answers.
    flying: Vec<usize>,
}

impl Fleet {
    /// All places are empty.
    pub(super) fn of(places: usize) -> Self {
        Self(Mutex::new((0..places).map(|_| Node::default()).collect()))
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of places.
    pub(super) fn places(&self) -> usize {
        self.nodes().len()
    }

    /// Places without a gateway.
    pub(super) fn empty(&self) -> Vec<usize> {
        let nodes = self.nodes();
        (0..nodes.len()).filter(|at| nodes[*at].gateway.is_none()).collect()
    }

    /// Puts a running gateway into its place.
    pub(super) fn place(&self, place: usize, gateway: Gateway) {
        self.nodes()[place].gateway = Some(gateway);
    }

    /// Takes the gateway out of its place, so that no request finds it any more; true if requests are without their
    /// answers there.
    pub(super) fn take(&self, place: usize) -> Option<(Gateway, bool)> {
        let node = &mut self.nodes()[place];
        let has_flying = !node.flying.is_empty();
        Some((node.gateway.take()?, has_flying))
    }

    /// True if an armed step has stopped a thread of this one.
    pub(super) fn is_stopped(&self, place: usize) -> bool {
        self.nodes()[place].gateway.as_ref().is_some_and(Gateway::is_stopped)
    }

    /// True if the gateway in a place has logged this.
    pub(super) fn has_said(&self, place: usize, text: &str) -> bool {
        self.nodes()[place].gateway.as_ref().is_some_and(|gateway| gateway.said().contains(text))
    }

    /// Stops a process as a whole, and returns its requests.
    pub(super) fn freeze(&self, place: usize) -> Vec<usize> {
        let node = &mut self.nodes()[place];
        node.gateway.as_ref().expect("it runs").freeze();
        node.is_frozen = true;
        node.flying.clone()
    }

    /// Lets it go on.
    pub(super) fn thaw(&self, place: usize) {
        let node = &mut self.nodes()[place];
        node.gateway.as_ref().expect("it was frozen").thaw();
        node.is_frozen = false;
    }

    /// Sends a key to any that runs: its place and address. `None` if none runs.
    pub(super) fn board(&self, at: usize, any: u64) -> Option<(usize, SocketAddr)> {
        let mut nodes = self.nodes();
        let running: Vec<(usize, SocketAddr)> = nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| !node.is_frozen)
            .filter_map(|(place, node)| Some((place, node.gateway.as_ref()?.address())))
            .collect();
        let n_running = u64::try_from(running.len()).expect("few");
        let turn = any.checked_rem(n_running)?;
        let (place, address) = running[usize::try_from(turn).expect("few")];
        nodes[place].flying.push(at);
        Some((place, address))
    }

    /// The request of a key has its answer, or will never have it.
    pub(super) fn land(&self, place: usize, at: usize) {
        let flying = &mut self.nodes()[place].flying;
        if let Some(found) = flying.iter().position(|it| *it == at) {
            flying.swap_remove(found);
        }
    }

    /// Address of the administration of the gateway in a place.
    pub(super) fn admin_address(&self, place: usize) -> Option<SocketAddr> {
        self.nodes()[place].gateway.as_ref().map(Gateway::admin_address)
    }

    /// Addresses of the running gateways.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let nodes = self.nodes();
        nodes.iter().filter_map(|node| Some(node.gateway.as_ref()?.address())).collect()
    }
}
