//! Flash: what a change did stands above the page that follows it, for its own sender.

use holdfast_accounts::{NewInvitation, Principal};
use holdfast_domain::admin::{Reach, Role};
use uuid::Uuid;

use super::book::{OpsWorld, owner, request};
use super::world::{World, visitor_of};

#[tokio::test]
async fn money_says_what_moved_the_balance_of_now_and_the_ways_on() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 947_980_000).await.wallet.id;
    let key = world.api_key(wallet, "production").await;
    let operation = world.completed(&key, 20).await;
    let page = format!("/wallets/{wallet}");
    let refund = format!("/operations/{}/refund", operation.id);
    let charge = operation.phase.charge().unwrap();
    for (form, fields, moved) in [
        (
            format!("{page}/deposit"),
            vec![("amount", "1000"), ("note", "x")],
            "1,000.00 USD deposited to <bdi>acme</bdi>.".to_owned(),
        ),
        (
            format!("{page}/adjust"),
            vec![("amount", "-2.5"), ("reason", "x")],
            "Balance of <bdi>acme</bdi> adjusted by -2.50 USD.".to_owned(),
        ),
        (
            refund,
            vec![("amount", &charge.to_string()), ("reason", "x")],
            format!("{charge} USD refunded to <bdi>acme</bdi>."),
        ),
    ] {
        let address = world.open(&world.owner, &form).await;
        world.confirm(&world.owner, &address, &fields).await.is(303);
        let available = world.record(wallet).await.wallet.available;
        let available = crate::kit::money(available, holdfast_domain::Currency::USD);
        let done = world.get(&world.owner, &address).await;
        done.is(200).has(&format!("{moved} Available {available}."));
        let links = done.links();
        assert!(links.contains(&page), "{links:?}");
        assert!(links.iter().any(|link| link.starts_with("/postings/")), "{links:?}");
    }
}

#[tokio::test]
async fn a_verb_says_itself_above_the_resource_with_the_way_back_to_its_sender_alone() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await.wallet.id;
    let key = world.api_key(wallet, "production").await;
    let page = format!("/keys/{}", key.id);
    let address = world.open(&world.owner, &format!("{page}/suspend")).await;
    let sent = world.send(&world.owner, &address, &[("reason", "x")]).await;
    let follows = sent.is(303).follows().to_owned();
    let said = "API key <bdi>production</bdi> suspended.";
    let shown = world.get(&world.owner, &follows).await;
    shown.is(200).has(said).has("<h1><bdi>production</bdi></h1>");
    assert_eq!(shown.link("Resume"), Some(format!("{page}/resume")));
    // Nobody else, and no key that is not bound.
    let other = visitor_of(Role::Owner, wallet);
    world.get(&other, &follows).await.is(200).has_not(said);
    let made_up = follows.replace(&follows[follows.find("done=").unwrap() + 5..][..36], "x");
    world.get(&world.owner, &made_up).await.is(200).has_not(said);
    let unbound = format!("{page}?done={}&did=api_key.suspend", Uuid::new_v4());
    world.get(&world.owner, &unbound).await.is(200).has_not(said);
    for did in ["wallet.suspend", "job.cancel", "posting.deposit", "nothing"] {
        let made_up = follows.replace("did=api_key.suspend", &format!("did={did}"));
        assert_ne!(made_up, follows);
        let shown = world.get(&world.owner, &made_up).await;
        shown.is(200).has_not("class=\"notice good\"");
    }
    let address = world.open(&world.owner, &format!("/keys/new?wallet={wallet}")).await;
    let id = wallet.to_string();
    let fields = [
        ("name", "staging"),
        ("reason", "x"),
        ("usage", "key"),
        ("balance", "shown"),
        ("wallet", id.as_str()),
    ];
    let issued = world.send(&world.owner, &address, &fields).await;
    issued.is(200).has("API key <bdi>staging</bdi> issued.").has("hfk_");
}

#[tokio::test]
async fn forms_that_share_a_use_case_say_their_own_outcome() {
    let (world, owner) = (OpsWorld::new().await, owner());
    let wallet = world.wallet("acme", 5_000).await;
    let api_key = world.api_key(wallet, "a key").await;
    let running = world.running(wallet, api_key).await;
    let new = NewInvitation {
        email: "ada@example.com".parse().unwrap(),
        name: None,
        role: Role::Support,
        reach: Reach::All,
    };
    let invited = world.accounts.invite_person(&Principal::local(), &request(), &new).await;
    let person = invited.unwrap().thing.person;
    let said = async |form: &str, fields: &[(&str, &str)]| {
        let opened = world.get(&owner, form).await.location.unwrap();
        let sent = world.post(&owner, &opened, fields).await;
        let follows = sent.location.unwrap_or_else(|| panic!("{form}: {}", sent.html));
        (follows.clone(), world.page(&owner, &follows).await)
    };
    let (job, page) = said("/jobs/new", &[("since", "")]).await;
    assert!(page.contains("Ledger check created."), "{page}");
    let cancel = format!("{}/cancel", job.split('?').next().unwrap());
    for (form, fields, sentence) in [
        (cancel, vec![("reason", "x")], "Ledger check cancelled."),
        (
            format!("/operations/{running}/cancel"),
            vec![("reason", "x")],
            "Request: cancellation recorded.",
        ),
        (
            format!("/people/{person}/end-role"),
            vec![("role", "support"), ("reason", "x")],
            "Person <bdi>ada@example.com</bdi>: one role ended.",
        ),
    ] {
        let (_follows, page) = said(&form, &fields).await;
        assert!(page.contains(sentence), "{form}: {page}");
    }
}
