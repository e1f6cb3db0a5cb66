//! Forms: each is done once, whoever sends it again, and says so; secrets are told once.

use holdfast_accounts::{NewAdminKey, Principal};
use holdfast_domain::admin::Administration;
use holdfast_domain::admin::{Reach, Role};

use crate::kit::Visitor;
use crate::tests::book::{OpsWorld, Reply, owner, request, visitor};

/// Opens a form, and sends it twice under the key that it was given.
pub(super) async fn twice(
    world: &OpsWorld,
    visitor: &Visitor,
    path: &str,
    fields: &[(&str, &str)],
) -> [Reply; 2] {
    let opened = world.get(visitor, path).await;
    assert_eq!(opened.status, 303, "{path}");
    let address = opened.location.unwrap();
    let form = world.page(visitor, &address).await;
    assert!(form.contains("<form class=\"change\""), "{path}: {form}");
    let before = world.store.trail_head().await.unwrap().seq;
    let first = world.post(visitor, &address, fields).await;
    assert!(matches!(first.status, 200 | 303), "{path}: {first:?}");
    let second = world.post(visitor, &address, fields).await;
    assert_eq!(second.status, 303, "{path}: {second:?}");
    let after = world.store.trail_head().await.unwrap().seq;
    assert_eq!(after, before + 1, "{path} was done once");
    let again = world.page(visitor, &address).await;
    assert!(again.contains("This form was sent") && again.contains("A new form"), "{path}");
    [first, second]
}

#[tokio::test]
async fn an_operation_is_cancelled_and_reconciled_once_and_with_a_reason() {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 5_000).await;
    let api_key = world.api_key(wallet, "a key").await;
    let id = world.running(wallet, api_key).await;
    let (owner, base) = (owner(), format!("/operations/{id}"));
    let opened = world.get(&owner, &format!("{base}/cancel")).await.location.unwrap();
    let refused = world.post(&owner, &opened, &[("reason", "")]).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert!(refused.html.contains("id=\"reason-error\""), "{refused:?}");
    let [done, _] =
        twice(&world, &owner, &format!("{base}/cancel"), &[("reason", "runs away")]).await;
    assert_eq!(done.page(), Some(base.as_str()));
    assert!(world.operation(id).await.cancel_asked);
    twice(&world, &owner, &format!("{base}/reconcile"), &[("reason", "")]).await;
    let support = visitor(Role::Support, Reach::All);
    for form in ["cancel", "reconcile"] {
        let told = world.get(&support, &format!("{base}/{form}")).await;
        assert_eq!(told.status, 403, "{form}");
        let shown = world.page(&support, &base).await;
        assert!(!shown.contains(&format!("{base}/{form}")), "{form}");
    }
}

#[tokio::test]
async fn a_form_that_was_sent_and_comes_again_with_a_mistake_says_the_mistake() {
    let world = OpsWorld::new().await;
    let owner = owner();
    let opened = world.get(&owner, "/wallets/new").await.location.unwrap();
    let done = world.post(&owner, &opened, &[("name", "acme"), ("currency", "USD")]).await;
    assert_eq!(done.status, 303, "{done:?}");
    let bad = world.post(&owner, &opened, &[("name", "other"), ("currency", "dollars")]).await;
    assert!(bad.status == 422 && bad.html.contains("id=\"currency-error\""), "{bad:?}");
}

#[tokio::test]
async fn a_verification_is_started_once() {
    let world = OpsWorld::new().await;
    let [done, again] = twice(&world, &owner(), "/jobs/new", &[("since", "")]).await;
    let job = done.location.unwrap();
    assert_eq!(again.location, Some(job.clone()));
    assert!(world.page(&owner(), &job).await.contains("queued"));
    let opened = world.get(&owner(), "/jobs/new").await.location.unwrap();
    let bad = world.post(&owner(), &opened, &[("since", "yesterday")]).await;
    assert!(bad.status == 422 && bad.html.contains("id=\"since-error\""), "{bad:?}");
}

#[tokio::test]
async fn a_webhook_is_made_tested_rotated_and_switched_once_each_and_tells_its_secret_once() {
    let world = OpsWorld::new().await;
    world.wallet("acme", 5_000).await;
    let owner = owner();
    let fields = [
        ("url", "https://hooks.example.com/in"),
        ("wallet", "acme"),
        ("kinds", "wallet.low"),
        ("kinds", "operation.stuck"),
        ("description", "the shop"),
    ];
    let [made, again] = twice(&world, &owner, "/webhooks/new", &fields).await;
    assert!(made.status == 200 && made.html.contains("whsec_"), "{made:?}");
    assert!(!again.html.contains("whsec_"), "{again:?}");
    let (_, rest) = made.html.split_once("href=\"/webhooks/").unwrap();
    let base = format!("/webhooks/{}", &rest[..36]);
    let shown = world.page(&owner, &base).await;
    assert!(shown.contains("wallet.low, operation.stuck") && !shown.contains("whsec_"), "{shown}");
    let [tested, _] = twice(&world, &owner, &format!("{base}/test"), &[]).await;
    assert_eq!(tested.page(), Some(base.as_str()));
    let shown = world.page(&owner, &base).await;
    let (before, _) = shown.split_once("/resend\"").unwrap();
    let resend = format!("{}/resend", before.rsplit_once("href=\"").unwrap().1);
    twice(&world, &owner, &resend, &[]).await;
    let [rotated, _] = twice(&world, &owner, &format!("{base}/rotate"), &[]).await;
    assert!(rotated.html.contains("whsec_"), "{rotated:?}");
    let edit = format!("{base}/edit");
    let edited = [
        ("url", "https://hooks.example.com/in"),
        ("kinds", "wallet.low"),
        ("description", "another shop"),
        ("edited", "0"),
    ];
    let opened = world.get(&owner, &edit).await.location.unwrap();
    let form = world.page(&owner, &opened).await;
    assert!(
        form.contains("value=\"operation.stuck\" checked") && form.contains("the shop"),
        "{form}"
    );
    let number = form.split("name=\"edited\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut sent = edited.to_vec();
    sent[3] = ("edited", number);
    twice(&world, &owner, &edit, &sent).await;
    let shown = world.page(&owner, &base).await;
    assert!(shown.contains("another shop") && !shown.contains("operation.stuck"), "{shown}");
    let late = world.post(&owner, &opened, &sent).await;
    assert!(late.status == 412 && late.html.contains("edited in the meantime"), "{late:?}");
    for change in ["disable", "enable"] {
        twice(&world, &owner, &format!("{base}/{change}"), &[("reason", "a move")]).await;
    }
    let opened = world.get(&owner, "/webhooks/new").await.location.unwrap();
    for (field, value) in [("url", "http://example.com"), ("wallet", "nobody")] {
        let mut sent = vec![("url", "https://hooks.example.com/in"), ("description", "kept")];
        sent.retain(|(name, _)| *name != field);
        sent.push((field, value));
        let bad = world.post(&owner, &opened, &sent).await;
        assert!(bad.html.contains(&format!("id=\"{field}-error\"")), "{bad:?}");
        assert!(bad.html.contains("value=\"kept\""), "what was written is kept: {bad:?}");
    }
}

#[tokio::test]
async fn an_admin_key_is_issued_rotated_and_revoked_once_each_and_tells_its_secret_once() {
    let world = OpsWorld::new().await;
    let owner = owner();
    let fields = [("name", "ci"), ("role", "auditor"), ("wallet", ""), ("ends_at", "")];
    let [issued, again] = twice(&world, &owner, "/admin-keys/new", &fields).await;
    assert!(issued.status == 200 && issued.html.contains("hfa_"), "{issued:?}");
    assert!(!again.html.contains("hfa_"), "{again:?}");
    let (_, rest) = issued.html.split_once("href=\"/admin-keys/").unwrap();
    let base = format!("/admin-keys/{}", &rest[..36]);
    let rotation = [("grace_seconds", "0"), ("reason", "")];
    let [rotated, _] = twice(&world, &owner, &format!("{base}/rotate"), &rotation).await;
    assert!(rotated.html.contains("hfa_"), "{rotated:?}");
    twice(&world, &owner, &format!("{base}/revoke"), &[("reason", "left")]).await;
    let shown = world.page(&owner, &base).await;
    assert!(shown.contains("revoked") && !shown.contains(&format!("{base}/rotate")), "{shown}");
    let listed = world.page(&owner, "/admin-keys?state=in_force").await;
    assert!(!listed.contains(&base), "{listed}");
    let opened = world.get(&owner, "/admin-keys/new").await.location.unwrap();
    let wrong = [("name", "x"), ("role", "holder_viewer"), ("wallet", ""), ("ends_at", "")];
    let bad = world.post(&owner, &opened, &wrong).await;
    assert!(bad.html.contains("id=\"wallet-error\""), "{bad:?}");
}

#[tokio::test]
async fn the_trail_is_filtered_by_thing_actor_and_use_case() {
    let world = OpsWorld::new().await;
    let owner = owner();
    let wallet = world.wallet("acme", 0).await;
    let new = NewAdminKey {
        name: "ci".parse().unwrap(),
        role: Role::Auditor,
        reach: Reach::All,
        ends_at: None,
    };
    world.accounts.issue_admin_key(&Principal::local(), &request(), &new).await.unwrap();
    let all = world.page(&owner, "/trail").await;
    assert!(all.contains("wallet.create") && all.contains("admin_key.issue"), "{all}");
    assert!(all.contains("Latest audit checksum"), "{all}");
    let of = |html: &str, what: &str| html.contains(&format!("<dd><bdi>{what}</bdi></dd>"));
    for (query, wallets, keys) in [
        (format!("thing=wallet:{wallet}"), true, false),
        ("use_case=admin_key.issue".to_owned(), false, true),
        ("actor=local".to_owned(), true, true),
        (format!("actor=person:{wallet}"), false, false),
    ] {
        let html = world.page(&owner, &format!("/trail?{query}")).await;
        assert_eq!(
            (of(&html, "wallet.create"), of(&html, "admin_key.issue")),
            (wallets, keys),
            "{query}"
        );
    }
    for query in ["thing=acme", "use_case=wallet.lose", "actor=nobody"] {
        assert_eq!(world.get(&owner, &format!("/trail?{query}")).await.status, 422, "{query}");
    }
}
