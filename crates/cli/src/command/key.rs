//! `holdfast key`: issues, lists, changes, rotates and revokes API keys.
//!
//! An API key has a wallet, limits and models; callers show a *bearer*, which names one of its credentials and
//! proves its secret. The bearer is printed once, and cannot be printed again. Rotation adds a credential and gives
//! the earlier ones an end; revocation ends the key with all of them.
//!
//! Ends are judged by the clock of the database, which all nodes share: a span from now goes to the API as a span.
//!
//! The JSON of a key is the API's. Besides its flat members it has `limits`, `hide_balance` and `expires_at`, with
//! the names of `GET /v1/wallet`: scripts read those.

mod bulk;
mod change;
mod credential;

use holdfast_accounts::Reference;
use holdfast_domain::Micros;
use holdfast_domain::limits::{CountLimit, Counter, Span, Unit};
use serde_json::{Map, Value};

use super::lookup::Lookup;
use super::resource_view::WalletNames;
use super::{CommandContext, wallet};
use crate::arguments;
use crate::arguments::grant::Expiry;
use crate::failure::Result;
use crate::output::Output;
use crate::table::{Column, Table};
use crate::view::{self, member, some_amount, some_text, spend, text, with};

const SPEND: [&str; 2] = ["spend_micros", "spend_window"];

pub(super) async fn run(context: &CommandContext<'_>, command: arguments::Key) -> Result {
    match command {
        arguments::Key::Issue(options) => match (&options.from, &options.secrets) {
            (Some(from), Some(secrets)) => bulk::issue(context, &options, from, secrets).await,
            (Some(_), None) | (None, _) => credential::issue(context, &options).await,
        },
        arguments::Key::List(filter) => list(context, filter).await,
        arguments::Key::Show { key } => show(context, &key).await,
        arguments::Key::Rotate { key, grace, reason, request } => {
            credential::rotate(context, &key, credential::Rotation { grace, reason, request }).await
        }
        arguments::Key::Change(command) => change::run(context, command).await,
    }
}

async fn show(context: &CommandContext<'_>, key: &Reference) -> Result {
    // By its id: only a single key is shown with its counters.
    let path = path(&find(context, key).await?, "");
    let found = context.client.get(&path, &[]).await;
    let found = found.map_err(|error| error.because("the API key was not shown"))?;
    let has_amounts =
        ["spend_micros", "exposure_micros"].iter().any(|it| member(&found, it).is_i64());
    let currency = match context.output {
        Output::Table | Output::Plain if has_amounts => currency(context, &found).await?,
        Output::Table | Output::Plain | Output::Json => String::new(),
    };
    let mut lines = lines(&found);
    let counters = member(&found, "counters").as_array().into_iter().flatten();
    let readings = counters.filter_map(|counter| reading(&found, counter, &currency));
    lines.extend(readings);
    // A counter that has counted nothing is not shown.
    let is_counted = member(&found, "exposure_micros").as_i64().is_some_and(|it| it != 0);
    let exposure = some_amount(&found, "exposure_micros").filter(|_| is_counted);
    lines.extend(exposure.map(|it| ("exposure", format!("{it} {currency} this month"))));
    context.output.object(&printed(found.clone()), &lines)
}

/// Currency of an API key's wallet.
async fn currency(context: &CommandContext<'_>, key: &Value) -> Result<String> {
    let wallet = context.client.get(&format!("/wallets/{}", text(key, "wallet_id")), &[]).await;
    let wallet = wallet.map_err(|error| error.because("the API key's wallet was not read"))?;
    Ok(text(&wallet, "currency"))
}

/// A counter with its limit, such as `0.114767 of 5.00 USD today`; none if the key has no such limit.
fn reading(key: &Value, reading: &Value, currency: &str) -> Option<(&'static str, String)> {
    let name = reading.get("counter")?.as_str()?;
    let counter = Counter::ALL.into_iter().find(|counter| counter.label() == name)?;
    let used = member(reading, "used").as_i64()?;
    let (used, limit) = match counter.unit() {
        Unit::Micros => {
            let window = some_text(key, "spend_window")?;
            let limit =
                some_amount(key, "spend_micros").filter(|_| name == format!("spend_{window}"))?;
            (Micros::new(used).to_string(), format!("{limit} {currency}"))
        }
        Unit::Requests | Unit::Tokens | Unit::Running => {
            let row = CountLimit::ALL
                .map(CountLimit::row)
                .into_iter()
                .find(|row| row.counter == counter)?;
            (used.to_string(), some_text(key, row.member)?)
        }
    };
    let span = match (counter.span(), counter.unit()) {
        (Span::Minute, _) => "this minute",
        (Span::Day, _) => "today",
        (Span::Month, _) => "this month",
        (Span::Ever, Unit::Running) => "at once",
        (Span::Ever, Unit::Requests | Unit::Tokens | Unit::Micros) => "in all",
    };
    Some((counter.label(), format!("{used} of {limit} {span}")))
}

/// Fields of an API key, and since when it is suspended.
fn lines(key: &Value) -> Vec<(&'static str, String)> {
    let mut lines: Vec<_> = FIELDS.map(|name| (name, field(key, name))).into();
    lines.extend(some_text(key, "suspended_at").map(|at| ("suspended_at", at)));
    lines
}

async fn list(context: &CommandContext<'_>, filter: arguments::KeyFilter) -> Result {
    let table = Table::new(context.output, &filter.columns, &COLUMNS)?;
    let query = [
        ("name", filter.name.map(|name| name.as_str().to_owned())),
        ("wallet_id", wallet::id_of(context, filter.wallet.as_ref()).await?),
        ("state", filter.state),
        ("model", filter.model),
    ];
    let keys = wallet::oldest_first(context, "/api_keys", &query, filter.limit).await;
    let keys = keys.map_err(|error| error.because("API keys were not listed"))?;
    let names = WalletNames::read(context, &table).await;
    let views: Vec<_> = keys.iter().cloned().map(printed).collect();
    table.print(&views, &keys, |key, name| match name {
        "credentials" => in_force(key),
        "wallet_id" => names.of(key),
        name => field(key, name),
    })
}

/// Count of an API key's credentials in force, with the earliest end among them.
fn in_force(key: &Value) -> String {
    let credentials: Vec<_> = member(key, "credentials").as_array().into_iter().flatten().collect();
    let count = credentials.len();
    // As texts they sort as in time.
    let next = credentials.iter().filter_map(|credential| some_text(credential, "ends_at")).min();
    next.map_or_else(|| count.to_string(), |end| format!("{count}, next end {end}"))
}

/// Id of the API key that a filter names.
pub(super) async fn id_of(
    context: &CommandContext<'_>,
    key: Option<&Reference>,
) -> Result<Option<String>> {
    match key {
        Some(key) => Ok(Some(text(&find(context, key).await?, "id"))),
        None => Ok(None),
    }
}

const API_KEYS: Lookup = Lookup { path: "/api_keys", thing: "API key", list: "holdfast key list" };

/// The API key of this id or name.
pub(super) async fn find(context: &CommandContext<'_>, reference: &Reference) -> Result<Value> {
    API_KEYS.find(context, reference).await
}

/// Path below an API key that was found: its name may be another wallet's as well.
fn path(key: &Value, below: &str) -> String {
    format!("/api_keys/{}{below}", text(key, "id"))
}

/// The member of an end: a moment, or the seconds of a span.
pub(super) fn end(expiry: Expiry) -> (&'static str, Value) {
    match expiry {
        Expiry::At(at) => ("ends_at", holdfast_wire::api::rfc3339(at).into()),
        Expiry::After(span) => ("ends_in_seconds", span.as_secs().into()),
    }
}

/// An API key as it is printed: with the members that scripts read.
fn printed(key: Value) -> Value {
    let members = CountLimit::ALL.into_iter().map(|limit| limit.row().member).chain(SPEND);
    let limits: Map<_, _> =
        members.map(|name| (name.to_owned(), member(&key, name).clone())).collect();
    let is_hidden = *member(&key, "balance") == "hidden";
    let ends_at = member(&key, "ends_at").clone();
    let key = with(key, "limits", limits);
    with(with(key, "hide_balance", is_hidden), "expires_at", ends_at)
}

const COLUMNS: [Column; 10] = [
    Column::id("id").third(),
    Column::text("name"),
    Column::text("wallet_id"),
    Column::text("limits"),
    Column::text("models").second(),
    Column::text("balance").third(),
    Column::text("credentials").third(),
    Column::moment("created_at").third(),
    Column::moment("expires_at").second(),
    Column::moment("revoked_at"),
];

/// Fields of one API key, without its credentials.
const FIELDS: [&str; 9] = [
    "id",
    "name",
    "wallet_id",
    "limits",
    "models",
    "balance",
    "created_at",
    "expires_at",
    "revoked_at",
];

fn field(key: &Value, name: &str) -> String {
    match name {
        "limits" => limits(key),
        "models" => models(key),
        "expires_at" => text(key, "ends_at"),
        name => text(key, name),
    }
}

fn limits(key: &Value) -> String {
    let count = |limit: CountLimit| {
        let row = limit.row();
        some_text(key, row.member).map(|bound| format!("{bound} {}", row.label))
    };
    let counts = CountLimit::ALL.into_iter().filter_map(count);
    let set: Vec<_> = counts.chain(spend(key, SPEND)).collect();
    if set.is_empty() { view::NOTHING.to_owned() } else { set.join(", ") }
}

fn models(key: &Value) -> String {
    let Some(models) = member(key, "models").as_array() else { return "all".to_owned() };
    models.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}
