//! `holdfast admin-key`: issues, rotates and ends the keys of the administration.

use holdfast_accounts::{Name, Reference};
use serde_json::{Value, json};

use super::Desk;
use super::key::end;
use super::wallet;
use crate::cli;
use crate::door::Change;
use crate::failure::CommandFailure;
use crate::output::note;
use crate::view::{member, some_text, text, with};

pub(super) async fn run(desk: &Desk<'_>, command: cli::AdminKey) -> Result<(), CommandFailure> {
    let (nothing, change) = match command {
        cli::AdminKey::Issue { name, role, wallet, expires, request } => {
            let mut body = json!({ "name": Name::as_str(&name), "role": role.label() });
            if let Some(id) = wallet_id(desk, wallet.as_ref()).await? {
                body = with(body, "wallet_id", id);
            }
            if let Some((name, value)) = expires.map(end) {
                body = with(body, name, value);
            }
            ("no admin key was issued", Change::post(request.or_made(), "/admin_keys", body))
        }
        cli::AdminKey::Rotate { id, grace, request } => {
            let body = json!({ "grace_seconds": grace.duration().as_secs() });
            let path = format!("/admin_keys/{id}/rotate");
            ("the admin key was not rotated", Change::post(request.or_made(), path, body))
        }
        cli::AdminKey::Revoke { id, request } => {
            let path = format!("/admin_keys/{id}/revoke");
            ("the admin key was not revoked", Change::post(request.or_made(), path, json!({})))
        }
    };
    let done = desk.door.change(&change).await;
    let done = done.map_err(|error| error.of_change(nothing, change.key()))?.thing;
    let mut fields = vec![("id", text(&done, "id"))];
    let key = some_text(&done, "key");
    let is_told = key.is_some();
    fields.extend(key.map(|key| ("key", key)));
    desk.output.object(&done, &fields)?;
    if is_told {
        note("keep the key now: it is not stored and is not shown again");
    } else if done.get("notice").is_some() {
        note(
            "it had been made before, and its secret is not stored: `holdfast admin-key rotate` makes another",
        );
    }
    Ok(())
}

/// Id of the wallet of a holder's role.
async fn wallet_id(
    desk: &Desk<'_>,
    wallet: Option<&Reference>,
) -> Result<Option<Value>, CommandFailure> {
    match wallet {
        Some(wallet) => {
            let found = wallet::find(desk, wallet).await?;
            Ok(Some(member(&found, "id").clone()))
        }
        None => Ok(None),
    }
}
