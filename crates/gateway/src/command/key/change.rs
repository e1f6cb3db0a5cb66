//! `holdfast key update`, `suspend`, `resume` and `revoke`.

use holdfast_config::Config;
use holdfast_domain::account::ApiKeyPatch;
use holdfast_store::Store;
use holdfast_wire::api::ApiKeyView;

use super::issue::end;
use super::{fields, find, id};
use crate::accounts::{LocalAccounts, Undone, request};
use crate::cli;
use crate::failure::CommandFailure;
use crate::output::{Output, note};

const WITHIN: &str = "a running `holdfast serve` obeys within 5 seconds";

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::KeyChange,
) -> Result<(), CommandFailure> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_change(config, store).await?;
    let words = format!("{command:?}");
    let words = ["key", &words];
    let (nothing, asked, done, after) = match command {
        cli::KeyChange::Suspend { key, reason, request: own } => {
            let before = find(store, &key).await?;
            let asked = request(own.uuid, &words, Some(&reason));
            let done = accounts.suspend_api_key(&principal, &asked, &id(&before)).await;
            ("the API key was not suspended", asked, done, WITHIN)
        }
        cli::KeyChange::Resume { key, request: own } => {
            let before = find(store, &key).await?;
            let asked = request(own.uuid, &words, None);
            let done = accounts.resume_api_key(&principal, &asked, &id(&before)).await;
            ("the API key was not resumed", asked, done, WITHIN)
        }
        cli::KeyChange::Revoke { key, request: own } => {
            let before = find(store, &key).await?;
            let asked = request(own.uuid, &words, None);
            let done = accounts.revoke_api_key(&principal, &asked, &id(&before)).await;
            let after = if before.revoked_at.is_some() {
                "it had been revoked before"
            } else {
                "a running `holdfast serve` turns it away within 5 seconds"
            };
            ("the API key was not revoked", asked, done, after)
        }
        cli::KeyChange::Update(update) => {
            let before = find(store, &update.key).await?;
            let own = update.request;
            let patch = patch(store, *update).await?;
            let asked = request(own.uuid, &words, None);
            let done = accounts.edit_api_key(&principal, &asked, &id(&before), patch, None).await;
            ("the API key was not changed", asked, done, WITHIN)
        }
    };
    let undone = Undone { nothing, key: asked.key, currency: None };
    let changed = done.map_err(|error| undone.because(error))?.thing;
    output.object(&ApiKeyView::of(&changed), &fields(&changed))?;
    note(after);
    Ok(())
}

async fn patch(store: &Store, update: cli::UpdateKey) -> Result<ApiKeyPatch, CommandFailure> {
    let ends_at = match update.expires {
        Some(expiry) => Some(Some(end(store, expiry).await?)),
        None => update.no_expires.then_some(None),
    };
    let models = update.models.map(|models| Some(models.ids().clone()));
    let spend = update.spend_limit.map(|spend| Some(spend.limit()));
    Ok(ApiKeyPatch {
        name: update.name.map(|name| name.as_str().to_owned()),
        requests_per_minute: update.rpm.map(|limit| limit.0),
        tokens_per_minute: update.tpm.map(|limit| limit.0),
        concurrency: update.concurrency.map(|limit| limit.0),
        spend: spend.or(update.no_spend_limit.then_some(None)),
        models: models.or(update.all_models.then_some(None)),
        ends_at,
        ..ApiKeyPatch::default()
    })
}
