//! Figures of Usage, Home and the trail beside their filters: bounds, currencies, names and nodes.

use holdfast_accounts::NewWallet;
use holdfast_domain::Currency;
use holdfast_domain::admin::{Reach, Role, WalletPatch};
use holdfast_testkit::sample;

use crate::kit::Visitor;
use crate::tests::book::{OpsWorld, address, amounts, behind_rows, owner, plain, request, visitor};

/// A world in which one request has ended.
async fn world() -> OpsWorld {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 5_000).await;
    let api_key = world.api_key(wallet, "production").await;
    world.ended((wallet, api_key), &sample::price(), sample::finished(20, 10)).await;
    world
}

/// Value of a field of a filter.
fn value(html: &str, name: &str) -> String {
    let (_, rest) = html.split_once(&format!("name=\"{name}\"")).unwrap();
    let field = rest.split_once('>').unwrap().0;
    field.split_once("value=\"").map_or("", |(_, rest)| rest.split('"').next().unwrap()).to_owned()
}

#[tokio::test]
async fn the_fields_of_a_period_hold_the_bounds_that_a_click_or_an_address_set() {
    let world = world().await;
    let html = world.page(&owner(), "/usage?from=2026-01-28&to=2026-01-29").await;
    assert_eq!(value(&html, "from"), "2026-01-28T00:00");
    assert_eq!(value(&html, "to"), "2026-01-29T00:00");
    let html = world.page(&owner(), "/usage?first=day").await;
    let day = behind_rows(&html, "Breakdown").remove(0);
    let html = world.page(&owner(), &day).await;
    assert!(value(&html, "from").ends_with("T00:00"), "{day}");
    assert!(value(&html, "to").ends_with("T00:00"), "{day}");
    let unread = world.get(&owner(), "/usage?from=soon").await;
    assert_eq!((unread.status, value(&unread.html, "from").as_str()), (422, "soon"));
}

#[tokio::test]
async fn a_currency_without_rows_is_named_and_the_others_are_links() {
    let world = world().await;
    let html = world.page(&owner(), "/usage?currency=JPY").await;
    let sentence = "No request with amounts in JPY finished in this period.";
    assert!(plain(&html).contains(sentence), "{html}");
    let other = html.split_once("aria-label=\"Currency\"").unwrap().1;
    assert_eq!(address(other), "/usage?currency=USD");
    assert_eq!(world.get(&owner(), "/usage?currency=usd").await.status, 422);
    let none = world.page(&owner(), "/usage?currency=JPY&period=last_month").await;
    assert!(plain(&none).contains("No request finished in this period."), "{none}");
}

#[tokio::test]
async fn the_card_of_a_model_has_its_price_its_bounds_its_routes_and_its_volume() {
    let world = world().await;
    let html = world.page(&owner(), "/models").await;
    let card = html.split_once("<section class=\"cards\">").unwrap().1;
    let card = card.split_once("</section>").unwrap().0;
    let (name, facts) = card.split_once("</h3>").unwrap();
    assert!(name.ends_with("<bdi>holdfast/sample</bdi>"), "{card}");
    let value = |name: &str| {
        let (_, rest) = facts.split_once(&format!("<dt>{name}</dt>")).unwrap();
        plain(rest.split_once("</dd>").unwrap().0).trim().to_owned()
    };
    assert_eq!(value("Price per 1M"), "1.00 USD in, 1.00 USD out");
    assert_eq!(value("Requests, 30 days"), "1");
    assert_eq!(value("Revenue"), "0.00003 USD");
    // 20 and 10 tokens cost the operator 10 micros of the 30.
    assert_eq!(value("Margin"), "66.7 %");
    assert!(facts.contains("/usage?model=holdfast%2Fsample"), "{facts}");
    assert!(value("Routes healthy").ends_with(" of 1"), "{facts}");
    // A holder sees a price and the own volume, and no route and no margin.
    let wallet = world.wallet("other", 5_000).await;
    let holder = visitor(Role::HolderViewer, Reach::Wallet(wallet));
    let html = world.page(&holder, "/models").await;
    assert!(html.contains("<dt>Context tokens</dt>"), "{html}");
    assert!(!html.contains("Requests, 30 days"), "another wallet's volume: {html}");
    let api_key = world.api_key(wallet, "own").await;
    world.ended((wallet, api_key), &sample::price(), sample::finished(20, 10)).await;
    let html = world.page(&holder, "/models").await;
    assert!(html.contains("Requests, 30 days"), "{html}");
    for hidden in ["Routes healthy", "Margin"] {
        assert!(!html.contains(hidden), "{hidden}: {html}");
    }
}

#[tokio::test]
async fn a_chart_does_not_run_past_now() {
    let world = world().await;
    let html = world.page(&owner(), "/usage?first=model").await;
    let until_now = html.matches("<rect x=").count();
    assert!(until_now > 1);
    let month = world.page(&owner(), "/usage?from=2020-01-01&to=2090-01-01").await;
    let ever = world.page(&owner(), "/usage?from=2020-01-01").await;
    assert_eq!(month.matches("<rect x=").count(), ever.matches("<rect x=").count());
    assert_eq!(amounts(&month, "legend"), amounts(&ever, "legend"));
    assert!(amounts(&month, "legend").iter().any(|(_, amount)| *amount > 0), "{month}");
    assert!(ever.contains("per month, the last 62 months"), "{ever}");
    assert!(!html.contains("the last"), "{html}");
}

#[tokio::test]
async fn an_auditor_tells_actors_apart_whose_names_they_may_not_read() {
    let world = world().await;
    let mut actors = Vec::new();
    for name in ["first", "second"] {
        let Visitor { principal, .. } = owner();
        let (name, settings) = (name.parse().unwrap(), WalletPatch::default());
        let new = NewWallet { name, currency: Currency::USD, settings };
        world.accounts.create_wallet(&principal, &request(), &new).await.unwrap();
        let actor = principal.actor.to_string();
        actors.push(actor.split_once(':').unwrap().1.to_owned());
    }
    let auditor = visitor(Role::Auditor, Reach::All);
    let html = plain(&world.page(&auditor, "/trail").await);
    for actor in actors {
        assert!(html.contains(&actor), "{actor}: {html}");
    }
}

#[tokio::test]
async fn nodes_are_listed_and_a_ledger_that_was_never_checked_needs_attention() {
    let world = world().await;
    let jobs = world.page(&owner(), "/jobs").await;
    assert!(jobs.contains("<caption>Nodes") && plain(&jobs).contains("node-a"), "{jobs}");
    let home = world.page(&owner(), "/").await;
    assert!(plain(&home).contains("No ledger check has a result yet."), "{home}");
    assert!(home.contains("href=\"/jobs/new\""), "{home}");
    assert!(!home.contains("<caption>Nodes"), "its node is well: {home}");
    let finance = world.page(&visitor(Role::Finance, Reach::All), "/jobs").await;
    assert!(
        finance.contains("<caption>Nodes")
            == visitor(Role::Finance, Reach::All).may(holdfast_domain::admin::UseCase::NodeRead),
        "{finance}"
    );
}

#[tokio::test]
async fn a_customer_leads_to_the_usage_of_the_month_and_an_active_wallet_is_filtered() {
    let world = world().await;
    let home = world.page(&owner(), "/").await;
    let (_, ranking) = home.split_once("class=\"ranking\"").unwrap();
    let usage = address(ranking);
    assert!(usage.starts_with("/usage?period=month&wallet="), "{usage}");
    assert_eq!(world.get(&owner(), &usage).await.status, 200);
    let active = world.page(&owner(), "/wallets?state=active").await;
    assert!(active.contains("acme"), "{active}");
}
