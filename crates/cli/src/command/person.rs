//! `holdfast person`: invites, lists and ends people, and makes their links.

use holdfast_accounts::Reference;
use holdfast_domain::admin::Role;
use serde_json::{Value, json};

use super::CommandContext;
use super::resource_view::{Paging, ResourceView};
use super::wallet;
use crate::arguments;
use crate::failure::Result;
use crate::output::note;
use crate::table::Column;
use crate::view::{some_text, text, with};

const PEOPLE: ResourceView = ResourceView {
    path: "/people",
    things: "people",
    columns: &[
        Column::id("id"),
        Column::text("email"),
        Column::text("name").second(),
        Column::text("state"),
        Column::text("grants").second(),
        Column::moment("created_at").third(),
        Column::moment("ended_at").third(),
    ],
    more: &[Column::text("created_by")],
    paging: Paging::Pages,
};

pub(super) async fn run(context: &CommandContext<'_>, command: arguments::Person) -> Result {
    let (nothing, change) = match command {
        arguments::Person::List { rows } => {
            return PEOPLE.list(context, &[], &rows).await;
        }
        arguments::Person::Show { id } => return PEOPLE.show(context, id).await,
        arguments::Person::Invite { email, role, wallet, name, why } => {
            let mut body = of_role(context, role, wallet.as_ref()).await?;
            body = with(body, "email", email.as_str());
            if let Some(name) = name {
                body = with(body, "name", name.as_typed());
            }
            ("no person was invited", why.post("/people", body))
        }
        arguments::Person::Link { id, why } => {
            let path = format!("/people/{id}/link");
            ("no link was created", why.post(path, json!({})))
        }
        arguments::Person::Revoke { id, role, wallet, why } => {
            let body = of_role(context, role, wallet.as_ref()).await?;
            let path = format!("/people/{id}/grants/end");
            ("the role was not ended", why.post(path, body))
        }
        arguments::Person::End { id, erase, consent, why } => {
            consent.obtain(&format!("end the person {id}")).await?;
            let (path, body) = (format!("/people/{id}/end"), json!({ "erase": erase }));
            ("the person was not ended", why.post(path, body))
        }
    };
    let done = context.change(nothing, &change).await?.thing;
    let mut fields = vec![("id", text(&done, "id"))];
    let url = some_text(&done, "url").map(|url| context.client.whole(&url));
    let done = match &url {
        Some(url) => with(done, "url", url.as_str()),
        None => done,
    };
    let is_shown = url.is_some();
    fields.extend(url.map(|url| ("url", url)));
    context.output.object(&done, &fields)?;
    if is_shown {
        note(
            "hand the link over now: it is not shown again, can be used once, and ends in 24 hours",
        );
    } else if done.get("notice").is_some() {
        note("no link was created now: `holdfast person link` creates another one");
    }
    Ok(())
}

/// The members that name a role.
async fn of_role(
    context: &CommandContext<'_>,
    role: Role,
    wallet: Option<&Reference>,
) -> Result<Value> {
    let body = json!({ "role": role.label() });
    Ok(match wallet::id_of(context, wallet).await? {
        Some(id) => with(body, "wallet_id", id),
        None => body,
    })
}
