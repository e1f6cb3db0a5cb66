//! Payments: one with its details, and those of a wallet by their kind.

pub(crate) mod forms;

use holdfast_accounts::Reference;
use holdfast_domain::PostingId;
use holdfast_domain::admin::listing::{PostingFilter, PostingList, PostingListing};
use holdfast_domain::ledger::PostingKind;
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::cell::Cell;
use crate::kit::isolation::isolated;
use crate::kit::page::Page;
use crate::kit::paging::Pages;
use crate::kit::section::Facts;
use crate::kit::visit::Visit;
use crate::pages::parts::posting::{OPERATION, reason, table};
use crate::pages::parts::wallet;

/// The page of a payment.
pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = visit.id()?;
    let principal = visit.principal();
    let listing = visit.accounts().posting_listing(principal, PostingId::from(id)).await?;
    let PostingListing { posting, details, created_at, .. } = &listing;
    let id = Reference::Id(Uuid::from_bytes(posting.wallet.to_bytes()));
    let wallet = visit.accounts().wallet(principal, &id).await?.wallet;
    let address = format!("/wallets/{}", wallet.id);
    let mut rows = vec![
        ("Wallet", Cell::link(&wallet.name, &address)),
        ("Amount", Cell::money(posting.amount, wallet.currency)),
        ("Created", Cell::moment(*created_at)),
    ];
    if let PostingKind::Refund(operation) = posting.kind {
        let page = format!("/operations/{operation}");
        rows.push(("Of the request", Cell::link(operation.to_string(), page)));
    }
    rows.push(("Reason", reason(&listing)));
    rows.push(("Note", Cell::some_text(details.note.as_deref())));
    if let Some(reference) = &details.reference {
        rows.push(("Came through", Cell::text(&reference.source)));
        rows.push(("Reference there", Cell::text(&reference.external_reference)));
    }
    rows.push(("Id", Cell::code(posting.id)));
    Ok(Page::new(title(&posting.kind))
        .below("Wallets", "/wallets")
        .below(&wallet.name, address)
        .section(Facts::new("", rows)))
}

/// Deposits of a wallet.
pub(crate) async fn deposits(visit: Visit) -> Result<Page, Failure> {
    list(&visit, PostingList::Deposits).await
}

/// Adjustments of a wallet.
pub(crate) async fn adjustments(visit: Visit) -> Result<Page, Failure> {
    list(&visit, PostingList::Adjustments).await
}

/// Refunds to a wallet.
pub(crate) async fn refunds(visit: Visit) -> Result<Page, Failure> {
    list(&visit, PostingList::Refunds).await
}

async fn list(visit: &Visit, list: PostingList) -> Result<Page, Failure> {
    let wallet = wallet::opened(visit).await?.wallet;
    let operation = visit.query.read(OPERATION)?;
    let filter = PostingFilter { list, wallet: Some(wallet.id), operation };
    let path = format!("/wallets/{}/{}", wallet.id, names(list));
    let pages = Pages::new(visit, &path, &visit.query);
    let listed = visit.accounts().postings(visit.principal(), filter, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let title = match list {
        PostingList::All => "Payments",
        PostingList::Deposits => "Deposits",
        PostingList::Adjustments => "Adjustments",
        PostingList::Refunds => "Refunds",
    };
    Ok(Page::new(format!("{title} of {}", isolated(&wallet.name)))
        .below("Wallets", "/wallets")
        .below(&wallet.name, format!("/wallets/{}", wallet.id))
        .section(table(list, title, &listed.rows, wallet.currency).next(next)))
}

const fn names(list: PostingList) -> &'static str {
    match list {
        PostingList::All => "payments",
        PostingList::Deposits => "deposits",
        PostingList::Adjustments => "adjustments",
        PostingList::Refunds => "refunds",
    }
}

const fn title(kind: &PostingKind) -> &'static str {
    match kind {
        PostingKind::Deposit => "Deposit",
        PostingKind::Refund(_) => "Refund",
        PostingKind::Adjustment(_) => "Adjustment",
    }
}
