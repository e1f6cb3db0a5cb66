//! Search: one term, and the pages of what it may name. A single hit leads to its page at once.
//!
//! Never: a hit that the visitor may not open, or a word about why there is none.

use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::{SearchHit, SearchLimits, SearchOutcome, SearchTerm};
use holdfast_domain::WalletId;
use holdfast_domain::admin::ResourceId;

use crate::failure::Failure;
use crate::kit::shell::TERM;
use crate::kit::{Cell, Notice, Page, Section, Table, Tone, Visit, noun, of_thing, with_query};
use crate::pages::parts::reference::Names;

texts! { #[template(path = "pages/search.txt")] SearchText {
    Empty = "empty",
    HasMore = "has_more",
    NeedsApiKey = "needs_api_key",
} }

pub(crate) async fn show(visit: Visit) -> Result<Response, Failure> {
    let term = match visit.query.read::<SearchTerm>(TERM) {
        Ok(Some(term)) => term,
        Ok(None) => {
            return Ok(page(Notice::new(Tone::Plain, SearchText::Empty.to_string()).into())
                .into_response());
        }
        Err(failure) => {
            let page = page(Notice::new(Tone::Bad, failure.message).into());
            return Ok(page.status(failure.status).into_response());
        }
    };
    // Another wallet's term finds as much as a term that names no resource, so that a search
    // proves no existence.
    let found = visit.accounts().search(visit.principal(), &term, SearchLimits::default()).await?;
    if let Some(address) = only(&found) {
        return Ok(Redirect::to(&address).into_response());
    }
    let mut page = Page::new("Search");
    if found.needs_api_key {
        // Request keys are lower case.
        let request_key = term.as_str().to_ascii_lowercase();
        let address = with_query("/operations", &[("request_key", Some(&request_key))]);
        let notice = Notice::new(Tone::Warning, SearchText::NeedsApiKey.to_string())
            .link("Requests", address);
        page = page.section(notice);
    }
    if found.has_more {
        page = page.section(Notice::new(Tone::Plain, SearchText::HasMore.to_string()));
    }
    if !found.hits.is_empty() || !found.needs_api_key {
        page = page.section(table(&visit, &found.hits).await?);
    }
    Ok(page.into_response())
}

fn page(section: Section) -> Page {
    Page::new("Search").section(section)
}

/// Address of the single hit, unless there may be others.
fn only(found: &SearchOutcome) -> Option<String> {
    match found.hits.as_slice() {
        [hit] if !found.needs_api_key && !found.has_more => address(*hit),
        _none_or_several => None,
    }
}

fn address(hit: SearchHit) -> Option<String> {
    match hit {
        SearchHit::Resource(thing, _wallet) => of_thing(thing),
        SearchHit::RefusedRequest(id, _wallet) => Some(format!("/refusals/{id}")),
    }
}

async fn table(visit: &Visit, hits: &[SearchHit]) -> Result<Table, Failure> {
    let mut things = Vec::new();
    for hit in hits {
        match *hit {
            SearchHit::Resource(thing, wallet) => {
                things.extend([Some(thing), wallet.map(ResourceId::Wallet)].into_iter().flatten());
            }
            SearchHit::RefusedRequest(_id, wallet) => things.push(ResourceId::Wallet(wallet)),
        }
    }
    let names = Names::read(visit, things).await?;
    let of = |wallet: Option<WalletId>| {
        wallet.map_or(Cell::Nothing, |id| names.link(ResourceId::Wallet(id)))
    };
    let row = |hit: &SearchHit| match *hit {
        SearchHit::Resource(thing, wallet) => {
            vec![names.link(thing), Cell::text(noun(thing)), of(wallet)]
        }
        SearchHit::RefusedRequest(id, wallet) => {
            let link = Cell::link(id.to_string(), format!("/refusals/{id}"));
            vec![link, Cell::text("Refused request"), of(Some(wallet))]
        }
    };
    let rows = hits.iter().map(row).collect();
    Ok(Table::new("Found", &["Name", "Kind", "Wallet"], rows, SearchText::Empty))
}

#[cfg(test)]
mod tests {
    use holdfast_accounts::{SearchHit, SearchOutcome};
    use holdfast_domain::WalletId;
    use holdfast_domain::admin::ResourceId;

    use crate::pages::search::only;

    #[test]
    fn a_single_hit_is_opened_only_if_there_can_be_no_other() {
        let hit = SearchHit::Resource(ResourceId::Wallet(WalletId::from_u128(1)), None);
        let found = SearchOutcome { hits: vec![hit], ..SearchOutcome::default() };
        assert!(only(&found).is_some_and(|address| address.starts_with("/wallets/")));
        assert_eq!(only(&SearchOutcome { needs_api_key: true, ..found.clone() }), None);
        assert_eq!(only(&SearchOutcome { has_more: true, ..found.clone() }), None);
        assert_eq!(only(&SearchOutcome { hits: vec![hit, hit], ..found }), None);
    }
}
