//! `holdfast webhook`: makes, lists, changes, tests webhooks, and shows what was sent.
//!
//! A secret is printed once, by the command that makes it. What is sent a running gateway sends.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::resource_view::{Paging, ResourceView};
use super::{CommandContext, wallet};
use crate::admin_client::ChangeRequest;
use crate::arguments::{Webhook, WebhookChange, Why};
use crate::failure::Result;
use crate::output::note;
use crate::table::Column;
use crate::view::some_text;

const WEBHOOKS: ResourceView = ResourceView {
    path: "/webhooks",
    things: "webhooks",
    columns: &[
        Column::id("id"),
        Column::text("url"),
        Column::text("wallet_id").second(),
        Column::text("kinds").second(),
        Column::text("state"),
        Column::text("description").third(),
        Column::moment("created_at").third(),
    ],
    more: &[
        Column::moment("disabled_at"),
        Column::text("disabled_reason"),
        Column::text("secret_generation"),
        Column::moment("rotated_at"),
        Column::text("created_by"),
    ],
    paging: Paging::Pages,
};

const DELIVERIES: ResourceView = ResourceView {
    path: "/webhooks",
    things: "deliveries",
    columns: &[
        Column::id("event_id").second(),
        Column::text("kind"),
        Column::text("state"),
        Column::number("tries"),
        Column::text("last_result").second(),
        Column::number("last_status").second(),
        Column::moment("next_at").second(),
        Column::moment("created_at"),
        Column::moment("finished_at").third(),
    ],
    more: &[],
    paging: Paging::Pages,
};

/// A change of a webhook, and the form of its outcome.
struct WebhookOrder {
    change: ChangeRequest,
    nothing: String,
    shown: &'static ResourceView,
}

pub(super) async fn run(context: &CommandContext<'_>, command: Webhook) -> Result {
    match command {
        Webhook::List { wallet, rows } => {
            let wallet = wallet::id_of(context, wallet.as_ref()).await?;
            WEBHOOKS.list(context, &[("wallet_id", wallet)], &rows).await
        }
        Webhook::Show { id } => WEBHOOKS.show(context, id).await,
        Webhook::Deliveries { id, rows } => {
            let path = format!("/webhooks/{id}/deliveries");
            DELIVERIES.list_at(context, &path, &[], &rows).await.map(drop)
        }
        Webhook::Create { url, wallet, kind, description, why } => {
            let body = json!({
                "url": url,
                "wallet_id": wallet::id_of(context, wallet.as_ref()).await?,
                "kinds": Some(kind).filter(|kinds| !kinds.is_empty()),
                "description": description,
            });
            let change = why.post("/webhooks", body);
            let nothing = "no webhook was created".to_owned();
            change_and_show(context, &WebhookOrder { change, nothing, shown: &WEBHOOKS }).await
        }
        Webhook::Change(command) => change_and_show(context, &order(command)).await,
    }
}

/// The request of a change.
fn order(command: WebhookChange) -> WebhookOrder {
    let post = |id: Uuid, below: &str, why: &Why, nothing: &str| {
        let path = format!("/webhooks/{id}/{below}");
        let change = why.post(path, json!({}));
        WebhookOrder { change, nothing: nothing.to_owned(), shown: &WEBHOOKS }
    };
    match command {
        WebhookChange::Update { id, url, kind, all_kinds, description, no_description, why } => {
            let mut edit = Map::new();
            let mut set = |name: &str, value: Option<Value>| {
                edit.extend(value.map(|value| (name.to_owned(), value)));
            };
            let none = |flag: bool| flag.then_some(Value::Null);
            set("url", url.map(Value::from));
            let kinds = Some(kind).filter(|kinds| !kinds.is_empty());
            set("kinds", kinds.map(Value::from).or(none(all_kinds)));
            set("description", description.map(Value::from).or(none(no_description)));
            let change = why.patch(format!("/webhooks/{id}"), Value::Object(edit));
            let nothing = "the webhook was not changed".to_owned();
            WebhookOrder { change, nothing, shown: &WEBHOOKS }
        }
        WebhookChange::Rotate { id, why } => {
            post(id, "rotate", &why, "the webhook was not rotated")
        }
        WebhookChange::Verb(verb) => {
            let order = verb.order();
            let change = order.change(&order.subject.to_string());
            WebhookOrder { change, nothing: order.nothing(), shown: &WEBHOOKS }
        }
        WebhookChange::Test { id, why } => {
            let order = post(id, "test", &why, "the webhook was not tested");
            WebhookOrder { shown: &DELIVERIES, ..order }
        }
        WebhookChange::Resend { id, event, why } => {
            let below = format!("deliveries/{event}/resend");
            let order = post(id, &below, &why, "the event is not sent again");
            WebhookOrder { shown: &DELIVERIES, ..order }
        }
    }
}

/// Makes a change and shows the webhook after it, with its secret if the change created one.
async fn change_and_show(
    context: &CommandContext<'_>,
    WebhookOrder { change, nothing, shown }: &WebhookOrder,
) -> Result {
    let done = context.change(nothing, change).await?;
    let mut fields = shown.fields(&done.thing);
    let secret = some_text(&done.thing, "secret");
    let is_shown = secret.is_some();
    fields.extend(secret.map(|secret| ("secret", secret)));
    let lost = done.thing.get("notice").is_some();
    context.output.object(&done.thing, &fields)?;
    if is_shown {
        note("keep the secret now: it is not stored and is not shown again");
    } else if lost {
        note(
            "it was created before, and its secret is not stored: `holdfast webhook rotate` \
            creates another",
        );
    } else if done.replayed {
        note("this had been done before: nothing was changed");
    }
    Ok(())
}
