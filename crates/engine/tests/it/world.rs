//! One gateway process that is valid as it stands; a test varies one thing.
//!
//! The model costs a micro a token. `HELLO` holds 81: 5 bytes, 16 for the message, 10 of overhead,
//! 50 of output. `says("hi")` reports 7 and 2 tokens: it costs 9.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::credential::{Bearer, Credential, Grant};
use holdfast_domain::limits::Limits;
use holdfast_domain::model::Contract;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{LeaseMode, NewApiKey, Provider};
use holdfast_domain::private::Private;
use holdfast_domain::secret::{CredentialSecret, ServerSecret};
use holdfast_domain::usage::Meters;
use holdfast_domain::{ApiKeyId, CredentialId, Incarnation, NodeName, OperationId, Timestamp};
use holdfast_engine::{
    BreakerRules, Caller, Catalogue, Engine, Guarantee, InFlight, Model, Options, Ports, Price,
    Reply, ReplyBody, Route, RunMode, Secrets, ServingConfig, ServingRules, StartError, Submission,
    Timeouts,
};
use holdfast_testkit::{Commands as _, Script, ScriptedProvider, sample};
use tokio::task::JoinSet;

use crate::store::Store;

/// Where callers are.
pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const HELLO: &str =
    r#"{"model":"holdfast/sample","messages":[{"role":"user","content":"hello"}]}"#;
pub(crate) const OTHER: &str =
    r#"{"model":"holdfast/sample","messages":[{"role":"user","content":"other"}]}"#;
/// The same request as [`HELLO`] in other bytes.
pub(crate) const HELLO_RESPELLED: &str =
    r#"{"messages":[{"content":"hello","role":"user"}], "model":"holdfast/sample","n":1}"#;
pub(crate) const HELLO_HOLDS: i64 = 81;
/// What `says` costs.
pub(crate) const ANSWER_COSTS: i64 = 9;
pub(crate) const FUNDS: i64 = 1_000;
/// The total timeout of the model.
pub(crate) const TOTAL: Duration = Duration::from_secs(600);
pub(crate) const OTHER_API_KEY: ApiKeyId = ApiKeyId::from_u128(0xaa);

/// A whole answer, with usage.
pub(crate) fn says(text: &str) -> Script {
    Script::finishing(Meters::text(7, 2).ok()).say(text).stop()
}

pub(crate) fn secret(byte: u8) -> ServerSecret {
    ServerSecret::new(&[byte; 32]).unwrap()
}

/// The `n`th bearer: 1 is of [`sample::API_KEY`], 2 of [`OTHER_API_KEY`].
pub(crate) fn bearer(n: u8) -> Bearer {
    Bearer { id: CredentialId::from_u128(u128::from(n)), secret: CredentialSecret::new([n; 32]) }
}

pub(crate) fn credential(n: u8, api_key: ApiKeyId, server_secret: &ServerSecret) -> Credential {
    let Bearer { id, secret } = bearer(n);
    Credential {
        id,
        api_key,
        verifier: server_secret.verifier(&secret),
        server_secret: server_secret.id(),
        ends_at: None,
    }
}

/// The model that everything here is about.
pub(crate) fn model() -> Model {
    Model {
        aliases: Vec::new(),
        contract: Contract {
            prompt_overhead_tokens: Some(10),
            ..Contract::new(sample::model(), 1, 1_000, 50)
        },
        timeouts: Timeouts {
            connect: Duration::from_secs(2),
            first_token: TOTAL,
            between_tokens: TOTAL,
            total: TOTAL,
        },
        body_bytes: 10_000,
        prices: vec![Price { effective_from: Timestamp::from_micros(0), version: sample::price() }],
        guarantee: Guarantee::OneRun,
        routes: vec![route("one")],
    }
}

pub(crate) fn route(provider: &str) -> Route {
    Route {
        provider: provider.to_owned(),
        model: format!("{provider}-model").into(),
        // In the order of their names' meaning.
        priority: match provider {
            "one" => 0,
            "two" => 1,
            _ => 2,
        },
        weight: 1,
        concurrency: None,
        cost: None,
    }
}

/// A world to be.
pub(crate) struct Setup {
    store: Option<Arc<Store>>,
    funds: i64,
    limits: Limits,
    models: Vec<Model>,
    secrets: Secrets,
    options: Options,
    rules: ServingRules,
    scripts: HashMap<&'static str, Vec<Script>>,
    others: BTreeMap<String, Arc<dyn Provider>>,
    unconfigured: Option<&'static str>,
    shape: Option<&'static str>,
    repeats_calls: bool,
}

pub(crate) fn setup() -> Setup {
    Setup {
        store: None,
        funds: FUNDS,
        limits: Limits::default(),
        models: vec![model()],
        secrets: Secrets::new(secret(7), Vec::new()),
        options: Options {
            node: Node {
                name: NodeName::try_from("a").unwrap(),
                incarnation: sample::fresh::<Incarnation>(),
            },
            cell: None,
            entry: LeaseMode::Take,
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(4),
            relay: None,
            heartbeat_runtime: None,
            orphan_grace: Duration::from_secs(60),
            results: Duration::from_secs(86_400),
            statistics: Duration::from_secs(30 * 86_400),
            result_bytes: 1 << 20,
            result_bytes_per_key: 1 << 19,
        },
        rules: ServingRules {
            answer_bytes: 1 << 30,
            operations_per_key: 1_024,
            waiters_per_operation: 256,
            cool_down: BreakerRules { failures: 3, first: secs(5), longest: secs(60) },
        },
        scripts: HashMap::new(),
        others: BTreeMap::new(),
        unconfigured: None,
        shape: None,
        repeats_calls: false,
    }
}

impl Setup {
    /// Another process over the same store.
    pub(crate) fn on(mut self, store: &Arc<Store>) -> Self {
        self.store = Some(Arc::clone(store));
        self
    }

    pub(crate) fn funds(mut self, micros: i64) -> Self {
        self.funds = micros;
        self
    }

    pub(crate) fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    pub(crate) fn options(mut self, vary: impl FnOnce(&mut Options)) -> Self {
        vary(&mut self.options);
        self
    }

    pub(crate) fn operations_per_key(mut self, most: usize) -> Self {
        self.rules.operations_per_key = most;
        self
    }

    pub(crate) fn waiters_per_operation(mut self, most: usize) -> Self {
        self.rules.waiters_per_operation = most;
        self
    }

    /// Another node name, taken only when it is free: as with a store that several processes share.
    pub(crate) fn shared(self, name: &str) -> Self {
        let name = NodeName::try_from(name).unwrap();
        self.options(|options| {
            options.node.name = name;
            options.entry = LeaseMode::TakeExpired;
        })
    }

    pub(crate) fn model(mut self, vary: impl FnOnce(&mut Model)) -> Self {
        vary(&mut self.models[0]);
        self
    }

    pub(crate) fn no_models(mut self) -> Self {
        self.models.clear();
        self
    }

    /// What the first route's provider does next.
    pub(crate) fn script(self, script: Script) -> Self {
        self.script_of("one", script)
    }

    pub(crate) fn script_of(mut self, provider: &'static str, script: Script) -> Self {
        self.scripts.entry(provider).or_default().push(script);
        self
    }

    pub(crate) fn provider(mut self, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.others.insert(name.to_owned(), provider);
        self
    }

    /// The scripted providers ask again.
    pub(crate) fn repeating_calls(mut self) -> Self {
        self.repeats_calls = true;
        self
    }

    /// The scripted providers want states of this shape back.
    pub(crate) fn wanting(mut self, shape: &'static str) -> Self {
        self.shape = Some(shape);
        self
    }

    /// No provider has this name.
    pub(crate) fn unconfigured(mut self, provider: &'static str) -> Self {
        self.unconfigured = Some(provider);
        self
    }

    pub(crate) async fn start(self) -> World {
        self.try_start().await.unwrap()
    }

    pub(crate) async fn try_start(mut self) -> Result<World, StartError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => {
                let store = Store::with_funds(self.funds);
                for (n, id) in [(1, sample::API_KEY), (2, OTHER_API_KEY)] {
                    let name = format!("key {n}");
                    let grant = Grant { limits: self.limits, ..Grant::default() };
                    let key =
                        NewApiKey { id, wallet: sample::WALLET, name, external_id: None, grant };
                    let credential = credential(n, id, self.secrets.first());
                    store.journal.issue(&key, &credential).await.unwrap();
                }
                store
            }
        };
        let names = self.models.iter().flat_map(|model| &model.routes);
        let scripted: BTreeMap<String, Arc<ScriptedProvider>> = names
            .map(|route| {
                let scripts = self.scripts.remove(&*route.provider).unwrap_or_default();
                let provider = ScriptedProvider::new(scripts);
                let provider =
                    if self.repeats_calls { provider.repeating_calls() } else { provider };
                let provider = match self.shape {
                    Some(shape) => provider.with_state_shape(shape),
                    None => provider,
                };
                (route.provider.clone(), Arc::new(provider))
            })
            .collect();
        let mut providers: BTreeMap<String, Arc<dyn Provider>> = BTreeMap::new();
        for (name, provider) in &scripted {
            let provider = Arc::clone(provider);
            providers.insert(name.clone(), provider);
        }
        providers.extend(self.others);
        providers.retain(|name, _provider| self.unconfigured != Some(name.as_str()));
        let ports = Ports {
            journal: Arc::<Store>::clone(&store),
            nodes: Arc::<Store>::clone(&store),
            keys: Arc::<Store>::clone(&store),
            wallets: Arc::<Store>::clone(&store),
            events: Arc::<Store>::clone(&store),
            statistics: Arc::<Store>::clone(&store),
        };
        let catalogue = Catalogue::new(self.models);
        let offer = ServingConfig::new(catalogue, providers, self.rules, None);
        let engine = Engine::start(ports, self.secrets, self.options, offer).await?;
        let offer = engine.serving();
        Ok(World { store, engine, offer, scripted })
    }
}

/// A process, its store and its providers.
pub(crate) struct World {
    pub(crate) store: Arc<Store>,
    pub(crate) engine: Arc<Engine>,
    /// What requests are served by, until a test reloads.
    pub(crate) offer: Arc<ServingConfig>,
    scripted: BTreeMap<String, Arc<ScriptedProvider>>,
}

impl World {
    /// The submission of a body under the `key`th request key by the first bearer.
    pub(crate) async fn submission(&self, key: u64, body: &str) -> Submission {
        self.submission_of(&bearer(1), key, body).await
    }

    pub(crate) async fn submission_of(&self, by: &Bearer, key: u64, body: &str) -> Submission {
        let caller = self.engine.authenticate(&by.expose(), PEER).await.unwrap();
        Submission {
            serving: Arc::clone(&self.offer),
            in_flight: Arc::new(self.enter(&caller).unwrap()),
            caller,
            request_key: sample::request_key(key),
            body: Private(Bytes::from(body.to_owned())),
            memory: None,
            max_charge: Ok(None),
            mode: RunMode::RunOrReplay,
            retry_wait: TOTAL,
            trace: None,
        }
    }

    /// Serves requests by another configuration from now on.
    pub(crate) fn reload(&mut self, serving: ServingConfig) {
        self.engine.replace_serving(serving);
        self.offer = self.engine.serving();
    }

    pub(crate) fn enter(&self, caller: &Caller) -> Option<InFlight> {
        self.engine.enter(&self.offer, caller)
    }

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&self, key: u64, body: &str) -> Reply {
        self.engine.complete(self.submission(key, body).await).await
    }

    pub(crate) async fn ask_as(&self, by: &Bearer, key: u64, body: &str) -> Reply {
        self.engine.complete(self.submission_of(by, key, body).await).await
    }

    /// Asks on a task of its own.
    pub(crate) async fn asking(&self, key: u64, body: &str) -> PendingReplies {
        PendingReplies::of(self, self.submission(key, body).await)
    }

    /// How often a provider was called.
    pub(crate) fn runs_of(&self, provider: &str) -> usize {
        self.scripted[provider].runs()
    }

    /// How often the first provider was called.
    pub(crate) fn runs(&self) -> usize {
        self.runs_of("one")
    }

    pub(crate) fn scripted(&self, provider: &str) -> &ScriptedProvider {
        &self.scripted[provider]
    }
}

/// A caller that waits.
pub(crate) struct PendingReplies(JoinSet<Reply>);

impl PendingReplies {
    pub(crate) fn of(world: &World, submission: Submission) -> Self {
        let engine = Arc::clone(&world.engine);
        let mut task = JoinSet::new();
        task.spawn(async move { engine.complete(submission).await });
        Self(task)
    }

    pub(crate) async fn told(mut self) -> Reply {
        self.0.join_next().await.unwrap().unwrap()
    }

    /// Whether it has its answer yet, after everybody had a turn.
    pub(crate) async fn is_waiting(&mut self) -> bool {
        turns().await;
        self.0.try_join_next().is_none()
    }

    /// The caller goes away.
    pub(crate) async fn hang_up(mut self) {
        self.0.shutdown().await;
    }
}

/// Lets every task that can go on do so, without any time passing.
pub(crate) async fn turns() {
    for _turn in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Lets this much time pass, on both clocks.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn operation_id(key: u64) -> OperationId {
    OperationId::of(sample::API_KEY, sample::request_key(key))
}

/// The body of a completion.
#[track_caller]
pub(crate) fn body(reply: &Reply) -> &Bytes {
    match &reply.outcome {
        Ok(ReplyBody::Completed(Private(body))) => body,
        other => panic!("no completion: {other:?}"),
    }
}

/// What a completion says, as text.
#[track_caller]
pub(crate) fn text(reply: &Reply) -> &str {
    str::from_utf8(body(reply)).unwrap()
}

/// Checks why there was no answer.
macro_rules! assert_failed {
    ($reply:expr, $pattern:pat $(if $guard:expr)?) => {{
        let reply = &$reply;
        let failed = matches!(&reply.outcome, Err($pattern) $(if $guard)?);
        assert!(failed, "{:?} is not {}", reply.outcome, stringify!($pattern));
    }};
}
pub(crate) use assert_failed;
