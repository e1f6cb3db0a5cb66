//! The store and the server secrets that a configuration names.

use anyhow::Context;
use holdfast_domain::Keys;
use holdfast_engine::Secrets;
use holdfast_store::{Options, Store};

use crate::config::Config;
use crate::secret::{self, IfMissing};

/// Opens the database; it has to be there and to be migrated.
pub(crate) async fn open(config: &Config) -> anyhow::Result<Store> {
    let url = &config.database;
    let commit_queue = config.limits.commit_queue;
    let options = Options { commit_queue, ..Options::new(url.clone()) };
    Store::open(options).await.with_context(|| format!("{url} was not opened"))
}

/// The configured secrets, else the one beside the database. A missing one is made only as long as
/// no API key depends on it.
pub(crate) async fn secrets(config: &Config, store: &Store) -> anyhow::Result<Secrets> {
    if let [first, others @ ..] = config.server.secrets.as_slice() {
        return Ok(Secrets::new(first.clone(), others.to_vec()));
    }
    let keys = Keys::list(store).await?;
    let if_missing = if keys.is_empty() { IfMissing::Make } else { IfMissing::Refuse };
    let first = secret::read(config.database.folder(), if_missing)?;
    Ok(Secrets::new(first, Vec::new()))
}
