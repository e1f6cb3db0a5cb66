//! `holdfast admin-key`: issues, rotates and ends the keys of the administration.

use holdfast_accounts::{NewAdminKey, Reference};
use holdfast_config::Config;
use holdfast_domain::AdminKeyId;
use holdfast_domain::account::{AdminBearer, Reach};
use holdfast_store::Store;
use serde::Serialize;

use super::key::issue::end;
use crate::accounts::{LocalAccounts, Undone, request};
use crate::cli;
use crate::failure::CommandFailure;
use crate::output::{Output, note};

/// An admin key, with what its bearer must keep.
#[derive(Serialize)]
struct AdminKeyView {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::AdminKey,
) -> Result<(), CommandFailure> {
    let LocalAccounts { accounts, principal } = LocalAccounts::open(config, store).await?;
    let words = format!("{command:?}");
    let (cli::AdminKey::Issue { request: own, .. }
    | cli::AdminKey::Rotate { request: own, .. }
    | cli::AdminKey::Revoke { request: own, .. }) = &command;
    let asked = request(own.uuid, &["admin-key", &words], None);
    let undone = |nothing| Undone { nothing, key: asked.key, currency: None };
    match command {
        cli::AdminKey::Issue { name, role, wallet, expires, .. } => {
            let ends_at = match expires {
                Some(expiry) => Some(end(store, expiry, "nothing was issued").await?),
                None => None,
            };
            let reach = reach(store, wallet.as_ref()).await?;
            let new = NewAdminKey { name, role, reach, ends_at };
            let done = accounts.issue_admin_key(&principal, &asked, &new).await;
            let issued = done.map_err(|error| undone("no admin key was issued").because(error))?;
            shown(output, issued.thing.id, issued.thing.bearer.as_ref())
        }
        cli::AdminKey::Rotate { id, grace, .. } => {
            let (id, grace) = (AdminKeyId::from(id), grace.duration());
            let done = accounts.rotate_admin_key(&principal, &asked, id, grace).await;
            let nothing = "the admin key was not rotated";
            let issued = done.map_err(|error| undone(nothing).because(error))?;
            shown(output, issued.thing.id, issued.thing.bearer.as_ref())
        }
        cli::AdminKey::Revoke { id, .. } => {
            let done = accounts.revoke_admin_key(&principal, &asked, AdminKeyId::from(id)).await;
            let nothing = "the admin key was not revoked";
            let revoked = done.map_err(|error| undone(nothing).because(error))?;
            shown(output, revoked.thing, None)
        }
    }
}

async fn reach(store: &Store, wallet: Option<&Reference>) -> Result<Reach, CommandFailure> {
    match wallet {
        Some(wallet) => {
            Ok(Reach::Wallet(crate::accounts::find_wallet(store, wallet).await?.wallet.id))
        }
        None => Ok(Reach::All),
    }
}

fn shown(
    output: Output,
    id: AdminKeyId,
    bearer: Option<&AdminBearer>,
) -> Result<(), CommandFailure> {
    let key = bearer.map(AdminBearer::expose);
    let mut fields = vec![("id", id.to_string())];
    fields.extend(key.clone().map(|key| ("key", key)));
    output.object(&AdminKeyView { id: id.to_string(), key }, &fields)?;
    if bearer.is_some() {
        note("keep the key now: it is not stored and is not shown again");
    }
    Ok(())
}
