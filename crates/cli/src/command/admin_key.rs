//! `holdfast admin-key`: issues, lists, rotates and ends the keys of the administration.

use holdfast_accounts::Name;
use serde_json::json;

use super::CommandContext;
use super::key::end;
use super::resource_view::{Paging, ResourceView};
use super::wallet;
use crate::arguments;
use crate::failure::Result;
use crate::output::note;
use crate::table::Column;
use crate::view::{some_text, text, with};

const ADMIN_KEYS: ResourceView = ResourceView {
    path: "/admin_keys",
    things: "admin keys",
    columns: &[
        Column::id("id"),
        Column::text("name"),
        Column::text("role"),
        Column::text("wallet_id").second(),
        Column::moment("created_at").second(),
        Column::moment("ends_at").second(),
        Column::moment("revoked_at").third(),
    ],
    more: &[Column::text("created_by")],
    paging: Paging::Pages,
};

pub(super) async fn run(context: &CommandContext<'_>, command: arguments::AdminKey) -> Result {
    let (nothing, change) = match command {
        arguments::AdminKey::List { all, rows } => {
            let state = (!all).then(|| "in_force".to_owned());
            return ADMIN_KEYS.list(context, &[("state", state)], &rows).await;
        }
        arguments::AdminKey::Show { id } => return ADMIN_KEYS.show(context, id).await,
        arguments::AdminKey::Issue { name, role, wallet, expires, why } => {
            let mut body = json!({ "name": Name::as_typed(&name), "role": role.label() });
            if let Some(id) = wallet::id_of(context, wallet.as_ref()).await? {
                body = with(body, "wallet_id", id);
            }
            if let Some((name, value)) = expires.map(end) {
                body = with(body, name, value);
            }
            ("no admin key was issued", why.post("/admin_keys", body))
        }
        arguments::AdminKey::Rotate { id, grace, why } => {
            let body = json!({ "grace_seconds": grace.duration().as_secs() });
            let path = format!("/admin_keys/{id}/rotate");
            ("the admin key was not rotated", why.post(path, body))
        }
        arguments::AdminKey::Revoke { id, consent, why } => {
            consent.obtain(&format!("revoke the admin key {id}")).await?;
            let path = format!("/admin_keys/{id}/revoke");
            ("the admin key was not revoked", why.post(path, json!({})))
        }
    };
    let done = context.change(nothing, &change).await?.thing;
    let mut fields = vec![("id", text(&done, "id"))];
    let key = some_text(&done, "key");
    let is_shown = key.is_some();
    fields.extend(key.map(|key| ("key", key)));
    context.output.object(&done, &fields)?;
    if is_shown {
        note("keep the key now: it is not stored and is not shown again");
    } else if done.get("notice").is_some() {
        note(
            "it was created before, and its secret is not stored: `holdfast admin-key rotate` \
            creates another",
        );
    }
    Ok(())
}
