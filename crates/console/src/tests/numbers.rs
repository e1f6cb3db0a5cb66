//! Numbers on pages equal the rows behind them, over random books, beyond the first page too.

use std::collections::BTreeSet;

use holdfast_accounts::{NewWallet, Principal};
use holdfast_domain::admin::WalletPatch;
use holdfast_domain::admin::listing::{Order, PageRequest, WalletFilter};
use holdfast_domain::operation::Phase;
use holdfast_domain::{Currency, Journal, Micros};

use crate::tests::book::{
    Book, OpsWorld, amount, amounts, behind_rows, book, fact, owner, pages_of, plain, request,
    rows, tile, total,
};

const SEED: u64 = 0x5eed;

fn charges(book: &Book) -> i64 {
    let completed = book.operations.iter().filter(|it| matches!(it.phase, Phase::Completed { .. }));
    completed.map(|it| it.phase.charge().unwrap().get()).sum()
}

async fn check_today_adds_up_what_the_rows_say(world: &OpsWorld) {
    let book = book(world, SEED, 60, 6).await;
    let html = world.page(&owner(), "/").await;
    let held: i64 =
        book.operations.iter().filter(|it| it.phase.holds()).map(|it| it.hold.get()).sum();
    let exposed = book.operations.iter().filter_map(|it| it.exposure()).map(Micros::get);
    let unknown = book.operations.iter().filter(|it| matches!(it.phase, Phase::Abandoned { .. }));
    assert!(held > 0 && unknown.clone().count() > 0, "the book has none of these");
    assert_eq!(amount(&tile(&html, "On hold now")), held);
    assert_eq!(amount(&tile(&html, "Revenue today")), charges(&book));
    assert_eq!(amount(&tile(&html, "At risk today")), exposed.sum::<i64>());
    assert_eq!(tile(&html, "Outcome unknown today"), unknown.count().to_string());
    let ended = book.operations.iter().filter(|it| it.phase.finished_at().is_some()).count();
    assert_eq!(tile(&html, "Requests today"), ended.to_string());
    for class in ["legend", "ranking"] {
        let shown = amounts(&html, class);
        let sum: i64 = shown.iter().map(|(_, amount)| amount).sum();
        assert_eq!(sum, charges(&book), "{class}: {shown:?}");
        assert!(shown.is_sorted_by_key(|(_, amount)| std::cmp::Reverse(*amount)), "{shown:?}");
    }
    for (name, wallet) in ["acme", "globex"].iter().zip(&book.wallets) {
        let own = book.operations.iter().filter(|it| it.wallet == *wallet);
        let own: i64 = own.filter_map(|it| it.phase.usage()).map(|it| it.charge.get()).sum();
        assert!(amounts(&html, "ranking").contains(&((*name).to_owned(), own)), "{name}");
    }
    let request = PageRequest::first(Order::Newest, 10);
    let local = Principal::local();
    let wallets = world.accounts.wallets(&local, WalletFilter::default(), request).await.unwrap();
    let wallets: i64 = wallets.rows.iter().map(|it| it.wallet.held.get()).sum();
    assert_eq!(wallets, held, "holds are those of the wallets");
    assert!(html.contains("upstream/large"), "a route cools down");
}

async fn check_today_names_wallets_that_run_low_beyond_the_first_page_and_what_is_stuck(
    world: &OpsWorld,
) {
    let low = world.wallet("nearly empty", 999).await;
    let rich = world.wallet("rich", 5_000_000).await;
    for number in 0..205 {
        world.wallet(&format!("full-{number}"), 1_000).await;
    }
    let api_key = world.api_key(rich, "a key").await;
    let running = world.running(rich, api_key).await;
    let html = world.page(&owner(), "/").await;
    let found = rows(&html, "Low and empty wallets");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["Wallet"], "nearly empty");
    let listed = world.page(&owner(), "/wallets?state=low").await;
    assert_eq!(rows(&listed, "Wallets").len(), 1, "{listed}");
    let empty = world.wallet("empty", 0).await;
    let listed = world.page(&owner(), "/wallets?state=low").await;
    assert!(listed.contains(&empty.to_string()) && rows(&listed, "Wallets").len() == 2);
    assert!(html.contains(&format!("/wallets/{low}")));
    assert!(rows(&html, "Stuck requests").is_empty(), "its node lives");
    assert!(!html.contains("Nothing that you can see needs attention."));
    let node = world.operation(running).await.owner.node;
    holdfast_domain::Nodes::leave(&world.store, &node).await.unwrap();
    // Without a threshold of its own a wallet is not low, and is empty all the same.
    let (name, settings) = ("bare".parse().unwrap(), WalletPatch::default());
    let new = NewWallet { name, currency: Currency::USD, settings };
    world.accounts.create_wallet(&Principal::local(), &request(), &new).await.unwrap();
    let html = world.page(&owner(), "/").await;
    assert_eq!(rows(&html, "Stuck requests").len(), 1);
    let listed = world.page(&owner(), "/operations?scope=stuck").await;
    assert_eq!(rows(&listed, "Newest first").len(), 1);
    let low = rows(&html, "Low and empty wallets");
    assert_eq!((low.len(), low[2]["Wallet"].as_str()), (3, "bare"), "{low:?}");
    let shown = world.page(&owner(), &format!("/operations/{running}")).await;
    assert!(shown.contains("/reconcile\">Reconcile"), "{shown}");
}

async fn check_every_operation_stands_once_on_the_pages_of_the_list_with_its_charge(
    world: &OpsWorld,
) {
    let book = book(world, SEED + 1, 120, 4).await;
    let pages = pages_of(world, "/operations").await;
    assert_eq!(pages.len(), 3);
    let listed: Vec<_> = pages.iter().flat_map(|html| rows(html, "Newest first")).collect();
    let ids: BTreeSet<_> =
        pages.iter().flat_map(|html| behind_rows(html, "Newest first")).collect();
    let known: BTreeSet<_> =
        book.operations.iter().map(|it| format!("/operations/{}", it.id)).collect();
    assert_eq!((listed.len(), ids), (120, known));
    let sum: i64 =
        listed.iter().filter(|it| it["State"] == "completed").map(|it| amount(&it["Charge"])).sum();
    assert_eq!(sum, charges(&book));
    let wallet = book.wallets[0];
    let own = pages_of(world, &format!("/operations?wallet={wallet}&status=completed")).await;
    let own: usize = own.iter().map(|html| rows(html, "Newest first").len()).sum();
    let expected = book.operations.iter().filter(|it| it.wallet == wallet);
    let expected = expected.filter(|it| matches!(it.phase, Phase::Completed { .. })).count();
    assert_eq!(own, expected);
    for operation in book.operations.iter().take(3) {
        let keys = format!("api_key={}&request_key={}", operation.api_key, operation.request_key);
        for query in [format!("id={}", operation.id), keys] {
            let html = world.page(&owner(), &format!("/operations?{query}")).await;
            assert!(html.contains(&format!("/operations/{}", operation.id)), "{query}");
        }
    }
}

async fn check_the_sums_of_usage_equal_the_rows_on_each_page_of_it(world: &OpsWorld) {
    let book = book(world, SEED + 2, 220, 110).await;
    for path in ["/usage?first=api_key&second=day", "/usage?first=model"] {
        let title = "Breakdown";
        let pages = pages_of(world, path).await;
        let listed: Vec<_> = pages.iter().flat_map(|html| rows(html, title)).collect();
        let sum: i64 = listed.iter().map(|row| amount(&row["Charge"])).sum();
        assert_eq!(sum, charges(&book), "{path}");
        for html in &pages {
            assert_eq!(amount(&total(html, title)["Charge"]), charges(&book), "{path}");
            for class in ["legend", "ranking"] {
                let sum: i64 = amounts(html, class).iter().map(|(_, amount)| amount).sum();
                assert_eq!(sum, charges(&book), "{path}: {class}");
            }
            assert_eq!(amount(&tile(html, "Revenue")), charges(&book), "{path}");
        }
        assert_eq!(pages.len() > 1, path.contains("api_key"), "{path}");
    }
    let file = world.get(&owner(), "/usage.csv?first=api_key").await.html;
    let mut lines = file.lines();
    let head: Vec<_> = lines.next().unwrap().split(',').collect();
    let at = head.iter().position(|name| *name == "charge_micros").unwrap();
    let amount_of = |line: &str| line.split(',').nth(at).unwrap().to_owned();
    let (closing, rows) = lines.clone().last().zip(Some(lines)).unwrap();
    assert!(closing.starts_with("closing,"), "{closing}");
    let rows = rows.filter(|line| *line != closing);
    let sum: i64 = rows.map(|line| amount_of(line).parse::<i64>().unwrap()).sum();
    assert_eq!(sum, charges(&book));
    let own = world.page(&owner(), &format!("/usage?wallet={}", book.wallets[0])).await;
    let own = amount(&total(&own, "Breakdown")["Charge"]);
    let expected = book.operations.iter().filter(|it| it.wallet == book.wallets[0]);
    let expected = expected.filter_map(|it| it.phase.usage()).map(|usage| usage.charge.get());
    assert_eq!(own, expected.sum::<i64>());
}

async fn check_the_lines_of_a_price_add_up_to_the_charge(world: &OpsWorld) {
    let book = book(world, SEED + 3, 60, 2).await;
    let (mut is_capped, mut is_rounded) = (false, false);
    for operation in &book.operations {
        let html = world.page(&owner(), &format!("/operations/{}", operation.id)).await;
        let lines = rows(&html, "Charge breakdown");
        let Some(usage) = operation.phase.usage() else {
            assert!(lines.is_empty(), "{html}");
            continue;
        };
        let exact = |text: &str| -> u128 {
            let (units, fraction) = text.split(' ').next().unwrap().split_once('.').unwrap();
            format!("{}{fraction:0<12}", units.replace(',', "")).parse().unwrap()
        };
        let is_line = |row: &&std::collections::BTreeMap<String, String>| !row["Units"].is_empty();
        let sum: u128 = lines.iter().filter(is_line).map(|row| exact(&row["Amount"])).sum();
        let total = |name: &str| {
            let found = lines.iter().find(|row| row["Meter"].starts_with(name));
            found.map(|row| row["Amount"].clone())
        };
        assert_eq!(exact(&total("Sum").unwrap()), sum, "{lines:?}");
        let cost = i64::try_from(sum.div_ceil(1_000_000)).unwrap();
        assert_eq!(amount(&total("Rounded").unwrap()), cost, "{lines:?}");
        let beyond = total("Beyond").map_or(0, |text| amount(&text));
        let charge = amount(&total("Charge").unwrap());
        assert_eq!(charge, cost + beyond, "{lines:?}");
        assert_eq!(charge, usage.charge.get());
        assert_eq!(charge, amount(&fact(&html, "Charge").unwrap()));
        is_capped |= beyond < 0;
        is_rounded |= !sum.is_multiple_of(1_000_000);
    }
    assert!(is_capped && is_rounded, "the book has no such operation");
}

async fn check_a_cost_that_is_not_known_is_not_shown_as_zero(world: &OpsWorld) {
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(wallet, "a key").await;
    let price = holdfast_testkit::sample::price();
    let ending = holdfast_testkit::sample::finished(21, 10);
    let operation = world.ended((wallet, api_key), &price, ending).await;
    let shown = world.page(&owner(), &format!("/operations/{}", operation.id)).await;
    assert_eq!(fact(&shown, "Cost to you").as_deref(), Some("not known"));
    let usage = world.page(&owner(), "/usage").await;
    let row = &rows(&usage, "Breakdown")[0];
    assert_eq!((row["Cost"].as_str(), row["Margin"].as_str()), ("not known", "not known"));
    let known = holdfast_testkit::sample::finished(20, 10);
    world.ended((wallet, api_key), &price, known).await;
    let usage = world.page(&owner(), "/usage").await;
    let row = &rows(&usage, "Breakdown")[0];
    assert!(row["Cost"].ends_with(" for 1 of 2"), "{}", plain(&usage));
    // Cost and margin add up to the revenue beside them, which is a part of all.
    let of = row["Margin"].rsplit_once(" of ").unwrap().1;
    assert_eq!(amount(&row["Cost"]) + amount(&row["Margin"]), amount(of), "{row:?}");
    assert!(0 < amount(of) && amount(of) < amount(&row["Charge"]), "{row:?}");
    assert!(plain(&usage).contains("with known cost"), "{}", plain(&usage));
    assert!(world.store.load(operation.id).await.unwrap().operation.is_some());
}

#[tokio::test]
async fn today_adds_up_what_the_rows_say() {
    check_today_adds_up_what_the_rows_say(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_today_adds_up_what_the_rows_say() {
    check_today_adds_up_what_the_rows_say(&OpsWorld::on_a_server().await).await;
}

#[tokio::test]
async fn today_names_wallets_that_run_low_beyond_the_first_page_and_what_is_stuck() {
    check_today_names_wallets_that_run_low_beyond_the_first_page_and_what_is_stuck(
        &OpsWorld::new().await,
    )
    .await;
}

#[tokio::test]
async fn postgres_today_names_wallets_that_run_low_beyond_the_first_page_and_what_is_stuck() {
    check_today_names_wallets_that_run_low_beyond_the_first_page_and_what_is_stuck(
        &OpsWorld::on_a_server().await,
    )
    .await;
}

#[tokio::test]
async fn every_operation_stands_once_on_the_pages_of_the_list_with_its_charge() {
    check_every_operation_stands_once_on_the_pages_of_the_list_with_its_charge(
        &OpsWorld::new().await,
    )
    .await;
}

#[tokio::test]
async fn postgres_every_operation_stands_once_on_the_pages_of_the_list_with_its_charge() {
    check_every_operation_stands_once_on_the_pages_of_the_list_with_its_charge(
        &OpsWorld::on_a_server().await,
    )
    .await;
}

#[tokio::test]
async fn the_sums_of_usage_equal_the_rows_on_each_page_of_it() {
    check_the_sums_of_usage_equal_the_rows_on_each_page_of_it(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_the_sums_of_usage_equal_the_rows_on_each_page_of_it() {
    check_the_sums_of_usage_equal_the_rows_on_each_page_of_it(&OpsWorld::on_a_server().await).await;
}

#[tokio::test]
async fn the_lines_of_a_price_add_up_to_the_charge() {
    check_the_lines_of_a_price_add_up_to_the_charge(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_the_lines_of_a_price_add_up_to_the_charge() {
    check_the_lines_of_a_price_add_up_to_the_charge(&OpsWorld::on_a_server().await).await;
}

#[tokio::test]
async fn a_cost_that_is_not_known_is_not_shown_as_zero() {
    check_a_cost_that_is_not_known_is_not_shown_as_zero(&OpsWorld::new().await).await;
}

#[tokio::test]
async fn postgres_a_cost_that_is_not_known_is_not_shown_as_zero() {
    check_a_cost_that_is_not_known_is_not_shown_as_zero(&OpsWorld::on_a_server().await).await;
}
