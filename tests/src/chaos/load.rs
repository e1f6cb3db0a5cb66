//! Clients that send keys, new ones and old ones, some of them twice at once, until the gateway is
//! killed under them.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::heard::Heard;
use super::model::{Key, Runbook, Way};
use super::{Dice, Moment, Report, STEP_PATIENCE, wait_until};
use crate::{Account, Config, Gateway, Request, Site, Upstream};

/// Clients at once.
const CLIENTS: usize = 6;
/// Keys that a load adds.
const NEW_KEYS: usize = 24;
/// Wallets that pay, and API keys: the last wallet has two.
const WALLETS: [&str; 3] = ["north", "south", "west"];
/// What is put into each wallet, as it is spelled and in micros.
pub(super) const FUNDS: (&str, i64) = ("1000.00", 1_000_000_000);

/// A folder, its accounts, and every key that was ever used in it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) site: Site,
    pub(super) accounts: Vec<Account>,
    pub(super) runbook: Runbook,
    keys: Mutex<Vec<Key>>,
    /// Keys that somebody has hung up on since the last kill.
    left: Mutex<BTreeSet<usize>>,
    pub(super) sent: AtomicU64,
    pub(super) streams: AtomicU64,
    pub(super) hang_ups: AtomicU64,
    pub(super) begun: AtomicU64,
    pub(super) answers: AtomicU64,
    _upstream: Upstream,
}

impl World {
    pub(super) fn new() -> Self {
        let runbook = Runbook::default();
        let upstream = runbook.upstream();
        let site = Site::configured(&Config::upstream(&upstream));
        drop(site.cli(&["migrate", "up"]).ok());
        let mut accounts: Vec<_> =
            WALLETS.iter().map(|name| site.account(name, "USD", FUNDS.0)).collect();
        let shared = accounts.last().expect("a wallet").wallet.clone();
        accounts.push(site.another_key(&shared, "second"));
        Self {
            site,
            accounts,
            runbook,
            keys: Mutex::default(),
            left: Mutex::default(),
            sent: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            hang_ups: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            _upstream: upstream,
        }
    }

    pub(super) fn keys(&self) -> MutexGuard<'_, Vec<Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a gateway, sends it its load, and kills it.
    pub(super) fn load_and_kill(&mut self, dice: &mut Dice, moment: Moment, report: &mut Report) {
        let work = Mutex::new(self.plan(dice));
        let gateway = match moment {
            Moment::After(_) => self.site.serve(),
            Moment::At(step, nth, _) => self.site.serve_until(&format!("{step}:{nth}")),
        };
        let address = gateway.address();
        let (gone, cut) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _client in 0..CLIENTS {
                scope.spawn(|| {
                    if !self.send_all(&work, address) {
                        cut.fetch_add(1, Ordering::AcqRel);
                    }
                    gone.fetch_add(1, Ordering::AcqRel);
                });
            }
            if wait(moment, &gateway, || gone.load(Ordering::Acquire) == CLIENTS)
                && let Moment::At(step, _, _) = moment
            {
                *report.at_steps.entry(step).or_default() += 1;
            }
            gateway.kill();
        });
        let left = std::mem::take(&mut *self.left());
        let mut keys = self.keys();
        for at in left {
            // It may have run for nobody when the gateway died.
            keys[at].cut |= keys[at].told.is_none();
        }
        drop(keys);
        report.cutting += u32::from(cut.into_inner() > 0);
    }

    /// What is sent: everything without a final answer, what is new, a few old keys.
    fn plan(&mut self, dice: &mut Dice) -> VecDeque<usize> {
        let accounts = self.accounts.len();
        let mut keys = self.keys();
        let old = keys.len();
        keys.extend((0..NEW_KEYS).map(|_| Key::new(dice, accounts)));
        let mut work = VecDeque::new();
        for (at, key) in keys.iter().enumerate() {
            if key.told.is_none() {
                work.push_back(at);
                // Two clients ask for it at once.
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

    /// Sends what there is to send; false where the gateway died over one.
    fn send_all(&self, work: &Mutex<VecDeque<usize>>, address: SocketAddr) -> bool {
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(at) = next else { return true };
            let way = self.keys()[at].way();
            match self.send(at, way, address) {
                Some(true) => {}
                // Its caller asks again at once.
                Some(false) => work.lock().unwrap_or_else(PoisonError::into_inner).push_back(at),
                None => return false,
            }
        }
    }

    /// Asks for one key; says whether its answer was final, nothing where none came.
    pub(super) fn send(&self, at: usize, way: Way, address: SocketAddr) -> Option<bool> {
        let (request, had_answer) = {
            let key = &self.keys()[at];
            let bearer = &self.accounts[key.account].key;
            let body = key.body(way.is_streamed);
            (Request::completion(bearer, &key.id, body), key.told.is_some())
        };
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.streams.fetch_add(u64::from(way.is_streamed), Ordering::Relaxed);
        let heard = request.try_begin(address).map(|waiting| {
            let bytes_max = way.hang_up.unwrap_or(usize::MAX);
            Heard::read(waiting, bytes_max)
        });
        if let Some((Heard::Part(part), _)) = &heard {
            self.begun.fetch_add(u64::from(!part.text.is_empty()), Ordering::Relaxed);
        }
        let key = &mut self.keys()[at];
        match heard {
            Some((Heard::Whole(answer), _)) => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                if had_answer {
                    let replayed = answer.head.header("idempotent-replayed");
                    assert_eq!(replayed, Some("true"), "{answer:?}");
                }
                Some(key.tell(answer, had_answer))
            }
            Some((Heard::Part(part), true)) => {
                self.hang_ups.fetch_add(1, Ordering::Relaxed);
                key.hear(&part);
                self.left().insert(at);
                Some(false)
            }
            Some((Heard::Part(part), false)) => {
                key.hear(&part);
                key.cut = true;
                None
            }
            None => {
                key.cut = true;
                None
            }
        }
    }
}

/// Waits for the moment to kill; whether an armed step was reached.
fn wait(moment: Moment, gateway: &Gateway, is_idle: impl Fn() -> bool) -> bool {
    let sleep = |time: Duration| std::thread::sleep(time);
    match moment {
        // The fault itself, at a moment of its own: nothing is waited for.
        Moment::After(time) => {
            sleep(time);
            false
        }
        Moment::At(_, _, around) => {
            wait_until(STEP_PATIENCE, || gateway.is_stopped() || is_idle());
            let is_stopped = gateway.is_stopped();
            sleep(around);
            is_stopped
        }
    }
}
