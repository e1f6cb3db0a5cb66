//! The page of one refused request: why, with the amounts that were compared.
//!
//! Never: a prompt, or a model's name that the configuration does not have.

use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::admin::ResourceId;
use holdfast_domain::statistics::{RefusedRequest, Shortage};
use holdfast_domain::{Currency, RequestId};
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::{Cell, Facts, Notice, Page, Tone, Visit, money};
use crate::pages::parts::reference::Names;
use crate::pages::parts::refusal::cause;

texts! { #[template(path = "pages/refusals.txt")] RefusalsText {
    Shortage { wanted: String, available: Option<String> } = "shortage",
} }

/// The page of one refused request.
pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = RequestId::from(visit.id()?);
    let request = visit.accounts().refused_request(visit.principal(), id).await?;
    let things = [ResourceId::Wallet(request.wallet), ResourceId::ApiKey(request.api_key)];
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
        return Notice::new(Tone::Warning, text).link("API key limits", key);
    };
    let wanted = money(wanted, currency);
    let available = available.map(|available| money(available, currency));
    let amounts = RefusalsText::Shortage { wanted, available };
    Notice::new(Tone::Warning, format!("{text} {amounts}"))
        .link("The wallet's balance", wallet)
        .link("API key limits", key)
}

fn facts(request: &RefusedRequest, currency: Option<Currency>, names: &Names<'_>) -> Facts {
    let amount = |amount| currency.map_or(Cell::Nothing, |currency| Cell::money(amount, currency));
    let mut rows = vec![
        ("Refused", Cell::moment(request.at)),
        ("Status", Cell::count(request.status)),
        ("Code", Cell::code(&request.code)),
        ("Model", Cell::some_text(request.model.as_ref().map(|model| model.as_str()))),
        ("API key", names.link(ResourceId::ApiKey(request.api_key))),
        ("Wallet", names.link(ResourceId::Wallet(request.wallet))),
    ];
    if let Some(Shortage { wanted, available }) = request.shortage {
        rows.push(("Might have cost", amount(wanted)));
        rows.push(("Available then", available.map_or(Cell::Nothing, amount)));
    }
    rows.push(("Request id", Cell::code(request.id)));
    Facts::new("", rows)
}
