//! Sales in a process of another service, on a file: what is sold once, what is refused, what becomes of work that is
//! dropped, panics or did not run.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod sealed;
mod shop;

use std::sync::Arc;

use holdfast_domain::usage::Meters;
use holdfast_domain::{Currency, Micros};
use holdfast_embed::{Price, Sale, SellError, Work};
use holdfast_testkit::Commands as _;
use tokio::sync::Notify;

use self::shop::{PRICE, Shop, done, price};

#[tokio::test]
async fn a_request_is_sold_once_and_answered_again() {
    let shop = Shop::open().await;
    let first = shop.sell(1, "cat", done("meow")).await.unwrap();
    assert_eq!(first, sold("meow", true));
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    assert_eq!(shop.sell(1, "dog", done("bark")).await.unwrap(), Sale::OtherRequest);
    assert_eq!(shop.balance().await, (Micros::new(10_000_000 - PRICE), Micros::ZERO));
    shop.end_in_order().await;
}

#[tokio::test]
async fn a_command_under_a_known_key_makes_nothing_new() {
    let shop = Shop::open().await;
    let again = shop.issue_again().await;
    assert_eq!(again.id, shop.api_key);
    assert!(again.bearer.is_none(), "no secret is kept");
    shop.end_in_order().await;
}

#[tokio::test]
async fn a_sale_goes_on_though_its_future_is_dropped() {
    let shop = Shop::open().await;
    let (begun, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, opens) = (Arc::clone(&begun), Arc::clone(&gate));
    let work = move || async move {
        begins.notify_one();
        opens.notified().await;
        Work::Done { meters: Meters::thing(), answer: b"meow".to_vec() }
    };
    let sale = shop.sell(1, "cat", work);
    tokio::select! {
        biased;
        ended = sale => assert!(ended.is_err(), "it ended before its work"),
        () = begun.notified() => {}
    }
    // It runs here: whoever asks again waits for it, and nothing runs beside it.
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), Sale::InProgress);
    gate.notify_one();
    let shop = shop.again().await;
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    shop.end_in_order().await;
}

#[tokio::test]
async fn work_that_panics_is_lost_and_costs_nothing() {
    let shop = Shop::open().await;
    let work = || async {
        assert!(std::hint::black_box(false), "the work breaks");
        Work::NotRun
    };
    assert_eq!(shop.sell(1, "cat", work).await.unwrap(), Sale::Lost);
    assert_eq!(shop.sell(1, "cat", done("meow")).await.unwrap(), Sale::Lost);
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    shop.end_in_order().await;
}

#[tokio::test]
async fn work_that_did_not_run_costs_nothing_and_leaves_its_key_open() {
    let shop = Shop::open().await;
    let not_run = shop.sell(1, "cat", || async { Work::NotRun }).await.unwrap();
    assert!(matches!(not_run, Sale::NotRun(_)), "{not_run:?}");
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    shop.end_in_order().await;
}

#[tokio::test]
async fn what_may_not_be_sold_is_refused_before_its_work() {
    let shop = Shop::open().await;
    let never = || async { Work::Done { meters: Meters::thing(), answer: Vec::new() } };
    let euro = "EUR".parse::<Currency>().unwrap();
    let in_euro = Price::each("shop/thumbnail", euro, "2026-11-01", Micros::new(PRICE)).unwrap();
    let refused = shop.sell_at(1, "cat", (&in_euro, PRICE), never).await.unwrap_err();
    assert!(matches!(refused, SellError::Currency), "{refused:?}");
    let usd = Currency::USD;
    let other = Price::each("shop/poster", usd, "2026-11-01", Micros::new(PRICE)).unwrap();
    let refused = shop.sell_at(1, "cat", (&other, PRICE), never).await.unwrap_err();
    assert!(matches!(refused, SellError::Product), "{refused:?}");
    let refused = shop.sell_at(1, "cat", (&price(), -1), never).await.unwrap_err();
    assert!(matches!(refused, SellError::Hold), "{refused:?}");
    let refused = shop.sell_at(1, "cat", (&price(), 10_000_001), never).await.unwrap_err();
    assert!(matches!(refused, SellError::Claim(_)), "{refused:?}");
    assert_eq!(shop.sell(1, "cat", done("meow")).await.unwrap(), sold("meow", true));
    shop.end_in_order().await;
}

#[tokio::test]
async fn what_was_sold_is_answered_after_its_api_key_has_ended() {
    let shop = Shop::open().await;
    shop.sell(1, "cat", done("meow")).await.unwrap();
    shop.holdfast.store().revoke(shop.api_key).await.unwrap();
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    let refused = shop.sell(2, "cat", done("bark")).await.unwrap_err();
    assert!(matches!(refused, SellError::Key), "{refused:?}");
    shop.end_in_order().await;
}

#[tokio::test]
async fn no_answer_is_printed_for_debugging() {
    let shop = Shop::open().await;
    let sale = shop.sell(1, "cat", done("meow")).await.unwrap();
    let shown = format!("{sale:?} {:?}", done("meow")().await);
    assert!(!shown.contains("meow") && !shown.contains("109, 101"), "{shown}");
    shop.end_in_order().await;
}

/// A sale with this answer at the usual price.
fn sold(answer: &str, is_new: bool) -> Sale {
    Sale::Sold { answer: Some(answer.into()), charge: Micros::new(PRICE), is_new }
}
