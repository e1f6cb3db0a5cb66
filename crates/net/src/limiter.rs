//! Limiter of a listener's connections: places for those that are served, and a few spare ones beyond the limits.
//!
//! ```text
//! accepted ─▶ room in all and for its address? ─▶ Served
//!                    └─ no ─▶ spare place ─▶ Spare: a short head time, one answer, then closed
//!                                  └─ all taken ─▶ the oldest of the busiest address without a head is closed
//! ```
//!
//! Probes are answered on spare places, so that a full process does not look dead to its supervisor. Stages of a
//! connection on a spare place, all of them under one lock:
//!
//! ```text
//! New ── looked for a head once ─▶ Waiting ── head ─▶ Answering ── end of the body ─▶ Answered
//! ```
//!
//! - Each newcomer may close one connection that is waiting or answered: of its own address if that has its share, else
//!   of the address with the most. A new connection may have sent its head already: the oldest one is closed only if all
//!   others are new or being answered.
//! - From its head to the end of its answer's body a request is never closed for a newcomer. If the connection was
//!   closed first, the request is not begun.
//! - Answers that may take long have at most half of all spare places, and half of the share of an address. Others are
//!   refused at once. A brief answer, which is `/healthz` or such a refusal, so finds a place always.
//!
//! Limits: [`SPARE_MAX`] spare places, [`SPARE_PER_ADDRESS`] of them for one address group that is not a trusted proxy,
//! and [`SPARE_HEAD`] for a head. An answer, and what is served within the limits, are each listener's own.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::peers::{AddressCounts, AddressPermit, Network, group, is_trusted};
use crate::timed_stream::ReadTimeouts;

/// Spare places of a listener.
const SPARE_MAX: usize = 64;
/// Spare places of one address group that is not a trusted proxy.
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
            None => {
                let is_proxy = is_trusted(trusted, address);
                let most = if is_proxy { SPARE_MAX } else { SPARE_PER_ADDRESS };
                self.spare.take(address, most).map(Admission::Spare)
            }
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

/// Spare places, in the order in which they were taken. Under one lock, never held across an await.
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
    /// Spare places of its group.
    most: usize,
    stage: SpareStage,
    closed: CancellationToken,
}

/// Stage of a connection on a spare place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpareStage {
    /// No head was looked for.
    New,
    /// The head has not come.
    Waiting,
    /// The head has come, and the answer has not ended.
    Answering(AnswerLength),
    /// The answer has ended.
    Answered,
}

impl SpareStage {
    const fn is_answering(self) -> bool {
        matches!(self, Self::Answering(_))
    }
}

/// Time that an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerLength {
    /// An answer that waits for no other party, such as that of `/healthz`.
    Brief,
    /// An answer that may wait for a database or for its caller.
    Long,
}

/// Decision on an answer on a spare place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpareAnswer {
    /// The answer is given.
    Given,
    /// Too many long answers are on their way: a refusal is given in its place.
    Refused,
}

/// The spare place of one connection, until it is dropped.
#[derive(Debug)]
pub struct SparePermit {
    places: SparePlaces,
    number: u64,
    closed: CancellationToken,
}

/// The answer on a spare place, until it has ended.
#[derive(Debug)]
pub struct SpareTurn {
    places: SparePlaces,
    number: u64,
}

impl Drop for SpareTurn {
    fn drop(&mut self) {
        if let Some(connection) = self.places.lock().find(self.number) {
            connection.stage = SpareStage::Answered;
        }
    }
}

impl SparePlaces {
    fn lock(&self) -> MutexGuard<'_, SpareList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, if there is one or one can be taken from a connection that only waits.
    fn take(&self, address: IpAddr, most: usize) -> Option<SparePermit> {
        let group = group(address);
        let mut places = self.lock();
        places.make_room(group, most)?;
        let number = places.next;
        places.next = number.saturating_add(1);
        let (stage, closed) = (SpareStage::New, CancellationToken::new());
        let connection = SpareConnection { number, group, most, stage, closed: closed.clone() };
        places.connections.push(connection);
        drop(places);
        Some(SparePermit { places: self.clone(), number, closed })
    }
}

impl SpareList {
    fn find(&mut self, number: u64) -> Option<&mut SpareConnection> {
        self.connections.iter_mut().find(|connection| connection.number == number)
    }

    /// Closes the connection whose place the newcomer takes; `None` if none may be closed.
    fn make_room(&mut self, newcomer: IpAddr, most: usize) -> Option<()> {
        let mut counts = HashMap::new();
        for connection in &self.connections {
            *counts.entry(connection.group).or_insert(0_usize) += 1;
        }
        let is_own = counts.get(&newcomer).is_some_and(|count| *count >= most);
        if !is_own && self.connections.len() < SPARE_MAX {
            return Some(());
        }
        let candidates =
            self.connections.iter().enumerate().filter(|(_place, it)| {
                (!is_own || it.group == newcomer) && !it.stage.is_answering()
            });
        let (place, _oldest) = candidates.max_by_key(|(_place, it)| {
            let is_looked_at = it.stage != SpareStage::New;
            let is_waiting = it.stage == SpareStage::Waiting;
            (is_looked_at, counts.get(&it.group).copied(), is_waiting, Reverse(it.number))
        })?;
        self.connections.remove(place).closed.cancel();
        Some(())
    }

    /// Begins an answer; `None` if its connection was closed for a newcomer.
    fn begin(&mut self, number: u64, length: AnswerLength) -> Option<SpareAnswer> {
        let &mut SpareConnection { group, most, .. } = self.find(number)?;
        let is_long = |it: &&SpareConnection| it.stage == SpareStage::Answering(AnswerLength::Long);
        let long = || self.connections.iter().filter(is_long);
        let is_full = long().count() >= SPARE_MAX / 2
            || long().filter(|it| it.group == group).count() >= most / 2;
        let (answer, length) = match length {
            AnswerLength::Long if is_full => (SpareAnswer::Refused, AnswerLength::Brief),
            AnswerLength::Long | AnswerLength::Brief => (SpareAnswer::Given, length),
        };
        self.find(number)?.stage = SpareStage::Answering(length);
        Some(answer)
    }
}

impl SparePermit {
    /// Timeouts of a connection on this place.
    #[must_use]
    pub fn reads(&self, reads: ReadTimeouts) -> ReadTimeouts {
        ReadTimeouts { head: reads.head.min(SPARE_HEAD), ..reads }
    }

    /// Begins the answer to a request whose head has come. Its connection keeps its place until the turn is dropped.
    /// If the place went to a newcomer before, this waits for ever: [`run`](Self::run) ends the connection.
    pub async fn begin(&self, length: AnswerLength) -> (SpareAnswer, SpareTurn) {
        let begun = self.places.lock().begin(self.number, length);
        let Some(answer) = begun else { return pending().await };
        (answer, SpareTurn { places: self.places.clone(), number: self.number })
    }

    /// Runs the connection until it ends, or until its place goes to a newcomer.
    pub async fn run(&self, connection: impl Future<Output = ()>) {
        let connection = pin!(connection);
        tokio::select! {
            // Closed first: a connection that lost its place begins no request any more.
            biased;
            () = self.closed.cancelled() => {}
            () = connection => {}
        }
    }

    /// Serves a connection, whose place may go to a newcomer from the first look that finds no head.
    pub async fn serve(&self, connection: impl Future<Output = ()>) {
        let mut connection = pin!(connection);
        let mut is_new = true;
        poll_fn(|context| {
            let polled = connection.as_mut().poll(context);
            if is_new && polled.is_pending() {
                is_new = false;
                self.note_wait();
            }
            polled
        })
        .await;
    }

    /// Has the place go to a newcomer, unless a head has come.
    fn note_wait(&self) {
        if let Some(connection) = self.places.lock().find(self.number)
            && connection.stage == SpareStage::New
        {
            connection.stage = SpareStage::Waiting;
        }
    }
}

impl Drop for SparePermit {
    fn drop(&mut self) {
        self.places.lock().connections.retain(|connection| connection.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, last).into()
    }

    fn is_closed(permit: &SparePermit) -> bool {
        permit.closed.is_cancelled()
    }

    /// The new permit beyond limits of none.
    fn fresh(limiter: &ConnectionLimiter, address: IpAddr) -> Option<SparePermit> {
        let none = ListenerLimits { connections: 0, connections_per_address: 0 };
        let proxies = [Network::parse("127.0.0.250").unwrap()];
        match limiter.admit(address, none, &proxies)? {
            Admission::Spare(permit) => Some(permit),
            Admission::Served(_) => None,
        }
    }

    /// The same, whose head has not come.
    fn spare(limiter: &ConnectionLimiter, address: IpAddr) -> Option<SparePermit> {
        let permit = fresh(limiter, address)?;
        permit.note_wait();
        Some(permit)
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
        let mut turns = Vec::new();
        for permit in &busy {
            turns.push(permit.begin(AnswerLength::Brief).await);
        }
        assert!(spare(&limiter, ip(1)).is_none());
        assert!(spare(&limiter, ip(2)).is_some());
        drop(turns.remove(3));
        assert!(spare(&limiter, ip(1)).is_some());
        assert!(is_closed(&busy[3]));
    }

    #[tokio::test]
    async fn a_new_connection_is_closed_after_those_without_a_head() {
        let limiter = ConnectionLimiter::default();
        let new: Vec<_> = (0..SPARE_PER_ADDRESS).map(|_| fresh(&limiter, ip(1)).unwrap()).collect();
        assert!(new[5].serve(pending()).now_or_never().is_none());
        let _newcomer = fresh(&limiter, ip(1)).unwrap();
        assert!(is_closed(&new[5]) && !is_closed(&new[0]));
        let _another = fresh(&limiter, ip(1)).unwrap();
        assert!(is_closed(&new[0]), "all are new: the oldest");
    }

    #[test]
    fn a_trusted_proxy_has_all_spare_places() {
        let limiter = ConnectionLimiter::default();
        let proxies: Vec<_> = (0..SPARE_MAX).map(|_| spare(&limiter, ip(250)).unwrap()).collect();
        assert!(!proxies.iter().any(is_closed));
        let newcomer = spare(&limiter, ip(250)).unwrap();
        assert!(is_closed(&proxies[0]) && !is_closed(&newcomer));
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_for_a_newcomer_begins_no_answer() {
        let limiter = ConnectionLimiter::default();
        let idle: Vec<_> =
            (0..=SPARE_PER_ADDRESS).map(|_| spare(&limiter, ip(1)).unwrap()).collect();
        assert!(is_closed(&idle[0]));
        assert!(idle[0].begin(AnswerLength::Brief).now_or_never().is_none());
        assert!(idle[1].begin(AnswerLength::Brief).now_or_never().is_some());
    }

    #[tokio::test]
    async fn long_answers_leave_half_of_the_places_to_brief_ones() {
        let limiter = ConnectionLimiter::default();
        let (mut permits, mut turns) = (Vec::new(), Vec::new());
        let mut given = HashMap::new();
        for address in 1..=12 {
            for _place in 0..SPARE_PER_ADDRESS {
                let Some(permit) = spare(&limiter, ip(address)) else { continue };
                let (answer, turn) = permit.begin(AnswerLength::Long).await;
                if answer == SpareAnswer::Given {
                    *given.entry(address).or_insert(0) += 1;
                    turns.push(turn);
                }
                permits.push(permit);
            }
        }
        assert!(given.values().all(|count| *count == SPARE_PER_ADDRESS / 2), "{given:?}");
        assert_eq!(turns.len(), SPARE_MAX / 2);
        for address in [1, 8, 12, 100] {
            let permit = spare(&limiter, ip(address)).unwrap();
            assert_eq!(permit.begin(AnswerLength::Brief).await.0, SpareAnswer::Given);
            assert_eq!(permit.begin(AnswerLength::Long).await.0, SpareAnswer::Refused);
        }
        drop(permits);
    }

    #[tokio::test]
    async fn a_place_that_went_to_a_newcomer_ends_its_connection() {
        let limiter = ConnectionLimiter::default();
        let places: Vec<_> =
            (0..=SPARE_PER_ADDRESS).map(|_| spare(&limiter, ip(1)).unwrap()).collect();
        places[0].run(pending()).await;
        drop(places);
        assert!(limiter.spare.lock().connections.is_empty());
    }
}
