//! Numbers lead to the rows that make them: each link is followed, and its rows are added up. Over a random book, on a
//! file and on a server.

use std::collections::BTreeMap;

use holdfast_accounts::{PostingOrder, Principal};
use holdfast_domain::Micros;
use holdfast_domain::admin::PostingDetails;

use crate::tests::book::{
    Book, OpsWorld, address, amount, amounts, behind_rows, book, fact, owner, pages_of, plain,
    request, rows, tile, total,
};

const SEED: u64 = 0x11_4b5;

/// Address that a fact leads to.
fn behind(html: &str, name: &str) -> String {
    let (_, rest) = html.split_once(&format!("<dt>{name}</dt><dd>")).unwrap();
    address(rest.split_once("</dd>").unwrap().0)
}

/// Sum of a column over all pages of a list.
async fn sum(
    world: &OpsWorld,
    first: &str,
    title: &str,
    of: impl Fn(&BTreeMap<String, String>) -> i64,
) -> i64 {
    let pages = pages_of(world, first).await;
    pages.iter().flat_map(|html| rows(html, title)).map(|row| of(&row)).sum()
}

fn count(text: &str) -> i64 {
    text.replace(',', "").parse().unwrap()
}

async fn today_leads_to_its_rows(world: &OpsWorld) {
    let html = world.page(&owner(), "/").await;
    let told = |name: &str| tile(&html, name);
    let running = behind(&html, "On hold now");
    let held = sum(world, &running, "Newest first", |row| amount(&row["Holds"])).await;
    assert!(held > 0);
    assert_eq!(amount(&told("On hold now")), held);
    for (name, column) in [
        ("Revenue today", "Charge"),
        ("At risk today", "At risk"),
        ("Outcome unknown today", "Outcome unknown"),
    ] {
        let is_count = column == "Outcome unknown";
        let number = |text: &str| if is_count { count(text) } else { amount(text) };
        let rows = sum(world, &behind(&html, name), "Breakdown", |row| number(&row[column])).await;
        assert!(rows > 0, "{name}");
        assert_eq!(number(&told(name)), rows, "{name}");
    }
    // Each period of the chart leads to the report of what is drawn there.
    let periods = html.split_once("class=\"periods\"").unwrap().1.split_once("</g>").unwrap().0;
    let periods: Vec<_> = periods.split("<a ").skip(1).collect();
    assert_eq!(periods.len(), 30);
    let today = periods[29];
    let drawn = today.split_once(": ").unwrap().1.split_once(" USD").unwrap().0;
    let charge = sum(world, &address(today), "Breakdown", |row| amount(&row["Charge"])).await;
    assert_eq!(amount(drawn), charge, "{today}");
}

async fn wallets_lead_to_their_rows(world: &OpsWorld, book: &Book) {
    for wallet in &book.wallets {
        let html = world.page(&owner(), &format!("/wallets/{wallet}")).await;
        let held = behind(&html, "Held");
        let found = sum(world, &held, "Newest first", |row| amount(&row["Holds"])).await;
        assert!(found > 0);
        assert_eq!(amount(&fact(&html, "Held").unwrap()), found);
        // All of the book is of the last days.
        let own = book.operations.iter().filter(|it| it.wallet == *wallet);
        let charges: i64 = own.filter_map(|it| it.phase.charge()).map(Micros::get).sum();
        let drawn: i64 = amounts(&html, "legend").iter().map(|(_, amount)| amount).sum();
        assert_eq!(drawn, charges, "{}", plain(&html));
    }
}

/// Amounts of these rows of a day, on all its pages.
async fn amounts_of_day(world: &OpsWorld, first: &str, is_of: impl Fn(&str) -> bool) -> i64 {
    let (mut path, mut sum, mut pages) = (Some(first.to_owned()), 0, 0);
    while let Some(address) = path {
        let html = world.page(&owner(), &address).await;
        let all = rows(&html, "Requests and payments of");
        let [opening, entries @ .., closing] = all.as_slice() else { panic!("{html}") };
        let own = entries.iter().map(|row| amount(&row["Amount"])).sum::<i64>();
        assert_eq!(amount(&opening["Balance"]) + own, amount(&closing["Balance"]), "{address}");
        let of = entries.iter().filter(|row| is_of(&row["What"]));
        sum += of.map(|row| amount(&row["Amount"])).sum::<i64>();
        let earlier = html.split_once("\">Earlier entries</a>");
        path = earlier.map(|(before, _)| address_of(before.rsplit_once("href=\"").unwrap().1));
        pages += 1;
        assert!(pages < 50, "{first} leads on for ever");
    }
    sum
}

fn address_of(href: &str) -> String {
    href.split('"').next().unwrap().replace("&#38;", "&")
}

async fn days_of_a_statement_lead_to_their_rows(world: &OpsWorld, book: &Book) {
    for wallet in &book.wallets {
        let (mut path, mut days) = (Some(format!("/wallets/{wallet}/statement")), 0);
        let mut end = None;
        // The month may have turned while the book was written.
        while let Some(address) = path {
            let html = world.page(&owner(), &address).await;
            let all = rows(&html, "Statement of");
            let [opening, movements @ .., closing] = all.as_slice() else { panic!("{html}") };
            let mut funds = amount(&opening["Balance"]);
            let links = html.split("href=\"").skip(1).map(address_of);
            let links = links.filter(|href| href.contains("?on="));
            for (row, href) in movements.iter().zip(links) {
                let is_usage = row["What"].starts_with("Usage");
                let kind = if is_usage { "Charge" } else { "Deposit" };
                let shown = amounts_of_day(world, &href, |what| what == kind).await;
                assert_eq!(amount(&row["Amount"]), shown, "{href}");
                funds += shown;
                assert_eq!(amount(&row["Balance"]), funds, "{row:?}");
                days += 1;
            }
            assert_eq!(amount(&closing["Balance"]), funds);
            assert!(end.is_none_or(|end| end == funds));
            end = Some(amount(&opening["Balance"]));
            let (before, _) = html.split_once("\">Month before</a>").unwrap();
            let before = address_of(before.rsplit_once("href=\"").unwrap().1);
            path = Some(before).filter(|_before| end != Some(0));
        }
        assert!(days >= 2, "{days}");
    }
}

async fn keys_lead_to_their_rows(world: &OpsWorld, book: &Book) {
    for key in &book.api_keys {
        let html = world.page(&owner(), &format!("/keys/{key}")).await;
        let months = rows(&html, "This month");
        assert!(!months.is_empty(), "{}", plain(&html));
        for (month, href) in months.iter().zip(behind_rows(&html, "This month")) {
            let days = world.page(&owner(), &href).await;
            let all = total(&days, "Breakdown");
            assert_eq!(amount(&month["Charged"]), amount(&all["Charge"]), "{href}");
            for (name, of_days) in [
                ("Completed", "Completed"),
                ("Refused", "Refused"),
                ("Outcome unknown", "Outcome unknown"),
            ] {
                assert_eq!(count(&month[name]), count(&all[of_days]), "{href} {name}");
            }
        }
    }
}

async fn sums_of_usage_lead_to_their_parts(world: &OpsWorld) {
    for first in ["month", "day", "hour", "model"] {
        let html = world.page(&owner(), &format!("/usage?first={first}")).await;
        let groups = rows(&html, "Breakdown");
        assert!(!groups.is_empty(), "{first}");
        for (group, href) in groups.iter().zip(behind_rows(&html, "Breakdown")) {
            let charge = sum(world, &href, "Breakdown", |row| amount(&row["Charge"])).await;
            assert_eq!(amount(&group["Charge"]), charge, "{href}");
        }
    }
}

async fn refunds_lead_to_their_postings(world: &OpsWorld, book: &Book) {
    let charge =
        |it: &&holdfast_domain::Operation| it.phase.charge().is_some_and(|charge| charge.get() > 3);
    let operations: Vec<_> = book.operations.iter().filter(charge).take(3).collect();
    for operation in &operations {
        for micros in [1, 2] {
            let details = PostingDetails::default();
            let order = PostingOrder { amount: Micros::new(micros), currency: None, details };
            let local = Principal::local();
            world.accounts.refund(&local, &request(), operation.id, order).await.unwrap();
        }
    }
    for operation in operations {
        let html = world.page(&owner(), &format!("/operations/{}", operation.id)).await;
        let href = behind(&html, "Refunded");
        let found = sum(world, &href, "Refunds", |row| amount(&row["Amount"])).await;
        assert_eq!((amount(&fact(&html, "Refunded").unwrap()), found), (3, 3), "{href}");
    }
}

async fn check(world: &OpsWorld) {
    let book = book(world, SEED, 90, 4).await;
    today_leads_to_its_rows(world).await;
    wallets_lead_to_their_rows(world, &book).await;
    days_of_a_statement_lead_to_their_rows(world, &book).await;
    keys_lead_to_their_rows(world, &book).await;
    sums_of_usage_lead_to_their_parts(world).await;
    refunds_lead_to_their_postings(world, &book).await;
}

#[tokio::test]
async fn numbers_lead_to_the_rows_that_make_them() {
    check(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_numbers_lead_to_the_rows_that_make_them() {
    check(&OpsWorld::on_a_server().await).await;
}
