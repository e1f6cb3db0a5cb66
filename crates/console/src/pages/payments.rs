//! Payments: deposits, refunds and adjustments of all wallets within reach, and the file for an accountant, which has
//! every charge, too.
//!
//! A payment counts on the UTC day on which it was booked. *Usage* and *Home* count a charge, and its refunds with it,
//! in the hour in which the request finished: each page links to the other.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use askama::Template;
use axum::response::Response;
use holdfast_accounts::Reference;
use holdfast_admin::ledger_file;
use holdfast_domain::WalletId;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::listing::{PostingFilter, PostingList, PostingListing};
use holdfast_wire::file::FileFormat;
use uuid::Uuid;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::address::with_query;
use crate::kit::cell::{Cell, Link, Tone};
use crate::kit::month::{MONTH, Month};
use crate::kit::page::Page;
use crate::kit::paging::Pages;
use crate::kit::section::{Choices, Notice, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::posting::reason;

/// Texts of the page.
#[derive(Debug, Template)]
#[template(path = "pages/payments.txt")]
enum PaymentsText {
    #[template(block = "counted")]
    Counted,
}

const PATH: &str = "/payments";
const KIND: &str = "kind";
const WALLET: &str = "wallet";
/// Kinds as the address has them, and as the page names them.
const KINDS: [(&str, &str, PostingList); 4] = [
    ("", "All", PostingList::All),
    ("deposit", "Deposits", PostingList::Deposits),
    ("refund", "Refunds", PostingList::Refunds),
    ("adjustment", "Adjustments", PostingList::Adjustments),
];

/// Payments, newest first.
pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let chosen = visit.query.get(KIND).unwrap_or("");
    let list = KINDS.iter().find(|(kind, ..)| *kind == chosen).map(|(.., list)| *list);
    let list = list.ok_or_else(|| Failure::field(KIND, FieldRefusal::NotAChoice))?;
    let wallet: Option<WalletId> = visit.query.read(WALLET)?;
    let filter = PostingFilter { list, wallet, operation: None };
    let pages = Pages::new(&visit, PATH, &visit.query);
    let listed = visit.accounts().postings(visit.principal(), filter, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let now = Month::of(visit.accounts().clock().await?);
    let file = |month: Month| {
        let address = format!("{PATH}/ledger.csv");
        with_query(&address, &[(MONTH, Some(&month.text())), (WALLET, visit.query.get(WALLET))])
    };
    let counted =
        Notice::new(Tone::Plain, PaymentsText::Counted.to_string()).link("Usage", "/usage");
    let table = table(&visit, &listed.rows).await?;
    Ok(Page::new("Payments")
        .action(true, "File (this month)", file(now))
        .action(true, "File (last month)", file(now.before()))
        .section(counted)
        .section(kinds(chosen, visit.query.get(WALLET)))
        .section(table.next(next)))
}

fn kinds(chosen: &str, wallet: Option<&str>) -> Choices {
    let link = |(kind, label, _list): (&str, &str, PostingList)| {
        let kind_given = Some(kind).filter(|kind| !kind.is_empty());
        (
            Link::new(label, with_query(PATH, &[(KIND, kind_given), (WALLET, wallet)])),
            kind == chosen,
        )
    };
    Choices { label: "Kind".to_owned(), links: KINDS.map(link).to_vec() }
}

async fn table(visit: &Visit, rows: &[PostingListing]) -> Result<Table, Failure> {
    let mut wallets: BTreeMap<WalletId, WalletRecord> = BTreeMap::new();
    for PostingListing { posting, .. } in rows {
        // Once for each wallet: many payments of a page are of one.
        if let Entry::Vacant(vacant) = wallets.entry(posting.wallet) {
            let id = Reference::Id(Uuid::from_bytes(posting.wallet.to_bytes()));
            vacant.insert(visit.accounts().wallet(visit.principal(), &id).await?);
        }
    }
    let row = |listing: &PostingListing| {
        let PostingListing { posting, details, created_at, .. } = listing;
        let wallet = wallets.get(&posting.wallet).map(|record| &record.wallet);
        let reference = details.reference.as_ref();
        let reference = reference.map(|it| format!("{} {}", it.source, it.external_reference));
        let named = |name: &str| Cell::link(name, format!("/wallets/{}", posting.wallet));
        vec![
            Cell::moment(*created_at),
            wallet.map_or(Cell::Nothing, |wallet| named(&wallet.name)),
            Cell::link(posting.kind.label(), format!("/postings/{}", posting.id)),
            wallet.map_or(Cell::Nothing, |wallet| Cell::money(posting.amount, wallet.currency)),
            Cell::some_text(reference.as_deref()),
            reason(listing),
            Cell::some_text(details.note.as_deref()),
        ]
    };
    let head = ["Booked", "Wallet", "Kind", "Amount", "Reference", "Reason", "Note"];
    Ok(Table::new("", &head, rows.iter().map(row).collect(), "No payments yet."))
}

/// Every payment and every charge of a month as a file, as it is read.
pub(crate) async fn file(visit: Visit) -> Result<Response, Failure> {
    let month = Month::requested(&visit.query, visit.accounts().clock().await?)?;
    let wallet: Option<WalletId> = visit.query.read(WALLET)?;
    let wallet = wallet.map(|id| Reference::Id(Uuid::from_bytes(id.to_bytes())));
    let (principal, period) = (visit.principal(), month.period());
    let file = visit.accounts().export_ledger(principal, wallet.as_ref(), period).await?;
    Ok(ledger_file(file, FileFormat::Csv))
}
