//! Turns of hashes: one is under way, the others wait by lane and are drawn by lot.
//!
//! ```text
//! take ─▶ free? ─ yes ─▶ Turn                            Turn dropped ─▶ lot: class, client, request ─▶ its Turn
//!           └─ no ─▶ room of its class ─▶ Waiting ─▶ Turn                   └─ no request waits: free
//!                        └─ full: one of the client with the most is refused
//! ```
//!
//! A lot and not a queue: in a queue the share of a client grows with its requests, and a flood is served first. With
//! a lot among classes, then clients, then requests a person waits for a few turns, however many requests a stranger
//! has.
//!
//! All rooms have the same lock, because a turn is passed on and a request added in one step each: between two locks a
//! request could wait while no hash runs. The lock is never held across an await.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::rand;
use tokio::sync::oneshot;

use crate::attempts::address_group;
use crate::origin::Listener;

// Per class and not of the process: a dozen connections at one listener would otherwise take every
// place, and no person could sign in at the other one.
/// Requests of a class that wait.
pub(crate) const WAITING_MAX: usize = 32;

/// Class of requests: each has room and turns of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Browsers with a mark, sessions, and bearers of an open link.
    Known,
    /// Other browsers at a listener.
    Strangers(Listener),
}

/// Lane in which a request waits: its class, and its client there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    class: Class,
    client: [u8; 16],
}

impl Lane {
    /// Lane of an address group at a listener.
    pub(crate) fn of_stranger(listener: Listener, address: IpAddr) -> Self {
        let client = match address_group(address) {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        Self { class: Class::Strangers(listener), client }
    }

    /// Lane of the known browsers of a person.
    pub(crate) const fn of_known(person: [u8; 16]) -> Self {
        Self { class: Class::Known, client: person }
    }
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    go: oneshot::Sender<Turn>,
}

/// Requests of one class that wait, by client.
type Room = BTreeMap<[u8; 16], Vec<Waiter>>;

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// Number of the next request.
    next: u64,
    /// No room and no list of a client is empty.
    rooms: BTreeMap<Class, Room>,
}

/// The turns of a process. A std mutex, never held across an await: a waiting request sleeps on its channel.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<Mutex<State>>);

/// The turn that is under way, or `None` once it has gone on. Dropped, it goes to a request that waits.
#[derive(Debug)]
pub(super) struct Turn(Option<Turns>);

/// A request that waits. Dropped, it waits no more.
struct Waiting<'a> {
    turns: &'a Turns,
    lane: Lane,
    number: u64,
}

impl Turns {
    /// Waits for a turn; `None` if the room was full and the lot fell on this request.
    pub(super) async fn take(&self, lane: Lane) -> Option<Turn> {
        let (go, turn) = oneshot::channel();
        let (number, refused) = {
            let mut state = self.state();
            // No lock is held across the await below: a turn that is dropped draws under this lock.
            if !state.is_taken {
                state.is_taken = true;
                return Some(Turn(Some(self.clone())));
            }
            let number = state.next;
            state.next = state.next.wrapping_add(1);
            let refused = state.add(lane, Waiter { number, go });
            (number, refused)
        };
        // Before the await: a caller that is dropped there leaves its place, which would otherwise
        // stay taken.
        let waiting = Waiting { turns: self, lane, number };
        // A refused request learns it by its sender, which ends here.
        drop(refused);
        let turn = turn.await.ok();
        drop(waiting);
        turn
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A list of senders is whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a request to its room, and takes out the one that the lot falls on if the room is full.
    fn add(&mut self, lane: Lane, waiter: Waiter) -> Option<Waiter> {
        let room = self.rooms.entry(lane.class).or_default();
        room.entry(lane.client).or_default().push(waiter);
        if room.values().map(Vec::len).sum::<usize>() <= WAITING_MAX {
            return None;
        }
        // The lot falls among the clients with the most requests, so that a flood displaces itself.
        // A refusal of the newest request would lock a person out for as long as the flood lasts.
        let most = room.values().map(Vec::len).max()?;
        let crowded = room.iter().filter(|(_client, waiters)| waiters.len() == most);
        let crowded: Vec<_> = crowded.map(|(client, _waiters)| *client).collect();
        let client = crowded.get(lot(crowded.len())).copied()?;
        self.take_out(Lane { class: lane.class, client }, |waiters| lot(waiters.len()))
    }

    /// Draws the request that is next: a class, a client of it, a request of this.
    fn draw(&mut self) -> Option<Waiter> {
        let class = self.rooms.keys().nth(lot(self.rooms.len())).copied()?;
        let room = self.rooms.get(&class)?;
        let client = room.keys().nth(lot(room.len())).copied()?;
        self.take_out(Lane { class, client }, |waiters| lot(waiters.len()))
    }

    /// Takes the request at a place of a lane out; the place may be none.
    fn take_out(&mut self, lane: Lane, place: impl FnOnce(&[Waiter]) -> usize) -> Option<Waiter> {
        let room = self.rooms.get_mut(&lane.class)?;
        let waiters = room.get_mut(&lane.client)?;
        let place = place(waiters);
        let taken = (place < waiters.len()).then(|| waiters.swap_remove(place));
        if waiters.is_empty() {
            room.remove(&lane.client);
        }
        if room.is_empty() {
            self.rooms.remove(&lane.class);
        }
        taken
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(turns) = self.0.take() else { return };
        loop {
            // A loop, not a recursion: many requests may have gone, and each turn that is not taken
            // comes back.
            let next = {
                let mut state = turns.state();
                let next = state.draw();
                // In the step that draws: between the two a new request would find the turn free,
                // and two hashes run.
                state.is_taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            match next.go.send(Self(Some(turns.clone()))) {
                Ok(()) => return,
                // Its request is gone, and the turn goes on here.
                // Emptied, or its drop would pass the turn on a second time.
                Err(mut unsent) => unsent.0 = None,
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let number = self.number;
        let place = |waiters: &[Waiter]| {
            waiters.iter().position(|it| it.number == number).unwrap_or(usize::MAX)
        };
        let own = self.turns.state().take_out(self.lane, place);
        drop(own);
    }
}

/// A random number below this one; zero if the system has no random bytes.
fn lot(below: usize) -> usize {
    let mut bytes = [0; 8];
    if rand::fill(&mut bytes).is_err() {
        // Not an error: a sign-in fails without random bytes anyway, and a turn that is not passed
        // on would stop all others.
        return 0;
    }
    let below = u64::try_from(below.max(1)).unwrap_or(u64::MAX);
    usize::try_from(u64::from_be_bytes(bytes) % below).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tokio::task::{JoinSet, yield_now};

    use super::*;

    fn stranger(listener: Listener, host: u8) -> Lane {
        Lane::of_stranger(listener, IpAddr::from([192, 0, 2, host]))
    }

    fn waiting(turns: &Turns) -> usize {
        turns.state().rooms.values().flat_map(BTreeMap::values).map(Vec::len).sum()
    }

    /// Has a request wait in this lane, whose result is if it got a turn.
    fn spawn(requests: &mut JoinSet<bool>, turns: &Turns, lane: Lane) {
        let turns = turns.clone();
        requests.spawn(async move { turns.take(lane).await.is_some() });
    }

    #[tokio::test]
    async fn a_full_room_refuses_requests_of_the_client_with_the_most() {
        let turns = Turns::default();
        let first = turns.take(stranger(Listener::Holders, 1)).await.unwrap();
        let (mut crowd, mut others) = (JoinSet::new(), JoinSet::new());
        for _connection in 0..WAITING_MAX + 8 {
            spawn(&mut crowd, &turns, stranger(Listener::Holders, 1));
        }
        let lanes = [
            stranger(Listener::Holders, 2),
            stranger(Listener::Operators, 1),
            Lane::of_known([1; 16]),
        ];
        for lane in lanes {
            spawn(&mut others, &turns, lane);
        }
        while waiting(&turns) < WAITING_MAX + 2 {
            yield_now().await;
        }
        // Room for the eight of the crowd was never there, and one makes room for its neighbour.
        for _refused in 0..9 {
            assert!(!crowd.join_next().await.unwrap().unwrap());
        }
        assert_eq!((crowd.len(), waiting(&turns)), (WAITING_MAX - 1, WAITING_MAX + 2));
        crowd.shutdown().await;
        assert_eq!(waiting(&turns), 3, "a request that is dropped waits no more");
        drop(first);
        assert_eq!(others.join_all().await, [true; 3]);
        assert!(!turns.state().is_taken);
    }

    #[tokio::test]
    async fn a_turn_passes_by_requests_that_are_gone() {
        let turns = Turns::default();
        let first = turns.take(Lane::of_known([1; 16])).await.unwrap();
        let mut gone = JoinSet::new();
        spawn(&mut gone, &turns, Lane::of_known([2; 16]));
        while waiting(&turns) < 1 {
            yield_now().await;
        }
        // Sent to a request that ends before it runs again.
        drop(first);
        gone.shutdown().await;
        assert!(!turns.state().is_taken);
        assert!(turns.take(Lane::of_known([3; 16])).await.is_some());
    }
}
