//! Everything is brought to an end by its callers' retries, and checked: the answers, the sums, the
//! upstream's book and the gateway's own audit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::load::{FUNDS, SendOutcome, World};
use super::model::Way;
use super::update::Update;
use super::{Dice, Report, Topology, wait_until};
use crate::site::text;
use crate::{PATIENCE, Request};

/// Clients that retry at once.
const CLIENTS: usize = 6;
/// Most requests of one client for one key: it hangs up once, and is turned away once.
const TRIES_MAX: u32 = 4;
/// Pause of a client that was turned away for now.
const TURNED_AWAY: Duration = Duration::from_millis(100);

impl World {
    /// Retries everything, wherever it was begun, and checks everything.
    pub(super) fn rest(&mut self, dice: &mut Dice, report: &mut Report) {
        self.start_all();
        let all: Vec<usize> = (0..self.keys().len()).collect();
        self.retry(&all);
        self.repeat_deposits();
        if self.topology == Topology::Patroni {
            self.repeat_everywhere(&all);
        }
        self.check_sums();
        self.check_clocks();
        if let Some(database) = &self.database {
            database.check_book();
        }
        let operations = u64::try_from(all.len()).expect("a length");
        assert_eq!(self.site.verify()["operations"], operations, "each key is one operation");
        self.runbook.check(&self.keys());
        report.checks += 1;
        let ended = match self.topology {
            Topology::File => self.fleet.take(0),
            Topology::Nodes
            | Topology::Server
            | Topology::Clocks
            | Topology::Update
            | Topology::Patroni => None,
        };
        if let Some((gateway, _has_flying)) = ended {
            if dice.one_in(2) {
                gateway.stop();
            } else {
                gateway.kill();
            }
        }
    }

    /// Two clients at once repeat every key until it has its final answer.
    fn retry(&self, all: &[usize]) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _client in 0..CLIENTS * self.fleet.places() {
                scope.spawn(|| {
                    while let Some(at) = all.get(next.fetch_add(1, Ordering::Relaxed) / 2) {
                        self.ask_until_final(*at);
                    }
                });
            }
        });
    }

    /// Repeats every key at every gateway, as JSON: its bytes are those of the first answer.
    fn repeat_everywhere(&self, all: &[usize]) {
        let places = self.fleet.places();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _client in 0..self.clients() {
                scope.spawn(|| {
                    loop {
                        let turn = next.fetch_add(1, Ordering::Relaxed);
                        let Some(at) = all.get(turn / places) else { return };
                        let whom = u64::try_from(turn % places).expect("few");
                        let way = Way { is_streamed: false, hang_up: None, whom };
                        assert_eq!(self.send(*at, way), SendOutcome::Final);
                    }
                });
            }
        });
    }

    fn ask_until_final(&self, at: usize) {
        let until = Instant::now() + PATIENCE;
        let mut tries = 0;
        while tries < TRIES_MAX && Instant::now() < until {
            let way = self.way(at);
            // A client that hung up stays the next time.
            let hang_up = way.hang_up.filter(|_bytes| tries == 0);
            match self.send(at, Way { hang_up, ..way }) {
                SendOutcome::Final => return,
                SendOutcome::Again => tries += 1,
                SendOutcome::TurnedAway => std::thread::sleep(TURNED_AWAY),
                SendOutcome::Cut => {
                    panic!("nothing was done to whoever served {:?}", self.keys()[at])
                }
            }
        }
        panic!("{:?} has no end", self.keys()[at]);
    }

    /// Repeats every deposit on every node: it is one posting.
    fn repeat_deposits(&self) {
        let Some(update) = &self.update else { return };
        for deposit in &update.deposits().clone() {
            let mut ids = BTreeSet::new();
            for address in (0..self.fleet.places()).filter_map(|it| self.fleet.admin_address(it)) {
                let request = update.request(deposit, address.port());
                // A node that has waited for a lock in vain refuses with 503, and the caller repeats the request.
                let is_made = wait_until(PATIENCE, || {
                    let answer = request.send(address);
                    assert!([201, 409, 503].contains(&answer.status), "{answer:?}");
                    answer.status == 201
                });
                assert!(is_made, "{deposit:?} is not made at {address}");
                ids.insert(text(&request.send(address).json(), "id"));
            }
            assert_eq!(ids.len(), 1, "{deposit:?} is several postings");
        }
    }

    /// The wallets have the sums of the callers' answers, to the micro, and no holds.
    fn check_sums(&self) {
        let mut paid: BTreeMap<&str, i64> = BTreeMap::new();
        for key in self.keys().iter() {
            assert!(key.told.is_some());
            *paid.entry(&self.accounts[key.account].wallet).or_default() += key.paid();
        }
        for account in &self.accounts {
            let request = Request::get("/v1/wallet").bearer(&account.key);
            let wallet = request.send(self.fleet.addresses()[0]).json();
            let paid = paid.get(account.wallet.as_str()).copied().unwrap_or(0);
            assert_eq!(wallet["held_micros"], 0, "{wallet}");
            let update = self.update.as_ref();
            let funds = FUNDS.1 + update.map_or(0, |it| it.deposited(&account.wallet));
            assert_eq!(wallet["available_micros"], funds - paid, "paid: {paid}, {wallet}");
        }
    }

    /// Adds what this world has seen to a report.
    pub(super) fn count(&self, report: &mut Report) {
        let keys = self.keys();
        let ended = |status: u16| {
            let told = keys.iter().filter_map(|key| key.told.as_ref());
            told.fold(0_u64, |sum, it| sum + u64::from(it.status == status))
        };
        report.keys += u64::try_from(keys.len()).expect("a length");
        report.completed += ended(200);
        report.refused += ended(422);
        report.unknown += ended(502);
        report.charged_micros += keys.iter().map(super::model::Key::paid).sum::<i64>();
        report.sent += self.sent.load(Ordering::Relaxed);
        report.streams += self.streams.load(Ordering::Relaxed);
        report.hang_ups += self.hang_ups.load(Ordering::Relaxed);
        report.begun += self.begun.load(Ordering::Relaxed);
        report.answers += self.answers.load(Ordering::Relaxed);
        report.turned_away += self.turned_away.load(Ordering::Relaxed);
        report.runs += self.runbook.arrived();
        report.deposits += self.update.as_ref().map_or(0, Update::count);
    }
}
