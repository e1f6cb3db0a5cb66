//! Filters that cannot be read: what is wrong stands beside its field, and what was written stays.

use holdfast_domain::admin::{Reach, Role};

use crate::tests::book::{OpsWorld, owner, visitor};
use crate::tests::world::World;

#[tokio::test]
async fn a_filter_that_cannot_be_read_says_so_beside_its_field_and_keeps_what_was_written() {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 5_000).await;
    let month = format!("/wallets/{wallet}/statement");
    let month = month.as_str();
    for (path, field, written) in [
        ("/operations", "id", "seven"),
        ("/operations", "wallet", "nowhere"),
        ("/operations", "api_key", "nobody"),
        ("/operations", "model", "gpt"),
        ("/operations", "from", "soon"),
        ("/operations", "to", "late"),
        ("/operations", "status", "lost"),
        ("/usage", "first", "colour"),
        ("/usage", "second", "day"),
        ("/usage", "wallet", "nowhere"),
        ("/usage", "from", "soon"),
        ("/trail", "thing", "acme"),
        ("/trail", "actor", "nobody"),
        ("/trail", "use_case", "wallet.lose"),
        ("/wallets", "available_below", "ten"),
        ("/keys", "state", "lost"),
        ("/keys", "wallet", "nowhere"),
        ("/events", "kind", "none"),
        ("/events", "wallet", "nowhere"),
        ("/webhooks", "wallet", "nowhere"),
        ("/people", "state", "gone"),
        ("/people", "role", "king"),
        ("/people", "wallet", "nowhere"),
        (month, "month", "next"),
    ] {
        let shown = world.get(&owner(), &format!("{path}?{field}={written}")).await;
        assert_eq!(shown.status, 422, "{path} {field}: {}", shown.html);
        let html = shown.html;
        assert!(html.contains(&format!("action=\"{path}\"")), "the filter stands: {html}");
        assert!(html.contains(&format!("id=\"{field}-error\"")), "{path} {field}: {html}");
        let (_, input) = html.split_once(&format!("id=\"{field}\"")).unwrap();
        let (input, _) = input.split_once('>').unwrap();
        assert!(input.contains("aria-invalid=\"true\""), "{path} {field}: {input}");
        // A choice that is none cannot stand in a list of them.
        let is_kept = input.contains(&format!("value=\"{written}\""));
        assert!(is_kept || html.contains(&format!("<select id=\"{field}\"")), "{path}: {input}");
        assert!(html.contains("aria-current=\"page\""), "it is the page of the list: {html}");
    }
}

#[tokio::test]
async fn a_field_that_a_filter_has_not_is_refused_as_a_page() {
    let world = OpsWorld::new().await;
    let (own, other) = (world.wallet("acme", 0).await, world.wallet("globex", 0).await);
    let holder = visitor(Role::HolderAdmin, Reach::Wallet(own));
    for path in ["/operations", "/webhooks", "/events", "/keys", "/people"] {
        let shown = world.get(&holder, &format!("{path}?wallet={other}")).await;
        assert_eq!(shown.status, 422, "{path}");
        assert!(!shown.html.contains("<table"), "{path}: {}", shown.html);
    }
}

#[tokio::test]
async fn an_address_of_another_page_is_refused() {
    let world = OpsWorld::new().await;
    for number in 0..51 {
        world.wallet(&format!("wallet-{number}"), 0).await;
    }
    let first = world.get(&owner(), "/wallets").await;
    let start = first.html.find("/wallets?after=").unwrap();
    let next = first.html[start..].split('"').next().unwrap().to_owned();
    assert_eq!(world.get(&owner(), &next).await.status, 200);
    let cursor = next.split_once('=').unwrap().1;
    for path in [
        "/operations?after=x".to_owned(),
        "/wallets?after=50".to_owned(),
        format!("/wallets?after={cursor}&below=5"),
        format!("/keys?after={cursor}"),
        format!("/trail?after={cursor}"),
    ] {
        assert_eq!(world.get(&owner(), &path).await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn lists_are_sorted_over_all_their_pages_or_not_at_all() {
    let world = World::new().await;
    for number in 0..60 {
        world.wallet(&format!("customer-{number:03}"), 1 + (number * 17) % 61).await;
    }
    let owner = &world.owner;
    let all = async |sort: &str| {
        let (mut path, mut found) = (Some(format!("/wallets?sort={sort}")), Vec::new());
        while let Some(address) = path {
            let shown = world.get(owner, &address).await;
            found.extend(shown.is(200).rows("Wallets").iter().map(|row| row[0].clone()));
            path = shown.link("Next page");
        }
        found
    };
    let mut names: Vec<_> = (0..60).map(|number| format!("customer-{number:03}")).collect();
    assert_eq!(all("name").await, names);
    names.reverse();
    assert_eq!(all("-name").await, names);
    let amount = |name: &String| (name[9..].parse::<i64>().unwrap() * 17) % 61;
    names.sort_by_key(|name| std::cmp::Reverse(amount(name)));
    assert_eq!(all("available").await, names);
    let shown = world.get(owner, "/wallets?sort=available&state=active").await;
    let head = "aria-sort=\"descending\"><a href=\"/wallets?sort=-available&#38;state=active\">";
    shown.has(head).has("name=\"sort\" value=\"available\"").has_not("Filter this one first");
    for path in ["/keys?sort=name", "/keys?sort=spend", "/operations?sort=charge&period=30d"] {
        world.get(owner, path).await.is(200);
    }
    for number in 60..501 {
        world.wallet(&format!("customer-{number:03}"), 0).await;
    }
    let shown = world.get(owner, "/wallets?sort=name").await;
    shown.has("Filter this one first").has("customer-500").has_not("customer-001");
}
