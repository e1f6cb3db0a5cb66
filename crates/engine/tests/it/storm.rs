//! Several processes over one store that loses answers, callers that hang up and come again, routes
//! that fail, a process whose name is taken away: whatever happens, nothing runs twice, nobody pays
//! twice, all final answers for a key are one, and everything comes to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason};
use holdfast_domain::operation::{Phase, ProviderRefusal};
use holdfast_domain::ports::{
    Call, CallFailure as ProviderFailure, LeaseMode, NotRunProof, Provider, Sink, UnknownReason,
};
use holdfast_domain::private::Private;
use holdfast_domain::request::Content;
use holdfast_domain::usage::UsageReport;
use holdfast_engine::{Reply, ReplyBody, RequestFailure};
use holdfast_testkit::{Fault, sample};
use tokio::time::sleep;

use crate::store::Store;
use crate::world::{
    HELLO, PendingReplies, Setup, World, operation_id, pass, route, secs, setup, turns,
};

const FUNDS: i64 = 1_000_000;
const KEYS: u64 = 25;
const REQUESTS: u64 = 100;

/// A small generator: the same seed is the same storm.
#[derive(Clone)]
struct Dice(Arc<Mutex<u64>>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(2) + 1)))
    }

    /// A number below `n`.
    fn below(&self, n: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % n
    }
}

/// Runs, refuses, fails and takes its time by the dice, and counts the runs of each prompt.
struct FickleProvider {
    dice: Dice,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl FickleProvider {
    fn count(&self, call: &Call) {
        let Some(Content::Text(prompt)) = &call.request.messages[0].content else {
            panic!("not a text");
        };
        *self.runs.lock().unwrap().entry(prompt.clone()).or_default() += 1;
    }
}

#[async_trait]
impl Provider for FickleProvider {
    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, ProviderFailure> {
        sink.on_send();
        let fate = self.dice.below(10);
        if fate < 3 {
            return Err(ProviderFailure::NotRun(NotRunProof::RateLimited));
        }
        self.count(call);
        sleep(secs(self.dice.below(20))).await;
        if fate == 3 {
            return Err(ProviderFailure::Unknown(UnknownReason::Broken));
        }
        if fate == 4 {
            return Err(ProviderFailure::Refused(ProviderRefusal::Request));
        }
        assert!(fate > 5 || self.dice.below(3) > 0, "a bug in a provider");
        let said = ChoiceDelta {
            content: Some(format!("answer {}", self.dice.below(1 << 30))),
            finish: Some(FinishReason::Stop),
            ..ChoiceDelta::default()
        };
        sink.on_delta(Delta::from(vec![said]));
        Ok(Some(UsageReport::text(7, self.dice.below(40))))
    }
}

fn prompt(key: u64) -> String {
    format!("hello {key}")
}

/// A final answer: what a key's callers must all be told.
fn last_word(reply: &Reply) -> Option<Bytes> {
    match &reply.outcome {
        Ok(ReplyBody::Completed(Private(body)) | ReplyBody::Refused(_, Private(body))) => {
            Some(body.clone())
        }
        Err(RequestFailure::OutcomeUnknown(_)) => Some(Bytes::from_static(b"outcome unknown")),
        Ok(ReplyBody::Streamed(_))
        | Err(
            RequestFailure::OtherRequest
            | RequestFailure::Unreadable(..)
            | RequestFailure::Internal(_),
        ) => {
            panic!("{:?}", reply.outcome)
        }
        Err(_) => None,
    }
}

struct Storm {
    dice: Dice,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
    store: Arc<Store>,
    told: BTreeMap<u64, BTreeSet<Bytes>>,
}

impl Storm {
    fn process(&self) -> Setup {
        let fickle = || FickleProvider { dice: self.dice.clone(), runs: Arc::clone(&self.runs) };
        setup()
            .on(&self.store)
            .model(|model| model.routes = vec![route("one"), route("two")])
            .provider("one", Arc::new(fickle()))
            .provider("two", Arc::new(fickle()))
    }

    fn hear(&mut self, key: u64, reply: &Reply) {
        self.told.entry(key).or_default().extend(last_word(reply));
    }

    fn weather(&self) {
        let faults = [
            Fault::Landed,
            Fault::NotLanded,
            Fault::LandsLate,
            Fault::Unavailable,
            Fault::Overloaded,
            Fault::None,
        ];
        let at = usize::try_from(self.dice.below(24)).unwrap();
        self.store.journal.fail_next(faults.get(at).copied());
        if self.dice.below(20) == 0 {
            self.store.journal.fail_loads(2);
        }
    }

    async fn blow(&mut self, worlds: &[World]) {
        let mut waiting: Vec<(u64, PendingReplies)> = Vec::new();
        for _request in 0..REQUESTS {
            self.weather();
            let key = 1 + self.dice.below(KEYS);
            let body = HELLO.replace("hello", &prompt(key));
            let world = &worlds[usize::try_from(self.dice.below(3)).unwrap()];
            let mut submission = world.submission(key, &body).await;
            submission.retry_wait = secs(self.dice.below(30));
            let asking = PendingReplies::of(world, submission);
            match self.dice.below(4) {
                0 => {
                    turns().await;
                    asking.hang_up().await;
                }
                1 => {
                    let reply = asking.told().await;
                    self.hear(key, &reply);
                }
                _ => waiting.push((key, asking)),
            }
            if self.dice.below(8) == 0 {
                pass(secs(self.dice.below(10))).await;
            }
        }
        for (key, asking) in waiting {
            let reply = asking.told().await;
            self.hear(key, &reply);
        }
    }

    async fn check(&mut self, world: &World) {
        pass(secs(1_000)).await;
        for key in 1..=KEYS {
            let Some(row) = self.store.journal.operation(operation_id(key)) else { continue };
            assert!(!row.phase.holds(), "{key} does not rest: {:?}", row.phase);
            if !matches!(row.phase, Phase::Open) {
                let body = HELLO.replace("hello", &prompt(key));
                let reply = world.ask(key, &body).await;
                self.hear(key, &reply);
                assert_eq!(self.told[&key].len(), 1, "{key} was told {:?}", self.told[&key]);
            } else {
                assert_eq!(self.told.get(&key).map_or(0, BTreeSet::len), 0, "{key}");
            }
        }
        for (prompt, runs) in &*self.runs.lock().unwrap() {
            assert_eq!(*runs, 1, "{prompt}");
        }
        let rows = self.store.journal.operations();
        let charges: i64 =
            rows.iter().filter_map(|row| row.phase.usage()).map(|usage| usage.charge.get()).sum();
        assert_eq!(self.store.balances(), (FUNDS - charges, 0));
        let completed = rows.iter().filter(|row| row.phase.label() == "completed").count();
        assert_eq!(self.store.transfers("settle"), completed);
        assert!(completed > 5, "a storm in which nothing is completed proves little");
    }
}

async fn storm(seed: u64) {
    let dice = Dice::new(seed);
    let first = setup().funds(FUNDS).start().await;
    let store = Arc::clone(&first.store);
    let mut storm = Storm { dice, runs: Arc::default(), store, told: BTreeMap::new() };
    let a = storm.process().shared("x").start().await;
    let b = storm.process().shared("y").start().await;
    let c = storm.process().shared("z").start().await;
    let mut worlds = [a, b, c];
    storm.blow(&worlds).await;
    // Its name is taken while it runs.
    let taken = storm.process().shared("x").options(|options| options.entry = LeaseMode::Take);
    let taken = taken.start().await;
    storm.blow(&worlds).await;
    worlds[0] = taken;
    storm.blow(&worlds).await;
    worlds[1].engine.drain(secs(5)).await;
    assert!(worlds[2].engine.readiness().await == holdfast_engine::Readiness::Ready);
    storm.check(&worlds[2]).await;
    assert_eq!(storm.store.wallet().id, sample::WALLET);
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_twice_and_nobody_pays_twice_in_any_weather() {
    for seed in 0..6 {
        storm(seed).await;
    }
}
