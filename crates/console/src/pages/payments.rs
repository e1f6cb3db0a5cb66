//! Payments: deposits, refunds and adjustments of all wallets within reach, and the file for an accountant, which has
//! every charge, too.
//!
//! A payment counts on the UTC day on which it was booked. *Usage* and *Home* count a charge, and its refunds with it,
//! in the hour in which the request finished: each page links to the other.

use axum::response::Response;
use holdfast_admin::ledger_file;
use holdfast_domain::admin::listing::{PostingFilter, PostingList};
use holdfast_domain::wallet::Wallet;
use holdfast_wire::file::FileFormat;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::period::altered;
use crate::kit::{
    Choices, Link, MONTH, Month, Notice, Page, Pages, SentFields, Tone, Visit, isolated, with_query,
};
use crate::pages::parts::posting::{ADJUSTMENT, DEPOSIT, KIND, OPERATION, PAYMENTS, REFUND, table};
use crate::pages::parts::reference::{WALLET, to_wallet};

texts! { #[template(path = "pages/payments.txt")] PaymentsText { Counted = "counted" } }

/// Kinds as the address has them, and as the page names them.
const KINDS: [(&str, &str, PostingList); 4] = [
    ("", "All", PostingList::All),
    (DEPOSIT, "Deposits", PostingList::Deposits),
    (REFUND, "Refunds", PostingList::Refunds),
    (ADJUSTMENT, "Adjustments", PostingList::Adjustments),
];

/// Payments, newest first: all of them, or those of a kind, a wallet or a refunded request.
pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let chosen = visit.query.get(KIND).unwrap_or("");
    let found = KINDS.iter().find(|(kind, ..)| *kind == chosen);
    let (_, label, list) = found.ok_or_else(|| Failure::field(KIND, FieldRefusal::NotAChoice))?;
    let title = if *list == PostingList::All { "Payments" } else { label };
    let of = wallet(&visit).await?;
    let filter = PostingFilter {
        list: *list,
        wallet: of.as_ref().map(|wallet| wallet.id),
        operation: visit.query.read(OPERATION)?,
    };
    let pages = Pages::new(&visit, PAYMENTS, &visit.query);
    let listed = visit.accounts().postings(visit.principal(), filter, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let now = Month::of(visit.accounts().clock().await?);
    let file = |month: Month| {
        let address = format!("{PAYMENTS}/ledger.csv");
        with_query(&address, &[(MONTH, Some(&month.text())), (WALLET, visit.query.get(WALLET))])
    };
    let counted =
        Notice::new(Tone::Plain, PaymentsText::Counted.to_string()).link("Usage", "/usage");
    let page = match &of {
        Some(wallet) => Page::new(format!("{title} of {}", isolated(&wallet.name)))
            .below("Wallets", "/wallets")
            .below(&wallet.name, format!("/wallets/{}", wallet.id)),
        None => Page::new(title),
    };
    let table = table(&visit, (title, of.as_ref()), &listed.rows).await?;
    Ok(page
        .action(true, "File (this month)", file(now))
        .action(true, "File (last month)", file(now.before()))
        .section(counted)
        .section(kinds(chosen, &visit.query))
        .section(table.next(next)))
}

/// The wallet that the address names.
async fn wallet(visit: &Visit) -> Result<Option<Wallet>, Failure> {
    let Some(id) = visit.query.read(WALLET)? else { return Ok(None) };
    Ok(Some(visit.accounts().wallet(visit.principal(), &to_wallet(id)).await?.wallet))
}

fn kinds(chosen: &str, query: &SentFields) -> Choices {
    let link = |(kind, label, _list): (&str, &str, PostingList)| {
        (
            Link::new(label, altered(PAYMENTS, query, &[KIND, OPERATION], &[(KIND, kind)])),
            kind == chosen,
        )
    };
    Choices { label: "Kind".to_owned(), links: KINDS.map(link).to_vec() }
}

/// Every payment and every charge of a month as a file, as it is read.
pub(crate) async fn file(visit: Visit) -> Result<Response, Failure> {
    let month = Month::requested(&visit.query, visit.accounts().clock().await?)?;
    let wallet = visit.query.read(WALLET)?.map(to_wallet);
    let (principal, period) = (visit.principal(), month.period());
    let file = visit.accounts().export_ledger(principal, wallet.as_ref(), period).await?;
    Ok(ledger_file(file, FileFormat::Csv))
}
