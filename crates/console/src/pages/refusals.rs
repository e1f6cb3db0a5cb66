//! Refused requests: the newest of each API key, as a filter of the operations, and the page of one that says why.
//!
//! Never: a prompt, or a model's name that the configuration does not have.

use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::{RefusalFilter, Thing};
use holdfast_domain::statistics::{RefusedRequest, Shortage};
use holdfast_domain::{Currency, RequestId};
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::cell::{Cell, Tone, money};
use crate::kit::moment;
use crate::kit::page::Page;
use crate::kit::paging::Pages;
use crate::kit::section::{Facts, Notice, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::reference::{self, Names};
use crate::pages::parts::refusal::{EMPTY, HEAD, cause, rows};

/// The table of refused requests under the fields of the operations' filter.
pub(crate) async fn found(visit: &Visit, [from, to]: [&str; 2]) -> Result<Table, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let filter = RefusalFilter {
        wallet,
        api_key: reference::api_key(visit, &visit.query, wallet).await?,
        code: visit.query.get("code").map(str::to_owned),
        period: Period {
            from: moment::read(&visit.query, from)?,
            to: moment::read(&visit.query, to)?,
        },
    };
    let pages = Pages::new(visit, "/operations", &visit.query);
    let (accounts, principal) = (visit.accounts(), visit.principal());
    let listed = accounts.refused_requests(principal, filter.clone(), pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let rows = rows(visit, &listed.rows, filter).await?;
    let title = "Newest first: of each API key the last 100, and the last 10 of each code";
    Ok(Table::new(title, &HEAD, rows, EMPTY).next(next))
}

/// The page of one refused request.
pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = RequestId::from(visit.id()?);
    let request = visit.accounts().refused_request(visit.principal(), id).await?;
    let things = [Thing::Wallet(request.wallet), Thing::ApiKey(request.api_key)];
    let names = Names::read(&visit, things).await?;
    let currency = currency(&visit, &request).await?;
    let page = Page::new(format!("Refused request {}", request.id))
        .below("Refused requests", "/operations?scope=refused")
        .section(why(&request, currency));
    Ok(page.section(facts(&request, currency, &names)))
}

/// Currency of the amounts: that of the wallet.
async fn currency(visit: &Visit, request: &RefusedRequest) -> Result<Option<Currency>, Failure> {
    let id = Reference::Id(Uuid::from_bytes(request.wallet.to_bytes()));
    match visit.accounts().wallet(visit.principal(), &id).await {
        Ok(record) => Ok(Some(record.wallet.currency)),
        Err(AccountsError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The cause, with the amounts that were compared and the way to what they are of.
fn why(request: &RefusedRequest, currency: Option<Currency>) -> Notice {
    let key = format!("/keys/{}", request.api_key);
    let wallet = format!("/wallets/{}", request.wallet);
    let text = cause(&request.code);
    let (Some(Shortage { wanted, available }), Some(currency)) = (request.shortage, currency)
    else {
        return Notice::new(Tone::Warning, text).link("The API key and its limits", key);
    };
    let wanted = money(wanted, currency);
    let had = available.map(|available| money(available, currency));
    let amounts = match had {
        Some(had) => format!("It might have cost {wanted}, and {had} was left at that time."),
        None => format!("It might have cost {wanted}, and less was left at that time."),
    };
    Notice::new(Tone::Warning, format!("{text} {amounts}"))
        .link("The wallet's balance", wallet)
        .link("The API key and its limits", key)
}

fn facts(request: &RefusedRequest, currency: Option<Currency>, names: &Names<'_>) -> Facts {
    let amount = |amount| currency.map_or(Cell::Nothing, |currency| Cell::money(amount, currency));
    let mut rows = vec![
        ("Refused", Cell::moment(request.at)),
        ("Status", Cell::count(request.status)),
        ("Code", Cell::code(&request.code)),
        ("Model", Cell::some_text(request.model.as_ref().map(|model| model.as_str()))),
        ("API key", names.link(Thing::ApiKey(request.api_key))),
        ("Wallet", names.link(Thing::Wallet(request.wallet))),
    ];
    if let Some(Shortage { wanted, available }) = request.shortage {
        rows.push(("Might have cost", amount(wanted)));
        rows.push(("Left at that time", available.map_or(Cell::Nothing, amount)));
    }
    rows.push(("Request id", Cell::code(request.id)));
    Facts::new("", rows)
}
