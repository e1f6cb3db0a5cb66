//! Numbers that are of somebody or of now: a holder's first page, the margins of routes, the meters of an API key.

use std::cmp::Reverse;

use holdfast_accounts::Principal;
use holdfast_domain::Micros;
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::usage::MeterKind;
use holdfast_testkit::{Dice, sample};
use holdfast_wire::api::moment;

use crate::tests::book::{OpsWorld, amount, book, fact, owner, rows, visitor};
use crate::tests::world::World;

const SEED: u64 = 0x3e7e5;

async fn check_the_first_page_of_a_holder_is_of_the_rows_of_their_wallet(world: &OpsWorld) {
    let book = book(world, SEED, 80, 4).await;
    for wallet in &book.wallets {
        let own = || book.operations.iter().filter(|it| it.wallet == *wallet);
        let charged: i64 = own().filter_map(|it| it.phase.charge()).map(Micros::get).sum();
        let held: i64 = own().filter(|it| it.phase.holds()).map(|it| it.hold.get()).sum();
        assert!(charged > 0 && held > 0, "the book has none of these");
        for role in Role::ALL.into_iter().filter(|role| role.is_holder()) {
            let html = world.page(&visitor(role, Reach::Wallet(*wallet)), "/").await;
            let told = |name: &str| amount(&fact(&html, name).unwrap());
            assert_eq!(told("Held"), held, "{role}");
            assert_eq!(told("Spend today"), charged, "{role}");
            assert_eq!(told("Available"), 9_000_000 - charged - held, "{role}");
        }
    }
}

#[tokio::test]
async fn the_first_page_of_a_holder_is_of_the_rows_of_their_wallet() {
    let world = OpsWorld::new().await;
    check_the_first_page_of_a_holder_is_of_the_rows_of_their_wallet(&world).await;
}

#[tokio::test]
async fn postgres_the_first_page_of_a_holder_is_of_the_rows_of_their_wallet() {
    let world = OpsWorld::on_a_server().await;
    check_the_first_page_of_a_holder_is_of_the_rows_of_their_wallet(&world).await;
}

#[tokio::test]
async fn the_margin_of_a_route_is_of_its_cost_and_of_the_price_in_force() {
    let world = OpsWorld::new().await;
    book(&world, SEED + 1, 20, 2).await;
    let html = world.page(&owner(), "/models").await;
    let [route] = rows(&html, "Routes").try_into().unwrap();
    // What the route of this world costs.
    let cost = sample::price();
    let now = world.accounts.clock().await.unwrap();
    let begin = |price: &holdfast_domain::price::PriceVersion| {
        price.id.effective_from().and_then(moment).unwrap()
    };
    let mut prices = world.accounts.prices(&Principal::local(), None, None).await.unwrap();
    prices.retain(|price| begin(price) <= now);
    prices.sort_by_key(|price| Reverse(begin(price)));
    assert!(prices.len() > 1, "one of several is in force");
    let rate = |price: &holdfast_domain::price::PriceVersion, kind| {
        i64::try_from(price.tariff.rates().rate(kind)).unwrap()
    };
    let margin = |kind| {
        let price = rate(&prices[0], kind);
        (price - rate(&cost, kind)) * 100 / price
    };
    let [input, output] = [MeterKind::Input, MeterKind::Output];
    assert_eq!(amount(&route["Input cost / 1M"]), rate(&cost, input));
    assert_eq!(amount(&route["Output cost / 1M"]), rate(&cost, output));
    assert_eq!(route["Margin"], format!("{} % in, {} % out", margin(input), margin(output)));
    assert_ne!(margin(input), 0, "a margin that cannot be told from none");
}

#[tokio::test]
async fn the_meters_of_a_key_are_of_its_operations() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 9_000_000).await.wallet.id;
    let page = format!("/keys/{}", world.api_key(wallet, "prod").await.id);
    let fields = [
        ("name", "prod"),
        ("spend", "0.01"),
        ("spend_window", "total"),
        ("concurrency", "9"),
        ("usage", "key"),
        ("balance", "shown"),
        ("edited", "0"),
    ];
    let address = world.open(&world.owner, &format!("{page}/edit")).await;
    world.send(&world.owner, &address, &fields).await.is(303);
    let id = page.strip_prefix("/keys/").unwrap().parse().unwrap();
    let key = world.key(id).await;
    let mut dice = Dice::new(SEED + 2);
    let (mut spent, mut running) = (0, 0);
    for _operation in 0..40 {
        match dice.roll(5) {
            0 if running < 9 => {
                world.running(&key).await;
                running += 1;
                // What each of them holds.
                spent += 100;
            }
            _ => {
                let ended = world.completed(&key, 20 + dice.roll(40)).await;
                spent += ended.phase.charge().unwrap().get();
            }
        }
        let shown = world.get(&world.owner, &page).await;
        let money = holdfast_domain::Currency::USD;
        let spend = crate::kit::money(Micros::new(spent), money);
        shown.has(&format!("{spend} of 0.01 USD")).has(&format!("{running} of 9"));
        let share = u8::try_from(spent * 100 / 10_000).unwrap().min(100);
        shown.has(&format!("value=\"{share}\" aria-label=\"{spend} of 0.01 USD\""));
    }
    assert!(running > 2 && spent > 1_000, "{running} {spent}");
}
