//! The desk that a command of administration works at: a door to the API, and what is known beside
//! it.
//!
//! A desk beside the database also has the configuration, and warns of what callers would run into:
//! a model that is not configured, a currency without a price. Over the network nobody knows the
//! server's files.

use holdfast_admin::LocalApi;
use holdfast_config::{Config, SecretUse};
use holdfast_store::Store;

use crate::accounts::LocalAccounts;
use crate::cli::{AdminKey, Command, Key, Operation, Wallet};
use crate::door::{Door, LocalDoor};
use crate::output::Output;

/// Place of work of a command of administration.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) output: Output,
    pub(crate) door: Door,
    /// The configuration, beside the database alone.
    pub(crate) config: Option<&'a Config>,
}

/// Secrets that a command needs beside the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// None: it reads.
    Nothing,
    /// One for the trail: a key whose own secret was lost must still be ended.
    Trail,
    /// The one that writes: it makes a secret for somebody, and one that fits no credential in force
    /// is refused.
    Issue,
}

impl Need {
    /// Need of a command of administration; `None` for one that is done beside the database alone.
    pub(super) const fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Wallet(command) => match command {
                Wallet::Show { .. } | Wallet::List | Wallet::Posting { .. } => Some(Self::Nothing),
                Wallet::Create { .. } | Wallet::Change(_) | Wallet::Post(_) => Some(Self::Trail),
                Wallet::Ledger { .. } => None,
            },
            Command::Key(command) => match command {
                Key::List | Key::Show { .. } => Some(Self::Nothing),
                Key::Change(_) => Some(Self::Trail),
                Key::Issue(_) | Key::Rotate { .. } => Some(Self::Issue),
            },
            Command::AdminKey(command) => match command {
                AdminKey::Revoke { .. } => Some(Self::Trail),
                AdminKey::Issue { .. } | AdminKey::Rotate { .. } => Some(Self::Issue),
            },
            Command::Operation(command) => match command {
                Operation::Show(_) | Operation::List { .. } => Some(Self::Nothing),
                Operation::Cancel { .. } => Some(Self::Trail),
                Operation::Reconcile => None,
            },
            Command::Serve
            | Command::CheckConfig { .. }
            | Command::Migrate(_)
            | Command::Usage(_)
            | Command::Ledger(_) => None,
        }
    }

    /// Secrets of the configuration that it uses.
    pub(super) const fn secrets(self) -> SecretUse {
        match self {
            Self::Nothing => SecretUse::Database,
            Self::Trail | Self::Issue => SecretUse::Book,
        }
    }

    /// The door to this database.
    pub(super) async fn door(self, config: &Config, store: &Store) -> anyhow::Result<Door> {
        let LocalAccounts { accounts, .. } = match self {
            Self::Nothing => LocalAccounts::to_read(store),
            Self::Trail => LocalAccounts::to_change(config, store).await?,
            Self::Issue => LocalAccounts::open(config, store).await?,
        };
        Ok(Door::Local(Box::new(LocalDoor::new(LocalApi::new(accounts)))))
    }
}
