//! `holdfast key`: issues, lists, rotates and revokes API keys.
//!
//! An API key is a row with a wallet, limits and models; callers show a *bearer*, which names one
//! of its credentials and proves its secret. The store has a verifier of the secret alone, made
//! with the server secret. The bearer is printed once, and nobody can print it again.
//!
//! Rotation adds a credential and gives the earlier ones an end; revocation ends the key with all
//! of them. A running `serve` takes both from the database within seconds, without a message.
//!
//! Ends are judged by the clock of the database, which all nodes share, in the transaction that writes
//! them.

mod change;
pub(super) mod issue;

use anyhow::{Context, anyhow};
use holdfast_accounts::{AccountsError, Reference};
use holdfast_config::Config;
use holdfast_domain::credential::{ApiKey, Grant};
use holdfast_domain::limits::{Counter, Limits};
use holdfast_domain::listing::{ApiKeyFilter, ApiKeyListing, LiveCredential, Order};
use holdfast_domain::{Directory as _, Timestamp};
use holdfast_store::Store;
use holdfast_wire::api::{CountedKeyView, CredentialView, ListedKeyView, rfc3339};

use super::pages::{self, ALL};
use crate::accounts::LocalAccounts;
use crate::cli;
use crate::failure::CommandFailure;
use crate::output::Output;

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::Key,
) -> Result<(), CommandFailure> {
    match command {
        cli::Key::Issue(asked) => issue::issue(output, config, store, &asked).await,
        cli::Key::List => list(output, store).await,
        cli::Key::Show { key } => show(output, store, &key).await,
        cli::Key::Rotate { key, grace, request } => {
            issue::rotate(output, config, store, (&key, grace, request)).await
        }
        cli::Key::Change(command) => change::run(output, config, store, command).await,
    }
}

async fn show(output: Output, store: &Store, key: &Reference) -> Result<(), CommandFailure> {
    let found = find(store, key).await?;
    let LocalAccounts { accounts, principal } = LocalAccounts::to_read(store);
    let record = accounts.api_key(&principal, &id(&found), None).await;
    let record = record.context("the API key was not shown")?;
    let mut lines = fields(&record.api_key).to_vec();
    let state = record.api_key.suspended_at.map(|at| ("suspended_at", rfc3339(at)));
    lines.extend(state);
    lines.extend(Counter::ALL.map(|counter| {
        let used = record.counters.counters.used(counter).unwrap_or(0);
        (counter.label(), used.to_string())
    }));
    output.object(&CountedKeyView::of(&record.api_key, &record.counters), &lines)
}

async fn list(output: Output, store: &Store) -> Result<(), CommandFailure> {
    let (mut views, mut rows) = (Vec::new(), Vec::new());
    let add = |ApiKeyListing { api_key, credentials }| {
        let view = |it: &LiveCredential| CredentialView::of(it.id, it.created_at, it.ends_at);
        views.push(ListedKeyView::of(&api_key, credentials.iter().map(view).collect()));
        let [id, name, wallet, limits, models, balance, created, expires, revoked] =
            fields(&api_key).map(|(_, value)| value);
        let own = in_force(&credentials);
        rows.push([id, name, wallet, limits, models, balance, own, created, expires, revoked]);
    };
    let page = |request| store.api_keys(ApiKeyFilter::default(), request);
    pages::read(Order::Oldest, ALL, page, add).await.context("API keys were not listed")?;
    let [id, name, wallet, limits, models, balance, created, expires, revoked] = COLUMNS;
    let own = "credentials";
    let head = [id, name, wallet, limits, models, balance, own, created, expires, revoked];
    output.list(&views, head, &rows)
}

/// Count of an API key's credentials in force, with the earliest end among them.
fn in_force(credentials: &[LiveCredential]) -> String {
    let count = credentials.len();
    let next = credentials.iter().filter_map(|credential| credential.ends_at).min();
    next.map_or_else(|| count.to_string(), |end| format!("{count}, next end {}", rfc3339(end)))
}

/// The API key of this id or name.
pub(super) async fn find(store: &Store, reference: &Reference) -> anyhow::Result<ApiKey> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_read(store);
    match accounts.api_key(&principal, reference, None).await {
        Ok(found) => Ok(found.api_key),
        Err(AccountsError::NotFound(_)) => {
            Err(anyhow!("there is no API key {reference}: `holdfast key list` shows all"))
        }
        Err(error @ AccountsError::Ambiguous(_)) => Err(error.into()),
        Err(error) => Err(anyhow::Error::from(error).context("the API key was not looked up")),
    }
}

/// Reference to a key that was found: its name may be another wallet's as well.
fn id(key: &ApiKey) -> Reference {
    Reference::Id(uuid::Uuid::from_bytes(key.id.to_bytes()))
}

const COLUMNS: [&str; 9] = [
    "id",
    "name",
    "wallet_id",
    "limits",
    "models",
    "balance",
    "created_at",
    "expires_at",
    "revoked_at",
];

fn fields(key: &ApiKey) -> [(&'static str, String); COLUMNS.len()] {
    let [id, name, wallet, limited, allowed, balance, created, expires, revoked] = COLUMNS;
    [
        (id, key.id.to_string()),
        (name, key.name.clone()),
        (wallet, key.wallet.to_string()),
        (limited, limits(&key.grant.limits)),
        (allowed, models(&key.grant)),
        (balance, key.grant.balance.label().to_owned()),
        (created, rfc3339(key.created_at)),
        (expires, moment(key.grant.ends_at)),
        (revoked, moment(key.revoked_at)),
    ]
}

fn limits(limits: &Limits) -> String {
    let count = |limit: Option<u64>, name: &str| limit.map(|limit| format!("{limit} {name}"));
    let spend = limits.spend.map(|spend| format!("{}/{}", spend.micros, spend.window.label()));
    let all = [
        count(limits.requests_per_minute, "rpm"),
        count(limits.tokens_per_minute, "tpm"),
        count(limits.concurrency, "at once"),
        spend,
    ];
    let set: Vec<_> = all.into_iter().flatten().collect();
    if set.is_empty() { "-".to_owned() } else { set.join(", ") }
}

fn models(grant: &Grant) -> String {
    let Some(models) = &grant.models else { return "all".to_owned() };
    models.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn moment(moment: Option<Timestamp>) -> String {
    moment.map_or_else(|| "-".to_owned(), rfc3339)
}
