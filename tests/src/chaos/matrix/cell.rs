//! One cell: a process that is struck at its step, the callers of its key, and the conditions that have to hold
//! when all of them have their answers.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::heard::{Delivery, WholeAnswer};
use super::super::load::{GRACE, LEASE};
use super::super::steps::{RetryOutcome, Row};
use super::{Fault, Retry, Stage};
use crate::config::ACME;
use crate::{Account, Gateway, PATIENCE, Request, Site, Waiting};

/// Deposit of each wallet.
const FUNDS: i64 = 1_000_000;
/// Charge of the upstream's usual completion.
const CHARGE: i64 = 367;
/// Interval of polls of a state that sends no signal.
const LOOK: Duration = Duration::from_millis(50);
/// Attempts at a cell whose process was stopped over another request.
const TRIES_MAX: u32 = 8;
/// The file whose appearance lets a thread go on from its step.
const GO: &str = "go";

/// Case of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Step at which the process is struck.
    pub row: Row,
    /// Fault at the step.
    pub fault: Fault,
    /// Retry after the fault.
    pub retry: Retry,
    /// True if its first caller requests a stream.
    pub is_streamed: bool,
}

/// A cell after its fault.
#[derive(Debug)]
pub(super) struct Struck<'a> {
    cell: Cell,
    stage: &'a Stage,
    victim: Option<Gateway>,
    site: Site,
    account: Account,
    key: String,
    /// The first caller, as long as it waits.
    waiting: Option<Waiting>,
    /// Every final answer of any caller.
    told: Vec<WholeAnswer>,
}

impl<'a> Struck<'a> {
    /// Starts a process, has it come to its step, and strikes it there.
    pub(super) fn strike(stage: &'a Stage, cell: Cell) -> Self {
        for _try in 0..TRIES_MAX {
            let mut struck = Self::arrive(stage, cell);
            // It may have brought another cell's key to rest first, and be stopped over that.
            if struck.runs() == cell.row.runs && struck.is_as_at_the_step() {
                struck.hit();
                return struck;
            }
        }
        panic!("it never came to its own step: {cell:?}");
    }

    fn arrive(stage: &'a Stage, cell: Cell) -> Self {
        let key = crate::request_key();
        let name = format!("\"struck-{key}\"");
        let config = stage.config.clone().set("server", "node", &name);
        let site = Site::unwatched_in(&std::env::temp_dir(), &config);
        let account = stage.site.account(&format!("of-{key}"), "USD", "1");
        let Row { step, nth, .. } = cell.row;
        let failpoint = match cell.fault {
            Fault::Killed => format!("{step}:{nth}"),
            Fault::Frozen => format!("{step}:{nth}:{}", site.path(GO).display()),
        };
        let victim = site.serve_until(&failpoint);
        let mut struck =
            Self { cell, stage, victim: None, site, account, key, waiting: None, told: Vec::new() };
        struck.waiting = Some(struck.request(cell.is_streamed).begin(victim.address()));
        struck.until("a step is reached", || victim.is_stopped());
        struck.victim = Some(victim);
        struck
    }

    fn hit(&mut self) {
        match self.cell.fault {
            Fault::Killed => {
                self.victim.take().expect("it is at its step").kill();
                let waiting = self.waiting.take().expect("it waits");
                self.hear_nothing(waiting);
            }
            Fault::Frozen => {
                self.victim.as_ref().expect("it is at its step").freeze();
                self.site.write(GO, "");
            }
        }
    }

    fn request(&self, is_streamed: bool) -> Request {
        let said = json!([{"role": "user", "content": self.key}]);
        let mut body = json!({"model": ACME, "messages": said, "stream": is_streamed});
        if is_streamed {
            body["stream_options"] = json!({"include_usage": true});
        }
        Request::completion(&self.account.key, &self.key, body.to_string())
    }

    /// Number of its arrivals at the upstream.
    fn runs(&self) -> usize {
        let arrived = self.stage.upstream.arrived();
        arrived.iter().filter(|arrived| arrived.body.contains(&self.key)).count()
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "never: {what}: {:?}", self.cell);
            std::thread::sleep(LOOK);
        }
    }

    /// A caller whose process was killed before its answer has seen no end of one.
    fn hear_nothing(&self, waiting: Waiting) {
        match Delivery::read(waiting, usize::MAX).0 {
            Delivery::Part(part) => assert!(!part.has_end, "{:?}: {part:?}", self.cell),
            Delivery::Whole(told) => panic!("{:?}: {told:?}", self.cell),
        }
    }

    /// Starts it again under its name, or lets it go on; its first caller receives the answer of that.
    pub(super) fn bring_back(&mut self) {
        match (self.cell.fault, self.cell.retry) {
            (Fault::Killed, Retry::Same) if self.victim.is_none() => {
                self.victim = Some(self.site.serve());
            }
            (Fault::Killed, _) => {}
            (Fault::Frozen, _) => {
                let Some(waiting) = self.waiting.take() else { return };
                self.victim.as_ref().expect("it is frozen").thaw();
                match Delivery::read(waiting, usize::MAX).0 {
                    Delivery::Whole(told) if told.is_for_now() => {}
                    Delivery::Whole(told) => self.told.push(told),
                    Delivery::Part(part) => panic!("{:?}: {part:?}", self.cell),
                }
            }
        }
    }

    /// A caller who comes until there is a final answer.
    pub(super) fn ask(&mut self, node: &Gateway) {
        let told = self.answer_of(node, !self.cell.is_streamed);
        self.told.push(told);
    }

    /// The same at the process that was struck.
    pub(super) fn ask_it(&mut self) {
        let it = self.victim.take().expect("it was brought back");
        self.ask(&it);
        self.victim = Some(it);
    }

    fn answer_of(&self, node: &Gateway, is_streamed: bool) -> WholeAnswer {
        let until = Instant::now() + PATIENCE;
        loop {
            let waiting = self.request(is_streamed).begin(node.address());
            match Delivery::read(waiting, usize::MAX).0 {
                Delivery::Whole(told) if !told.is_for_now() => return told,
                Delivery::Whole(told) => {
                    assert!(Instant::now() < until, "{:?}: {told:?}", self.cell);
                }
                Delivery::Part(part) => panic!("{:?}: {part:?}", self.cell),
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Two callers at each of these at once.
    pub(super) fn race(&mut self, nodes: &[&Gateway]) {
        let told = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for node in nodes {
                for is_streamed in [false, true] {
                    let (struck, told) = (&*self, &told);
                    scope.spawn(move || {
                        let answer = struck.answer_of(node, is_streamed);
                        told.lock().expect("nobody panics with it").push(answer);
                    });
                }
            }
        });
        self.told.extend(told.into_inner().expect("nobody panics with it"));
    }

    /// Case of this cell.
    pub(super) fn cell(&self) -> Cell {
        self.cell
    }

    /// Waits until no amount is held, without a request for the key.
    pub(super) fn wait_for_rest(&self) {
        if self.cell.fault == Fault::Frozen {
            // The fault itself: it is stopped for that long at least.
            std::thread::sleep(LEASE + GRACE);
        }
        self.until("nothing is held", || self.balance().1 == 0);
    }

    /// The durable state is that of the step.
    pub(super) fn is_as_at_the_step(&self) -> bool {
        let (available, held) = self.balance();
        match self.cell.row.found {
            RetryOutcome::NotBound => (available, held) == (FUNDS, 0),
            RetryOutcome::Unknown => held > 0,
            RetryOutcome::Settled => (available, held) == (FUNDS - CHARGE, 0),
        }
    }

    /// Available and held, by the row of the wallet.
    fn balance(&self) -> (i64, i64) {
        let of = format!("SELECT available, held FROM wallets WHERE name = 'of-{}'", self.key);
        let row = self.stage.database.execute(&of);
        let (available, held) = row[0].split_once('|').expect("two columns");
        (available.parse().expect("micros"), held.parse().expect("micros"))
    }

    /// Waits until what it was answered, if it was, is gone.
    pub(super) fn wait_for_purge(&self) {
        let path = format!("/v1/operations/{}", self.key);
        let look = Request::get(&path).bearer(&self.account.key);
        let node = &self.stage.nodes[0];
        self.until("it is deleted", || node.send(&look).json()["result_state"] != "kept");
    }

    /// A later request gets the answer of all others, for one run and one charge at most.
    pub(super) fn check(mut self, node: &Gateway) {
        for is_streamed in [false, true] {
            let told = self.answer_of(node, is_streamed);
            self.told.push(told);
        }
        let (cell, runs) = (self.cell, self.runs());
        let row = cell.row;
        let (before, last) = self.told.split_at(self.told.len() - 2);
        let status = last[0].status;
        assert!(last[0].is_like(&last[1]), "{cell:?}: {last:?}");
        let is_purged = cell.retry == Retry::AfterPurge && status == 410;
        for told in before {
            let is_same = told.is_like(&last[0]) || (is_purged && told.status == 200);
            assert!(is_same, "{cell:?}: {told:?} was {last:?}");
        }
        let charge = match status {
            200 => CHARGE,
            410 if is_purged => CHARGE,
            502 => 0,
            _ => panic!("{cell:?}: {last:?}"),
        };
        assert!(runs <= 1 && (charge == 0 || runs == 1), "{cell:?} ran {runs} times: {last:?}");
        match (row.found, cell.fault) {
            (RetryOutcome::NotBound, Fault::Killed) | (RetryOutcome::Settled, _) => {
                assert_eq!(charge, CHARGE, "{cell:?}: {last:?}");
                let is_late = cell.retry == Retry::AfterPurge && row.found == RetryOutcome::Settled;
                assert!(!is_late || is_purged, "{cell:?}: {last:?}");
            }
            (RetryOutcome::Unknown, Fault::Killed) => {
                assert_eq!((status, runs), (502, row.runs), "{cell:?}: {last:?}");
            }
            // It depends on who is first, the process itself or those who take over: a claim that is
            // committed late may be given up at once.
            (RetryOutcome::NotBound | RetryOutcome::Unknown, Fault::Frozen) => {}
        }
        assert_eq!(self.balance(), (FUNDS - charge, 0), "{cell:?}");
    }
}

/// Does this with each at once.
pub(super) fn parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(|| work(item))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a cell in order")).collect()
    })
}
