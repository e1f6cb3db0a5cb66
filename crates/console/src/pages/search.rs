//! Search: one term, and the pages of what it may name. A single hit leads to its page at once.
//!
//! Never: a hit that the visitor may not open, or a word about why there is none.

use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::{SearchHit, SearchOutcome, SearchTerm};
use holdfast_domain::admin::Thing;

use crate::failure::Failure;
use crate::kit::address::{noun, of_thing, with_query};
use crate::kit::cell::{Cell, Tone};
use crate::kit::page::Page;
use crate::kit::section::{Notice, Section, Table};
use crate::kit::shell::TERM;
use crate::kit::visit::Visit;
use crate::pages::parts::reference::Names;

const EMPTY: &str = "Nothing found. Search for an id or at least its first 6 digits, a chatcmpl_… id, a request key, \
    a name, an external id or an e-mail address. An answered request is found by its chatcmpl_… id: its x-request-id \
    is not stored.";
const NEEDS_API_KEY: &str = "Too many API keys to look for this request key under each of them. Enter it on Requests, \
    together with its API key.";

pub(crate) async fn show(visit: Visit) -> Result<Response, Failure> {
    let term = match visit.query.read::<SearchTerm>(TERM) {
        Ok(Some(term)) => term,
        Ok(None) => return Ok(page(Notice::new(Tone::Plain, EMPTY).into()).into_response()),
        Err(failure) => {
            let page = page(Notice::new(Tone::Bad, failure.message).into());
            return Ok(page.status(failure.status).into_response());
        }
    };
    let SearchOutcome { hits, needs_api_key } =
        visit.accounts().search(visit.principal(), &term).await?;
    if let [hit] = hits.as_slice()
        && let Some(address) = of_thing(hit.thing)
    {
        return Ok(Redirect::to(&address).into_response());
    }
    if hits.is_empty() && needs_api_key {
        let address = with_query("/operations", &[("request_key", Some(term.as_str()))]);
        let notice = Notice::new(Tone::Warning, NEEDS_API_KEY).link("Requests", address);
        return Ok(page(notice.into()).into_response());
    }
    Ok(page(found(&visit, &hits).await?.into()).into_response())
}

fn page(section: Section) -> Page {
    Page::new("Search").section(section)
}

async fn found(visit: &Visit, hits: &[SearchHit]) -> Result<Table, Failure> {
    let wallets = hits.iter().filter_map(|hit| hit.wallet.map(Thing::Wallet));
    let names = Names::read(visit, hits.iter().map(|hit| hit.thing).chain(wallets)).await?;
    let row = |hit: &SearchHit| {
        let wallet = hit.wallet.map_or(Cell::Nothing, |id| names.link(Thing::Wallet(id)));
        vec![names.link(hit.thing), Cell::text(noun(hit.thing)), wallet]
    };
    let rows = hits.iter().map(row).collect();
    Ok(Table::new("Found", &["Name", "Kind", "Wallet"], rows, EMPTY))
}
