//! Limiter of a listener's connections: places for those that are served, and a few spare ones beyond the limits.
//!
//! ```text
//! accepted ─▶ room in all and for its address? ─▶ Served
//!                    └─ no ─▶ spare place ─▶ Spare: a short head time, one answer, then closed
//!                                  └─ all taken ─▶ the oldest of the busiest address without a head is closed
//! ```
//!
//! Probes are answered on spare places, so that a full process does not look dead to its supervisor. Connections
//! that send nothing cannot keep these places: each newcomer may close one of them, of its own address if that has
//! its share, else of the address with the most. A request that is being answered is never closed for a newcomer.
//!
//! Limits: [`SPARE_MAX`] spare places, [`SPARE_PER_ADDRESS`] of them for one address group, and [`SPARE_HEAD`] for a
//! head. An answer, and what is served within the limits, are each listener's own.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::peers::{AddressCounts, AddressPermit, Network, group, is_trusted};
use crate::timed_stream::ReadTimeouts;

/// Spare places of a listener.
const SPARE_MAX: usize = 64;
/// Spare places of one address group.
const SPARE_PER_ADDRESS: usize = 8;
/// Time for the head of a request on a spare place.
const SPARE_HEAD: Duration = Duration::from_secs(1);

/// Numbers of connections at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections of all addresses.
    pub connections: usize,
    /// Connections of one address group that is not a trusted proxy.
    pub connections_per_address: usize,
}

impl ListenerLimits {
    /// So many connections, a quarter of them for one address group.
    #[must_use]
    pub const fn by_quarters(connections: usize) -> Self {
        Self { connections, connections_per_address: connections.div_ceil(4) }
    }
}

/// Limiter of connections, in all and by address, within limits that a reload may change.
#[derive(Debug, Default)]
pub struct ConnectionLimiter {
    served: ConnectionSlots,
    of_addresses: AddressCounts,
    spare: SparePlaces,
}

/// Place of a connection.
#[derive(Debug)]
pub enum Admission {
    /// Within the limits.
    Served(ConnectionPermit),
    /// Beyond the limits.
    Spare(SparePermit),
}

/// The place of one connection within the limits, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    _slot: Arc<()>,
    _of_address: AddressPermit,
}

impl ConnectionLimiter {
    /// A place for a connection; `None` if it is to be closed without an answer.
    #[must_use]
    pub fn admit(
        &self,
        address: IpAddr,
        limits: ListenerLimits,
        trusted: &[Network],
    ) -> Option<Admission> {
        match self.take(address, limits, trusted) {
            Some(permit) => Some(Admission::Served(permit)),
            None => self.spare.take(address).map(Admission::Spare),
        }
    }

    fn take(
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

/// Spare places, in the order in which they were taken.
#[derive(Debug, Clone, Default)]
struct SparePlaces(Arc<Mutex<SpareList>>);

#[derive(Debug, Default)]
struct SpareList {
    next: u64,
    connections: Vec<SpareConnection>,
}

/// Connection on a spare place.
#[derive(Debug, Clone)]
struct SpareConnection {
    number: u64,
    group: IpAddr,
    stage: Arc<SpareStage>,
    closed: CancellationToken,
}

/// Stage of a connection on a spare place: it waits for a head, is being answered, or has its answer.
#[derive(Debug, Default)]
struct SpareStage(AtomicU8);

impl SpareStage {
    const WAITING: u8 = 0;
    const ANSWERING: u8 = 1;
    const ANSWERED: u8 = 2;

    fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Release);
    }
}

/// The spare place of one connection, until it is dropped.
#[derive(Debug)]
pub struct SparePermit {
    places: SparePlaces,
    connection: SpareConnection,
}

impl SparePlaces {
    fn lock(&self) -> MutexGuard<'_, SpareList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, if there is one or one can be taken from a connection that only waits.
    fn take(&self, address: IpAddr) -> Option<SparePermit> {
        let group = group(address);
        let mut places = self.lock();
        places.make_room(group)?;
        let number = places.next;
        places.next = number.saturating_add(1);
        let (stage, closed) = (Arc::default(), CancellationToken::new());
        let connection = SpareConnection { number, group, stage, closed };
        places.connections.push(connection.clone());
        drop(places);
        Some(SparePermit { places: self.clone(), connection })
    }
}

impl SpareList {
    /// Closes the connection whose place the newcomer takes; `None` if all are being answered.
    fn make_room(&mut self, newcomer: IpAddr) -> Option<()> {
        let mut counts = HashMap::new();
        for connection in &self.connections {
            *counts.entry(connection.group).or_insert(0_usize) += 1;
        }
        let is_own = counts.get(&newcomer).is_some_and(|count| *count >= SPARE_PER_ADDRESS);
        if !is_own && self.connections.len() < SPARE_MAX {
            return Some(());
        }
        let candidates = self.connections.iter().enumerate().filter(|(_place, it)| {
            (!is_own || it.group == newcomer) && it.stage.get() != SpareStage::ANSWERING
        });
        let (place, _oldest) = candidates.max_by_key(|(_place, it)| {
            let is_waiting = it.stage.get() == SpareStage::WAITING;
            (counts.get(&it.group).copied(), is_waiting, Reverse(it.number))
        })?;
        self.connections.remove(place).closed.cancel();
        Some(())
    }
}

impl SparePermit {
    /// Timeouts of a connection on this place.
    #[must_use]
    pub fn reads(&self, reads: ReadTimeouts) -> ReadTimeouts {
        ReadTimeouts { head: reads.head.min(SPARE_HEAD), ..reads }
    }

    /// Answers a request whose head has come. Until it is answered, its connection keeps its place.
    pub async fn answering<T>(&self, answer: impl Future<Output = T>) -> T {
        let stage = &self.connection.stage;
        stage.set(SpareStage::ANSWERING);
        let answer = answer.await;
        stage.set(SpareStage::ANSWERED);
        answer
    }

    /// Runs the connection until it ends, or until its place goes to a newcomer.
    pub async fn run(&self, connection: impl Future<Output = ()>) {
        let connection = pin!(connection);
        tokio::select! {
            biased;
            () = self.connection.closed.cancelled() => {}
            () = connection => {}
        }
    }
}

impl Drop for SparePermit {
    fn drop(&mut self) {
        let number = self.connection.number;
        self.places.lock().connections.retain(|connection| connection.number != number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::net::Ipv4Addr;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, last).into()
    }

    fn is_closed(permit: &SparePermit) -> bool {
        permit.connection.closed.is_cancelled()
    }

    /// The permit beyond limits of none.
    fn spare(limiter: &ConnectionLimiter, address: IpAddr) -> Option<SparePermit> {
        let none = ListenerLimits { connections: 0, connections_per_address: 0 };
        match limiter.admit(address, none, &[])? {
            Admission::Spare(permit) => Some(permit),
            Admission::Served(_) => None,
        }
    }

    #[test]
    fn an_address_has_a_quarter_unless_it_is_a_trusted_proxy() {
        let (limiter, limits) = (ConnectionLimiter::default(), ListenerLimits::by_quarters(8));
        let proxies = [Network::parse("127.0.0.9").unwrap()];
        let mut kept = Vec::new();
        let mut take = |address, count| {
            let taken = (0..count).filter(|_| {
                let place = limiter.take(address, limits, &proxies);
                place.is_some_and(|place| {
                    kept.push(place);
                    true
                })
            });
            taken.count()
        };
        assert_eq!(take(ip(1), 5), 2);
        assert_eq!(take(ip(9), 5), 5);
        assert_eq!(take(ip(2), 5), 1);
    }

    #[test]
    fn a_newcomer_closes_the_oldest_idle_connection_of_its_address() {
        let limiter = ConnectionLimiter::default();
        let idle: Vec<_> =
            (0..SPARE_PER_ADDRESS).map(|_| spare(&limiter, ip(1)).unwrap()).collect();
        assert!(!idle.iter().any(is_closed));
        let newcomer = spare(&limiter, ip(1)).unwrap();
        let closed: Vec<_> = idle.iter().map(is_closed).collect();
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
        assert!(is_closed(&idle[0]) && !is_closed(&newcomer));
    }

    #[test]
    fn a_newcomer_of_another_address_closes_one_of_the_address_with_the_most() {
        let limiter = ConnectionLimiter::default();
        let lone = spare(&limiter, ip(200)).unwrap();
        let mut idle = Vec::new();
        for address in 1..=12 {
            idle.extend((0..SPARE_PER_ADDRESS).filter_map(|_| spare(&limiter, ip(address))));
        }
        let newcomer = spare(&limiter, ip(201)).unwrap();
        assert!(!is_closed(&lone) && !is_closed(&newcomer));
        assert_eq!(limiter.spare.lock().connections.len(), SPARE_MAX);
    }

    #[tokio::test]
    async fn a_request_that_is_being_answered_keeps_its_place() {
        let limiter = ConnectionLimiter::default();
        let busy: Vec<_> =
            (0..SPARE_PER_ADDRESS).map(|_| spare(&limiter, ip(1)).unwrap()).collect();
        for permit in &busy {
            permit.connection.stage.set(SpareStage::ANSWERING);
        }
        assert!(spare(&limiter, ip(1)).is_none());
        assert!(spare(&limiter, ip(2)).is_some());
        busy[3].answering(ready(())).await;
        assert!(spare(&limiter, ip(1)).is_some());
        assert!(is_closed(&busy[3]));
    }

    #[tokio::test]
    async fn a_place_that_went_to_a_newcomer_ends_its_connection() {
        let limiter = ConnectionLimiter::default();
        let places: Vec<_> =
            (0..=SPARE_PER_ADDRESS).map(|_| spare(&limiter, ip(1)).unwrap()).collect();
        places[0].run(std::future::pending()).await;
        drop(places);
        assert!(limiter.spare.lock().connections.is_empty());
    }
}
