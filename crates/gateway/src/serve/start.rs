//! The parts of a gateway, made from its configuration, in the order in which a start needs them.
//!
//! ```text
//! schema ─▶ store ─▶ prices pinned ─▶ first key (embedded default) ─▶ serving configuration ─▶ engine
//! ```
//!
//! Each part fails before the next one is built, with a message that contains the remedy. The order is that of
//! the traces that each part leaves: the engine takes the node's name, so it comes last, after every provider
//! could be built. No connection is accepted here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, ensure};
use holdfast_accounts::{
    Accounts, AccountsError, KeyOrder, Name, NewWallet, Outcome, PostingOrder, PostingRecord,
    Principal, Reference, Request,
};
use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{ApiKeyFilter, Order, PageRequest, WalletFilter};
use holdfast_domain::admin::offer::{ModelOffer, Offers};
use holdfast_domain::admin::{PostingDetails, WalletPatch};
use holdfast_domain::credential::{Bearer, Grant};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::restore::Restore;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{CommandKey, Currency, Incarnation, Micros, NodeAddress, Restores as _};
use holdfast_engine::{
    Catalogue, Engine, Options, Ports, RelayOptions, Secrets, ServingConfig, ServingRules,
};
use holdfast_http::{DirectTransport, HttpConfig};
use holdfast_receipts::key::Signer;
use holdfast_store::migrate::{self, copy};
use holdfast_store::{SchemaError, ServeLock, Store};
use holdfast_telemetry::traces::Tracer;
use holdfast_wire::api::rfc3339;
use tokio::runtime::{Builder, Handle};
use uuid::Uuid;

use super::files;
use crate::core_dump;
use crate::telemetry::Exporter;
use holdfast_bootstrap::accounts;
use holdfast_bootstrap::provider::build;
use holdfast_bootstrap::{database, node};
use holdfast_config::{Config, ProviderKind};

/// Name of the embedded default's first wallet, and of its first API key.
pub(super) const DEFAULT_NAME: &str = "default";
/// Funds of that wallet: ten units of its currency.
const DEFAULT_FUNDS: Micros = Micros::new(10_000_000);
/// Request keys of the steps of a first start: the same at every start, so that each is done once.
const DEFAULT_WALLET: &[u8; 16] = b"holdfast-wallet1";
const DEFAULT_KEY: &[u8; 16] = b"holdfast-api-key";
const DEFAULT_DEPOSIT: &[u8; 16] = b"holdfast-default";

/// With a configuration file no path is created automatically, not even a folder for the lock.
pub(super) fn refuse_missing(config: &Config) -> Result<(), SchemaError> {
    if config.file.is_none() { Ok(()) } else { migrate::exists(&config.database) }
}

/// Refuses a file whose ledger was copied to a server: served as well, both would sell the same balance. `again` takes
/// the mark away, under the right to serve the file.
pub(super) fn refuse_copied(config: &Config, again: bool) -> anyhow::Result<()> {
    if migrate::exists(&config.database).is_err() || !copy::is_copied(&config.database)? {
        return Ok(());
    }
    ensure!(
        again,
        "the ledger of {} was copied to a server: serve that database; if the copy was given up, start with --again",
        config.database
    );
    tracing::warn!(
        "serves a file whose ledger was copied to a server: that copy must not be served"
    );
    Ok(copy::remove_mark(&config.database)?)
}

/// Opens the database. Only the embedded default migrates it by itself.
pub(super) async fn store(config: &Config, lock: Arc<ServeLock>) -> anyhow::Result<Store> {
    if config.file.is_none() {
        migrate::up(&config.database).await.context("the database was not migrated")?;
    }
    let store = database::open_to_serve(config, lock).await?;
    let open = store.open_window().await.context("the window of a restore was not read")?;
    if let Some(Restore { restored_at, unknown_until }) = open {
        tracing::warn!(
            restored_at = %rfc3339(restored_at),
            unknown_until = %rfc3339(unknown_until),
            "the ledger was restored: request keys that it does not know are refused until the window ends"
        );
    }
    Ok(store)
}

/// Keeps secrets in memory out of core dumps, and warns of those that others may read in the configuration.
pub(super) fn guard_secrets(config: &Config) {
    core_dump::forbid();
    warn_of_exposure(config);
}

/// Reports a switched-off guard and an armed step, which only a build with debug assertions can have: no such process
/// may be taken for a gateway that keeps its contract.
pub(super) fn report_faults() {
    if let Some(fault) = holdfast_failpoint::broken_guard() {
        tracing::error!(%fault, "this build runs with a guard switched off");
    }
    if let Some(step) = holdfast_failpoint::armed_step() {
        tracing::error!(%step, "this build stops at a step of a request");
    }
}

/// Warns of secrets in a file that others may read.
pub(super) fn warn_of_exposure(config: &Config) {
    if let Some(exposure) = &config.exposure {
        tracing::warn!("{exposure}");
    }
}

/// On a database without an API key: a wallet with funds and one key. Returns the bearer to keep. A start that
/// ended halfway is taken up at that point; a wallet of another name is proof that the database was set up by
/// hand.
pub(super) async fn first_key(store: &Store, secrets: &Secrets) -> anyhow::Result<Option<String>> {
    let any = PageRequest::first(Order::Oldest, 1);
    if !store.api_keys(ApiKeyFilter::default(), any).await?.rows.is_empty() {
        return Ok(None);
    }
    let nobody_was_here = store.wallets(WalletFilter::default(), any).await?.rows.is_empty();
    let usd = Currency::USD;
    // A start that ended halfway left a wallet of this name and currency: it is taken up.
    let begun = store.wallet_named(DEFAULT_NAME).await?;
    let is_begun = begun.is_some_and(|it| it.wallet.currency == usd);
    let (accounts, principal) = (accounts::over(store, secrets), Principal::local());
    let name: Name = DEFAULT_NAME.parse()?;
    if !is_begun && !nobody_was_here {
        return Ok(None);
    }
    if !is_begun {
        let settings = WalletPatch::default();
        let new = NewWallet { name: name.clone(), currency: usd, settings };
        accounts.create_wallet(&principal, &request(DEFAULT_WALLET), &new).await?;
    }
    let wallet = Reference::Name(name.clone());
    // The key comes last: it is what the next start looks for, so all before it is done by then.
    deposit(&accounts, &wallet).await?;
    let order = KeyOrder { name: Some(name), external_id: None, grant: Grant::default() };
    let issued =
        accounts.issue_api_keys(&principal, &request(DEFAULT_KEY), &wallet, &[order]).await?;
    let bearer = issued.thing.first().and_then(|issued| issued.bearer.as_ref());
    Ok(bearer.map(Bearer::expose))
}

async fn deposit(
    accounts: &Accounts,
    wallet: &Reference,
) -> Result<Outcome<PostingRecord>, AccountsError> {
    let order =
        PostingOrder { amount: DEFAULT_FUNDS, currency: None, details: PostingDetails::default() };
    accounts.deposit(&Principal::local(), &request(DEFAULT_DEPOSIT), wallet, order).await
}

/// Request of a step of the first start, the same at every start.
fn request(step: &[u8; 16]) -> Request {
    Request::new(CommandKey::from_bytes(*step), &[step], None)
}

/// Signer of receipts by the secret that writes, with the public keys of all secrets, and of those that were secrets
/// before.
pub(super) async fn signer(store: &Store, secrets: &Secrets) -> anyhow::Result<Signer> {
    let first = secrets.first().receipt_key();
    let others: Vec<_> = secrets.all().iter().map(ServerSecret::receipt_key).collect();
    let own = Signer::new(&first, &others, &[])?;
    let kept = store.keep_receipt_keys(own.keys().to_vec()).await;
    Ok(Signer::new(&first, &others, &kept.context("the keys of receipts were not kept")?)?)
}

/// Tracer of requests and the export of its spans; `None` for both if traces are off.
pub(super) fn traces(
    config: &Config,
    node: &Node,
) -> anyhow::Result<(Option<Arc<Tracer>>, Option<Exporter>)> {
    let Some(telemetry) = &config.telemetry else { return Ok((None, None)) };
    // Judged with the configuration, which gives the proxies to the providers too.
    let proxies = holdfast_config::proxies();
    let proxies = proxies.map_err(|(name, why)| anyhow::anyhow!("{name} is {why}"))?;
    let (tracer, queue) = Tracer::new(telemetry.sampling);
    let exporter = Exporter::start(telemetry, node.name.as_str(), proxies, queue)?;
    Ok((Some(tracer), Some(exporter)))
}

/// A new incarnation of the node's name: it distinguishes this process from an earlier one of that name.
pub(super) fn node(config: &Config) -> anyhow::Result<Node> {
    Ok(Node { name: node::name(config)?, incarnation: Incarnation::from(Uuid::new_v4()) })
}

/// Starts the engine as this node, which other nodes reach at the address that it `listens` on.
pub(super) async fn engine(
    (config, store): (&Config, &Store),
    secrets: &Secrets,
    node: &Node,
    listens: Option<SocketAddr>,
    serving: ServingConfig,
) -> anyhow::Result<Arc<Engine>> {
    let ports = Ports {
        journal: Arc::new(store.clone()),
        nodes: Arc::new(store.clone()),
        keys: Arc::new(store.clone()),
        wallets: Arc::new(store.clone()),
        events: Arc::new(store.clone()),
        statistics: Arc::new(store.clone()),
    };
    let options = Options {
        node: node.clone(),
        cell: config.server.cell,
        // The lock of a file proves that no other process has the name.
        entry: if config.database.file().is_some() {
            LeaseMode::Take
        } else {
            LeaseMode::TakeExpired
        },
        lease: config.operations.lease,
        heartbeat: config.operations.heartbeat,
        // A busy runtime must not delay heartbeats until the lease ends.
        heartbeat_runtime: Some(heartbeat_runtime()?),
        relay: listens.map(|listens| relay(config, listens)).transpose()?,
        orphan_grace: config.operations.orphan_grace,
        results: config.retention.results,
        statistics: config.retention.statistics,
        result_bytes: config.limits.result_bytes,
        result_bytes_per_key: config.limits.result_bytes_per_key,
    };
    let engine = Engine::start(ports, secrets.clone(), options, serving).await;
    engine.context("serve was not started")
}

fn relay(config: &Config, listens: SocketAddr) -> anyhow::Result<RelayOptions> {
    let advertised = config.node.as_ref().and_then(|node| node.advertise.clone());
    let address = match advertised {
        Some(address) => address,
        None => NodeAddress::try_from(listens.to_string().as_str()).context("node.listen")?,
    };
    Ok(RelayOptions { address, transport: Arc::new(DirectTransport) })
}

/// A thread with a runtime for the heartbeats alone. It ends with the process: other work may await
/// connections that were made there.
fn heartbeat_runtime() -> anyhow::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the runtime of the heartbeats cannot be started")?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("heartbeat".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .context("the thread of the heartbeats cannot be started")?;
    Ok(handle)
}

/// Models that the engine serves at this moment, under the configuration of this moment.
#[derive(Debug)]
pub(super) struct EngineOffers(pub(super) Arc<Engine>);

impl Offers for EngineOffers {
    fn models(&self) -> Vec<ModelOffer> {
        self.0.serving().offers()
    }
}

/// Models and providers under a configuration, with the limits on their use. A provider
/// whose settings were the same `before` stays the same one, with its connections.
pub(super) fn serving(
    config: &Config,
    before: Option<(&BTreeMap<String, ProviderKind>, &ServingConfig)>,
) -> anyhow::Result<ServingConfig> {
    let provider = |(name, kind): (&String, &ProviderKind)| {
        // Same settings, same client: a reload must not close connections that serve well.
        let same = before.filter(|(kinds, _serving)| kinds.get(name) == Some(kind));
        let provider = match same.and_then(|(_kinds, serving)| serving.providers.get(name)) {
            Some(provider) => Arc::clone(provider),
            None => build(name, kind).with_context(|| format!("provider {name}"))?,
        };
        Ok((name.clone(), provider))
    };
    let providers = config.providers.iter().map(provider).collect::<anyhow::Result<_>>()?;
    let limits = &config.limits;
    let rules = ServingRules {
        operations_per_key: limits.operations_per_key,
        waiters_per_operation: limits.waiters_per_operation,
        answer_bytes: limits.answer_bytes,
        cool_down: config.routes,
    };
    let catalogue = Catalogue::new(config.models.iter().cloned());
    let before = before.map(|(_kinds, serving)| serving);
    Ok(ServingConfig::new(catalogue, providers, rules, before))
}

/// Limits of connections and requests under a configuration, the proxies that are believed, and the origins that
/// may call.
pub(super) fn listening(config: &Config) -> HttpConfig {
    // At each reload as well: `limits.connections` may have grown.
    files::allow(config);
    let limits = &config.limits;
    let options = holdfast_http::Options {
        header_bytes: limits.header_bytes,
        body_bytes: limits.body_bytes,
        header_time: limits.header_time,
        idle_time: limits.idle_time,
        body_time: limits.body_time,
        write_time: limits.write_time,
        connections: limits.connections,
        connections_per_address: limits.connections_per_address,
        body_bytes_in_memory: limits.body_bytes_in_memory,
        retry_wait: limits.retry_wait,
    };
    HttpConfig {
        options,
        trusted: config.server.trusted_proxies.as_slice().into(),
        origins: config.server.cors_origins.as_slice().into(),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::wallet::Wallet;
    use holdfast_store::{DatabaseUrl, Options as StoreOptions};
    use holdfast_testkit::Commands as _;
    use tempfile::TempDir;

    use super::*;

    /// How far an earlier start came.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Half {
        Nothing,
        Wallet,
        Deposit,
    }

    async fn store() -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/holdfast.db", folder.path().display());
        let url = DatabaseUrl::parse(&url).unwrap();
        migrate::up(&url).await.unwrap();
        (folder, Store::open(StoreOptions::new(url)).await.unwrap())
    }

    fn secrets() -> Secrets {
        Secrets::new(ServerSecret::new(&[7; 32]).unwrap(), Vec::new())
    }

    async fn create_wallet(store: &Store, name: &str) {
        store.create_wallet(Uuid::new_v4().into(), name, Currency::USD).await.unwrap();
    }

    async fn only_wallet(store: &Store) -> Wallet {
        let mut wallets = store
            .wallets(WalletFilter::default(), PageRequest::first(Order::Oldest, 9))
            .await
            .unwrap()
            .rows;
        assert_eq!(wallets.len(), 1);
        wallets.remove(0).wallet
    }

    #[tokio::test]
    async fn a_first_start_that_ended_halfway_is_taken_up() {
        for half in [Half::Nothing, Half::Wallet, Half::Deposit] {
            let (_folder, store) = store().await;
            if half != Half::Nothing {
                create_wallet(&store, DEFAULT_NAME).await;
                if half == Half::Deposit {
                    let wallet = DEFAULT_NAME.parse().unwrap();
                    deposit(&accounts::over(&store, &secrets()), &wallet).await.unwrap();
                }
            }
            assert!(first_key(&store, &secrets()).await.unwrap().is_some(), "{half:?}");
            assert_eq!(only_wallet(&store).await.available, DEFAULT_FUNDS, "{half:?}");
            assert_eq!(first_key(&store, &secrets()).await.unwrap(), None, "{half:?}");
            assert_eq!(only_wallet(&store).await.available, DEFAULT_FUNDS, "{half:?}");
            store.close().await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_somebody_set_up_by_hand_is_left_alone() {
        let (_folder, store) = store().await;
        create_wallet(&store, "acme").await;
        assert_eq!(first_key(&store, &secrets()).await.unwrap(), None);
        assert_eq!(only_wallet(&store).await.name, "acme");
        store.close().await.unwrap();
    }
}
