//! Clients that send keys, new ones and old ones, some of them twice at once, until the gateway is
//! killed under them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::fleet::Fleet;
use super::heard::Delivery;
use super::model::{Key, Runbook, Way};
use super::patroni::{self, Failovers};
use super::supply::Supply;
use super::update::Update;
use super::work::Work;
use super::{Dice, Moment, Report, STEP_PATIENCE, Topology, wait_until};
use crate::postgres::Database;
use crate::{Account, Config, PATIENCE, Request, Site, Upstream, Waiting};

/// Clients at once, for each gateway.
const CLIENTS: usize = 6;
/// Keys that a load adds, for each gateway.
const NEW_KEYS: usize = 24;
/// Number of gateways on one database.
const NODES: usize = 3;
/// Lease of the nodes: short, for tests that wait for its end, and far longer than a slow machine keeps a heartbeat
/// waiting.
pub(super) const LEASE: Duration = Duration::from_secs(4);
const HEARTBEAT: Duration = Duration::from_millis(500);
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Pause of a caller who was turned away for now.
const TURNED_AWAY: Duration = Duration::from_millis(50);
/// Wallets that pay, and API keys: the last wallet has two.
const WALLETS: [&str; 3] = ["north", "south", "west"];
/// Deposit of each wallet, as it is spelled and in micros.
pub(super) const FUNDS: (&str, i64) = ("1000.00", 1_000_000_000);

/// Outcome of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// Its key has its answer.
    Final,
    /// Its caller repeats it, as it would anyway.
    Again,
    /// Its caller repeats it in a moment: no fault of the key is known.
    TurnedAway,
    /// The gateway that served it is gone.
    Cut,
}

/// A folder, its accounts, and every key that was ever used in it.
#[derive(Debug)]
pub(super) struct World {
    /// Ends before what it works on.
    pub(super) fleet: Fleet,
    pub(super) topology: Topology,
    pub(super) database: Option<Database>,
    /// The server of that database, if it is the world's own.
    pub(super) supply: Option<Supply>,
    /// The servers of that database, if Patroni runs them.
    pub(super) patroni: Option<Failovers>,
    pub(super) site: Site,
    pub(super) accounts: Vec<Account>,
    /// The update of the nodes from the release before, if there is one.
    pub(super) update: Option<Update>,
    pub(super) runbook: Runbook,
    keys: Mutex<Vec<Key>>,
    /// Keys whose callers have hung up since the last kill.
    left: Mutex<BTreeSet<usize>>,
    pub(super) sent: AtomicU64,
    pub(super) streams: AtomicU64,
    pub(super) hang_ups: AtomicU64,
    pub(super) begun: AtomicU64,
    pub(super) answers: AtomicU64,
    pub(super) turned_away: AtomicU64,
    /// True if requests and answers of now may end unknown, whatever is known of their node.
    pub(super) is_in_doubt: AtomicBool,
    _upstream: Upstream,
}

impl World {
    pub(super) fn new(topology: Topology) -> Self {
        let runbook = Runbook::default();
        let upstream = runbook.upstream();
        let config = Config::upstream(&upstream);
        let supply = match topology {
            Topology::File | Topology::Nodes | Topology::Update | Topology::Patroni => None,
            Topology::Server => Some(Supply::start()),
            Topology::Clocks => Some(Supply::start_with_clocks()),
        };
        let patroni = (topology == Topology::Patroni).then(Failovers::start);
        let (places, database, site) = match topology {
            Topology::File => (1, None, Site::configured(&config)),
            Topology::Nodes | Topology::Server | Topology::Clocks | Topology::Update => {
                let url = supply.as_ref().map(|supply| supply.line.url());
                let database = match url {
                    Some(url) => Database::make_on(url),
                    None if topology == Topology::Update => Database::make(),
                    None => Database::migrated(),
                };
                let config = impatient(database.configure(config));
                (NODES, Some(database), Site::unwatched_in(&std::env::temp_dir(), &config))
            }
            Topology::Patroni => {
                let patroni = patroni.as_ref().expect("a cluster");
                let database = Database::make_on(patroni.url());
                let config = impatient(database.configure(config));
                let config = config.set("database", "require_synchronous", "true");
                let site = Site::unwatched_in(&std::env::temp_dir(), &config);
                (patroni::GATEWAYS, Some(database), site)
            }
        };
        let (update, accounts) = match topology {
            Topology::Update => {
                let (update, accounts) = Update::begin(&site, &WALLETS, FUNDS.0);
                (Some(update), accounts)
            }
            Topology::File
            | Topology::Nodes
            | Topology::Server
            | Topology::Clocks
            | Topology::Patroni => (None, accounts(&site)),
        };
        Self {
            fleet: Fleet::of(places),
            topology,
            database,
            supply,
            patroni,
            site,
            accounts,
            update,
            runbook,
            keys: Mutex::default(),
            left: Mutex::default(),
            sent: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            hang_ups: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            is_in_doubt: AtomicBool::new(false),
            _upstream: upstream,
        }
    }

    pub(super) fn keys(&self) -> MutexGuard<'_, Vec<Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the gateways their load, and does this to them meanwhile.
    pub(super) fn load(&mut self, dice: &mut Dice, moments: &[Moment], report: &mut Report) {
        let (world, work) = (&*self, Work::default());
        std::thread::scope(|scope| {
            for _client in 0..world.clients() {
                scope.spawn(|| world.send_all(&work));
            }
            let _closing = work.closing();
            for moment in moments {
                world.strike(dice, *moment, &work, report);
                if let Some(database) = &world.database {
                    database.check_book();
                }
            }
        });
        // Only now: its last answers were received.
        self.doubt(false);
    }

    pub(super) fn clients(&self) -> usize {
        match self.topology {
            Topology::File
            | Topology::Nodes
            | Topology::Server
            | Topology::Clocks
            | Topology::Update => CLIENTS * self.fleet.places(),
            Topology::Patroni => patroni::CALLERS,
        }
    }

    /// One fault, over work of its own.
    fn strike(&self, dice: &mut Dice, moment: Moment, work: &Work, report: &mut Report) {
        let victim = dice.index(self.fleet.places());
        let sleep = |time: Duration| std::thread::sleep(time);
        match moment {
            Moment::After(time) => {
                self.start_all();
                work.add(self.plan(dice));
                if let Some(update) = &self.update {
                    update.migrate(&self.site);
                }
                self.edit_limits(dice);
                let deposit = self.deposit(dice, victim);
                // The fault itself, at a moment of its own, without a wait.
                sleep(time);
                self.kill(victim, report);
                // Its caller repeats it at rest, whatever came of it.
                drop(deposit.and_then(Waiting::try_answer));
                return;
            }
            Moment::At(step, nth, around) => {
                // The running process is killed here, and runs again with a step that is armed.
                self.kill(victim, report);
                self.fleet.place(victim, self.site.serve_until(&format!("{step}:{nth}")));
                self.start_all();
                work.add(self.plan(dice));
                let is_stopped = || self.fleet.is_stopped(victim);
                wait_until(STEP_PATIENCE, || is_stopped() || work.is_idle(self.clients()));
                if is_stopped() {
                    *report.at_steps.entry(step).or_default() += 1;
                }
                sleep(around);
            }
            Moment::Server(blow) => return self.strike_server(dice, blow, work, report),
            Moment::Failover(fault, gateways) => {
                return self.fail_over(dice, (fault, gateways), work, report);
            }
            Moment::FilesRemoved(suffixes, time) => {
                self.start_all();
                work.add(self.plan(dice));
                sleep(time);
                // Until it is killed it turns everybody away, and what it has in hand may end unknown.
                self.doubt(true);
                self.remove_files(suffixes);
                report.files_removed += 1;
            }
            Moment::Frozen(time, overdue) => {
                self.start_all();
                work.add(self.plan(dice));
                sleep(time);
                let flying = self.fleet.freeze(victim);
                self.cut(flying);
                sleep(LEASE + GRACE + overdue);
                work.add(self.plan(dice));
                self.fleet.thaw(victim);
                report.frozen += 1;
                return;
            }
        }
        self.kill(victim, report);
    }

    /// Sends a deposit to a node, whose caller waits for the answer.
    fn deposit(&self, dice: &mut Dice, place: usize) -> Option<Waiting> {
        let update = self.update.as_ref()?;
        let account = &self.accounts[dice.index(self.accounts.len())];
        let deposit = update.add(dice, &account.wallet);
        let address = self.fleet.admin_address(place)?;
        update.request(&deposit, address.port()).try_begin(address)
    }

    /// Removes files beside the database under the gateway that serves it, which folds what it has open into the file.
    fn remove_files(&self, suffixes: &[&str]) {
        for suffix in suffixes {
            let name = format!("{}{suffix}", self.site.database().display());
            std::fs::remove_file(name).expect("a file of a served database");
        }
        let is_folded = || self.fleet.has_said(0, "no commit is lost");
        assert!(wait_until(PATIENCE, is_folded), "{suffixes:?}: {}", self.site.logs());
    }

    /// Edits the limits of a key while it is used. None of them is ever reached: the audit looks at what is counted.
    fn edit_limits(&self, dice: &mut Dice) {
        let key = &self.accounts[dice.index(self.accounts.len())].id;
        let edits = [
            ["--spend-limit", "900000.00/total"],
            ["--spend-limit", "900000.00/day"],
            ["--spend-limit", "900000.00/month"],
            ["--concurrency", "9000"],
            ["--concurrency", "9001"],
        ];
        let [flag, value] = edits[dice.index(edits.len())];
        let _printed = self.site.cli(&["key", "update", key, flag, value]).ok();
    }

    /// Starts a gateway wherever none runs.
    pub(super) fn start_all(&self) {
        for place in self.fleet.empty() {
            let env = match (&self.supply, &self.patroni, &self.database) {
                (Some(supply), _, _) => supply.env(place),
                (None, Some(patroni), Some(database)) => patroni.env(place, database),
                (None, _, _) => Vec::new(),
            };
            let is_old = self.update.as_ref().is_some_and(|update| update.starts_old(place));
            let gateway =
                if is_old { self.site.serve_previous() } else { self.site.serve_with(&env) };
            self.fleet.place(place, gateway);
        }
    }

    pub(super) fn kill(&self, victim: usize, report: &mut Report) {
        let Some((gateway, has_flying)) = self.fleet.take(victim) else { return };
        gateway.kill();
        self.cut(Vec::new());
        if let Some(update) = &self.update {
            update.end(victim, report);
        }
        report.kills += 1;
        report.cutting += u32::from(has_flying);
    }

    /// Those may have run without a reader, and those whose callers hung up.
    fn cut(&self, flying: Vec<usize>) {
        let left = std::mem::take(&mut *self.left());
        let mut keys = self.keys();
        for at in left.into_iter().chain(flying) {
            keys[at].cut |= keys[at].told.is_none();
        }
    }

    /// Requests of a load: those without a final answer, new ones, a few old keys.
    pub(super) fn plan(&self, dice: &mut Dice) -> VecDeque<usize> {
        let accounts = self.accounts.len();
        let mut keys = self.keys();
        let old = keys.len();
        let new = NEW_KEYS * self.fleet.places();
        keys.extend((0..new).map(|_| Key::new(dice, accounts)));
        let mut work = VecDeque::new();
        for (at, key) in keys.iter().enumerate() {
            if key.told.is_none() {
                work.push_back(at);
                // Two clients send it at once.
                if dice.one_in(4) {
                    work.push_back(at);
                }
            } else if old > 0 && dice.one_in(12) {
                work.push_back(at);
            }
        }
        work.rotate_left(dice.index(work.len()));
        work
    }

    /// A few new requests, and now and then an old key.
    pub(super) fn plan_few(&self, dice: &mut Dice, new: usize) -> Vec<usize> {
        let accounts = self.accounts.len();
        let mut keys = self.keys();
        let old = keys.len();
        keys.extend((0..new).map(|_| Key::new(dice, accounts)));
        let mut work: Vec<usize> = (old..old + new).collect();
        if old > 0 && dice.one_in(4) {
            work.push(dice.index(old));
        }
        work
    }

    /// Sends the planned requests, for as long as a gateway serves.
    fn send_all(&self, work: &Work) {
        while let Some(at) = work.next() {
            match (self.send(at, self.way(at)), self.topology) {
                (SendOutcome::Final, _) => {}
                // Its caller sends it again at once.
                (SendOutcome::Again, _) => work.add([at]),
                // No gateway serves until the next load, or there are others.
                (SendOutcome::Cut, Topology::File) => return,
                (
                    SendOutcome::Cut,
                    Topology::Nodes
                    | Topology::Server
                    | Topology::Clocks
                    | Topology::Update
                    | Topology::Patroni,
                ) => work.add([at]),
                (SendOutcome::TurnedAway, _) => {
                    std::thread::sleep(TURNED_AWAY);
                    work.add([at]);
                }
            }
        }
    }

    /// Form of the next request of a key. In an update a key has one form: the release before does not know newer forms
    /// of fingerprints, and takes the other form of such a key for another request.
    pub(super) fn way(&self, at: usize) -> Way {
        let way = self.keys()[at].way();
        match self.topology {
            Topology::File
            | Topology::Nodes
            | Topology::Server
            | Topology::Clocks
            | Topology::Patroni => way,
            Topology::Update => Way { is_streamed: at.is_multiple_of(2), ..way },
        }
    }

    /// Sends one key to any gateway that serves.
    pub(super) fn send(&self, at: usize, way: Way) -> SendOutcome {
        let Some((place, address)) = self.fleet.board(at, way.whom) else {
            return SendOutcome::Cut;
        };
        let (request, had_answer) = {
            let key = &mut self.keys()[at];
            key.cut |= self.is_in_doubt.load(Ordering::Acquire) && key.told.is_none();
            let bearer = &self.accounts[key.account].key;
            let body = key.body(way.is_streamed);
            (Request::completion(bearer, &key.id, body), key.told.is_some())
        };
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.streams.fetch_add(u64::from(way.is_streamed), Ordering::Relaxed);
        let heard = request.try_begin(address).map(|waiting| {
            let bytes_max = way.hang_up.unwrap_or(usize::MAX);
            Delivery::read(waiting, bytes_max)
        });
        self.fleet.land(place, at);
        let outcome = self.hear(at, heard, had_answer);
        if let Some(patroni) = self.patroni.as_ref().filter(|_| !had_answer) {
            let is_ok = self.keys()[at].told.as_ref().is_some_and(|told| told.status == 200);
            if is_ok && outcome == SendOutcome::Final {
                patroni.record_ok(place);
            }
        }
        outcome
    }

    /// Takes in what came of a request; with whether its caller hung up.
    fn hear(&self, at: usize, heard: Option<(Delivery, bool)>, had_answer: bool) -> SendOutcome {
        let (heard, has_hung_up) = heard.unwrap_or_default();
        match heard {
            Delivery::Whole(answer) => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                let is_for_now = answer.is_for_now();
                let may_be_down =
                    self.topology != Topology::File || self.is_in_doubt.load(Ordering::Acquire);
                if may_be_down && is_for_now {
                    self.turned_away.fetch_add(1, Ordering::Relaxed);
                    return SendOutcome::TurnedAway;
                }
                if had_answer {
                    let replayed = answer.head.header("idempotent-replayed");
                    assert_eq!(replayed, Some("true"), "{answer:?}");
                }
                let key = &mut self.keys()[at];
                key.cut |= self.is_in_doubt.load(Ordering::Acquire) && key.told.is_none();
                let is_final = key.tell(answer, had_answer);
                if is_final { SendOutcome::Final } else { SendOutcome::Again }
            }
            Delivery::Part(part) => {
                self.begun.fetch_add(u64::from(!part.text.is_empty()), Ordering::Relaxed);
                let key = &mut self.keys()[at];
                key.hear(&part);
                if has_hung_up {
                    self.hang_ups.fetch_add(1, Ordering::Relaxed);
                    self.left().insert(at);
                    return SendOutcome::Again;
                }
                key.cut = true;
                SendOutcome::Cut
            }
        }
    }
}

/// A migrated ledger with a funded account for each wallet, and another key of the last one.
fn accounts(site: &Site) -> Vec<Account> {
    drop(site.cli(&["migrate", "up"]).ok());
    let mut accounts: Vec<_> =
        WALLETS.iter().map(|name| site.account(name, "USD", FUNDS.0)).collect();
    let shared = accounts.last().expect("a wallet").wallet.clone();
    accounts.push(site.another_key(&shared, "second"));
    accounts
}

/// Nodes that do not wait long for each other.
pub(super) fn impatient(config: Config) -> Config {
    let times = [("lease", LEASE), ("heartbeat", HEARTBEAT), ("orphan_grace", GRACE)];
    times.into_iter().fold(config, |config, (name, time)| {
        config.set("operations", name, &format!("\"{}ms\"", time.as_millis()))
    })
}
