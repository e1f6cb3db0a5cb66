//! Refused requests as several pages show them: a row each, beside the number of all like it in its hour.
//!
//! A list has the newest of each API key, so its length is not the number of refusals: the number beside a
//! row does.

use std::collections::BTreeMap;

use holdfast_domain::admin::listing::{Order, PageRequest, Period};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter, ResourceId, UseCase};
use holdfast_domain::statistics::{RefusedRequest, hour_of};
use holdfast_domain::{ApiKeyId, Timestamp, WalletId};
use holdfast_wire::error::Code;

use crate::failure::Failure;
use crate::kit::{Cell, Link, Pages, Table, Tone, Visit};
use crate::pages::parts::reference::{self, Names};

texts! { #[template(path = "pages/refusals.txt")] RefusalPartText {
    Title = "title",
    UnknownCode = "unknown_code",
} }

/// Head of a table of refused requests.
const HEAD: [&str; 6] = ["Refused", "Code", "Model", "API key", "Wallet", "Same this hour"];
/// Sentence of a list without a row.
const EMPTY: &str = "No refused requests.";

/// Rows that other pages show.
const LATEST: PageRequest = PageRequest::first(Order::Newest, 5);

/// The table of refused requests under the fields of the operations' filter.
pub(crate) async fn found(visit: &Visit, period: Period) -> Result<Table, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let filter = RefusalFilter {
        wallet,
        api_key: reference::api_key(visit, &visit.query, wallet).await?,
        code: visit.query.get("code").map(str::to_owned),
        period,
    };
    let pages = Pages::new(visit, "/operations", &visit.query);
    let (accounts, principal) = (visit.accounts(), visit.principal());
    let listed = accounts.refused_requests(principal, filter.clone(), pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let rows = rows(visit, &listed.rows, filter).await?;
    Ok(Table::new(&RefusalPartText::Title.to_string(), &HEAD, rows, EMPTY).next(next))
}

/// Rows under [`HEAD`]. The numbers are of what the filter admits.
async fn rows(
    visit: &Visit,
    requests: &[RefusedRequest],
    filter: RefusalFilter,
) -> Result<Vec<Vec<Cell>>, Failure> {
    let hours = requests.iter().map(|request| hour_of(request.at));
    let Some((first, last)) = hours.clone().min().zip(hours.max()) else { return Ok(Vec::new()) };
    // To the moment after the last hour's beginning: that hour is counted, and none after it.
    let to = Timestamp::from_micros(last.as_micros().saturating_add(1));
    let period = Period { from: Some(first), to: Some(to) };
    let filter = RefusalFilter { period, ..filter };
    let counted = visit.accounts().refusal_hours(visit.principal(), filter).await?;
    let count = |HourlyRefusals { hour, code, count }| ((hour, code), count);
    let counts: BTreeMap<_, _> = counted.into_iter().map(count).collect();
    let things = requests
        .iter()
        .flat_map(|it| [ResourceId::Wallet(it.wallet), ResourceId::ApiKey(it.api_key)]);
    let names = Names::read(visit, things).await?;
    let row = |request: &RefusedRequest| {
        let of_hour = counts.get(&(hour_of(request.at), request.code.to_string()));
        vec![
            Cell::moment_link(request.at, address(request)),
            Cell::badge(format!("{} {}", request.status, request.code), Tone::Warning),
            Cell::some_text(request.model.as_ref().map(|model| model.as_str())),
            names.link(ResourceId::ApiKey(request.api_key)),
            names.link(ResourceId::Wallet(request.wallet)),
            of_hour.map_or(Cell::Nothing, Cell::count),
        ]
    };
    Ok(requests.iter().map(row).collect())
}

/// Address of the page of a refused request.
pub(crate) fn address(request: &RefusedRequest) -> String {
    format!("/refusals/{}", request.id)
}

/// The last refused requests of an API key.
pub(crate) async fn of_key(visit: &Visit, api_key: ApiKeyId) -> Result<Option<Table>, Failure> {
    let filter = RefusalFilter { api_key: Some(api_key), ..RefusalFilter::default() };
    latest(visit, filter, format!("/operations?scope=refused&api_key={api_key}")).await
}

/// The last refused requests of a wallet.
pub(crate) async fn of_wallet(visit: &Visit, wallet: WalletId) -> Result<Option<Table>, Failure> {
    let filter = RefusalFilter { wallet: Some(wallet), ..RefusalFilter::default() };
    latest(visit, filter, format!("/operations?scope=refused&wallet={wallet}")).await
}

/// A short list with a link to the whole one, for roles that may read it.
async fn latest(
    visit: &Visit,
    filter: RefusalFilter,
    all: String,
) -> Result<Option<Table>, Failure> {
    if !visit.may(UseCase::RefusalRead) {
        return Ok(None);
    }
    let page = visit.accounts().refused_requests(visit.principal(), filter.clone(), LATEST).await?;
    let rows = rows(visit, &page.rows, filter).await?;
    let table = Table::new("Last refused requests", &HEAD, rows, EMPTY);
    Ok(Some(table.link(Link::new("All refused requests", all))))
}

/// Cause of an error code, as one sentence.
pub(crate) fn cause(code: &str) -> String {
    let known = Code::ALL.into_iter().find(|known| known.label() == code);
    let Some(known) = known else { return RefusalPartText::UnknownCode.to_string() };
    let first = known.cause().split_inclusive(". ").next().unwrap_or(known.cause());
    first.trim_end().replace('`', "")
}
