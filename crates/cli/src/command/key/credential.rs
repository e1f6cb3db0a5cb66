//! `holdfast key issue` and `rotate`: a secret is printed once.

use anyhow::anyhow;
use holdfast_accounts::{ExternalId, Name, Reason, Reference};
use holdfast_domain::credential::UsageScope;
use serde_json::{Value, json};

use super::{SPEND, end, find, limits, models, path, printed};
use crate::admin_client::ChangeRequest;
use crate::arguments;
use crate::arguments::grant::Span;
use crate::command::{CommandContext, members, wallet};
use crate::failure::{CommandFailure, Result};
use crate::output::note;
use crate::view::{member, text, with};

const KEEP: &str = "keep the key now: it is not stored and is not shown again";
const SHOWN_BEFORE: &str =
    "it was issued before, and its secret is not stored: `holdfast key rotate` creates another";

pub(super) async fn issue(context: &CommandContext<'_>, options: &arguments::Issue) -> Result {
    let wallet = wallet::find(context, &options.wallet).await?;
    warn_of_models(context, &wallet, options);
    let body = with(
        order(options, options.name.as_ref(), options.external_id.as_ref()),
        "wallet_id",
        member(&wallet, "id").clone(),
    );
    let body = with(body, "reason", options.reason.as_ref().map(Reason::as_typed));
    let change = options.request.post("/api_keys", body);
    let issued = match context.client.change(&change).await {
        Ok(issued) => issued.thing,
        Err(taken) if taken.is("name_taken") => {
            let name = options.name.as_ref().map_or("", Name::as_str);
            return Err(name_taken(context, &wallet, name).await?);
        }
        Err(error) => return Err(error.of_change("the API key was not issued", change.key())),
    };
    let made = [
        ("id", text(&issued, "id")),
        ("name", text(&issued, "name")),
        ("wallet", text(&wallet, "name")),
        ("limits", limits(&issued)),
        ("models", models(&issued)),
        ("balance", text(&issued, "balance")),
        ("expires_at", text(&issued, "ends_at")),
        ("key", text(&issued, "key")),
    ];
    let is_shown = member(&issued, "key").is_string();
    context.output.object(&printed(issued), &made)?;
    note(if is_shown { KEEP } else { SHOWN_BEFORE });
    Ok(())
}

/// Body of an order without its wallet, from the options, for a key of this name.
pub(super) fn order(
    options: &arguments::Issue,
    name: Option<&Name>,
    external_id: Option<&ExternalId>,
) -> Value {
    let ids = options.models.as_ref().map(|models| {
        models.entries().iter().map(|entry| entry.as_str().to_owned()).collect::<Vec<_>>()
    });
    let [micros, window] = members(options.spend_limit.map(|spend| spend.limit()));
    let mut order = json!({
        "name": name.map(Name::as_typed),
        "external_id": external_id.map(ExternalId::as_typed),
        "models": ids,
        "balance": options.hide_balance.then_some("hidden"),
        "usage": options.usage.map(UsageScope::label),
    });
    for (limit, bound) in options.counts() {
        order = with(order, limit.row().member, bound);
    }
    for (name, value) in SPEND.into_iter().zip([micros, window]) {
        order = with(order, name, value);
    }
    match options.expires.map(end) {
        Some((name, value)) => with(order, name, value),
        None => order,
    }
}

/// With direct database access the configuration is known: a model without a price in the wallet's currency is worth a
/// word. Whether each is configured the use case judges.
pub(super) fn warn_of_models(
    context: &CommandContext<'_>,
    wallet: &Value,
    options: &arguments::Issue,
) {
    let (Some(local), Some(models)) = (context.local, &options.models) else { return };
    let currency = text(wallet, "currency");
    for entry in models.entries() {
        let mut allowed = local
            .config
            .models
            .iter()
            .filter(|model| entry.allows(&model.contract.model))
            .peekable();
        // A note and no refusal: the price may be on its way into the configuration.
        if allowed.peek().is_some()
            && allowed
                .flat_map(|model| &model.prices)
                .all(|price| price.version.currency.to_string() != currency)
        {
            note(&format!(
                "{entry} has no price in {currency}: the key cannot use it until it has"
            ));
        }
    }
}

/// A revoked key does not block any work, but its name is taken: the message has its state.
async fn name_taken(
    context: &CommandContext<'_>,
    wallet: &Value,
    name: &str,
) -> Result<CommandFailure> {
    let query = [("name", name), ("wallet_id", &text(wallet, "id"))];
    let others = context.client.list("/api_keys", &query, None).await;
    let others = others.map_err(|error| error.because("the API key was not issued"))?.rows;
    let is_revoked = others.iter().any(|other| !member(other, "revoked_at").is_null());
    let why = if is_revoked { ": it is revoked, and its name stays taken" } else { "" };
    Ok(anyhow!("there is an API key named {name} already{why}; choose another name").into())
}

/// Rotation of a command.
pub(super) struct Rotation {
    pub(super) grace: Span,
    pub(super) reason: Option<Reason>,
    pub(super) request: arguments::RequestKey,
}

pub(super) async fn rotate(
    context: &CommandContext<'_>,
    key: &Reference,
    Rotation { grace, reason, request }: Rotation,
) -> Result {
    let path = path(&find(context, key).await?, "/rotate");
    let body = json!({
        "grace_seconds": grace.duration().as_secs(),
        "reason": reason.as_ref().map(Reason::as_typed),
    });
    let change = ChangeRequest::post(request.or_made(), path, body);
    let rotated = context.change("the API key was not rotated", &change).await?.thing;
    let made = [
        ("id", text(&rotated, "id")),
        ("name", text(&rotated, "name")),
        ("previous_ends_at", text(&rotated, "previous_ends_at")),
        ("key", text(&rotated, "key")),
    ];
    let is_shown = member(&rotated, "key").is_string();
    context.output.object(&printed(rotated), &made)?;
    note(if is_shown { KEEP } else { SHOWN_BEFORE });
    // Stored answers are sealed with the secret of the credential of their request.
    note("answers that were sealed for an earlier credential open only with that one");
    Ok(())
}
