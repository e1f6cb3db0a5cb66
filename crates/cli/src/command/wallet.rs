//! `holdfast wallet`: creates, lists, shows, changes, suspends, resumes and closes wallets, and hands postings and
//! statements to their own files.
//!
//! A wallet is named by its id or its name, which is looked up first: requests name only ids, because a name would
//! mean another wallet after a rename.
//!
//! The command judges no rule: refusals are the API's, on either way.

mod posting;
mod statement;

use holdfast_accounts::Reference;
use holdfast_domain::limits::SpendLimit;
use holdfast_domain::{Currency, Micros};
use serde_json::{Map, Value, json};

use self::statement::StatementOrder;
use super::CommandContext;
use super::lookup::Lookup;
use super::resource_view::{Query, given};
use crate::admin_client::{AdminClientError, ChangeRequest};
use crate::arguments;
use crate::failure::Result;
use crate::output::note;
use crate::table::{Column, Table};
use crate::view::{amount, some_amount, some_text, spend, text, with};

const KEY_SPEND: [&str; 2] = ["key_spend_micros", "key_spend_window"];

pub(super) async fn run(context: &CommandContext<'_>, command: arguments::Wallet) -> Result {
    use arguments::Wallet as Command;
    match command {
        Command::Create { name, currency, external_id, low_balance, key_spend, why } => {
            let mut body = json!({
                "name": name.as_typed(),
                "currency": currency.to_string(),
                "external_id": external_id.map(|id| id.as_typed().to_owned()),
                "low_balance_micros": low_balance.map(Micros::get),
            });
            for (name, value) in KEY_SPEND.into_iter().zip(members(key_spend.map(|it| it.limit())))
            {
                body = with(body, name, value);
            }
            changed(context, "no wallet was created", &why.post("/wallets", body)).await?;
            warn_of_prices(context, currency);
            Ok(())
        }
        Command::Change(command) => change(context, command).await,
        Command::Post(command) => posting::post(context, command).await,
        Command::Posting { id } => posting::show(context, id).await,
        Command::Show { wallet } => show(context, &find(context, &wallet).await?),
        Command::List(filter) => list(context, filter).await,
        Command::Ledger { wallet, period, limit, file, columns } => {
            let period = period.period()?;
            let found = find(context, &wallet).await?;
            if let Some(file) = file.create(context.output)? {
                return statement::export(context, &found, period, file).await;
            }
            let order = StatementOrder::new(context.output, period, limit, &columns)?;
            statement::show(context, &found, &order).await
        }
    }
}

/// Changes of one wallet.
async fn change(context: &CommandContext<'_>, command: arguments::WalletChange) -> Result {
    match command {
        arguments::WalletChange::Verb(verb) => {
            let order = verb.order();
            let id = text(&find(context, &order.subject).await?, "id");
            changed(context, &order.nothing(), &order.change(&id)).await?;
            order.verb.note.into_iter().for_each(note);
            Ok(())
        }
        arguments::WalletChange::Close { wallet, dry_run, consent, why } => {
            if !dry_run {
                // Before the look-up: a command that is declined sends no request.
                consent.obtain(&format!("close the wallet {wallet}")).await?;
            }
            let change = why.post(path(context, &wallet, "/close").await?, json!({}));
            let change = change.rehearsed(dry_run);
            changed(context, "the wallet was not closed", &change).await?;
            if dry_run {
                note("nothing was changed: without --dry-run it is closed for good");
            }
            Ok(())
        }
        arguments::WalletChange::Update {
            wallet,
            name,
            external_id,
            no_external_id,
            low_balance,
            no_low_balance,
            key_spend,
            no_key_spend,
            why,
        } => {
            let mut edit = Map::new();
            let mut set = |name: &str, value: Option<Value>| {
                edit.extend(value.map(|value| (name.to_owned(), value)));
            };
            let none = |flag: bool| flag.then_some(Value::Null);
            set("name", name.map(|name| name.as_typed().into()));
            set("external_id", external_id.map(|id| id.as_typed().into()).or(none(no_external_id)));
            let low_balance = low_balance.map(|it| it.get().into());
            set("low_balance_micros", low_balance.or(none(no_low_balance)));
            for (name, value) in KEY_SPEND.into_iter().zip(members(key_spend.map(|it| it.limit())))
            {
                set(name, value.or(none(no_key_spend)));
            }
            let change = why.patch(path(context, &wallet, "").await?, Value::Object(edit));
            changed(context, "the wallet was not changed", &change).await
        }
    }
}

/// The two members of a bound on spend.
pub(crate) fn members(spend: Option<SpendLimit>) -> [Option<Value>; 2] {
    spend.map_or([None, None], |SpendLimit { micros, window }| {
        [Some(micros.get().into()), Some(window.label().into())]
    })
}

/// Makes a change of a wallet and shows it, or returns the reason why there was none.
async fn changed(context: &CommandContext<'_>, nothing: &str, change: &ChangeRequest) -> Result {
    let done = context.change(nothing, change).await?;
    show(context, &done.thing)?;
    if done.replayed {
        note("this had been done before: nothing was changed");
    }
    Ok(())
}

fn warn_of_prices(context: &CommandContext<'_>, currency: Currency) {
    let Some(local) = context.local else { return };
    let mut prices = local.config.models.iter().flat_map(|model| &model.prices);
    if !prices.any(|price| price.version.currency == currency) {
        note(&format!(
            "no model has a price in {currency}: this wallet can pay for none until one has"
        ));
    }
}

async fn list(context: &CommandContext<'_>, filter: arguments::WalletFilter) -> Result {
    let table = Table::new(context.output, &filter.columns, &COLUMNS)?;
    let micros = |amount: Option<Micros>| amount.map(|amount| amount.get().to_string());
    let query = [
        ("name", filter.name.map(|name| name.as_typed().to_owned())),
        ("external_id", filter.external_id.map(|id| id.as_typed().to_owned())),
        ("state", filter.state),
        ("available_from_micros", micros(filter.available_from)),
        ("available_below_micros", micros(filter.available_below)),
    ];
    let wallets = oldest_first(context, "/wallets", &query, filter.limit).await;
    let wallets = wallets.map_err(|error| error.because("wallets were not listed"))?;
    table.print(&wallets, &wallets, |wallet, name| match name {
        "available_micros" | "held_micros" => amount(wallet, name),
        name => text(wallet, name),
    })
}

const COLUMNS: [Column; 8] = [
    Column::id("id").second(),
    Column::text("name"),
    Column::text("currency"),
    Column::number("available_micros"),
    Column::number("held_micros").second(),
    Column::text("state"),
    Column::text("external_id").second(),
    Column::moment("created_at").third(),
];

/// The newest resources of a path, in the order in which they were made; the API has the newest first.
pub(super) async fn oldest_first(
    context: &CommandContext<'_>,
    path: &str,
    query: Query<'_>,
    limit: Option<u32>,
) -> Result<Vec<Value>, AdminClientError> {
    let count = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let listed = context.client.list(path, &given(query), count).await?;
    if listed.is_cut {
        note("only the newest are shown: there are more, --limit N shows N");
    }
    Ok(listed.rows.into_iter().rev().collect())
}

/// Id of the wallet that a filter names.
pub(super) async fn id_of(
    context: &CommandContext<'_>,
    wallet: Option<&Reference>,
) -> Result<Option<String>> {
    match wallet {
        Some(wallet) => Ok(Some(text(&find(context, wallet).await?, "id"))),
        None => Ok(None),
    }
}

const WALLETS: Lookup = Lookup { path: "/wallets", thing: "wallet", list: "holdfast wallet list" };

/// The wallet of this id or name.
pub(super) async fn find(context: &CommandContext<'_>, reference: &Reference) -> Result<Value> {
    WALLETS.find(context, reference).await
}

/// Path below a wallet. Paths have ids: a name would be another wallet's after a rename, and a repetition would
/// change that one.
async fn path(context: &CommandContext<'_>, reference: &Reference, below: &str) -> Result<String> {
    Ok(format!("/wallets/{}{below}", text(&find(context, reference).await?, "id")))
}

fn show(context: &CommandContext<'_>, wallet: &Value) -> Result {
    let mut fields: Vec<_> = ["id", "name", "currency"].map(|it| (it, text(wallet, it))).into();
    fields.push(("available", amount(wallet, "available_micros")));
    fields.push(("held", amount(wallet, "held_micros")));
    fields.push(("state", text(wallet, "state")));
    fields.extend(some_text(wallet, "external_id").map(|id| ("external_id", id)));
    fields.extend(some_amount(wallet, "low_balance_micros").map(|it| ("low_balance", it)));
    fields.extend(spend(wallet, KEY_SPEND).map(|it| ("key_spend", it)));
    for moment in ["suspended_at", "closed_at"] {
        fields.extend(some_text(wallet, moment).map(|at| (moment, at)));
    }
    context.output.object(wallet, &fields)
}
