//! Secrets of API keys: told once, to whoever may have them, within what the wallet lets be granted.

use holdfast_accounts::{Edit, Principal};
use holdfast_domain::Micros;
use holdfast_domain::admin::{Role, WalletPatch};
use holdfast_domain::credential::Bearer;
use holdfast_domain::limits::{SpendLimit, SpendWindow};

use super::world::{Reply, World, reference, request, visitor_of};

const FIELDS: [(&str, &str); 6] = [
    ("name", "prod"),
    ("spend_window", "month"),
    ("usage", "key"),
    ("balance", "shown"),
    ("reason", "a customer's wish"),
    ("spend", "5"),
];

/// The bearer that a page tells, where it tells one.
fn bearer(reply: &Reply) -> Option<String> {
    let at = reply.body.find("hfk_")?;
    let text = reply.body[at..].split(['<', '\n']).next()?.to_owned();
    Bearer::parse(&text).map(|_bearer| text)
}

#[tokio::test]
async fn the_secret_of_an_issued_key_is_told_once() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let path = format!("/keys/new?wallet={}", wallet.wallet.id);
    let address = world.open(&world.owner, &path).await;
    let form = world.get(&world.owner, &address).await;
    form.is(200).has("acme").has("holdfast/sample").has("name=\"wallet\"");
    let id = wallet.wallet.id.to_string();
    let fields: Vec<_> = FIELDS.into_iter().chain([("wallet", id.as_str())]).collect();
    let changes = world.changes().await;
    let told = world.send(&world.owner, &address, &fields).await;
    let secret = bearer(told.is(200)).unwrap();
    told.has("HOLDFAST_URL=https://api.example.com/v1\n")
        .has("Idempotency-Key")
        .has("from openai import OpenAI");
    told.has("import OpenAI from").has("holdfast/sample").has_not("method=\"post\"");
    let again = world.send(&world.owner, &address, &fields).await;
    again.is(200).has("was shown in the first answer").has_not(&secret);
    let back = world.get(&world.owner, &address).await;
    back.is(200).has("This form was sent").has_not(&secret);
    let is_key = |link: &String| link.starts_with("/keys/") && !link.starts_with("/keys/new");
    let key = back.links().into_iter().find(is_key);
    let page = world.get(&world.owner, &key.unwrap()).await;
    page.is(200).has("prod").has_not(&secret);
    for reply in [&again, &back, &page] {
        assert_eq!(bearer(reply), None);
    }
    assert_eq!(world.changes().await, changes + 1);
    assert_eq!(told.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn the_secret_of_a_rotation_is_told_once() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let key = world.api_key(wallet.wallet.id, "prod").await;
    let path = format!("/keys/{}/rotate", key.id);
    let address = world.open(&world.owner, &path).await;
    let fields = [("grace_seconds", "3600"), ("reason", "leaked")];
    world.send(&world.owner, &address, &[("grace_seconds", "7")]).await.is(422);
    let without = world.send(&world.owner, &address, &fields[..1]).await;
    without.has("id=\"reason-error\"");
    let told = world.send(&world.owner, &address, &fields).await;
    let secret = bearer(told.is(200)).unwrap();
    told.has("Other credentials end");
    let again = world.send(&world.owner, &address, &fields).await;
    assert_eq!(bearer(again.is(200)), None);
    again.has_not(&secret);
    world.get(&world.owner, &address).await.is(200).has("This form was sent").has_not(&secret);
    let page = world.get(&world.owner, &format!("/keys/{}", key.id)).await;
    assert_eq!(page.rows("Credentials in force").len(), 2);
}

#[tokio::test]
async fn a_key_of_a_bounded_role_stays_within_what_the_wallet_lets_be_granted() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let id = wallet.wallet.id;
    for role in [Role::HolderDeveloper, Role::Operator] {
        let visitor = visitor_of(role, id);
        let path = format!("/keys/new?wallet={id}");
        let address = world.open(&visitor, &path).await;
        world.get(&visitor, &address).await.has("an owner sets one first");
        let text = id.to_string();
        let fields: Vec<_> = FIELDS.into_iter().chain([("wallet", text.as_str())]).collect();
        let reply = world.send(&visitor, &address, &fields).await;
        reply.is(403).has("no key_spend").has("value=\"prod\"");
    }
    let window = SpendWindow::Month;
    let key_spend = Some(Some(SpendLimit { micros: Micros::new(2_000_000), window }));
    let patch = WalletPatch { key_spend, ..WalletPatch::default() };
    let edit = Edit { patch, expected: None };
    let local = Principal::local();
    world.accounts.edit_wallet(&local, &request(), &reference(id), edit).await.unwrap();
    let developer = visitor_of(Role::HolderDeveloper, id);
    // A holder has one wallet: the address need not name it.
    let address = world.open(&developer, "/keys/new").await;
    let form = world.get(&developer, &address).await;
    form.has("At most 2.00 USD a month").has_not("name=\"reason\"");
    let text = id.to_string();
    let mut fields = FIELDS.to_vec();
    fields.push(("wallet", text.as_str()));
    fields.retain(|(name, _)| *name != "reason");
    let reply = world.send(&developer, &address, &fields).await;
    reply.has("id=\"spend-error\"");
    fields.retain(|(name, _)| *name != "spend");
    fields.push(("spend", "2"));
    let told = world.send(&developer, &address, &fields).await;
    assert!(bearer(told.is(200)).is_some());
}

#[tokio::test]
async fn limits_that_are_none_are_said_beside_their_fields() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let address = world.open(&world.owner, "/keys/new").await;
    world.get(&world.owner, &address).await.has("Wallet: name or id");
    for (field, value) in [
        ("wallet", ""),
        ("wallet", "nowhere"),
        ("requests_per_minute", "0"),
        ("tokens_per_minute", "-1"),
        ("concurrency", "many"),
        ("models", "gpt"),
        ("ends_at", "tomorrow"),
        ("spend", "0"),
        ("usage", "all"),
        ("reason", ""),
    ] {
        let mut fields = FIELDS.to_vec();
        fields.push(("wallet", "acme"));
        fields.retain(|(name, _)| *name != field);
        fields.push((field, value));
        let reply = world.send(&world.owner, &address, &fields).await;
        assert!(reply.status.is_client_error(), "{field}: {}", reply.status);
        assert_eq!(bearer(&reply), None, "{field}");
        if field != "models" {
            reply.has(&format!("id=\"{field}-error\""));
        }
    }
    let keys = world.get(&world.owner, &format!("/keys?wallet={}", wallet.wallet.id)).await;
    assert!(keys.rows("API keys").is_empty());
}
