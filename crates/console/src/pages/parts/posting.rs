//! Postings as several pages show them.

use crate::kit::cell::Cell;
use crate::kit::section::Table;
use askama::Template;
use holdfast_domain::admin::listing::{PostingList, PostingListing};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::{Currency, Operation};

/// Texts of the page.
#[derive(Debug, Template)]
#[template(path = "pages/payments.txt")]
enum PostingPartText {
    #[template(block = "no_deposit")]
    NoDeposit,
}

/// Parameter of the operation that refunds are of.
pub(crate) const OPERATION: &str = "operation";

/// Address of the refunds of an operation.
pub(crate) fn refunds_address(operation: &Operation) -> String {
    format!("/wallets/{}/refunds?{OPERATION}={}", operation.wallet, operation.id)
}

/// Postings of one wallet as rows.
pub(crate) fn table(
    list: PostingList,
    title: &str,
    rows: &[PostingListing],
    currency: Currency,
) -> Table {
    let row = |listing: &PostingListing| {
        let PostingListing { posting, details, created_at, .. } = listing;
        let reference = details.reference.as_ref();
        let reference = reference.map(|it| format!("{} {}", it.source, it.external_reference));
        vec![
            Cell::link(posting.kind.label(), format!("/postings/{}", posting.id)),
            Cell::money(posting.amount, currency),
            Cell::moment(*created_at),
            reason(listing),
            Cell::some_text(details.note.as_deref()),
            Cell::some_text(reference.as_deref()),
        ]
    };
    let empty = match list {
        PostingList::All | PostingList::Deposits => PostingPartText::NoDeposit.to_string(),
        PostingList::Adjustments => "No adjustments.".to_owned(),
        PostingList::Refunds => "No refunds.".to_owned(),
    };
    let head = ["What", "Amount", "Created", "Reason", "Note", "Reference"];
    Table::new(title, &head, rows.iter().map(row).collect(), &empty)
}

/// Reason of a posting: an adjustment's own is part of it.
pub(crate) fn reason(PostingListing { posting, details, .. }: &PostingListing) -> Cell {
    match &posting.kind {
        PostingKind::Adjustment(reason) => Cell::text(reason),
        PostingKind::Deposit | PostingKind::Refund(_) => Cell::some_text(details.reason.as_deref()),
    }
}
