//! Run: one seed, from its first choice to the judgement of what it left.
//!
//! ```text
//! plan ─► three nodes ─► callers beside disturbances ─► all faults end ─► rest ─► every key once more ─► judgement
//! ```
//!
//! One thread and tokio's paused clock: time moves to the next timer when no task can go on, so that a run of minutes
//! takes milliseconds. Never: a choice that is not of the seed, or a result that depends on a random id.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::credential::{Credential, Grant};
use holdfast_domain::limits::Limits;
use holdfast_domain::ports::NewApiKey;
use holdfast_domain::{ApiKeyId, CredentialId};
use holdfast_testkit::{Commands as _, sample};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::answers::Answers;
use crate::callers::{Caller, bearer};
use crate::chance::{Chance, Draws};
use crate::defect::Defect;
use crate::disturbance::Disturbances;
use crate::judge::judge_books;
use crate::keys::{Key, KeyNames, ONE_CHARGE, ONE_RUN, SECOND_API_KEY};
use crate::network::Network;
use crate::node::{NODES, Nodes, Surroundings, server_secret};
use crate::recorder::{Invariant, Recorder, Recording};
use crate::store::{FaultRates, Store};
use crate::upstream::Upstream;

/// Time after the last fault, by which every operation has to be at rest: a silent commit, the total timeout with its
/// margin, a lease with its grace.
const REST_MAX: Duration = Duration::from_secs(420);
/// Time between two judgements of the books.
const BOOKS_INTERVAL: Duration = Duration::from_secs(10);

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunPlan {
    /// Seed: one seed is one run.
    pub seed: u64,
    /// Promise that is broken on purpose.
    pub defect: Option<Defect>,
    /// True if the trace is kept as text.
    pub keeps_trace: bool,
}

impl RunPlan {
    /// Unbroken run of a seed.
    #[must_use]
    pub const fn of_seed(seed: u64) -> Self {
        Self { seed, defect: None, keeps_trace: false }
    }
}

/// Simulates one seed.
///
/// # Panics
///
/// If the runtime of the simulation cannot be built.
#[must_use]
pub fn simulate(plan: RunPlan) -> Recording {
    if let Some(defect) = plan.defect {
        defect.arm();
    }
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(plan))
}

async fn run(plan: RunPlan) -> Recording {
    let chance = Chance::new(plan.seed);
    let mut draws = chance.part("plan", 0).draws();
    let recorder = Arc::new(Recorder::start(plan.keeps_trace));
    let keys = keys(&mut draws);
    let names = Arc::new(KeyNames::of(&keys));
    let funds = draws.pick(&[(1, 170), (2, 500), (2, 4_000)]);
    let shared = (Arc::clone(&recorder), names);
    let store = Store::new(funds, chance.part("store", 0), shared, plan.defect);
    issue_api_keys(&store, &mut draws).await;
    let upstream = Upstream::new(chance.part("upstream", 0), &recorder, plan.defect);
    let nodes = Nodes::new(Surroundings {
        recorder: Arc::clone(&recorder),
        store: Arc::clone(&store),
        upstream: Arc::clone(&upstream),
        network: Network::new(chance.part("network", 0), &recorder),
        total: draws.millis(15_000, 50_000),
        results: draws.pick(&[(2, Duration::from_secs(60)), (3, Duration::from_secs(86_400))]),
        chance: chance.part("nodes", 0),
    });
    let disturbances = Disturbances {
        recorder: Arc::clone(&recorder),
        store: Arc::clone(&store),
        nodes: Arc::clone(&nodes),
        is_named: draws.permille(700),
    };
    fill_all(&disturbances).await;
    store.set_rates(FaultRates {
        reads: draws.below(30),
        commits: draws.below(250),
        kills: draws.below(40),
    });
    let answers = Answers::new(&recorder, &upstream);
    let world = World {
        recorder: Arc::clone(&recorder),
        store: Arc::clone(&store),
        nodes: Arc::clone(&nodes),
        answers: Arc::clone(&answers),
    };
    let mut background = JoinSet::new();
    for nth in 0..draws.below(3) {
        background.spawn(disturbances.clone().go_on(chance.part("disturbances", nth)));
    }
    let (own, watched, of_keys) = (Arc::clone(&recorder), Arc::clone(&store), KeyNames::of(&keys));
    background.spawn(async move {
        loop {
            sleep(BOOKS_INTERVAL).await;
            judge_books(&own, &of_keys, &watched.journal);
        }
    });
    let mut callers = callers(&keys, &world, chance, &mut draws);
    while callers.join_next().await.is_some() {}
    background.shutdown().await;
    heal(&disturbances).await;
    rest(&recorder, &store).await;
    replay(&keys, &world).await;
    judge_books(&recorder, &KeyNames::of(&keys), &store.journal);
    keys.iter().for_each(|key| answers.judge(key, &store.journal));
    recorder.finish()
}

/// World of the callers.
struct World {
    recorder: Arc<Recorder>,
    store: Arc<Store>,
    nodes: Arc<Nodes>,
    answers: Arc<Answers>,
}

impl World {
    /// Caller of a key, after all others of it.
    fn caller(&self, key: &Key) -> Caller {
        Caller {
            recorder: Arc::clone(&self.recorder),
            store: Arc::clone(&self.store),
            nodes: Arc::clone(&self.nodes),
            answers: Arc::clone(&self.answers),
            key: key.clone(),
            is_other: false,
            number: 9,
        }
    }
}

/// Keys of a run. Both API keys use the same request keys.
fn keys(draws: &mut Draws) -> Vec<Key> {
    let n_keys = 4 + draws.below(8);
    let mut keys = Vec::new();
    for number in 1..=n_keys {
        let model = draws.pick(&[(3, ONE_RUN), (1, ONE_CHARGE)]);
        keys.push(Key::new(1, number, model));
        if draws.permille(400) {
            keys.push(Key::new(2, number, model));
        }
    }
    keys
}

async fn issue_api_keys(store: &Store, draws: &mut Draws) {
    let limits = Limits {
        requests_per_minute: draws.pick(&[(1, Some(4)), (1, None)]),
        concurrency: draws.pick(&[(1, Some(2)), (1, None)]),
        ..Limits::default()
    };
    let secret = server_secret();
    for (number, id, limits) in
        [(1, sample::API_KEY, Limits::default()), (2, SECOND_API_KEY, limits)]
    {
        let name = format!("key {number}");
        let grant = Grant { limits, ..Grant::default() };
        let key = NewApiKey {
            id: ApiKeyId::from_bytes(id.to_bytes()),
            wallet: sample::WALLET,
            name,
            external_id: None,
            grant,
        };
        let bearer = bearer(number);
        let credential = Credential {
            id: CredentialId::from_bytes(bearer.id.to_bytes()),
            api_key: id,
            verifier: secret.verifier(&bearer.secret),
            server_secret: secret.id(),
            ends_at: None,
        };
        store.journal.issue(&key, &credential).await.unwrap();
    }
}

/// Callers of all keys, on their way.
fn callers(keys: &[Key], world: &World, chance: Chance, draws: &mut Draws) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for (place, key) in (0_u64..).zip(keys) {
        let first = draws.millis(0, 60_000);
        let caller = world.caller(key);
        for number in 0..=draws.below(4) {
            let is_together = draws.permille(400);
            let begin = if is_together { first } else { first + draws.millis(0, 20_000) };
            let caller =
                Caller { is_other: number > 0 && draws.permille(80), number, ..caller.clone() };
            let own = chance.part("caller", place).part("number", number);
            callers.spawn(async move {
                sleep(begin).await;
                caller.call(own).await;
            });
        }
        if draws.permille(350) {
            let own = chance.part("meddler", place);
            callers.spawn(async move {
                sleep(first).await;
                caller.meddle(own).await;
            });
        }
    }
    callers
}

/// Ends all faults, and fills every slot.
async fn heal(disturbances: &Disturbances) {
    let Disturbances { recorder, store, nodes, is_named: _ } = disturbances;
    recorder.note(format_args!("all faults end"));
    store.set_rates(FaultRates::NONE);
    store.end_failover();
    store.journal.repair_wallet(sample::WALLET);
    // A shutdown that was under way would keep its name.
    nodes.crash_former();
    for slot in 0..NODES {
        if let Some(running) = nodes.running(slot) {
            running.process.set_cut_off(false);
            running.process.set_deaf(false);
        }
    }
    fill_all(disturbances).await;
}

async fn fill_all(disturbances: &Disturbances) {
    let mut starts = JoinSet::new();
    for slot in 0..NODES {
        let disturbances = disturbances.clone();
        starts.spawn(async move { disturbances.fill(slot).await });
    }
    while starts.join_next().await.is_some() {}
}

/// Waits until every operation is at rest (L1).
async fn rest(recorder: &Recorder, store: &Store) {
    let until = recorder.elapsed() + REST_MAX;
    while recorder.elapsed() < until {
        if store.journal.operations().iter().all(|row| !row.phase.holds()) {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    for row in store.journal.operations().iter().filter(|row| row.phase.holds()) {
        let (name, phase) = (store.names.of_operation(row.id), row.phase.label());
        recorder.violate(Invariant::L1, format!("{name}: still {phase}"));
    }
}

/// Asks for every key once more, at two nodes and in both forms, without the right to run.
async fn replay(keys: &[Key], world: &World) {
    for key in keys {
        for (slot, streams) in [(0, false), (1, true), (2, false)] {
            drop(world.caller(key).replay(slot, streams).await);
        }
    }
}
