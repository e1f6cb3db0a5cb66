//! Objections of the database to a configuration: prices that a reload and a start would refuse, and server
//! secrets that a start would. The check writes no row: a price is not fixed for ever by a check.

use std::cell::RefCell;
use std::collections::HashMap;

use holdfast_config::Config;
use holdfast_domain::admin::Directory;
use holdfast_domain::ports::PinError;
use holdfast_store::Store;
use serde::Serialize;

use holdfast_bootstrap::database;
use holdfast_cli::failure::CommandFailure;

/// Result of the comparison with the database.
#[derive(Debug, Serialize)]
pub(super) struct DatabaseView {
    /// Price versions of the configuration that the database knows already.
    pub(super) prices_known: usize,
    /// Price versions that it will keep for ever once the configuration is loaded.
    pub(super) prices_new: usize,
    /// Settings that are taken, and were probably not meant.
    pub(super) warnings: Vec<String>,
}

/// Compares with the database. A [`CommandFailure::Failed`] is the database's, any other the configuration's.
pub(super) async fn compare(config: &Config) -> Result<DatabaseView, CommandFailure> {
    let store = database::open(config).await?;
    let compared = compare_with(config, &store).await;
    let closed = store.close().await;
    let view = compared?;
    closed.map_err(anyhow::Error::from)?;
    Ok(view)
}

async fn compare_with(config: &Config, store: &Store) -> Result<DatabaseView, CommandFailure> {
    let known = store.price_versions().await.map_err(anyhow::Error::from)?;
    let known: HashMap<_, _> = known.iter().map(|price| (&price.id, price)).collect();
    let configured = config.models.iter().flat_map(|model| &model.prices);
    let (mut conflicts, mut prices_known, mut prices_new) = (Vec::new(), 0, 0);
    for version in configured.map(|price| &price.version) {
        match known.get(&version.id) {
            None => prices_new += 1,
            Some(known) if *known == version => prices_known += 1,
            Some(_) => {
                let id = version.id.clone();
                conflicts.push((id.clone(), PinError::Conflict(id)));
            }
        }
    }
    if !conflicts.is_empty()
        && let Some(mistakes) = config.price_mistakes(conflicts)
    {
        return Err(mistakes.into());
    }
    let live = store.live_credentials().await.map_err(anyhow::Error::from)?;
    let warnings = RefCell::new(Vec::new());
    let warn = |text: &str| warnings.borrow_mut().push(text.to_owned());
    database::judge_secrets(config, &live, warn).map_err(CommandFailure::Usage)?;
    Ok(DatabaseView { prices_known, prices_new, warnings: warnings.into_inner() })
}
