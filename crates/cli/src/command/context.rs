//! Context of a command of administration: a client of the API, and the known configuration.
//!
//! A context with direct database access also has the configuration, and warns of settings that would fail callers:
//! a model that is not configured, a currency without a price. Over the network the server's files are unknown.

use std::sync::Arc;

use holdfast_admin::{AdminOptions, LocalApi};
use holdfast_config::{Config, SecretUse};
use holdfast_domain::admin::offer::{ModelOffer, Offers, RouteHealth, RouteOffer};
use holdfast_engine::{Model, Route};
use holdfast_store::Store;

use crate::admin_client::{AdminClient, ChangeOutcome, ChangeRequest, InProcessClient};
use crate::arguments::read::JobCommand;
use crate::arguments::{
    AdminCommand, AdminKey, Key, Ledger, Operation, Person, Read, UsageCommand, Wallet, Webhook,
    WebhookChange, WebhookVerb,
};
use crate::failure::Result;
use crate::output::{Output, note};
use holdfast_bootstrap::accounts::LocalAccounts;

/// Place of work of a command of administration.
#[derive(Debug)]
pub(crate) struct CommandContext<'a> {
    pub(crate) output: Output,
    pub(crate) client: AdminClient,
    /// Database and configuration of this machine; `None` over the network.
    pub(crate) local: Option<LocalLedger<'a>>,
}

/// An open database, with its configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalLedger<'a> {
    pub(crate) config: &'a Config,
    pub(crate) store: &'a Store,
}

impl CommandContext<'_> {
    /// Sends a change. `nothing` names in an error the work that was not done.
    pub(super) async fn change(
        &self,
        nothing: &str,
        change: &ChangeRequest,
    ) -> Result<ChangeOutcome> {
        let done = self.client.change(change).await;
        done.map_err(|error| error.of_change(nothing, change.key()))
    }
}

/// Secrets that a command needs with direct database access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequiredSecrets {
    /// None: it reads.
    Nothing,
    /// Secrets of the configuration; none is made.
    Known,
    /// A secret for the audit log: a key whose own secret was lost must still be ended.
    Trail,
    /// The secret that writes: the command makes a credential, and a secret that fits none in force is
    /// refused.
    Issue,
    /// The same, and the judge of a receiver's address.
    Receiver,
}

impl RequiredSecrets {
    /// Secrets that this command needs.
    pub(super) const fn of(command: &AdminCommand) -> Self {
        match command {
            AdminCommand::Wallet(command) => match command {
                Wallet::Show { .. }
                | Wallet::List { .. }
                | Wallet::Posting { .. }
                | Wallet::Ledger { .. } => Self::Nothing,
                Wallet::Create { .. } | Wallet::Change(_) | Wallet::Post(_) => Self::Trail,
            },
            AdminCommand::Key(command) => match command {
                Key::List { .. } | Key::Show { .. } => Self::Nothing,
                Key::Change(_) => Self::Trail,
                Key::Issue(_) | Key::Rotate { .. } => Self::Issue,
            },
            AdminCommand::AdminKey(command) => match command {
                AdminKey::List { .. } | AdminKey::Show { .. } => Self::Nothing,
                AdminKey::Revoke { .. } => Self::Trail,
                AdminKey::Issue { .. } | AdminKey::Rotate { .. } => Self::Issue,
            },
            AdminCommand::Person(command) => match command {
                Person::List { .. } | Person::Show { .. } => Self::Nothing,
                // A link is not a credential: it fits no other secret.
                Person::Invite { .. }
                | Person::Link { .. }
                | Person::Revoke { .. }
                | Person::End { .. } => Self::Trail,
            },
            AdminCommand::Operation(command) => match command {
                Operation::Show(_)
                | Operation::List(_)
                | Operation::Held { .. }
                | Operation::Proof { .. }
                | Operation::Reconcile { operation: None, .. } => Self::Nothing,
                Operation::Cancel { .. } => Self::Trail,
                Operation::Reconcile { operation: Some(_), .. } => Self::Trail,
            },
            AdminCommand::Webhook(command) => match command {
                Webhook::List { .. } | Webhook::Show { .. } | Webhook::Deliveries { .. } => {
                    Self::Nothing
                }
                Webhook::Create { .. }
                | Webhook::Change(
                    WebhookChange::Update { .. }
                    | WebhookChange::Rotate { .. }
                    | WebhookChange::Verb(WebhookVerb::Enable { .. }),
                ) => Self::Receiver,
                Webhook::Change(_) => Self::Trail,
            },
            AdminCommand::Read(Read::Job(JobCommand::Cancel { .. })) => Self::Trail,
            AdminCommand::Read(_) => Self::Nothing,
            AdminCommand::Usage(UsageCommand::Report(_)) => Self::Nothing,
            AdminCommand::Ledger(Ledger::Export(_) | Ledger::Roots { .. }) => Self::Nothing,
            AdminCommand::Usage(UsageCommand::ExcludeCosts { .. })
            | AdminCommand::Ledger(Ledger::Verify { .. }) => Self::Known,
        }
    }

    /// Secrets of the configuration that it uses.
    pub(super) const fn secrets(self) -> SecretUse {
        match self {
            Self::Nothing => SecretUse::Database,
            Self::Known | Self::Trail | Self::Issue | Self::Receiver => SecretUse::Book,
        }
    }

    /// Client of the API over this database.
    pub(super) async fn client(
        self,
        config: &Config,
        store: &Store,
    ) -> anyhow::Result<AdminClient> {
        let LocalAccounts { accounts, .. } = match self {
            Self::Nothing | Self::Known => LocalAccounts::to_read(store),
            Self::Trail => LocalAccounts::to_change(config, store, note).await?,
            Self::Issue | Self::Receiver => LocalAccounts::open(config, store, note).await?,
        };
        // As a server of this configuration would judge receivers and offer models.
        let accounts = match self {
            Self::Receiver => accounts.judging(Arc::new(holdfast_bootstrap::receivers(config)?)),
            Self::Nothing | Self::Known | Self::Trail | Self::Issue => accounts,
        };
        let accounts = accounts.serving(Arc::new(ConfiguredOffers::of(config)));
        // A port that the kernel chooses is known only to the process that has it.
        let holders = config
            .console
            .holders
            .as_ref()
            .filter(|it| it.url.is_some() || it.listen.first().port() != 0);
        let holders = holders.map(|holders| holders.origin(holders.listen.first()));
        let url = config.admin.as_ref().and_then(|admin| admin.url.clone());
        let listens = config.admin.as_ref().map(|admin| admin.listen.first());
        let api = LocalApi::new(accounts, AdminOptions::of_links(url, holders));
        Ok(AdminClient::Local(Box::new(InProcessClient::new(api, listens))))
    }
}

/// Models that a configuration has, as a server that begins with it offers them: no route has failed
/// yet.
#[derive(Debug)]
struct ConfiguredOffers(Vec<ModelOffer>);

impl ConfiguredOffers {
    fn of(config: &Config) -> Self {
        let route = |route: &Route| RouteOffer {
            name: route.name(),
            priority: route.priority,
            weight: route.weight,
            concurrency: route.concurrency,
            in_flight: 0,
            health: RouteHealth::Well,
            cost: route.cost.clone(),
            cools_for: None,
        };
        let offer = |model: &Model| ModelOffer {
            contract: model.contract.clone(),
            routes: model.routes.iter().map(route).collect(),
        };
        let mut offers: Vec<_> = config.models.iter().map(offer).collect();
        offers.sort_by(|one, other| one.contract.model.cmp(&other.contract.model));
        Self(offers)
    }
}

impl Offers for ConfiguredOffers {
    fn models(&self) -> Vec<ModelOffer> {
        self.0.clone()
    }
}
