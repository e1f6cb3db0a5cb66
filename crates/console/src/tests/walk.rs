//! A walk through all pages as a browser makes it, page by page, and each page as a file for whoever looks at them.

use std::collections::BTreeSet;
use std::path::Path;

use holdfast_accounts::{Edit, Principal};
use holdfast_domain::Micros;
use holdfast_domain::admin::{Role, WalletPatch};
use holdfast_domain::limits::{SpendLimit, SpendWindow};

use super::world::{Reply, World, reference, request, visitor_of};

/// Largest page, in bytes.
const PAGE_MAX: usize = 50 << 10;

/// Pages that are made elsewhere in the console.
const ELSEWHERE: [&str; 13] = [
    "/account",
    "/usage",
    "/operations",
    "/models",
    "/routes",
    "/events",
    "/webhooks",
    "/trail",
    "/jobs",
    "/admin-keys",
    "/people",
    "/serving",
    "#main",
];

fn is_elsewhere(link: &str) -> bool {
    let is_refund = link.ends_with("/refund");
    link == "/" || (!is_refund && ELSEWHERE.iter().any(|path| link.starts_with(path)))
}

/// A book as a small customer has it.
async fn book() -> (World, [String; 3]) {
    let world = World::new().await;
    let wallet = world.wallet("Acme Robotics", 250_000_000).await.wallet.id;
    world.wallet("Borealis", 1_234_567_890_000).await;
    world.wallet("Cedar & Sons", 0).await;
    let window = SpendWindow::Month;
    let patch = WalletPatch {
        external_id: Some(Some("cus_4711".to_owned())),
        low_balance: Some(Some(Micros::new(500_000_000))),
        key_spend: Some(Some(SpendLimit { micros: Micros::new(100_000_000), window })),
        name: None,
    };
    let (local, edit) = (Principal::local(), Edit { patch, expected: None });
    world.accounts.edit_wallet(&local, &request(), &reference(wallet), edit).await.unwrap();
    let key = world.api_key(wallet, "production").await;
    let page = format!("/keys/{}", key.id);
    let address = world.open(&world.owner, &format!("{page}/edit")).await;
    let fields = [
        ("name", "production"),
        ("spend", "50"),
        ("spend_window", "month"),
        ("requests_per_minute", "60"),
        ("concurrency", "4"),
        ("usage", "key"),
        ("balance", "shown"),
        ("edited", "0"),
    ];
    world.send(&world.owner, &address, &fields).await.is(303);
    let key = world.key(key.id).await;
    world.api_key(wallet, "staging").await;
    for prompt in 20..29 {
        world.completed(&key, prompt).await;
    }
    let operation = world.completed(&key, 30).await.id;
    world.running(&key).await;
    let address = world.open(&world.owner, &format!("/wallets/{wallet}/adjust")).await;
    let fields = [("amount", "-2.50"), ("reason", "A fee of the bank"), ("note", "T-88")];
    world.confirm(&world.owner, &address, &fields).await.is(303);
    let refund = format!("/operations/{operation}/refund");
    (world, [format!("/wallets/{wallet}"), page, refund])
}

#[tokio::test]
async fn every_link_leads_to_a_page_that_is_there_and_small() {
    let (world, [_, _, refund]) = book().await;
    for role in Role::ALL {
        let own = world.get(&world.owner, "/wallets?name=Acme+Robotics").await;
        let own =
            own.links().into_iter().find_map(|link| link.strip_prefix("/wallets/")?.parse().ok());
        let visitor = visitor_of(role, own.unwrap());
        let mut todo = vec!["/wallets".to_owned(), "/keys".to_owned()];
        if role.may(holdfast_domain::admin::UseCase::PostingRefund) {
            todo.push(refund.clone());
        }
        let mut seen = BTreeSet::new();
        while let Some(path) = todo.pop() {
            let shown = world.get(&visitor, &path).await;
            if shown.status.is_redirection() {
                // A form under a fresh key: another one at each look.
                let form = world.get(&visitor, shown.location()).await;
                form.is(200).has("method=\"post\"");
                continue;
            }
            assert_eq!(shown.status, 200, "{role} {path}: {}", shown.body);
            assert!(shown.body.len() <= PAGE_MAX, "{path} has {} bytes", shown.body.len());
            let links = shown.links().into_iter().filter(|link| !is_elsewhere(link));
            for link in links.filter(|link| !link.contains("month=")) {
                if seen.insert(link.clone()) {
                    todo.push(link);
                }
            }
        }
        assert!(seen.len() > 8, "{role}: {seen:?}");
    }
}

/// Writes a page beside its stylesheet.
fn write(folder: &Path, name: &str, reply: &Reply) {
    let html = reply.body.replace("/assets/style.css", "style.css");
    std::fs::write(folder.join(format!("{name}.html")), html).unwrap();
}

#[tokio::test]
async fn every_page_is_written_for_whoever_looks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/console");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("style.css"), include_str!("../../assets/style.css")).unwrap();
    let (world, [wallet, key, refund]) = book().await;
    let owner = &world.owner;
    let id = wallet.strip_prefix("/wallets/").unwrap().to_owned();
    let pages = [("wallets", "/wallets".to_owned()), ("keys", "/keys".to_owned())];
    let more = [
        ("wallet", wallet.clone()),
        ("payments", format!("/payments?wallet={id}")),
        ("key", key.clone()),
        ("no-wallet", "/wallets/7".to_owned()),
        ("no-keys", "/keys?state=revoked".to_owned()),
    ];
    for (name, path) in pages.into_iter().chain(more) {
        write(&folder, name, &world.get(owner, &path).await);
    }
    let holder = visitor_of(Role::HolderDeveloper, id.parse().unwrap());
    write(&folder, "wallet-of-holder", &world.get(&holder, &wallet).await);
    for (name, path) in [
        ("wallet-new", "/wallets/new".to_owned()),
        ("wallet-edit", format!("{wallet}/edit")),
        ("wallet-suspend", format!("{wallet}/suspend")),
        ("wallet-close", format!("{wallet}/close")),
        ("key-new", format!("/keys/new?wallet={id}")),
        ("key-edit", format!("{key}/edit")),
        ("key-rotate", format!("{key}/rotate")),
        ("key-revoke", format!("{key}/revoke")),
        ("refund", refund),
    ] {
        let address = world.open(owner, &path).await;
        write(&folder, name, &world.get(owner, &address).await);
    }
    let address = world.open(owner, &format!("{wallet}/deposit")).await;
    write(&folder, "deposit", &world.get(owner, &address).await);
    let wrong = [("amount", "ten dollars"), ("note", "INV-2026-1107")];
    write(&folder, "deposit-wrong", &world.send(owner, &address, &wrong).await);
    let fields = [("amount", "250"), ("note", "INV-2026-1107")];
    write(&folder, "deposit-review", &world.send(owner, &address, &fields).await);
    world.confirm(owner, &address, &fields).await.is(303);
    let done = world.get(owner, &address).await;
    write(&folder, "deposit-done", &done);
    let posting = done.links().into_iter().find(|link| link.starts_with("/postings/")).unwrap();
    write(&folder, "posting", &world.get(owner, &posting).await);
    let address = world.open(owner, &format!("{key}/rotate")).await;
    let fields = [("grace_seconds", "86400"), ("reason", "a laptop was lost")];
    write(&folder, "key-told", &world.send(owner, &address, &fields).await);
    write(&folder, "key-told-again", &world.send(owner, &address, &fields).await);
}
