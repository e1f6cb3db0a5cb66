//! The guard, the sign-in and the links: who is let in, and who is not.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use holdfast_accounts::{NewWallet, Principal, Request};
use holdfast_domain::admin::listing::{Order, PageRequest, PersonFilter};
use holdfast_domain::admin::{Reach, Role, UseCase, WalletPatch};
use holdfast_domain::secret::{LinkToken, SessionToken};
use holdfast_domain::{CommandKey, Currency};
use uuid::Uuid;

use crate::audience::Audience;
use crate::console::Console;
use crate::tests::site::{Call, EMAIL, PASSWORD, World, shared_options, sign_in};

/// A minute and a second that nobody waits for.
pub(super) async fn pass_a_minute() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn who_is_not_signed_in_is_asked_to() {
    let world = World::owned().await;
    let reply = world.send(Call::get("/wallets?after=7")).await;
    assert_eq!((reply.status, reply.location()), (303, "/sign-in?next=%2Fwallets%3Fafter%3D7"));
    let reply = world.send(Call::get("/nothing")).await;
    assert_eq!(reply.status, 303, "nobody learns which pages there are");
    for open in ["/sign-in", "/assets/style.css", "/assets/script.js"] {
        assert_eq!(world.send(Call::get(open)).await.status, 200, "{open}");
    }
    let cookies = world.cookies().await;
    let reply = world.send(Call::get("/wallets").cookies(&cookies)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.text.contains(EMAIL) && reply.text.contains("/people"));
}

#[tokio::test]
async fn every_answer_has_the_headers_that_pages_have() {
    let world = World::owned().await;
    let wrong = Call::get("/").header("host", "evil.example");
    for call in [Call::get("/sign-in"), Call::get("/wallets"), wrong] {
        let reply = world.send(call).await;
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(reply.header("referrer-policy"), Some("strict-origin"));
    }
}

#[tokio::test]
async fn another_host_is_misdirected() {
    let world = World::owned().await;
    for host in ["evil.example", "localhost", "localhost:9", "me@localhost:8081"] {
        let reply = world.send(Call::get("/sign-in").header("host", host)).await;
        assert_eq!(reply.status, 421, "{host}");
    }
    assert_eq!(world.send(Call::get("/sign-in").without("host")).await.status, 421);
}

#[tokio::test]
async fn a_form_of_another_origin_is_refused() {
    let world = World::owned().await;
    let signing_in = sign_in(EMAIL, PASSWORD);
    let bare = signing_in.clone().without("sec-fetch-site");
    for refused in [
        bare.clone(),
        signing_in.clone().header("sec-fetch-site", "cross-site"),
        signing_in.clone().header("sec-fetch-site", "same-site"),
        signing_in.clone().header("sec-fetch-site", "none"),
        signing_in.header("sec-fetch-site", "cross-site").header("origin", "http://localhost:8081"),
        bare.clone().header("origin", "http://evil.example"),
        bare.clone().header("origin", "https://localhost:8081"),
        bare.clone().header("origin", "http://[::1]:8081"),
        bare.clone().header("origin", "null"),
    ] {
        let reply = world.send(refused).await;
        assert_eq!((reply.status, reply.cookies().as_str()), (403, ""), "{reply:?}");
    }
    let own = bare.header("origin", "http://localhost:8081");
    assert_eq!(world.send(own).await.status, 303);
    // What browsers say in `Origin` of a form depends on this: under `no-referrer` it would be `null`.
    let page = world.send(Call::get("/sign-in")).await;
    assert_eq!(page.header("referrer-policy"), Some("strict-origin"));
}

#[tokio::test]
async fn refused_use_cases_are_counted_as_those_of_the_api_are() {
    let world = World::new().await;
    let token = world.invite(EMAIL, Role::Auditor, Reach::All).await;
    world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    let cookies = world.cookies().await;
    let key = "key=7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    for path in ["/people", "/people", "/wallets/new"] {
        let reply = world.send(Call::get(path).cookies(&cookies)).await;
        assert_eq!(reply.status, 403, "{path}");
    }
    let posted = format!("/wallets/new?{key}");
    let reply = world.send(Call::post(&posted, &[("name", "x")]).cookies(&cookies)).await;
    assert_eq!(reply.status, 403);
    assert_eq!(world.send(Call::get("/nowhere").cookies(&cookies)).await.status, 404);
    let refused = world.accounts.write_refused().await.unwrap();
    let counts: Vec<_> = refused.iter().map(|it| (it.use_case, it.attempts)).collect();
    assert_eq!(counts, [(UseCase::WalletCreate, 2), (UseCase::PersonRead, 2)]);
}

#[tokio::test]
async fn operators_pages_are_not_there_for_holders_alone() {
    let world = World::with(None, Audience::Holders).await;
    let request = Request::new(CommandKey::from(Uuid::new_v4()), &[b"test"], None);
    let new = NewWallet {
        name: "acme".parse().unwrap(),
        currency: Currency::USD,
        settings: WalletPatch::default(),
    };
    let local = Principal::local();
    let made = world.accounts.create_wallet(&local, &request, &new).await.unwrap();
    let id = made.thing.wallet.id;
    let token = world.invite(EMAIL, Role::HolderAdmin, Reach::Wallet(id)).await;
    world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    let cookies = world.cookies().await;
    assert!(cookies.starts_with("holdfast-holder="), "{cookies}");
    let thing = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    let verbs = ["deposit", "adjust", "edit", "suspend", "resume", "close"];
    let mut paths: Vec<_> = verbs.map(|verb| format!("/wallets/{id}/{verb}")).to_vec();
    paths.extend(["/wallets/new", "/trail", "/jobs", "/jobs/new"].map(str::to_owned));
    paths.extend(["/admin-keys", "/admin-keys/new"].map(str::to_owned));
    paths.extend(
        ["refund", "cancel", "reconcile"].map(|verb| format!("/operations/{thing}/{verb}")),
    );
    paths.extend(["suspend", "resume"].map(|verb| format!("/keys/{thing}/{verb}")));
    for path in paths {
        let reply = world.send(Call::get(&path).cookies(&cookies)).await;
        assert_eq!(reply.status, 404, "{path}");
    }
    let page = world.send(Call::get("/").cookies(&cookies)).await;
    assert!(page.status == 200 && !page.text.contains("href=\"/trail\""), "{page:?}");
    let owners = world.accounts.first_owner_link().await.unwrap().unwrap();
    let link = world.send(Call::get(&format!("/link/{}", owners.expose()))).await;
    assert_eq!(link.status, 404, "nobody becomes the owner here");
}

#[tokio::test]
async fn a_session_that_was_there_before_is_not_taken_over() {
    let world = World::owned().await;
    let before = world.cookies().await;
    let reply = world.send(sign_in(EMAIL, PASSWORD).cookies(&before)).await;
    let after = reply.cookies();
    assert_ne!(before, after);
    let page = |cookies: &str| world.send(Call::get("/account").cookies(cookies));
    assert_eq!(page(&before).await.status, 303, "the one before has ended");
    assert_eq!(page(&after).await.status, 200);
    let invented = "holdfast=0000000000000000000000000000000000000000007";
    let reply = world.send(sign_in(EMAIL, PASSWORD).cookies(invented)).await;
    assert!(!reply.cookies().contains(invented));
    assert_eq!(page(invented).await.status, 303);
}

#[tokio::test]
async fn signing_out_ends_the_session() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    let reply = world.send(Call::post("/sign-out", &[]).cookies(&cookies)).await;
    assert_eq!((reply.status, reply.location()), (303, "/sign-in"));
    assert_eq!(world.send(Call::get("/account").cookies(&cookies)).await.status, 303);
    assert_eq!(world.send(Call::post("/sign-out", &[])).await.status, 303, "twice is no harm");
}

#[tokio::test]
async fn an_unknown_address_and_a_wrong_password_are_told_alike() {
    let world = World::owned().await;
    let mut told = Vec::new();
    for (email, password) in
        [(EMAIL, "wrong horse battery"), ("nobody@example.com", PASSWORD), ("carl", "short")]
    {
        let reply = world.sign_in(email, password).await;
        assert_eq!((reply.status, reply.cookies().as_str()), (401, ""));
        assert!(!reply.text.contains(password));
        told.push(reply.text.replace(&format!(" value=\"{email}\""), ""));
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
}

#[tokio::test]
async fn wrong_passwords_slow_down_and_never_lock_whoever_was_here_before() {
    let world = World::owned().await;
    let known = world.cookies().await;
    let device = known.split("; ").find(|pair| pair.starts_with("holdfast-device=")).unwrap();
    for _minute in 0..40 {
        let judged = world.sign_in(EMAIL, "wrong horse battery").await;
        assert_eq!(judged.status, 401, "one a minute is judged, however many there were");
        let slow = world.sign_in(EMAIL, "wrong horse battery").await;
        assert_eq!(slow.status, 429, "{slow:?}");
        assert!(slow.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        pass_a_minute().await;
    }
    assert_eq!(world.sign_in(EMAIL, "wrong horse battery").await.status, 401);
    assert_eq!(world.sign_in(EMAIL, PASSWORD).await.status, 429, "from there they wait");
    // The same network address, and no wait: the browser is known.
    let reply = world.send(sign_in(EMAIL, PASSWORD).cookies(device)).await;
    assert_eq!(reply.status, 303, "{reply:?}");
    pass_a_minute().await;
    assert_eq!(world.sign_in(EMAIL, PASSWORD).await.status, 303, "a minute, and never more");
}

#[tokio::test]
async fn nobody_is_sent_elsewhere_by_a_sign_in() {
    let world = World::owned().await;
    for (next, to) in [
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2Fwallets%3Fafter%3D7", "/wallets?after=7"),
    ] {
        let path = format!("/sign-in?next={next}");
        let fields = [("email", EMAIL), ("password", PASSWORD)];
        let reply = world.send(Call::post(&path, &fields)).await;
        assert_eq!((reply.status, reply.location()), (303, to));
    }
}

#[tokio::test]
async fn a_link_is_shown_often_and_used_once() {
    let world = World::owned().await;
    let token = world.invite("bob@example.com", Role::Support, Reach::All).await;
    let path = format!("/link/{}", token.expose());
    for _ in 0..3 {
        let reply = world.send(Call::get(&path)).await;
        assert_eq!(reply.status, 200, "a scanner of mail changes nothing");
        assert!(reply.text.contains("bob@example.com"));
    }
    assert_eq!(world.sign_in("bob@example.com", PASSWORD).await.status, 401);
    let short = [("password", "short"), ("again", "short")];
    assert_eq!(world.send(Call::post(&path, &short)).await.status, 422);
    let unlike = [("password", PASSWORD), ("again", "wrong horse battery")];
    assert_eq!(world.send(Call::post(&path, &unlike)).await.status, 422);
    let set = Call::post(&path, &[("password", PASSWORD), ("again", PASSWORD)]);
    let other_origin = set.clone().header("sec-fetch-site", "cross-site");
    assert_eq!(world.send(other_origin).await.status, 403);
    let reply = world.send(set.clone()).await;
    assert_eq!((reply.status, reply.location()), (303, "/"), "{reply:?}");
    // A wrong password was tried before, and slows down here as well.
    pass_a_minute().await;
    let again = world.send(set).await;
    assert_eq!((again.status, again.location()), (303, "/"), "a double click");
    for cookies in [reply.cookies(), again.cookies()] {
        let account = world.send(Call::get("/account").cookies(&cookies)).await;
        assert!(account.status == 200 && account.text.contains("bob@example.com"), "{account:?}");
    }
    let other = "wrong horse battery";
    let other = Call::post(&path, &[("password", other), ("again", other)]);
    let other = world.send(other).await;
    assert_eq!((other.status, other.cookies().as_str()), (404, ""), "once");
    assert_eq!(world.send(Call::get(&path)).await.status, 404);
    pass_a_minute().await;
    assert_eq!(world.sign_in("bob@example.com", PASSWORD).await.status, 303);
    let unknown = format!("/link/{}", LinkToken::new([9; 32]).expose());
    for unknown in [unknown.as_str(), "/link/short"] {
        let told = [world.send(Call::get(unknown)).await, world.send(Call::get(&path)).await];
        assert_eq!(told[0].status, 404);
        assert_eq!(told[0].text, told[1].text, "used and unknown are told alike");
    }
}

#[tokio::test]
async fn whoever_has_a_password_accepts_signed_in() {
    let world = World::owned().await;
    let token = world.invite(EMAIL, Role::Auditor, Reach::All).await;
    let path = format!("/link/{}", token.expose());
    let reply = world.send(Call::get(&path)).await;
    assert_eq!(reply.status, 403);
    assert!(reply.text.contains("/sign-in?next=%2Flink%2F"), "{}", reply.text);
    let cookies = world.cookies().await;
    let reply = world.send(Call::post(&path, &[]).cookies(&cookies)).await;
    assert_eq!((reply.status, reply.location()), (303, "/account"), "{reply:?}");
    let chosen = Call::post("/account/role", &[("role", "auditor")]).cookies(&cookies);
    let chosen = world.send(chosen).await;
    assert_eq!(chosen.status, 303, "{chosen:?}");
    let cookies = chosen.cookies();
    let reply = world.send(Call::get("/account").cookies(&cookies)).await;
    assert!(reply.text.contains("auditor") && !reply.text.contains("href=\"/people\""));
    let foreign = Call::post("/account/role", &[("role", "operator")]).cookies(&cookies);
    assert_eq!(world.send(foreign).await.status, 404);
}

#[tokio::test]
async fn a_password_set_in_a_session_of_another_person_replaces_that_session() {
    let world = World::owned().await;
    let before = world.cookies().await;
    let token = world.invite("bob@example.com", Role::Support, Reach::All).await;
    let set = Call::post(
        &format!("/link/{}", token.expose()),
        &[("password", PASSWORD), ("again", PASSWORD)],
    );
    let reply = world.send(set.cookies(&before)).await;
    assert_eq!((reply.status, reply.location()), (303, "/"), "{reply:?}");
    assert_eq!(world.send(Call::get("/account").cookies(&before)).await.status, 303, "it ended");
    let account = world.send(Call::get("/account").cookies(&reply.cookies())).await.text;
    assert!(account.contains("bob@example.com") && !account.contains(EMAIL), "{account}");
}

#[tokio::test]
async fn the_first_owner_says_who_they_are() {
    let world = World::new().await;
    let token = world.accounts.first_owner_link().await.unwrap().unwrap();
    let path = format!("/link/{}", token.expose());
    assert!(world.send(Call::get(&path)).await.text.contains("name=\"email\""));
    let fields = [("email", EMAIL), ("password", PASSWORD), ("again", PASSWORD)];
    let reply = world.send(Call::post(&path, &fields)).await;
    assert_eq!((reply.status, reply.location()), (303, "/"), "{reply:?}");
    // Its session is as young as one of a sign-in: pages of people need no other one.
    let reply = world.send(Call::get("/people").cookies(&reply.cookies())).await;
    assert!(reply.text.contains(EMAIL), "{reply:?}");
    assert!(world.accounts.first_owner_link().await.unwrap().is_none());
}

#[tokio::test]
async fn an_invitation_is_told_once_and_its_link_works() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    let form = world.send(Call::get("/people/new").cookies(&cookies)).await;
    let path = form.location().to_owned();
    let fields = [("email", "eve@example.com"), ("role", "finance")];
    let call = Call::post(&path, &fields).cookies(&cookies);
    let reply = world.send(call.clone()).await;
    let link = reply.text.split("http://localhost:8081").nth(1).unwrap();
    let link = link.split('<').next().unwrap();
    let page = world.send(Call::get(link)).await;
    assert!(page.text.contains("eve@example.com") && page.text.contains("finance"));
    let again = world.send(call).await;
    assert!(!again.text.contains("/link/"), "{again:?}");
    let people = world.send(Call::get("/people").cookies(&cookies)).await;
    let id = people.text.split("href=\"/people/").nth(2).unwrap().split('"').next().unwrap();
    for part in ["", "/link", "/end", "/end-role"] {
        let path = format!("/people/{id}{part}");
        let reply = world.send(Call::get(&path).cookies(&cookies)).await;
        assert!(matches!(reply.status, 200 | 303), "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn a_holder_does_not_sign_in_where_operators_do() {
    let world = World::with(Some("https://admin.example.com"), Audience::Operators).await;
    let request = Request::new(CommandKey::from(Uuid::new_v4()), &[b"test"], None);
    let new = NewWallet {
        name: "acme".parse().unwrap(),
        currency: Currency::USD,
        settings: WalletPatch::default(),
    };
    let local = Principal::local();
    let made = world.accounts.create_wallet(&local, &request, &new).await.unwrap();
    let reach = Reach::Wallet(made.thing.wallet.id);
    let token = world.invite(EMAIL, Role::HolderAdmin, reach).await;
    world.accounts.accept_link(&token, Some(&PASSWORD.parse().unwrap()), None).await.unwrap();
    let call = sign_in(EMAIL, PASSWORD).header("host", "admin.example.com");
    let reply = world.send(call.clone()).await;
    assert_eq!((reply.status, reply.cookies().as_str()), (403, ""), "{reply:?}");
    assert!(reply.text.contains("holder"));
    let token = world.invite(EMAIL, Role::Support, Reach::All).await;
    let first = PageRequest::first(Order::Newest, 1);
    let person = world.accounts.people(&local, PersonFilter::default(), first).await.unwrap().rows
        [0]
    .person
    .id;
    world.accounts.accept_link(&token, None, Some(person)).await.unwrap();
    let reply = world.send(call).await;
    assert_eq!(reply.status, 303, "by the other role they do");
    let line = reply.header("set-cookie").unwrap();
    assert!(line.starts_with("__Host-holdfast=") && line.contains("; Secure"), "{line}");
}

/// Sends forged sessions until the look-ups of their address are bounded.
async fn flood(console: &Console) {
    let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    for _bound in 0..10_000 {
        let mut bits = [0; 32];
        bits[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        let forged = format!("holdfast={}", SessionToken::new(bits).expose());
        let reply = World::answer_of(console, from, Call::get("/").cookies(&forged)).await;
        if reply.status == 429 {
            return;
        }
        assert_eq!(reply.status, 303, "{reply:?}");
    }
    panic!("forged sessions are always looked up");
}

#[tokio::test]
async fn forged_sessions_keep_nobody_from_signing_in() {
    let world = World::owned().await;
    flood(&world.console).await;
    let cookies = world.cookies().await;
    flood(&world.console).await;
    let page = world.send(Call::get("/account").cookies(&cookies)).await;
    assert_eq!(page.status, 200, "a session that was just begun: {page:?}");
    let fields =
        [("old", PASSWORD), ("password", "a new horse battery"), ("again", "a new horse battery")];
    let changed = world.send(Call::post("/account/password", &fields).cookies(&cookies)).await;
    assert_eq!(changed.status, 303, "{changed:?}");
    flood(&world.console).await;
    let page = world.send(Call::get("/account").cookies(&changed.cookies())).await;
    assert_eq!(page.status, 200, "the session of a new password: {page:?}");
}

#[tokio::test]
async fn open_pages_are_shown_to_sessions_that_are_not_looked_up() {
    let world = World::owned().await;
    let cookies = world.cookies().await;
    let link = world.invite("bob@example.com", Role::Support, Reach::All).await;
    let link = format!("/link/{}", link.expose());
    // A process that knows none of the sessions.
    let fresh = Console::new(world.accounts.clone(), shared_options());
    let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    for open in ["/sign-in", link.as_str()] {
        flood(&fresh).await;
        let page = World::answer_of(&fresh, from, Call::get(open).cookies(&cookies)).await;
        assert_eq!(page.status, 200, "{open}: {page:?}");
    }
    flood(&fresh).await;
    let again = sign_in(EMAIL, PASSWORD).cookies(&cookies);
    let reply = World::answer_of(&fresh, from, again).await;
    assert_eq!(reply.status, 303, "{reply:?}");
    flood(&fresh).await;
    let page = Call::get("/account").cookies(&reply.cookies());
    assert_eq!(World::answer_of(&fresh, from, page).await.status, 200);
}
