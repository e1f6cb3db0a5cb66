//! Limiter of a listener's connections, in all and by address, within limits that a reload may change.

use std::net::IpAddr;
use std::sync::Arc;

use crate::peers::{AddressCounts, AddressPermit, Network, is_trusted};

/// Connections beyond the limit that are answered all the same; more are closed unheard.
const TURNED_AWAY_MAX: usize = 64;
/// The same for one address.
const TURNED_AWAY_PER_ADDRESS: usize = 8;

/// Numbers of connections at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections of all addresses.
    pub connections: usize,
    /// Connections of one address that is not a trusted proxy.
    pub connections_per_address: usize,
}

/// Limiter of connections, in all and by address.
#[derive(Debug, Default)]
pub struct ConnectionLimiter {
    served: ConnectionSlots,
    of_addresses: AddressCounts,
    refused: ConnectionSlots,
    refused_of_addresses: AddressCounts,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    _slot: Arc<()>,
    _of_address: AddressPermit,
}

impl ConnectionLimiter {
    /// A place for a connection that is served.
    #[must_use]
    pub fn take(
        &self,
        address: IpAddr,
        limits: ListenerLimits,
        trusted: &[Network],
    ) -> Option<ConnectionPermit> {
        let is_proxy = is_trusted(trusted, address);
        let most = if is_proxy { usize::MAX } else { limits.connections_per_address };
        // The address first: if the second `take` fails, dropping this permit undoes the first.
        let of_address = self.of_addresses.take(address, most)?;
        let slot = self.served.take(limits.connections)?;
        Some(ConnectionPermit { _slot: slot, _of_address: of_address })
    }

    /// A place for a connection beyond the limits. No address has them all.
    #[must_use]
    pub fn take_to_refuse(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let of_address = self.refused_of_addresses.take(address, TURNED_AWAY_PER_ADDRESS)?;
        let slot = self.refused.take(TURNED_AWAY_MAX)?;
        Some(ConnectionPermit { _slot: slot, _of_address: of_address })
    }
}

/// Connections at once, within a limit that may change. Each has a clone of the pointer, and only the
/// task that accepts them makes clones.
#[derive(Debug, Default)]
struct ConnectionSlots(Arc<()>);

impl ConnectionSlots {
    /// Room for one more, until it is dropped.
    fn take(&self, most: usize) -> Option<Arc<()>> {
        // Safe from a race, because one task takes; drops meanwhile only make room.
        (Arc::strong_count(&self.0) <= most).then(|| Arc::clone(&self.0))
    }
}
