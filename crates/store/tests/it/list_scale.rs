//! Pages of operations over 10^6 of them, each from a place of its own: the slowest of a hundred, on a
//! file and on a server. It takes minutes and is run by hand:
//!
//! ```text
//! cargo nextest run --workspace --run-ignored only --no-capture -E 'test(list_scale)'
//! ```

use std::time::{Duration, Instant};

use holdfast_domain::listing::{
    ChargeRange, OperationFilter, Order, PageCursor, PageRequest, Period, Scope,
};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::OperationStatus;
use holdfast_domain::{ApiKeyId, Directory as _, Micros, Prices as _, Timestamp, WalletId};
use holdfast_testkit::sample;

use crate::scratch::Home;
use crate::usage_scale::{BEGIN, DAY, OPERATIONS, fill, say};

/// Pages of a filter that are read, and rows on each.
const PAGES: i64 = 100;
const LIMIT: u32 = 50;
/// Longest time of a page.
const PAGE: Duration = Duration::from_millis(100);

fn id(letter: char, number: u128) -> [u8; 16] {
    format!("{letter}{number:015}").as_bytes().try_into().unwrap()
}

fn filters() -> Vec<(&'static str, OperationFilter)> {
    let all = OperationFilter::default();
    let wallet = |number| Some(WalletId::from_bytes(id('w', number)));
    let api_key = Some(ApiKeyId::from_bytes(id('k', 57)));
    let at = |days| Some(Timestamp::from_micros(BEGIN + days * DAY));
    let created = Period { from: at(7), to: at(14) };
    let model = PublicModelId::try_from("acme/model-3").ok();
    let status = Some(OperationStatus::Refused);
    let charge = ChargeRange { from: Some(Micros::new(3_900)), to: None };
    vec![
        ("all", all.clone()),
        ("a large wallet", OperationFilter { wallet: wallet(0), ..all.clone() }),
        ("a small wallet", OperationFilter { wallet: wallet(5), ..all.clone() }),
        ("an API key", OperationFilter { api_key, ..all.clone() }),
        ("a wallet and its key", OperationFilter { wallet: wallet(5), api_key, ..all.clone() }),
        ("running", OperationFilter { scope: Scope::Running, ..all.clone() }),
        ("stale", OperationFilter { scope: Scope::Stale, ..all.clone() }),
        ("a week", OperationFilter { created, ..all.clone() }),
        ("a week of a small wallet", OperationFilter { wallet: wallet(5), created, ..all.clone() }),
        ("a model", OperationFilter { model: model.clone(), ..all.clone() }),
        ("a model of a wallet", OperationFilter { wallet: wallet(5), model, ..all.clone() }),
        ("a status that none has", OperationFilter { status, ..all.clone() }),
        ("a status of a wallet", OperationFilter { wallet: wallet(0), status, ..all.clone() }),
        ("a charge", OperationFilter { charge, ..all }),
    ]
}

async fn a_page_of_operations_is_read_at_once(home: &impl Home) {
    home.store().pin(&[sample::price()]).await.unwrap();
    let mut raw = home.raw().await;
    fill(&mut raw, OPERATIONS).await;
    let mut slow = Vec::new();
    for (name, filter) in filters() {
        let (mut times, mut rows) = (Vec::new(), 0);
        for number in 1..=PAGES {
            let after = Some(PageCursor(number * OPERATIONS / PAGES));
            let request = PageRequest { after, ..PageRequest::first(Order::Newest, LIMIT) };
            let begun = Instant::now();
            rows += home.store().operations(filter.clone(), request).await.unwrap().rows.len();
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        say(&format!(
            "  {name}: {rows} rows, {:?} in the middle, {:?} at most",
            times[50], times[99]
        ));
        slow.extend((times[99] > PAGE).then_some(name));
    }
    assert!(slow.is_empty(), "over {PAGE:?}: {slow:?}");
}

#[tokio::test]
#[ignore = "takes minutes; its figures are in tests/bench/notes"]
async fn on_a_file() {
    a_page_of_operations_is_read_at_once(&crate::scratch::Scratch::open().await).await;
}

#[tokio::test]
#[ignore = "takes minutes; its figures are in tests/bench/notes"]
async fn postgres_on_a_server() {
    a_page_of_operations_is_read_at_once(&crate::server::Server::open().await).await;
}
