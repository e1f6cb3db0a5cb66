//! Numbers on pages equal the rows behind them, over random books, beyond the first page too.

use std::collections::BTreeSet;

use holdfast_accounts::Principal;
use holdfast_domain::admin::listing::{Order, PageRequest, WalletFilter};
use holdfast_domain::operation::Phase;
use holdfast_domain::{Journal, Micros};

use crate::tests::book::{
    Book, OpsWorld, amount, behind_rows, book, fact, owner, pages_of, plain, rows,
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
    assert_eq!(amount(&fact(&html, "Held now").unwrap()), held);
    assert_eq!(amount(&fact(&html, "Earned today").unwrap()), charges(&book));
    assert_eq!(amount(&fact(&html, "Lost today at most").unwrap()), exposed.sum::<i64>());
    assert_eq!(fact(&html, "Unknown outcomes today").unwrap(), unknown.count().to_string());
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
    let found = rows(&html, "Wallets that run low");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["Wallet"], "nearly empty");
    let listed = world.page(&owner(), "/wallets?state=low").await;
    assert_eq!(rows(&listed, "Wallets").len(), 1, "{listed}");
    let empty = world.wallet("empty", 0).await;
    let listed = world.page(&owner(), "/wallets?state=low").await;
    assert!(listed.contains(&empty.to_string()) && rows(&listed, "Wallets").len() == 2);
    assert!(html.contains(&format!("/wallets/{low}")));
    assert!(html.contains("None is stuck."), "its node lives");
    let node = world.operation(running).await.owner.node;
    holdfast_domain::Nodes::leave(&world.store, &node).await.unwrap();
    let html = world.page(&owner(), "/").await;
    assert_eq!(rows(&html, "Stuck operations").len(), 1);
    let listed = world.page(&owner(), "/operations?scope=stuck").await;
    assert_eq!(rows(&listed, "Newest first").len(), 1);
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
    for (path, title) in
        [("/usage?first=api_key&second=day", "Rows"), ("/usage?first=model", "By group")]
    {
        let pages = pages_of(world, path).await;
        let listed: Vec<_> = pages.iter().flat_map(|html| rows(html, title)).collect();
        let sum: i64 = listed.iter().map(|row| amount(&row["Charge"])).sum();
        assert_eq!(sum, charges(&book), "{path}");
        for html in &pages {
            let all = rows(html, "All together");
            assert_eq!(amount(&all[0]["Charge"]), charges(&book), "{path}");
        }
        assert_eq!(pages.len() > 1, path.contains("api_key"), "{path}");
    }
    let file = world.get(&owner(), "/usage.csv?first=api_key").await.html;
    let mut lines = file.lines();
    let head: Vec<_> = lines.next().unwrap().split(',').collect();
    let at = head.iter().position(|name| *name == "charge_micros").unwrap();
    let sum: i64 = lines.map(|line| line.split(',').nth(at).unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, charges(&book));
    let own = world.page(&owner(), &format!("/usage?wallet={}", book.wallets[0])).await;
    let own = amount(&rows(&own, "All together")[0]["Charge"]);
    let expected = book.operations.iter().filter(|it| it.wallet == book.wallets[0]);
    let expected = expected.filter_map(|it| it.phase.usage()).map(|usage| usage.charge.get());
    assert_eq!(own, expected.sum::<i64>());
}

async fn check_the_lines_of_a_price_add_up_to_the_charge(world: &OpsWorld) {
    let book = book(world, SEED + 3, 60, 2).await;
    let (mut is_capped, mut is_rounded) = (false, false);
    for operation in &book.operations {
        let html = world.page(&owner(), &format!("/operations/{}", operation.id)).await;
        let lines = rows(&html, "Why it cost what it cost");
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
    let row = &rows(&usage, "By group")[0];
    assert_eq!((row["Cost"].as_str(), row["Margin"].as_str()), ("not known", "not known"));
    let known = holdfast_testkit::sample::finished(20, 10);
    world.ended((wallet, api_key), &price, known).await;
    let usage = world.page(&owner(), "/usage").await;
    assert!(rows(&usage, "By group")[0]["Cost"].ends_with("of 1 known"), "{}", plain(&usage));
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
