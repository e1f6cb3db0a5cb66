//! The parts of a gateway, made from its configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{Entry, PinError};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{Incarnation, Micros, PostingId, Prices, Provider, Wallets};
use holdfast_engine::{Catalogue, Engine, Options, Ports, Secrets};
use holdfast_providers::{OpenAi, Simulated};
use holdfast_store::{SchemaError, Store, migrate};
use uuid::Uuid;

use super::node_name;
use crate::command::{key, wallet};
use crate::config::{Config, ProviderKind};
use crate::database;
use crate::failure::Failure;

/// What the first wallet of an embedded default and its first API key are called.
pub(super) const DEFAULT_NAME: &str = "default";
/// What is in that wallet: ten units.
const DEFAULT_FUNDS: Micros = Micros::new(10_000_000);

/// With a configuration file nothing is made by itself, not even a folder for the lock.
pub(super) fn refuse_missing(config: &Config) -> Result<(), SchemaError> {
    let database = config.database.file();
    if config.file.is_none() || database.is_file() {
        Ok(())
    } else {
        Err(SchemaError::Missing(database.to_owned()))
    }
}

/// Opens the database. Only the embedded default migrates it by itself.
pub(super) async fn store(config: &Config) -> anyhow::Result<Store> {
    if config.file.is_none() {
        migrate::up(&config.database.to_string()).await.context("the database was not migrated")?;
    }
    database::open(config).await
}

/// A price version that is known keeps its numbers: others are a mistake of the configuration.
pub(super) async fn pin_prices(config: &Config, store: &Store) -> Result<(), Failure> {
    let prices = config.models.iter().flat_map(|model| &model.prices);
    let versions: Vec<_> = prices.map(|price| price.version.clone()).collect();
    store.pin(&versions).await.map_err(|error| match error {
        PinError::Conflict(_) => Failure::Usage(error.into()),
        PinError::Unavailable(_) => Failure::Failed(error.into()),
    })
}

/// On an empty database: a wallet with funds and an API key. Returns what its bearer must keep.
pub(super) async fn first_key(
    store: &Store,
    secret: &ServerSecret,
) -> anyhow::Result<Option<String>> {
    if !Wallets::list(store).await?.is_empty() {
        return Ok(None);
    }
    let usd = "USD".parse().context("no currency")?;
    let created = wallet::create(store, DEFAULT_NAME, usd).await?;
    let id = PostingId::from(Uuid::new_v4());
    wallet::deposit(store, &created, DEFAULT_FUNDS, id).await?;
    let (_key, bearer) = key::issue(store, secret, created.id, Some(DEFAULT_NAME)).await?;
    Ok(Some(bearer.expose()))
}

/// Starts the engine under a new incarnation of the node's name. The lock of `serve` proves that
/// nobody else has it.
pub(super) async fn engine(
    config: &Config,
    store: &Store,
    secrets: Secrets,
) -> anyhow::Result<Arc<Engine>> {
    let ports = Ports {
        journal: Arc::new(store.clone()),
        nodes: Arc::new(store.clone()),
        keys: Arc::new(store.clone()),
        wallets: Arc::new(store.clone()),
    };
    let node = Node { name: node_name(config)?, incarnation: Incarnation::from(Uuid::new_v4()) };
    let options = Options {
        node,
        entry: Entry::Take,
        lease: config.operations.lease,
        heartbeat: config.operations.heartbeat,
        orphan_grace: config.operations.orphan_grace,
        results: config.retention.results,
        operations_per_key: config.limits.operations_per_key,
        waiters_per_operation: config.limits.waiters_per_operation,
    };
    let catalogue = Catalogue::new(config.models.iter().cloned());
    let engine = Engine::start(ports, secrets, catalogue, providers(config)?, options).await;
    engine.context("serve was not started")
}

fn providers(config: &Config) -> anyhow::Result<BTreeMap<String, Arc<dyn Provider>>> {
    let provider = |(name, kind): (&String, &ProviderKind)| {
        let provider: Arc<dyn Provider> = match kind {
            ProviderKind::Simulated => Arc::new(Simulated::new()),
            ProviderKind::OpenAi(options) => {
                Arc::new(OpenAi::new(options.clone()).with_context(|| format!("provider {name}"))?)
            }
        };
        Ok((name.clone(), provider))
    };
    config.providers.iter().map(provider).collect()
}

pub(super) const fn http_options(config: &Config) -> holdfast_http::Options {
    let limits = &config.limits;
    holdfast_http::Options {
        header_bytes: limits.header_bytes,
        body_bytes: limits.body_bytes,
        header_time: limits.header_time,
        body_time: limits.body_time,
        connections: limits.connections,
        retry_wait: limits.retry_wait,
    }
}
