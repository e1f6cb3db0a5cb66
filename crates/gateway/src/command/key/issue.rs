//! `holdfast key issue` and `rotate`: a secret is printed once.

use anyhow::{Context, anyhow};
use holdfast_accounts::{AccountsError, IssuedApiKey, KeyOrder, Outcome, Reference};
use holdfast_config::Config;
use holdfast_domain::account::AccountRefusal;
use holdfast_domain::credential::{BalanceVisibility, Bearer, Grant, UsageScope};
use holdfast_domain::limits::Limits;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Directory as _, Journal as _, Timestamp, WalletId};
use holdfast_store::Store;
use holdfast_wire::api::{IssuedKeyView, rfc3339};
use uuid::Uuid;

use super::{find, id, limits, models, moment};
use crate::accounts::{LocalAccounts, Undone, request};
use crate::cli;
use crate::cli::grant::{Expiry, Span};
use crate::failure::CommandFailure;
use crate::output::{Output, note};

const KEEP: &str = "keep the key now: it is not stored and is not shown again";
const TOLD: &str =
    "it had been issued before, and its secret is not stored: `holdfast key rotate` makes another";

pub(super) async fn issue(
    output: Output,
    config: &Config,
    store: &Store,
    asked: &cli::Issue,
) -> Result<(), CommandFailure> {
    let wallet = crate::accounts::find_wallet(store, &asked.wallet).await?.wallet;
    let grant = grant(config, store, &wallet, asked).await?;
    let LocalAccounts { accounts, principal } = LocalAccounts::open(config, store).await?;
    let words = format!("{asked:?}");
    let request = request(asked.request.uuid, &["key issue", &words], None);
    let (name, external_id) = (asked.name.clone(), asked.external_id.clone());
    let order = KeyOrder { name, external_id, grant };
    let payer = Reference::Id(Uuid::from_bytes(wallet.id.to_bytes()));
    let issued = accounts.issue_api_keys(&principal, &request, &payer, &[order]).await;
    let Outcome { thing, .. } = match issued {
        Ok(issued) => issued,
        Err(AccountsError::Refused(AccountRefusal::NameTaken(name))) => {
            return Err(taken(store, wallet.id, &name).await?.into());
        }
        Err(error) => {
            let nothing = "the API key was not issued";
            return Err(Undone { nothing, key: request.key, currency: None }.because(error));
        }
    };
    let issued = thing.into_iter().next().context("no API key was issued")?;
    let IssuedApiKey { api_key: key, bearer, .. } = &issued;
    let made = [
        ("id", key.id.to_string()),
        ("name", key.name.clone()),
        ("wallet", wallet.name),
        ("limits", limits(&key.grant.limits)),
        ("models", models(&key.grant)),
        ("balance", key.grant.balance.label().to_owned()),
        ("expires_at", moment(key.grant.ends_at)),
        ("key", bearer.as_ref().map_or_else(|| "-".to_owned(), Bearer::expose)),
    ];
    output.object(&IssuedKeyView::of(key, bearer.as_ref()), &made)?;
    note(if bearer.is_some() { KEEP } else { TOLD });
    Ok(())
}

/// A revoked key is not in the way of anybody's work, but its name is: the message says which of the
/// two it is.
async fn taken(store: &Store, wallet: WalletId, name: &str) -> anyhow::Result<anyhow::Error> {
    let others = store.api_keys_named(name, Some(wallet)).await?;
    let is_revoked = others.iter().any(|other| other.revoked_at.is_some());
    let why = if is_revoked { ": it is revoked, and keeps its name in the book" } else { "" };
    Ok(anyhow!("there is an API key named {name} already{why}; choose another name"))
}

pub(super) async fn rotate(
    output: Output,
    config: &Config,
    store: &Store,
    (key, grace, own): (&Reference, Span, cli::RequestKey),
) -> Result<(), CommandFailure> {
    let found = find(store, key).await?;
    let LocalAccounts { accounts, principal } = LocalAccounts::open(config, store).await?;
    let seconds = grace.duration().as_secs().to_string();
    let request = request(own.uuid, &["key rotate", &found.id.to_string(), &seconds], None);
    let rotated =
        accounts.rotate_api_key(&principal, &request, &id(&found), grace.duration()).await;
    let issued = match rotated {
        Ok(Outcome { thing, .. }) => thing,
        Err(AccountsError::Refused(AccountRefusal::ApiKeyEnded)) => {
            return Err(CommandFailure::Failed(anyhow!(
                "{} is revoked or past its end, and was not rotated: issue another API key",
                found.name
            )));
        }
        Err(error) => {
            let nothing = "the API key was not rotated";
            return Err(Undone { nothing, key: request.key, currency: None }.because(error));
        }
    };
    let IssuedApiKey { api_key: key, bearer, others_end_at } = &issued;
    let ends_at = others_end_at.context("the rotation has no end of the others")?;
    let made = [
        ("id", key.id.to_string()),
        ("name", key.name.clone()),
        ("previous_ends_at", rfc3339(ends_at)),
        ("key", bearer.as_ref().map_or_else(|| "-".to_owned(), Bearer::expose)),
    ];
    output.object(&IssuedKeyView::rotated(key, bearer.as_ref(), ends_at), &made)?;
    note(KEEP);
    // Kept answers are sealed with the secret of the credential that asked for them.
    note("answers that were sealed for an earlier credential open with that one alone");
    Ok(())
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
        Some(expiry) => Some(end(store, expiry, "nothing was issued").await?),
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
    Ok(Grant { limits, models, balance, usage: UsageScope::Key, ends_at })
}

/// The moment of an end, which has to be in the future of the clock that will judge it.
pub(crate) async fn end(
    store: &Store,
    expiry: Expiry,
    nothing: &str,
) -> Result<Timestamp, CommandFailure> {
    let now = store.clock().await.context("the database's clock was not read")?;
    match expiry {
        Expiry::After(span) => Ok(now.after(span)),
        Expiry::At(at) if at > now => Ok(at),
        Expiry::At(at) => Err(CommandFailure::Usage(anyhow!(
            "{nothing}: {} has passed, by the database's clock it is {}",
            rfc3339(at),
            rfc3339(now)
        ))),
    }
}
