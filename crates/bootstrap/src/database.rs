//! The store and the server secrets that a configuration names.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use holdfast_domain::Journal as _;
use holdfast_domain::admin::listing::LiveCredential;
use holdfast_domain::ports::Durability;
use holdfast_domain::secret::ServerSecret;
use holdfast_engine::Secrets;
use holdfast_store::{Options, ServeLock, Store};

use crate::secret::{self, IfMissing};
use holdfast_config::{Config, RetentionConfig};

/// Remedy for a server whose commits reach no standby.
const REMEDY: &str =
    "set its synchronous_standby_names, as docs/how-to/high-availability.md has it";

/// Opens the database for a command; it has to be there and to be migrated.
pub async fn open(config: &Config) -> anyhow::Result<Store> {
    let store = Store::open(options(config)).await?;
    keep_events(&store, &config.retention);
    Ok(store)
}

/// Opens the database to serve it.
pub async fn open_to_serve(config: &Config, lock: Arc<ServeLock>) -> anyhow::Result<Store> {
    let store = Store::open(Options { lock: Some(lock), ..options(config) }).await?;
    keep_events(&store, &config.retention);
    check_durability(config, &store)?;
    Ok(store)
}

/// Checks that a standby confirms commits: a failover loses others, although callers have their answers. A file has no
/// failover.
fn check_durability(config: &Config, store: &Store) -> anyhow::Result<()> {
    match store.durability() {
        Durability::Local if config.database.file().is_none() => {
            ensure!(
                !config.requires_synchronous,
                "no standby of the PostgreSQL server is synchronous, and database.require_synchronous is set: {REMEDY}"
            );
            tracing::warn!(
                durability = Durability::Local.label(),
                "no standby of the PostgreSQL server is synchronous, so a failover loses commits: {REMEDY}"
            );
        }
        Durability::Local | Durability::Replicated => {}
    }
    Ok(())
}

/// Configures whether the store lists events.
pub fn keep_events(store: &Store, retention: &RetentionConfig) {
    store.list_events(retention.events);
}

fn options(config: &Config) -> Options {
    let commit_queue = config.limits.commit_queue;
    // Larger ones are read when there is room for them.
    let result_bytes_max = holdfast_engine::Options::SMALL_RESULT;
    Options { commit_queue, result_bytes_max, ..Options::new(config.database.clone()) }
}

/// The configured secrets, else the one in the folder of the database. A missing one is created only as long as
/// no credential in force depends on it. Secrets that fit none of those are refused. If only some credentials
/// are left without theirs, `warn` is called.
pub async fn secrets(
    config: &Config,
    store: &Store,
    warn: impl Fn(&str),
) -> anyhow::Result<Secrets> {
    let live = store.live_credentials().await.context("API keys were not read")?;
    // With keys in force a missing file was lost: a new secret would hide that, and refuse them all.
    let if_missing = if live.is_empty() { IfMissing::Make } else { IfMissing::Refuse };
    let secrets = read_secrets(config, if_missing, &warn)?;
    check_secrets(config, &secrets, &live, warn)?;
    Ok(secrets)
}

/// Judges what [`secrets`] refuses or warns of with these credentials in force; creates no secret.
pub fn judge_secrets(
    config: &Config,
    live: &[LiveCredential],
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    // A start makes what is missing as long as nothing depends on it.
    if live.is_empty() && config.server.secrets.is_empty() {
        return Ok(());
    }
    let secrets = read_secrets(config, IfMissing::Refuse, &warn)?;
    check_secrets(config, &secrets, live, warn)
}

fn read_secrets(
    config: &Config,
    if_missing: IfMissing,
    warn: impl Fn(&str),
) -> anyhow::Result<Secrets> {
    if let [first, others @ ..] = config.server.secrets.as_slice() {
        return Ok(Secrets::new(first.clone(), others.to_vec()));
    }
    let folder = config.database.folder().context("there are no server secrets")?;
    let secret = secret::read(folder, if_missing)?;
    if secret::is_open(folder) {
        let file = folder.join(secret::FILE_NAME);
        let file = file.display();
        warn(&format!("{file} is a file that others may read: run `chmod 600 {file}`"));
    }
    Ok(Secrets::new(secret, Vec::new()))
}

/// Check at the start: with a wrong secret each caller would get 401, and this process would report no error.
fn check_secrets(
    config: &Config,
    secrets: &Secrets,
    live: &[LiveCredential],
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    let (known, lost): (Vec<_>, Vec<_>) =
        live.iter().partition(|credential| secrets.find(credential.server_secret).is_some());
    if lost.is_empty() {
        return Ok(());
    }
    let (keys, advice) = (count_keys(&lost), advice(config, &lost));
    if known.is_empty() {
        let place = place(config);
        bail!(
            "{place} has no secret that the API keys in force ({keys}) were made with, and would have \
             every caller answered 401; {advice}"
        );
    }
    let all = count_keys(&live.iter().collect::<Vec<_>>());
    warn(&format!(
        "{keys} of {all} API keys in force have credentials that were made with a secret that is not \
         configured, and those are answered 401; {advice}"
    ));
    Ok(())
}

/// The secrets that are known without making one: for reads, which can do without.
pub fn known_secrets(config: &Config) -> Vec<ServerSecret> {
    if !config.server.secrets.is_empty() {
        return config.server.secrets.clone();
    }
    let folder = config.database.folder();
    folder.and_then(|folder| secret::read(folder, IfMissing::Refuse).ok()).into_iter().collect()
}

fn count_keys(credentials: &[&LiveCredential]) -> usize {
    credentials.iter().map(|credential| credential.api_key).collect::<BTreeSet<_>>().len()
}

/// Place of the secrets for a message: the file beside the database, or the setting.
fn place(config: &Config) -> String {
    match config.database.folder() {
        Some(folder) if config.server.secrets.is_empty() => {
            folder.join(secret::FILE_NAME).display().to_string()
        }
        Some(_) | None => "server.secrets".to_owned(),
    }
}

/// Advice on bringing back the secret of these credentials: from the file in the database's folder if that fits
/// one of them, else from the place in which it is kept.
fn advice(config: &Config, lost: &[&LiveCredential]) -> String {
    let file = config.database.folder().filter(|folder| {
        let beside = secret::read(folder, IfMissing::Refuse).ok();
        beside.is_some_and(|secret| lost.iter().any(|it| it.server_secret == secret.id()))
    });
    let back = match file.map(|folder| folder.join(secret::FILE_NAME)) {
        Some(file) => format!(
            "they were made with the one in {}: add its content to server.secrets as an entry, or leave \
             server.secrets out",
            file.display()
        ),
        None => "put that secret back into server.secrets, where all that ever wrote are kept"
            .to_owned(),
    };
    format!("{back}; where it is gone for good, end such keys with `holdfast key revoke`")
}
