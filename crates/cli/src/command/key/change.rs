//! `holdfast key update`, `suspend`, `resume` and `revoke`.

use holdfast_domain::admin::UseCase;
use serde_json::{Map, Value};

use super::{SPEND, end, find, lines, path, printed};
use crate::arguments;
use crate::arguments::grant::Limit;
use crate::command::{CommandContext, members};
use crate::failure::Result;
use crate::output::note;
use crate::view::{member, text};

const WITHIN: &str = "a running `holdfast serve` obeys within 5 seconds";

pub(super) async fn run(context: &CommandContext<'_>, command: arguments::KeyChange) -> Result {
    let (nothing, change, after) = match command {
        arguments::KeyChange::Verb(verb) => {
            let order = verb.order();
            order.obtain_consent().await?;
            let found = find(context, &order.subject).await?;
            let was_revoked = order.verb.use_case == UseCase::ApiKeyRevoke
                && !member(&found, "revoked_at").is_null();
            let after =
                if was_revoked { Some("it had been revoked before") } else { order.verb.note };
            (order.nothing(), order.change(&text(&found, "id")), after)
        }
        arguments::KeyChange::Update(update) => {
            let path = path(&find(context, &update.key).await?, "");
            let (edit, why) = edit(*update);
            let nothing = "the API key was not changed".to_owned();
            (nothing, why.patch(path, Value::Object(edit)), Some(WITHIN))
        }
    };
    let done = context.change(&nothing, &change).await?;
    context.output.object(&printed(done.thing.clone()), &lines(&done.thing))?;
    after.into_iter().for_each(note);
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
