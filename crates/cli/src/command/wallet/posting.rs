//! `holdfast wallet deposit`, `refund` and `adjust`: a posting is in the ledger at most once, under the key of its
//! command.

use holdfast_accounts::{ExternalId, Note, Reason, Source};
use holdfast_domain::admin::OWN_SOURCE;
use serde_json::{Value, json};
use uuid::Uuid;

use super::find;
use crate::admin_client::{AdminClientError, ChangeOutcome, ChangeRequest};
use crate::arguments::NewPosting;
use crate::command::CommandContext;
use crate::failure::{Refusal, Result};
use crate::output::note;
use crate::view::{amount, member, some_text, text, with};

/// Makes a posting.
pub(super) async fn post(context: &CommandContext<'_>, command: NewPosting) -> Result {
    match command {
        NewPosting::Deposit {
            wallet,
            amount,
            source,
            reference,
            reason,
            note,
            currency,
            dry_run,
            key,
        } => {
            let wallet = find(context, &wallet).await?;
            let made = key.request.or_made();
            let (source, reference) = deposit_reference(source, reference, made.id);
            let body = json!({
                "wallet_id": member(&wallet, "id"),
                "amount_micros": amount.micros().get(),
                "source": source,
                "external_reference": reference,
                "reason": reason.as_ref().map(Reason::as_typed),
                "note": note.as_ref().map(Note::as_typed),
                "currency": currency.map(|currency| currency.to_string()),
            });
            let change = key.post_as(made, "/deposits", body).rehearsed(dry_run);
            let done = context.client.change(&change).await;
            posted(context, "nothing was deposited", &change, done)
        }
        NewPosting::Adjust { wallet, amount, reason, note, currency, dry_run, key } => {
            let wallet = find(context, &wallet).await?;
            let body = json!({
                "wallet_id": member(&wallet, "id"),
                "amount_micros": amount.micros().get(),
                "reason": reason.as_typed(),
                "note": note.as_ref().map(Note::as_typed),
                "currency": currency.map(|currency| currency.to_string()),
            });
            let change = key.post("/adjustments", body).rehearsed(dry_run);
            let done = context.client.change(&change).await;
            posted(context, "nothing was adjusted", &change, done)
        }
        NewPosting::Refund { operation, amount, reason, note, currency, dry_run, key } => {
            let body = json!({
                "operation_id": operation.operation().to_string(),
                "amount_micros": amount.micros().get(),
                "reason": reason.as_ref().map(Reason::as_typed),
                "note": note.as_ref().map(Note::as_typed),
                "currency": currency.map(|currency| currency.to_string()),
            });
            let change = key.post("/refunds", body).rehearsed(dry_run);
            match context.client.change(&change).await {
                Err(missing) if missing.is("not_found") => Err(Refusal::failed(
                    "not_found",
                    format!(
                        "nothing was refunded: there is no operation {}, `holdfast operation list` \
                         shows them",
                        operation.operation()
                    ),
                )),
                done => posted(context, "nothing was refunded", &change, done),
            }
        }
    }
}

/// Shows the posting of this id, of any kind.
pub(super) async fn show(context: &CommandContext<'_>, id: Uuid) -> Result {
    // All kinds share one space of ids, and the API has a path for each: at most one of them
    // answers.
    for kind in ["deposits", "adjustments", "refunds"] {
        match context.client.get(&format!("/{kind}/{id}"), &[]).await {
            Err(missing) if missing.is("not_found") => {}
            found => {
                let found = found.map_err(|error| error.because("the posting was not shown"))?;
                return print(context, found, false);
            }
        }
    }
    Err(Refusal::failed("not_found", format!("there is no posting {id}")))
}

/// Reference of a deposit. Without one of an outer system it is the command line's own: the key.
fn deposit_reference(
    source: Option<Source>,
    reference: Option<ExternalId>,
    key: Uuid,
) -> (String, String) {
    match source.zip(reference) {
        Some((source, reference)) => {
            (source.as_typed().to_owned(), reference.as_typed().to_owned())
        }
        // The request key is the payment's id too: a repetition with `--key` finds the deposit by
        // either.
        None => (OWN_SOURCE.to_owned(), key.to_string()),
    }
}

/// Shows a posting that was made, or returns the reason why there is none.
fn posted(
    context: &CommandContext<'_>,
    nothing: &str,
    change: &ChangeRequest,
    done: Result<ChangeOutcome, AdminClientError>,
) -> Result {
    let done = done.map_err(|error| error.of_change(nothing, change.key()))?;
    print(context, done.thing, done.replayed)?;
    if change.is_rehearsal() {
        note("nothing was changed: without --dry-run it is made");
    }
    Ok(())
}

fn print(context: &CommandContext<'_>, posting: Value, replayed: bool) -> Result {
    let (kind, wallet) = (text(&posting, "kind"), member(&posting, "wallet"));
    let mut fields = vec![(kind.as_str(), text(&posting, "id"))];
    fields.extend(some_text(&posting, "operation_id").map(|id| ("operation", id)));
    let details = ["source", "external_reference", "reason", "note", "created_at", "actor"];
    fields.extend(details.into_iter().filter_map(|it| Some((it, some_text(&posting, it)?))));
    fields.extend([
        ("wallet", text(wallet, "name")),
        ("amount", amount(&posting, "amount_micros")),
        ("currency", text(wallet, "currency")),
        ("available", amount(wallet, "available_micros")),
    ]);
    let view = with(posting.clone(), "replayed", replayed);
    context.output.object(&view, &fields)?;
    if replayed {
        note(&format!("this {kind} had been made before: nothing was changed"));
    }
    Ok(())
}
