//! The use cases of administration over a store, with the secrets that a command or a server has.
//!
//! Commands of administration reach them through the API, by an `AdminClient`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_accounts::{Accounts, Principal};
use holdfast_config::Config;
use holdfast_domain::ports::Pause;
use holdfast_engine::Secrets;
use holdfast_store::Store;

use crate::database;

const BETWEEN_OFFERS: Duration = Duration::from_millis(200);

/// The wait between two offers to a store that gave no verdict.
#[derive(Debug)]
pub struct FixedPause;

#[async_trait]
impl Pause for FixedPause {
    async fn pause(&self, _attempt: u32) {
        tokio::time::sleep(BETWEEN_OFFERS).await;
    }
}

/// The use cases over a store, with the secrets that it is served with.
pub fn over(store: &Store, secrets: &Secrets) -> Accounts {
    Accounts::new(Arc::new(store.clone()), secrets.all(), Arc::new(FixedPause))
}

/// The use cases with the cell and the bounds on wallets of a configuration.
pub fn configured(accounts: Accounts, config: &Config) -> Accounts {
    let accounts = accounts.in_cell(config.server.cell);
    match &config.admin {
        Some(admin) => accounts.bounded_by(admin.bounds, admin.creations_per_minute),
        None => accounts,
    }
}

/// Use cases with direct database access, as the actor `local`.
#[derive(Debug)]
pub struct LocalAccounts {
    pub accounts: Accounts,
    pub principal: Principal,
}

impl LocalAccounts {
    /// Use cases that make credentials. The secrets are read, and made if there are none yet; a secret that fits no
    /// credential in force is refused.
    pub async fn open(config: &Config, store: &Store, warn: impl Fn(&str)) -> anyhow::Result<Self> {
        let secrets = database::secrets(config, store, warn).await?;
        let accounts = configured(over(store, &secrets), config);
        Ok(Self { accounts, principal: Principal::local() })
    }

    /// For all other changes, which need a secret for the trail alone: a key whose secret was lost
    /// must still be ended.
    pub async fn to_change(
        config: &Config,
        store: &Store,
        warn: impl Fn(&str),
    ) -> anyhow::Result<Self> {
        let known = database::known_secrets(config);
        if known.is_empty() {
            return Self::open(config, store, warn).await;
        }
        let accounts = Accounts::new(Arc::new(store.clone()), known, Arc::new(FixedPause));
        let accounts = configured(accounts, config);
        Ok(Self { accounts, principal: Principal::local() })
    }

    /// For reads alone, which need no secret.
    pub fn to_read(store: &Store) -> Self {
        let none: [_; 0] = [];
        let accounts = Accounts::new(Arc::new(store.clone()), none, Arc::new(FixedPause));
        Self { accounts, principal: Principal::local() }
    }
}
