//! Payments as several pages show them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use holdfast_domain::admin::listing::PostingListing;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Operation, WalletId};

use crate::failure::Failure;
use crate::kit::{Cell, Table, Visit, with_query};
use crate::pages::parts::reference::{WALLET, to_wallet};

texts! { #[template(path = "pages/payments.txt")] PostingPartText { NoDeposit = "no_deposit" } }

/// Address of the list.
pub(crate) const PAYMENTS: &str = "/payments";
/// Parameter of the kind of all payments in the list.
pub(crate) const KIND: &str = "kind";
pub(crate) const DEPOSIT: &str = "deposit";
pub(crate) const REFUND: &str = "refund";
pub(crate) const ADJUSTMENT: &str = "adjustment";
/// Parameter of the operation that refunds are of.
pub(crate) const OPERATION: &str = "operation";

/// Address of the payments of a kind, of this wallet.
pub(crate) fn address(kind: &str, wallet: WalletId) -> String {
    with_query(PAYMENTS, &[(KIND, Some(kind)), (WALLET, Some(&wallet.to_string()))])
}

/// Address of the refunds of an operation.
pub(crate) fn refunds_address(operation: &Operation) -> String {
    format!("{}&{OPERATION}={}", address(REFUND, operation.wallet), operation.id)
}

/// The latest deposits of a wallet.
pub(crate) fn deposits(wallet: &Wallet, rows: &[PostingListing]) -> Table {
    let rows = rows.iter().map(|listing| row(listing, Some(wallet))).collect();
    Table::new("Latest deposits", &HEAD, rows, PostingPartText::NoDeposit)
}

/// Columns of a payment; those of several wallets have the wallet behind the moment.
const HEAD: [&str; 6] = ["Booked", "Kind", "Amount", "Reference", "Reason", "Note"];

/// Payments as rows, of one wallet or of all.
pub(crate) async fn table(
    visit: &Visit,
    (title, of): (&str, Option<&Wallet>),
    listed: &[PostingListing],
) -> Result<Table, Failure> {
    let empty = "No payments yet.";
    if let Some(wallet) = of {
        let rows = listed.iter().map(|listing| row(listing, Some(wallet))).collect();
        return Ok(Table::new(title, &HEAD, rows, empty));
    }
    let mut wallets: BTreeMap<WalletId, Wallet> = BTreeMap::new();
    for PostingListing { posting, .. } in listed {
        // Once for each wallet: many payments of a page are of one.
        if let Entry::Vacant(vacant) = wallets.entry(posting.wallet) {
            let reference = to_wallet(posting.wallet);
            vacant.insert(visit.accounts().wallet(visit.principal(), &reference).await?.wallet);
        }
    }
    let with_wallet = |listing: &PostingListing| {
        let wallet = wallets.get(&listing.posting.wallet);
        let named = |it: &Wallet| Cell::link(&it.name, format!("/wallets/{}", it.id));
        let mut cells = row(listing, wallet);
        cells.insert(1, wallet.map_or(Cell::Nothing, named));
        cells
    };
    let [booked, rest @ ..] = HEAD;
    let head = [&[booked, "Wallet"][..], &rest].concat();
    Ok(Table::new(title, &head, listed.iter().map(with_wallet).collect(), empty))
}

fn row(listing: &PostingListing, wallet: Option<&Wallet>) -> Vec<Cell> {
    let PostingListing { posting, details, created_at, .. } = listing;
    let reference = details.reference.as_ref();
    let reference = reference.map(|it| format!("{} {}", it.source, it.external_reference));
    let amount = |wallet: &Wallet| Cell::money(posting.amount, wallet.currency);
    vec![
        Cell::moment(*created_at),
        Cell::link(posting.kind.label(), format!("/postings/{}", posting.id)),
        wallet.map_or(Cell::Nothing, amount),
        Cell::some_text(reference.as_deref()),
        reason(listing),
        Cell::some_text(details.note.as_deref()),
    ]
}

/// Reason of a posting: an adjustment's own is part of it.
pub(crate) fn reason(PostingListing { posting, details, .. }: &PostingListing) -> Cell {
    match &posting.kind {
        PostingKind::Adjustment(reason) => Cell::text(reason),
        PostingKind::Deposit | PostingKind::Refund(_) => Cell::some_text(details.reason.as_deref()),
    }
}
