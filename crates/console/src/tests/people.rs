//! People: their lists narrowed, their forms done once, their links told once, and their own account.

use std::net::{IpAddr, Ipv4Addr};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{future, stream};
use holdfast_accounts::{LinkError, NewInvitation, Principal};
use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::secret::LinkToken;
use holdfast_domain::{PersonId, WalletId};
use http::Request;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::kit::Visitor;
use crate::tests::book::{OpsWorld, owner, plain, request, rows, visitor};
use crate::tests::changes::twice;
use crate::tests::guard::pass_a_minute;
use crate::tests::site::{Call, EMAIL, PASSWORD, World};

const OTHER: &str = "another horse battery";

async fn invite(world: &OpsWorld, email: &str, role: Role, reach: Reach) -> (PersonId, LinkToken) {
    let new = NewInvitation { email: email.parse().unwrap(), name: None, role, reach };
    let told = world.accounts.invite_person(&Principal::local(), &request(), &new).await;
    let told = told.unwrap().thing;
    (told.person, told.link.unwrap())
}

/// The same, with a password that they have set.
async fn member(world: &OpsWorld, email: &str, role: Role, reach: Reach) -> PersonId {
    let (person, link) = invite(world, email, role, reach).await;
    world.accounts.accept_link(&link, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    person
}

fn page_of(person: PersonId) -> String {
    format!("/people/{}", Uuid::from_bytes(person.to_bytes()))
}

#[tokio::test]
async fn a_renewed_link_is_told_once_and_ends_a_password() {
    let world = OpsWorld::new().await;
    let (person, before) = invite(&world, "ada@example.com", Role::Support, Reach::All).await;
    let form = format!("{}/link", page_of(person));
    let [first, again] = twice(&world, &owner(), &form, &[]).await;
    assert!(first.status == 200 && first.html.contains("it is shown once"), "{first:?}");
    assert!(first.html.contains("/link/") && !again.html.contains("/link/"), "{again:?}");
    let gone = world.accounts.look_at_link(&before).await;
    assert!(matches!(gone, Err(LinkError::NotValid)), "{gone:?}");
    // Of somebody with a password it is grave: that ends.
    let person = member(&world, "bob@example.com", Role::Support, Reach::All).await;
    let opened = world.get(&owner(), &format!("{}/link", page_of(person))).await.location.unwrap();
    let shown = world.page(&owner(), &opened).await;
    assert!(shown.contains("An existing password and all sessions end"), "{shown}");
    assert!(shown.contains("class=\"grave\""), "{shown}");
    world.post(&owner(), &opened, &[]).await;
    assert!(world.page(&owner(), &page_of(person)).await.contains("pending"));
}

#[tokio::test]
async fn a_renewed_link_sets_a_password_and_the_one_before_is_not_there() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    let before = world.invite("bob@example.com", Role::Support, Reach::All).await;
    let people = world.send(Call::get("/people?state=pending").cookies(&cookies)).await.text;
    let (_, rest) = people.split_once("<td><a href=\"/people/").unwrap();
    let form = format!("/people/{}/link", rest.split('"').next().unwrap());
    let opened = world.send(Call::get(&form).cookies(&cookies)).await;
    let told = world.send(Call::post(opened.location(), &[]).cookies(&cookies)).await;
    let (_, link) = told.text.split_once("http://localhost:8081/link/").unwrap();
    let link = format!("/link/{}", link.split('<').next().unwrap());
    let before = format!("/link/{}", before.expose());
    assert_eq!(world.send(Call::get(&before)).await.status, 404);
    assert_eq!(world.send(Call::get(&link)).await.status, 200);
    let set = Call::post(&link, &[("password", PASSWORD), ("again", PASSWORD)]);
    assert_eq!(world.send(set).await.location(), "/");
    assert_eq!(world.sign_in("bob@example.com", PASSWORD).await.status, 303);
}

#[tokio::test]
async fn a_role_is_ended_once_whoever_ends_it() {
    let world = OpsWorld::new().await;
    let wallet = world.wallet("acme", 0).await;
    let person = member(&world, "ada@example.com", Role::Finance, Reach::All).await;
    let form = format!("{}/end-role", page_of(person));
    let opened = world.get(&owner(), &form).await.location.unwrap();
    let bad = world.post(&owner(), &opened, &[("role", "operator"), ("reason", "kept")]).await;
    assert!(bad.status == 422 && bad.html.contains("id=\"role-error\""), "{bad:?}");
    assert!(bad.html.contains("value=\"kept\""), "{bad:?}");
    let [done, _] = twice(&world, &owner(), &form, &[("role", "finance"), ("reason", "")]).await;
    assert_eq!(done.page(), Some("/people"));
    assert!(world.page(&owner(), &page_of(person)).await.contains("No role."));
    // A holder's administrator sees nobody there any more, and a second click is no failure.
    let reach = Reach::Wallet(wallet);
    let viewer = member(&world, "bob@example.com", Role::HolderViewer, reach).await;
    let form = format!("{}/end-role", page_of(viewer));
    let role = format!("holder_viewer:{wallet}");
    let boss = visitor(Role::HolderAdmin, reach);
    twice(&world, &boss, &form, &[("role", &role), ("reason", "")]).await;
    assert_eq!(world.get(&boss, &page_of(viewer)).await.status, 404);
}

#[tokio::test]
async fn a_person_is_ended_once_and_erased_where_that_is_asked_for() {
    let world = OpsWorld::new().await;
    for (email, erase, is_there) in
        [("ada@example.com", "", true), ("bob@example.com", "yes", false)]
    {
        let person = member(&world, email, Role::Auditor, Reach::All).await;
        let form = format!("{}/end", page_of(person));
        let fields = [("erase", erase), ("reason", "left")];
        let [done, again] = twice(&world, &owner(), &form, &fields).await;
        assert_eq!(done.location, again.location);
        let shown = world.page(&owner(), &done.location.unwrap()).await;
        assert!(shown.contains("ended") && shown.contains("No role."), "{shown}");
        assert_eq!(shown.contains(email), is_there, "{shown}");
        for part in ["/link", "/end", "/end-role"] {
            let href = format!("{}{part}\"", page_of(person));
            assert!(!shown.contains(&href), "there is nothing left to end: {shown}");
        }
    }
}

#[tokio::test]
async fn people_are_narrowed_by_state_role_and_wallet_and_stand_on_the_wallets_page() {
    let world = OpsWorld::new().await;
    let (acme, other) = (world.wallet("acme", 0).await, world.wallet("globex", 0).await);
    let of = Reach::Wallet;
    member(&world, "boss@example.com", Role::HolderAdmin, of(acme)).await;
    invite(&world, "new@example.com", Role::HolderViewer, of(acme)).await;
    member(&world, "theirs@example.com", Role::HolderViewer, of(other)).await;
    member(&world, "clerk@example.com", Role::Finance, Reach::All).await;
    let listed = async |query: &str| -> Vec<String> {
        let html = world.page(&owner(), &format!("/people?{query}")).await;
        rows(&html, "People").iter().map(|row| row["Person"].clone()).collect()
    };
    let (boss, new) = ("boss@example.com", "new@example.com");
    assert_eq!(listed("wallet=acme").await, [new, boss]);
    assert_eq!(listed("role=holder_viewer").await, ["theirs@example.com", new]);
    assert_eq!(listed("role=holder_viewer&wallet=acme").await, [new]);
    assert_eq!(listed("state=pending").await, [new]);
    assert_eq!(listed("state=active&role=finance").await, ["clerk@example.com"]);
    let there = async |who: Visitor, wallet: WalletId| -> Vec<(String, String, String)> {
        let html = world.page(&who, &format!("/wallets/{wallet}")).await;
        let cells = rows(&html, "People").into_iter();
        cells.map(|it| (it["Person"].clone(), it["Role"].clone(), it["State"].clone())).collect()
    };
    let row = |email: &str, role: &str, state: &str| {
        (email.to_owned(), role.to_owned(), state.to_owned())
    };
    let html = world.page(&owner(), "/people?state=pending").await;
    assert_eq!(rows(&html, "People")[0]["Roles"], "holder_viewer (offered)");
    let expected =
        [row(new, "holder_viewer (offered)", "pending"), row(boss, "holder_admin", "active")];
    assert_eq!(there(owner(), acme).await, expected);
    assert_eq!(there(visitor(Role::HolderAdmin, of(acme)), acme).await, expected);
    for role in [Role::HolderViewer, Role::HolderDeveloper, Role::Support] {
        let reach = if role.is_holder() { of(acme) } else { Reach::All };
        assert_eq!(there(visitor(role, reach), acme).await, [], "{role} may not read people");
    }
    let empty = world.wallet("empty", 0).await;
    let shown = world.page(&owner(), &format!("/wallets/{empty}")).await;
    assert!(plain(&shown).contains("Only the operator sees this wallet"), "{shown}");
}

/// A new password as its form sends it.
fn change(cookies: &str, old: &str, new: &str) -> Call {
    let fields = [("old", old), ("password", new), ("again", new)];
    Call::post("/account/password", &fields).cookies(cookies)
}

#[tokio::test]
async fn a_password_is_changed_by_whoever_knows_it_and_ends_the_other_sessions() {
    let world = World::owned().await;
    let (own, other) = (world.cookies().await, world.cookies().await);
    let is_in = async |cookies: &str| {
        world.send(Call::get("/account").cookies(cookies)).await.status == 200
    };
    for (new, again, wrong) in [("short", "short", "password"), (OTHER, PASSWORD, "again")] {
        let fields = [("old", PASSWORD), ("password", new), ("again", again)];
        let reply = world.send(Call::post("/account/password", &fields).cookies(&own)).await;
        assert_eq!(reply.status, 422, "{reply:?}");
        assert!(reply.text.contains(&format!("id=\"{wrong}-error\"")), "{reply:?}");
    }
    let wrong = world.send(change(&own, "wrong horse battery", OTHER)).await;
    assert!(wrong.status == 422 && wrong.text.contains("id=\"old-error\""), "{wrong:?}");
    assert!(!wrong.text.contains("horse battery"), "no password stands on a page: {wrong:?}");
    let slow = world.send(change(&own, PASSWORD, OTHER)).await;
    assert_eq!(slow.status, 429, "a failure slows down: {slow:?}");
    assert!(slow.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert!(is_in(&own).await && is_in(&other).await, "nothing was changed");
    pass_a_minute().await;
    let changed = world.send(change(&own, PASSWORD, OTHER)).await;
    assert_eq!((changed.status, changed.location()), (303, "/account"), "{changed:?}");
    let own_before = own;
    let own = changed.cookies();
    assert!(is_in(&own).await && !is_in(&other).await, "the other session has ended");
    assert!(!is_in(&own_before).await, "the session continues under another token");
    assert_eq!(world.sign_in(EMAIL, PASSWORD).await.status, 401);
    pass_a_minute().await;
    assert_eq!(world.sign_in(EMAIL, OTHER).await.status, 303);
}

#[tokio::test]
async fn nobody_ends_a_session_of_somebody_else() {
    let world = World::owned().await;
    let ada = world.cookies().await;
    let token = world.invite("bob@example.com", Role::Auditor, Reach::All).await;
    world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    let [bob, bobs_other] = [
        world.sign_in("bob@example.com", PASSWORD).await.cookies(),
        world.sign_in("bob@example.com", PASSWORD).await.cookies(),
    ];
    let page = world.send(Call::get("/account").cookies(&bob)).await.text;
    let (_, rest) = page.split_once("href=\"/account/sessions/").unwrap();
    let path = format!("/account/sessions/{}", rest.split('"').next().unwrap());
    assert_eq!(world.send(Call::get(&path).cookies(&ada)).await.status, 404);
    // Nobody is told whether there is such a session: one that has ended is answered so too.
    let sent = world.send(Call::post(&path, &[]).cookies(&ada)).await;
    assert_eq!((sent.status, sent.location()), (303, "/account"));
    let status =
        async |cookies: &str| world.send(Call::get("/account").cookies(cookies)).await.status;
    assert_eq!(status(&bobs_other).await, 200, "it goes on");
    let ended = world.send(Call::post(&path, &[]).cookies(&bob)).await;
    assert_eq!((ended.status, ended.location()), (303, "/account"));
    assert_eq!((status(&bob).await, status(&bobs_other).await), (200, 303));
}

#[tokio::test]
async fn a_person_has_sixteen_requests_on_the_way() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    let mut held = JoinSet::new();
    for _request in 0..16 {
        let (reader, is_read) = oneshot::channel();
        // A form that never arrives whole; its request has its place once somebody reads it.
        let body = stream::once(async move {
            reader.send(()).unwrap();
            future::pending::<Result<Bytes, std::io::Error>>().await
        });
        let request = Request::builder()
            .method("POST")
            .uri("/account/role")
            .header("host", "localhost:8081")
            .header("cookie", &cookies)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin");
        let request = request.body(Body::from_stream(body)).unwrap();
        let console = world.console.clone();
        held.spawn(async move { console.answer(request, from).await });
        is_read.await.unwrap();
    }
    let call = Call::get("/account").cookies(&cookies);
    let refused = world.send(call.clone()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{refused:?}");
    assert!(refused.text.contains("16 requests on the way"), "{refused:?}");
    let token = world.invite("bob@example.com", Role::Auditor, Reach::All).await;
    world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    let bob = world.sign_in("bob@example.com", PASSWORD).await.cookies();
    assert_eq!(world.send(Call::get("/account").cookies(&bob)).await.status, 200, "it is theirs");
    held.shutdown().await;
    assert_eq!(world.send(call).await.status, 200, "the places are free");
}
