//! Nodes: three slots, each with a process that crashes, restarts, drains and is superseded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{LeaseMode, Provider};
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{Incarnation, NodeAddress, NodeName, Timestamp};
use holdfast_engine::{
    BreakerRules, Catalogue, Engine, Guarantee, Model, Options, Ports, Price, RelayOptions, Route,
    Secrets, ServingConfig, ServingRules, StartError, Timeouts,
};
use holdfast_testkit::sample;

use crate::chance::Chance;
use crate::keys::{ONE_CHARGE, ONE_RUN};
use crate::network::{Network, NetworkLink};
use crate::process::Process;
use crate::recorder::Recorder;
use crate::step::Step;
use crate::store::{Store, StorePort};
use crate::upstream::{ROUTES, RouteProvider, Upstream};

/// Nodes over one store.
pub const NODES: usize = 3;

/// Parts of the world that every process uses.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Recorder of the run.
    pub recorder: Arc<Recorder>,
    /// Database server.
    pub store: Arc<Store>,
    /// Routes.
    pub upstream: Arc<Upstream>,
    /// Network between the nodes.
    pub network: Arc<Network>,
    /// Total timeout of the models.
    pub total: Duration,
    /// Retention of results.
    pub results: Duration,
    /// Source of names and incarnations.
    pub chance: Chance,
}

/// Living process of a slot.
#[derive(Debug, Clone)]
pub struct LiveProcess {
    /// Process.
    pub process: Arc<Process>,
    /// Its engine.
    pub engine: Arc<Engine>,
}

/// Slots of all nodes.
#[derive(Debug)]
pub struct Nodes {
    surroundings: Surroundings,
    state: Mutex<NodesState>,
}

#[derive(Debug, Default)]
struct NodesState {
    slots: [Option<LiveProcess>; NODES],
    /// Processes that were taken out of their slots.
    former: Vec<Arc<Process>>,
    processes: u64,
}

impl Nodes {
    /// Empty slots.
    #[must_use]
    pub fn new(surroundings: Surroundings) -> Arc<Self> {
        Arc::new(Self { surroundings, state: Mutex::default() })
    }

    /// Process of a slot, if it has one.
    #[must_use]
    pub fn running(&self, slot: usize) -> Option<LiveProcess> {
        self.state().slots.get(slot).cloned().flatten()
    }

    /// Starts a process in an empty slot, under the name of the slot or a fresh one.
    ///
    /// # Errors
    ///
    /// [`StartError`] if it does not become a node; its slot stays empty.
    pub async fn start(&self, slot: usize, is_named: bool) -> Result<(), StartError> {
        let number = {
            let mut state = self.state();
            state.processes += 1;
            state.processes
        };
        let around = &self.surroundings;
        let text = if is_named { format!("n{slot}") } else { format!("n{slot}-{number}") };
        let name = NodeName::try_from(text.as_str()).unwrap();
        let incarnation = Incarnation::from_u128(around.chance.part("process", number).id());
        let process = Process::new(slot, number, Node { name, incarnation });
        around.recorder.note(format_args!("n{slot}: starts as {text}"));
        let address = NodeAddress::try_from(format!("p{number}:1").as_str()).unwrap();
        let port = StorePort::new(&around.store, &process);
        let ports = Ports {
            journal: Arc::<StorePort>::clone(&port),
            nodes: Arc::<StorePort>::clone(&port),
            keys: Arc::<StorePort>::clone(&port),
            wallets: Arc::<StorePort>::clone(&port),
            events: Arc::<StorePort>::clone(&port),
            statistics: port,
        };
        let relay = RelayOptions {
            address: address.clone(),
            transport: NetworkLink::new(&around.network, &process),
        };
        let options = self.options(&process, relay);
        let engine = Engine::start(ports, secrets(), options, self.serving(&process)).await?;
        around.network.join(address, &process, &engine);
        around.recorder.note(format_args!("n{slot}: serves"));
        if let Some(place) = self.state().slots.get_mut(slot) {
            *place = Some(LiveProcess { process, engine });
        }
        Ok(())
    }

    /// Takes the process out of its slot: callers no longer find it.
    pub fn take(&self, slot: usize) -> Option<LiveProcess> {
        let mut state = self.state();
        let taken = state.slots.get_mut(slot).and_then(Option::take)?;
        state.former.push(Arc::clone(&taken.process));
        Some(taken)
    }

    /// Crashes every process that was taken out of its slot.
    pub fn crash_former(&self) {
        self.state().former.drain(..).for_each(|process| process.crash());
    }

    /// Crashes the process of a slot.
    pub fn crash(&self, slot: usize) {
        let Some(running) = self.take(slot) else { return };
        let (around, process) = (&self.surroundings, &running.process);
        around.recorder.note(format_args!("n{slot}: crashes"));
        for row in around.store.journal.operations() {
            let is_its = row.phase == holdfast_domain::operation::Phase::Leased
                && row.owner.node == process.node;
            if is_its {
                let name = around.store.names.of_operation(row.id);
                let is_sent = around.upstream.runs(name) > 0;
                around.recorder.reach(if is_sent { Step::CrashSent } else { Step::CrashUnsent });
            }
        }
        process.crash();
    }

    fn options(&self, process: &Process, relay: RelayOptions) -> Options {
        Options {
            node: process.node.clone(),
            cell: None,
            entry: LeaseMode::TakeExpired,
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(4),
            heartbeat_runtime: None,
            relay: Some(relay),
            orphan_grace: Duration::from_secs(20),
            results: self.surroundings.results,
            statistics: Duration::from_secs(86_400),
            result_bytes: 1 << 20,
            result_bytes_per_key: 1 << 19,
        }
    }

    fn serving(&self, process: &Arc<Process>) -> ServingConfig {
        let upstream = &self.surroundings.upstream;
        let providers: BTreeMap<String, Arc<dyn Provider>> = ROUTES
            .into_iter()
            .map(|route| {
                let provider: Arc<dyn Provider> = RouteProvider::new(upstream, process, route);
                (route.to_owned(), provider)
            })
            .collect();
        let total = self.surroundings.total;
        let models = [(ONE_RUN, Guarantee::OneRun), (ONE_CHARGE, Guarantee::OneCharge)];
        let models = models.map(|(name, guarantee)| model(name, guarantee, total));
        let rules = ServingRules {
            answer_bytes: 1 << 30,
            operations_per_key: 1_024,
            waiters_per_operation: 256,
            cool_down: BreakerRules {
                failures: 3,
                first: Duration::from_secs(2),
                longest: Duration::from_secs(20),
            },
        };
        ServingConfig::new(Catalogue::new(models), providers, rules, None)
    }

    fn state(&self) -> MutexGuard<'_, NodesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Server secret of every node.
#[must_use]
pub fn server_secret() -> ServerSecret {
    ServerSecret::new(&[7; 32]).unwrap()
}

fn secrets() -> Secrets {
    Secrets::new(server_secret(), Vec::new())
}

/// Model of a micro a token with both routes.
fn model(name: &str, guarantee: Guarantee, total: Duration) -> Model {
    let id = PublicModelId::try_from(name).unwrap();
    let price = sample::price();
    let version = PriceVersion {
        id: PriceVersionId::new(&id, sample::usd(), "2026-01-01T00:00:00Z"),
        ..price
    };
    let route = |(priority, provider): (u32, &str)| Route {
        provider: provider.to_owned(),
        model: format!("{provider}-{name}").into(),
        // No two are equal: a choice by weight takes its chance from a random claim id.
        priority,
        weight: 1,
        concurrency: None,
        cost: None,
    };
    Model {
        aliases: Vec::new(),
        contract: Contract { prompt_overhead_tokens: Some(10), ..Contract::new(id, 1, 1_000, 50) },
        timeouts: Timeouts {
            connect: Duration::from_secs(2),
            first_token: total,
            between_tokens: Duration::from_secs(10),
            total,
        },
        body_bytes: 10_000,
        prices: vec![Price { effective_from: Timestamp::from_micros(0), version }],
        guarantee,
        routes: (0..).zip(ROUTES).map(route).collect(),
    }
}
