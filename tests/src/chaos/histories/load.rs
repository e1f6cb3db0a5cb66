//! The load of a history: callers with keys, new ones and old ones, some twice at once, some with another request, and
//! an operator who deposits and refunds, until a gateway is killed under them; again and again. One gateway serves a
//! file, or three serve a database and each call goes to any of them.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::key::{Key, Way, api_key};
use super::recorder::{Recorder, answer, digest};
use super::{Recording, Topology};
use crate::chaos::Dice;
use crate::chaos::fleet::Fleet;
use crate::chaos::heard::{Delivery, WholeAnswer};
use crate::chaos::load::impatient;
use crate::chaos::model::{Does, Orders};
use crate::postgres::Database;
use crate::upstream::{ArrivedRequest, Judge};
use crate::{Account, Config, Reply, Request, Site, Upstream};

/// Callers at once.
const CLIENTS: u32 = 6;
/// Gateways on a database.
const NODES: usize = 3;
/// Keys that a round adds.
const NEW_KEYS: usize = 16;
/// One of so many ended keys is called again.
const OLD_ONE_IN: u64 = 16;
/// How long a round runs before its gateway is killed, at most.
const ROUND_MS_MAX: u64 = 150;
/// How long a caller waits who was turned away.
const TURNED_AWAY: Duration = Duration::from_millis(40);
/// How long callers of a round call again, at most: longer than it lasts.
const ROUND_MAX: Duration = Duration::from_secs(60);
/// How long callers go on until all keys have their ends, if a guard is switched off: some may never have one.
const REST_MAX: Duration = Duration::from_secs(6);
/// The same of a gateway with all of its guards, which has to bring every key to its end.
const UNBROKEN_REST_MAX: Duration = Duration::from_secs(60);
/// Rounds after which everything is brought to rest.
const ROUNDS_PER_REST: u32 = 4;
/// Deposit of each wallet, as it is spelled and in micros.
const FUNDS: (&str, i64) = ("100.00", 100_000_000);
/// Later deposits and refunds.
const SMALL: (&str, i64) = ("0.0001", 100);
/// Spend limit of the last API key: some ten answers.
const CAP: (&str, i64) = ("0.012", 12_000);

/// What a caller or the operator does next.
#[derive(Debug, Clone, Copy)]
enum Task {
    Call(usize, Way),
    ReadBalance(usize),
    Deposit(usize),
    Refund,
}

/// What followed from a call, for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Done,
    Again,
    /// Nobody serves.
    Gone,
}

/// A folder, its accounts, and every key that was used in it.
#[derive(Debug)]
pub(super) struct Load {
    /// Ends before what it works on.
    fleet: Fleet,
    topology: Topology,
    _database: Option<Database>,
    site: Site,
    accounts: Vec<Account>,
    keys: Mutex<Vec<Key>>,
    tasks: Mutex<VecDeque<Task>>,
    recorder: Arc<Recorder>,
    dice: Dice,
    kills: u32,
    /// True if a guard is switched off.
    is_broken: bool,
    /// Number of keys at the last rest.
    rested: usize,
    _upstream: Upstream,
}

impl Load {
    pub(super) fn new(recording: &Recording, path: &Path) -> Self {
        let Recording { seed, kills, fault, topology } = *recording;
        let recorder = Arc::new(Recorder::create(path, fault.unwrap_or("unbroken"), seed));
        let upstream = upstream(&recorder);
        let config = impatient(Config::upstream(&upstream));
        let (places, database, config) = match topology {
            Topology::File => (1, None, config),
            Topology::Nodes => {
                let database = Database::make();
                let config = database.configure(config);
                (NODES, Some(database), config)
            }
        };
        let site = Site::unwatched_in(&std::env::temp_dir(), &config);
        let site = match fault {
            Some(fault) => site.with_fault(fault),
            None => site,
        };
        drop(site.cli(&["migrate", "up"]).ok());
        let mut load = Self {
            fleet: Fleet::of(places),
            topology,
            _database: database,
            site,
            accounts: Vec::new(),
            keys: Mutex::default(),
            tasks: Mutex::default(),
            recorder,
            dice: Dice(seed),
            kills,
            is_broken: fault.is_some(),
            rested: 0,
            _upstream: upstream,
        };
        load.open_accounts();
        load
    }

    /// Three wallets. The first has two API keys, the last one has a cap.
    fn open_accounts(&mut self) {
        for name in ["north", "south", "west"] {
            let account = self.site.account(name, "USD", "0");
            self.accounts.push(account);
            self.deposit(self.accounts.len() - 1, FUNDS);
        }
        let wallet = |at: usize| self.accounts[at].wallet.clone();
        let second = self.site.another_key(&wallet(0), "second");
        let limit = format!("{}/total", CAP.0);
        let capped = self.site.key_with(&wallet(1), &["--name", "capped", "--spend-limit", &limit]);
        self.accounts.extend([second, capped]);
        let capped = self.accounts.len() - 1;
        for (at, account) in self.accounts.iter().enumerate() {
            self.recorder.write(&json!({
                "type": "api_key", "api_key": api_key(at), "wallet": account.wallet,
                "spend_limit_micros": (at == capped).then_some(CAP.1),
            }));
        }
    }

    fn keys(&self) -> MutexGuard<'_, Vec<Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, VecDeque<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records all of it, and gives the place of the file.
    pub(super) fn record(mut self) -> PathBuf {
        for round in 1..=self.kills {
            self.plan();
            let time = Duration::from_millis(self.dice.below(ROUND_MS_MAX));
            let victim = self.dice.index(self.fleet.places());
            self.start_all();
            self.run(ROUND_MAX, || {
                // The fault itself, at a moment of its own: nothing is waited for.
                std::thread::sleep(time);
                self.fleet.take(victim).expect("it runs").0.kill();
                let at = self.recorder.now();
                self.recorder.write(&json!({"type": "kill", "node": victim, "at": at}));
            });
            if round % ROUNDS_PER_REST == 0 || round == self.kills {
                self.rest();
            }
        }
        self.recorder.finish()
    }

    /// Starts a gateway wherever none runs.
    fn start_all(&self) {
        for place in self.fleet.empty() {
            self.fleet.place(place, self.site.serve());
        }
    }

    /// Has callers do all there is to do, beside something else, and call again for so long at most.
    fn run(&self, most: Duration, beside: impl FnOnce()) {
        let until = Instant::now() + most;
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                scope.spawn(move || self.work(client, until));
            }
            beside();
        });
    }

    fn work(&self, client: u32, until: Instant) {
        loop {
            let Some(task) = self.tasks().pop_front() else { return };
            let next = match task {
                Task::Call(at, way) => self.call(client, (at, way)),
                Task::ReadBalance(at) => self.read_balance(at),
                Task::Deposit(at) => {
                    self.deposit(at, SMALL);
                    Next::Done
                }
                Task::Refund => {
                    self.refund();
                    Next::Done
                }
            };
            match (next, self.topology) {
                (Next::Again, _) | (Next::Gone, Topology::Nodes) if Instant::now() < until => {
                    self.tasks().push_back(task);
                }
                // A broken gateway may turn a key away for ever.
                (Next::Done | Next::Again, _) | (Next::Gone, Topology::Nodes) => {}
                // What was not done comes with the next round.
                (Next::Gone, Topology::File) => return,
            }
        }
    }

    /// Keys without an end.
    fn open_keys(&self) -> Vec<usize> {
        let keys = self.keys();
        (0..keys.len()).filter(|at| !keys[*at].is_ended).collect()
    }

    /// Brings every key to its end, then reads the balances.
    fn rest(&mut self) {
        self.start_all();
        let until = Instant::now() + if self.is_broken { REST_MAX } else { UNBROKEN_REST_MAX };
        loop {
            let open = self.open_keys();
            if open.is_empty() || Instant::now() >= until {
                break;
            }
            let calls =
                open.into_iter().map(|at| Task::Call(at, Way::any(&mut self.dice).patient()));
            self.tasks = Mutex::new(calls.collect());
            self.run(REST_MAX, || {});
        }
        // A history without final answers contradicts nothing: a gateway that gives none must not be allowed by it.
        let open = self.open_keys();
        assert!(self.is_broken || open.is_empty(), "{} keys have no end", open.len());
        // All keys since the last rest, and a few of those before.
        let (from, to) = (self.rested, self.keys().len());
        let again = (0..to).filter(|at| *at >= from || self.dice.one_in(OLD_ONE_IN));
        let again: Vec<usize> = again.collect();
        let again = again.into_iter().map(|at| Task::Call(at, Way::any(&mut self.dice).patient()));
        self.tasks = Mutex::new(again.chain([Task::Refund, Task::Deposit(0)]).collect());
        self.rested = to;
        self.run(REST_MAX, || {});
        for at in 0..self.accounts.len() {
            self.read_balance(at);
        }
        for (gateway, _has_flying) in (0..self.fleet.places()).filter_map(|it| self.fleet.take(it))
        {
            if self.dice.one_in(2) { gateway.stop() } else { gateway.kill() }
        }
    }

    /// What the next round does: all keys without an end, new ones, a few old ones, and what else happens.
    fn plan(&mut self) {
        let (dice, accounts) = (&mut self.dice, self.accounts.len());
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tasks = Vec::new();
        for at in 0..keys.len() {
            if !keys[at].is_ended || dice.one_in(OLD_ONE_IN) {
                tasks.push(Task::Call(at, Way::any(dice)));
            }
        }
        for _new in 0..NEW_KEYS {
            let key = Key::any(dice, accounts);
            let account = (key.account + 1 + dice.index(accounts - 1)) % accounts;
            let twin = dice.one_in(4).then(|| key.twin(dice, account));
            for key in [Some(key), twin].into_iter().flatten() {
                let turns = 1 + dice.below(3);
                tasks.extend((0..turns).map(|_| Task::Call(keys.len(), Way::any(dice))));
                keys.push(key);
            }
        }
        let mut others: Vec<_> = (0..4).map(|_| Task::ReadBalance(dice.index(accounts))).collect();
        others.extend([Task::Refund, Task::Refund, Task::Deposit(dice.index(accounts))]);
        for task in others {
            tasks.insert(dice.index(tasks.len()), task);
        }
        let begin = dice.index(tasks.len());
        tasks.rotate_left(begin);
        self.tasks = Mutex::new(tasks.into());
    }

    fn call(&self, client: u32, (at, way): (usize, Way)) -> Next {
        let Some((node, to)) = self.fleet.board(at, self.recorder.now()) else { return Next::Gone };
        let next = self.call_at(client, (node, to), (at, way));
        self.fleet.land(node, at);
        next
    }

    fn call_at(
        &self,
        client: u32,
        (node, to): (usize, SocketAddr),
        (at, way): (usize, Way),
    ) -> Next {
        let key = self.keys()[at].clone();
        let (body, prompt) = (key.body(way), key.prompt(way));
        let request = Request::completion(&self.accounts[key.account].key, &key.id, body.clone());
        let called = self.recorder.now();
        let Some(waiting) = request.try_begin(to) else { return Next::Gone };
        let (heard, has_hung_up) = Delivery::read(waiting, way.hang_up.unwrap_or(usize::MAX));
        let returned = self.recorder.now();
        let whole = match &heard {
            Delivery::Whole(whole) => Some(whole),
            Delivery::Part(_) => None,
        };
        self.recorder.write(&json!({
            "type": "call", "client": client, "node": node, "api_key": api_key(key.account),
            "key": key.id, "request": digest(prompt), "body": digest(body),
            "streamed": way.is_streamed, "called": called,
            "returned": whole.map(|_| returned), "answer": whole.map(answer),
        }));
        match whole {
            Some(whole) => self.look((at, way), whole),
            None if has_hung_up => Next::Done,
            None => Next::Gone,
        }
    }

    /// Looks at whether to call again.
    fn look(&self, (at, way): (usize, Way), whole: &WholeAnswer) -> Next {
        let code = whole.gist["code"].as_str();
        let is_for_now = matches!(
            code,
            Some(
                "storage_unavailable"
                    | "upstream_unavailable"
                    | "draining"
                    | "operation_in_progress"
            )
        );
        if is_for_now {
            std::thread::sleep(TURNED_AWAY);
            return Next::Again;
        }
        // The end of the one request or of the other, whichever came second.
        if code == Some("idempotency_key_conflict") && way.is_other {
            return Next::Done;
        }
        let key = &mut self.keys()[at];
        let charge = whole.gist["usage"]["customer_charge_micros"].as_i64();
        let id = whole.gist["id"].as_str();
        if let (Some(id), Some(charge), false) = (id, charge, key.is_ended) {
            key.refundable = Some((id.to_owned(), charge));
        }
        key.is_ended = true;
        Next::Done
    }

    fn read_balance(&self, at: usize) -> Next {
        let account = &self.accounts[at];
        let Some(to) = self.fleet.addresses().into_iter().next() else { return Next::Gone };
        let called = self.recorder.now();
        let answer = Request::get("/v1/wallet").bearer(&account.key).try_send(to);
        let returned = self.recorder.now();
        let Some(answer) = answer else { return Next::Gone };
        if answer.status == 200 {
            let balance = answer.json();
            self.recorder.write(&json!({
                "type": "balance", "wallet": account.wallet, "called": called, "returned": returned,
                "available_micros": balance["available_micros"],
                "held_micros": balance["held_micros"],
            }));
        }
        Next::Done
    }

    fn deposit(&self, at: usize, (spelled, micros): (&str, i64)) {
        let wallet = &self.accounts[at].wallet;
        let command = ["wallet", "deposit", wallet, spelled];
        self.post(&command, (json!({"kind": "deposit", "wallet": wallet}), micros));
    }

    /// Refunds a part of some charge, once.
    fn refund(&self) {
        let found = self.keys().iter_mut().find_map(|key| {
            let is_worth_it = key.refundable.as_ref().is_some_and(|(_, charge)| *charge >= SMALL.1);
            if is_worth_it { Some((key.account, key.refundable.take()?.0)) } else { None }
        });
        let Some((account, operation)) = found else { return };
        let wallet = &self.accounts[account].wallet;
        let id = operation.replace("chatcmpl_", "");
        let record = json!({"kind": "refund", "wallet": wallet, "operation": id});
        self.post(&["wallet", "refund", &operation, SMALL.0], (record, SMALL.1));
    }

    /// Runs a command that moves money, and records it. One that failed may have moved it all the same.
    fn post(&self, command: &[&str], (mut record, micros): (Value, i64)) {
        let called = self.recorder.now();
        let ran = self.site.cli(command);
        let returned = self.recorder.now();
        record["type"] = json!("posting");
        record["amount_micros"] = json!(micros);
        record["called"] = json!(called);
        record["returned"] = json!((ran.code == Some(0)).then_some(returned));
        self.recorder.write(&record);
    }
}

/// A server that does as its prompts say, and records what arrives.
fn upstream(recorder: &Arc<Recorder>) -> Upstream {
    let recorder = Arc::clone(recorder);
    let turned_away = Mutex::new(BTreeSet::new());
    let judge = move |arrived: &ArrivedRequest| -> Reply {
        let at = recorder.now();
        let orders = Orders::of(arrived);
        let body = arrived.json();
        let prompt = body["messages"][0]["content"].as_str().expect("a prompt").to_owned();
        let api_key = prompt.rsplit(' ').next().expect("an API key").to_owned();
        let is_first = {
            let mut seen = turned_away.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert((api_key.clone(), orders.id.clone()))
        };
        let (reaction, cost) = match orders.does {
            Does::TurnAway if is_first => ("turned_away", None),
            Does::Answer | Does::TurnAway => ("answered", Some(orders.charge())),
            Does::Refuse => ("refused", None),
            Does::Fail | Does::Break => ("failed", None),
        };
        recorder.write(&json!({
            "type": "run", "at": at, "api_key": api_key, "key": orders.id,
            "request": digest(&prompt), "reaction": reaction, "cost_micros": cost,
        }));
        orders.reply(is_first)
    };
    Upstream::start(Reply::Judged(Judge::new(judge)))
}
