//! `holdfast key`: issues, lists, rotates and revokes API keys.
//!
//! An API key is a row with a wallet, limits and models; callers show a *bearer*, which names one
//! of its credentials and proves its secret. The store has a verifier of the secret alone, made
//! with the server secret. The bearer is printed once, and nobody can print it again.
//!
//! Rotation adds a credential and gives the earlier ones an end; revocation ends the key with all
//! of them. A running `serve` takes both from the database within seconds, without a message.
//!
//! Ends are judged by the clock of the database, which all nodes share, and are checked against it
//! before anything is written.

use anyhow::{Context, anyhow};
use holdfast_domain::credential::{ApiKey, BalanceVisibility, Grant};
use holdfast_domain::limits::Limits;
use holdfast_domain::ports::RotateError;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, ApiKeys, Journal, Timestamp};
use holdfast_store::Store;
use holdfast_store::list::{ApiKeyFilter, ApiKeyListing, Order};
use holdfast_store::report::LiveCredential;
use holdfast_wire::api::{ApiKeyView, CredentialView, IssuedKeyView, ListedKeyView, rfc3339};

use super::pages::{self, ALL};
use super::wallet;
use crate::accounts::{credential, issue_key};
use crate::cli;
use crate::cli::grant::{Expiry, Span};
use crate::cli::value::{Name, Reference};
use crate::database;
use crate::failure::CommandFailure;
use crate::output::{Output, note};
use holdfast_config::Config;

const KEEP: &str = "keep the key now: it is not stored and is not shown again";

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::Key,
) -> Result<(), CommandFailure> {
    match command {
        cli::Key::Issue(asked) => {
            let wallet = wallet::find(store, &asked.wallet).await?;
            let grant = grant(config, store, &wallet, &asked).await?;
            let secrets = database::secrets(config, store, note).await?;
            let name = asked.name.as_ref().map(Name::as_str);
            let (key, bearer) = issue_key(store, secrets.first(), wallet.id, name, grant).await?;
            let made = [
                ("id", key.id.to_string()),
                ("name", key.name.clone()),
                ("wallet", wallet.name),
                ("limits", limits(&key.grant.limits)),
                ("models", models(&key.grant)),
                ("balance", key.grant.balance.label().to_owned()),
                ("expires_at", moment(key.grant.ends_at)),
                ("key", bearer.expose()),
            ];
            output.object(&IssuedKeyView::of(&key, &bearer), &made)?;
            note(KEEP);
            Ok(())
        }
        cli::Key::List => list(output, store).await,
        cli::Key::Rotate { key, grace } => rotate(output, config, store, &key, grace).await,
        cli::Key::Revoke { key } => {
            let key = find(store, &key).await?;
            let revoked_at = store.revoke(key.id).await.context("the API key was not revoked")?;
            let again = key.revoked_at.is_some();
            let key = ApiKey { revoked_at, ..key };
            output.object(&ApiKeyView::of(&key), &fields(&key))?;
            if again {
                note("it had been revoked before");
            } else {
                note("a running `holdfast serve` turns it away within 5 seconds");
            }
            Ok(())
        }
    }
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

/// The grant that the arguments describe, checked against the configured models and the database's
/// clock.
async fn grant(
    config: &Config,
    store: &Store,
    wallet: &Wallet,
    asked: &cli::Issue,
) -> Result<Grant, CommandFailure> {
    for id in asked.models.iter().flat_map(|models| models.ids()) {
        let Some(model) = config.models.iter().find(|model| model.contract.model == *id) else {
            return Err(CommandFailure::Usage(anyhow!(
                "nothing was issued: there is no model {id} in the configuration; configure it first"
            )));
        };
        // A note and no refusal: the price may be on its way into the configuration.
        if model.prices.iter().all(|price| price.version.currency != wallet.currency) {
            let currency = wallet.currency;
            note(&format!("{id} has no price in {currency}: the key cannot use it until it has"));
        }
    }
    let ends_at = match asked.expires {
        Some(expiry) => Some(end(store, expiry).await?),
        None => None,
    };
    let limits = Limits {
        requests_per_minute: asked.rpm,
        tokens_per_minute: asked.tpm,
        concurrency: asked.concurrency,
        spend: asked.spend_limit.map(cli::grant::SpendCap::limit),
    };
    let balance =
        if asked.hide_balance { BalanceVisibility::Hidden } else { BalanceVisibility::Shown };
    let models = asked.models.as_ref().map(|models| models.ids().clone());
    Ok(Grant { limits, models, balance, ends_at })
}

/// The moment of an end, which has to be in the future of the clock that will judge it.
async fn end(store: &Store, expiry: Expiry) -> Result<Timestamp, CommandFailure> {
    let now = store.clock().await.context("the database's clock was not read")?;
    match expiry {
        Expiry::After(span) => Ok(now.after(span)),
        Expiry::At(at) if at > now => Ok(at),
        Expiry::At(at) => Err(CommandFailure::Usage(anyhow!(
            "nothing was issued: {} has passed, by the database's clock it is {}",
            rfc3339(at),
            rfc3339(now)
        ))),
    }
}

async fn rotate(
    output: Output,
    config: &Config,
    store: &Store,
    key: &Reference,
    grace: Span,
) -> Result<(), CommandFailure> {
    let found = find(store, key).await?;
    let secrets = database::secrets(config, store, note).await?;
    let (credential, bearer) = credential(secrets.first(), found.id)?;
    let rotation = match store.rotate(&credential, grace.duration()).await {
        Ok(rotation) => rotation,
        Err(RotateError::Ended) => {
            return Err(CommandFailure::Failed(anyhow!(
                "{} is revoked or past its end, and was not rotated: issue another API key",
                found.name
            )));
        }
        Err(error @ (RotateError::NoKey | RotateError::Taken | RotateError::Unavailable(_))) => {
            let error = anyhow::Error::from(error).context("the API key was not rotated");
            return Err(CommandFailure::Failed(error));
        }
    };
    let (key, ends_at) = (&rotation.api_key, rotation.others_end_at);
    let made = [
        ("id", key.id.to_string()),
        ("name", key.name.clone()),
        ("previous_ends_at", rfc3339(ends_at)),
        ("key", bearer.expose()),
    ];
    output.object(&IssuedKeyView::rotated(key, &bearer, ends_at), &made)?;
    note(KEEP);
    // Kept answers are sealed with the secret of the credential that asked for them.
    note("answers that were sealed for an earlier credential open with that one alone");
    Ok(())
}

/// The API key of this id or name.
pub(super) async fn find(store: &Store, reference: &Reference) -> anyhow::Result<ApiKey> {
    let found = match reference {
        Reference::Id(id) => store.api_key(ApiKeyId::from(*id)).await,
        Reference::Name(name) => store.api_key_named(name.as_str()).await,
    };
    let found = found.context("the API key was not looked up")?;
    found.ok_or_else(|| anyhow!("there is no API key {reference}: `holdfast key list` shows all"))
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
