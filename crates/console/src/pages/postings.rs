//! A payment with its details, and the forms that make one.

pub(crate) mod forms;

use holdfast_domain::PostingId;
use holdfast_domain::admin::listing::PostingListing;
use holdfast_domain::ledger::PostingKind;

use crate::failure::Failure;
use crate::kit::{Cell, Facts, Page, Visit};
use crate::pages::parts::posting::reason;
use crate::pages::parts::reference::to_wallet;

/// The page of a payment.
pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = visit.id()?;
    let principal = visit.principal();
    let listing = visit.accounts().posting_listing(principal, PostingId::from(id)).await?;
    let PostingListing { posting, details, created_at, .. } = &listing;
    let wallet = visit.accounts().wallet(principal, &to_wallet(posting.wallet)).await?.wallet;
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

const fn title(kind: &PostingKind) -> &'static str {
    match kind {
        PostingKind::Deposit => "Deposit",
        PostingKind::Refund(_) => "Refund",
        PostingKind::Adjustment(_) => "Adjustment",
    }
}
