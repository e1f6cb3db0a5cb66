//! Sales in a process of another service, on a file and on a server: what is sold once, what is refused, what becomes of
//! work that is dropped, panics or did not run.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

/// Runs each of these functions as a test on a file, `file::NAME`, and on the server, `postgres_server::NAME`.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod file {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::home::Home::file()).await;
            })+
        }
        mod postgres_server {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::home::Home::server().await).await;
            })+
        }
    };
}

mod accounts;
mod home;
mod sealed;
mod shop;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::{AccountAction, ApiKeyAction, WalletAction};
use holdfast_domain::ports::PinError;
use holdfast_domain::usage::Meters;
use holdfast_domain::{Currency, Micros};
use holdfast_embed::{Holdfast, Options, Price, Sale, SellError, ServerSecret, StartError, Work};
use holdfast_testkit::Commands;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::home::Home;
use self::shop::{PRICE, Shop, done, price};

on_both! {
    a_request_is_sold_once_and_answered_again,
    a_sale_goes_on_though_its_future_is_dropped,
    work_that_panics_is_lost_and_costs_nothing,
    work_that_did_not_run_costs_nothing_and_leaves_its_key_open,
    what_may_not_be_sold_is_refused_before_its_work,
    what_was_sold_is_answered_after_its_api_key_has_ended,
    no_answer_is_printed_for_debugging,
    an_answer_past_its_time_is_deleted_and_its_sale_stays_sold,
    a_price_keeps_its_numbers,
    a_suspended_key_and_a_suspended_wallet_buy_nothing_new,
    a_shop_that_closes_sells_no_more,
}

async fn a_request_is_sold_once_and_answered_again(home: Home) {
    let shop = Shop::open(home).await;
    let first = shop.sell(1, "cat", done("meow")).await.unwrap();
    assert_eq!(first, sold("meow", true));
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    assert_eq!(shop.sell(1, "dog", done("bark")).await.unwrap(), Sale::OtherRequest);
    assert_eq!(shop.balance().await, (Micros::new(10_000_000 - PRICE), Micros::ZERO));
    shop.end_in_order().await;
}

async fn a_sale_goes_on_though_its_future_is_dropped(home: Home) {
    let shop = Shop::open(home).await;
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

async fn work_that_panics_is_lost_and_costs_nothing(home: Home) {
    let shop = Shop::open(home).await;
    let work = || async {
        assert!(std::hint::black_box(false), "the work breaks");
        Work::NotRun
    };
    assert_eq!(shop.sell(1, "cat", work).await.unwrap(), Sale::Lost);
    assert_eq!(shop.sell(1, "cat", done("meow")).await.unwrap(), Sale::Lost);
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    shop.end_in_order().await;
}

async fn work_that_did_not_run_costs_nothing_and_leaves_its_key_open(home: Home) {
    let shop = Shop::open(home).await;
    let not_run = shop.sell(1, "cat", || async { Work::NotRun }).await.unwrap();
    assert!(matches!(not_run, Sale::NotRun(_)), "{not_run:?}");
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    shop.end_in_order().await;
}

async fn what_may_not_be_sold_is_refused_before_its_work(home: Home) {
    let shop = Shop::open(home).await;
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

async fn what_was_sold_is_answered_after_its_api_key_has_ended(home: Home) {
    let shop = Shop::open(home).await;
    shop.sell(1, "cat", done("meow")).await.unwrap();
    shop.holdfast.store().revoke(shop.api_key).await.unwrap();
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    let refused = shop.sell(2, "cat", done("bark")).await.unwrap_err();
    assert!(matches!(refused, SellError::Key), "{refused:?}");
    shop.end_in_order().await;
}

async fn no_answer_is_printed_for_debugging(home: Home) {
    let shop = Shop::open(home).await;
    let sale = shop.sell(1, "cat", done("meow")).await.unwrap();
    let shown = format!("{sale:?} {:?}", done("meow")().await);
    assert!(!shown.contains("meow") && !shown.contains("109, 101"), "{shown}");
    shop.end_in_order().await;
}

async fn an_answer_past_its_time_is_deleted_and_its_sale_stays_sold(home: Home) {
    let shop = Shop::open(home).await;
    shop.sell(1, "cat", done("meow")).await.unwrap();
    // The first pass of the reconciler ends before the process does, and the default keeps answers for longer.
    let shop = shop.again().await.again().await;
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    let at_once = Options { retention: Some(Duration::ZERO), ..Options::default() };
    let shop = shop.again_with(at_once).await.again().await;
    let deleted = Sale::Sold { answer: None, charge: Micros::new(PRICE), is_new: false };
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), deleted);
    shop.end_in_order().await;
}

async fn a_price_keeps_its_numbers(home: Home) {
    let shop = Shop::open(home).await;
    shop.sell(1, "cat", done("meow")).await.unwrap();
    let moment = "2026-11-01T00:00:00Z";
    let dearer = Micros::new(PRICE + 1);
    let dearer = Price::each("shop/thumbnail", Currency::USD, moment, dearer).unwrap();
    let refused = shop.sell_at(2, "cat", (&dearer, PRICE), done("bark")).await.unwrap_err();
    assert!(matches!(refused, SellError::Price(PinError::Conflict(_))), "{refused:?}");
    shop.end_in_order().await;
}

async fn a_suspended_key_and_a_suspended_wallet_buy_nothing_new(home: Home) {
    let shop = Shop::open(home).await;
    shop.sell(1, "cat", done("meow")).await.unwrap();
    let key = AccountAction::ApiKey(ApiKeyAction::Suspend(shop.api_key));
    Commands::administer(shop.holdfast.store(), key).await.unwrap();
    let refused = shop.sell(2, "cat", done("bark")).await.unwrap_err();
    assert!(matches!(refused, SellError::Key), "{refused:?}");
    let key = AccountAction::ApiKey(ApiKeyAction::Resume(shop.api_key));
    Commands::administer(shop.holdfast.store(), key).await.unwrap();
    let wallet = AccountAction::Wallet(WalletAction::Suspend(shop.wallet));
    Commands::administer(shop.holdfast.store(), wallet).await.unwrap();
    let refused = shop.sell(2, "cat", done("bark")).await.unwrap_err();
    assert!(matches!(refused, SellError::Wallet), "{refused:?}");
    assert_eq!(shop.sell(1, "cat", done("bark")).await.unwrap(), sold("meow", false));
    shop.end_in_order().await;
}

async fn a_shop_that_closes_sells_no_more(home: Home) {
    let shop = Shop::open(home).await;
    let (begun, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, opens) = (Arc::clone(&begun), Arc::clone(&gate));
    let first = shop.sell(1, "cat", move || async move {
        begins.notify_one();
        opens.notified().await;
        Work::Done { meters: Meters::thing(), answer: b"meow".to_vec() }
    });
    let mut running = JoinSet::new();
    running.spawn(first);
    begun.notified().await;
    let mut closing = Box::pin(shop.holdfast.clone().close());
    tokio::select! {
        biased;
        closed = &mut closing => assert!(closed.is_err(), "it closed before its sale ended"),
        () = std::future::ready(()) => {}
    }
    let refused = shop.sell(2, "cat", done("bark")).await.unwrap_err();
    assert!(matches!(refused, SellError::NoLease), "{refused:?}");
    gate.notify_one();
    closing.await.unwrap();
    let first = running.join_next().await.unwrap().unwrap();
    assert_eq!(first.unwrap(), sold("meow", true));
}

#[tokio::test]
async fn a_file_is_served_by_one_process() {
    let shop = Shop::open(Home::file()).await;
    let secret = ServerSecret::new(shop::SECRET).unwrap();
    let second = Holdfast::open(&shop.home.url(), secret).await;
    assert!(matches!(second, Err(StartError::Lock(_))), "{second:?}");
    shop.end_in_order().await;
}

/// A sale with this answer at the usual price.
fn sold(answer: &str, is_new: bool) -> Sale {
    Sale::Sold { answer: Some(answer.into()), charge: Micros::new(PRICE), is_new }
}
