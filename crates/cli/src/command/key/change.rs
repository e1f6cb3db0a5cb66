//! `holdfast key update`, `suspend`, `resume` and `revoke`.

use serde_json::{Map, Value, json};

use super::{SPEND, end, find, lines, path, printed};
use crate::arguments;
use crate::arguments::grant::Limit;
use crate::command::{Desk, members};
use crate::door::ChangeRequest;
use crate::failure::Result;
use crate::output::note;
use crate::view::member;

const WITHIN: &str = "a running `holdfast serve` obeys within 5 seconds";

pub(super) async fn run(desk: &Desk<'_>, command: arguments::KeyChange) -> Result {
    let (nothing, change, after) = match command {
        arguments::KeyChange::Suspend { key, reason, request } => {
            let path = path(&find(desk, &key).await?, "/suspend");
            let body = json!({ "reason": reason.as_typed() });
            let change = ChangeRequest::post(request.or_made(), path, body);
            ("the API key was not suspended", change, WITHIN)
        }
        arguments::KeyChange::Resume { key, why } => {
            let path = path(&find(desk, &key).await?, "/resume");
            ("the API key was not resumed", why.post(path, json!({})), WITHIN)
        }
        arguments::KeyChange::Revoke { key, why } => {
            let found = find(desk, &key).await?;
            let change = why.post(path(&found, "/revoke"), json!({}));
            let after = if member(&found, "revoked_at").is_null() {
                "a running `holdfast serve` turns it away within 5 seconds"
            } else {
                "it had been revoked before"
            };
            ("the API key was not revoked", change, after)
        }
        arguments::KeyChange::Update(update) => {
            let path = path(&find(desk, &update.key).await?, "");
            let (edit, why) = edit(*update);
            ("the API key was not changed", why.patch(path, Value::Object(edit)), WITHIN)
        }
    };
    let done = desk.change(nothing, &change).await?;
    desk.output.object(&printed(done.thing.clone()), &lines(&done.thing))?;
    note(after);
    Ok(())
}

/// Members of an edit, what is not named is not there, and null takes away; and why it is made.
fn edit(update: arguments::UpdateKey) -> (Map<String, Value>, arguments::Why) {
    let mut edit = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        edit.extend(value.map(|value| (name.to_owned(), value)));
    };
    let none = |flag: bool| flag.then_some(Value::Null);
    let counts = update.counts();
    set("name", update.name.map(|name| name.as_typed().into()));
    let external_id = update.external_id.map(|id| id.as_typed().into());
    set("external_id", external_id.or(none(update.no_external_id)));
    for (limit, edited) in counts {
        set(limit.row().member, edited.map(|Limit(bound)| bound.into()));
    }
    set("balance", update.balance.map(|balance| balance.label().into()));
    set("usage", update.usage.map(|scope| scope.label().into()));
    let spend = members(update.spend_limit.map(|spend| spend.limit()));
    for (name, value) in SPEND.into_iter().zip(spend) {
        set(name, value.or(none(update.no_spend_limit)));
    }
    let ids = update
        .models
        .map(|models| models.entries().iter().map(|entry| entry.as_str().into()).collect());
    set("models", ids.map(Value::Array).or(none(update.all_models)));
    set("ends_at", none(update.no_expires));
    if let Some((name, value)) = update.expires.map(end) {
        set(name, Some(value));
    }
    (edit, update.why)
}
