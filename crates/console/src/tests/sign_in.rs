//! Sign-in beside strangers, at two listeners of one process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use holdfast_admin::AdminOptions;
use holdfast_domain::admin::{Reach, Role};
use tokio::task::JoinSet;

use super::site::{Call, EMAIL, PASSWORD, World, options, sign_in};
use crate::{Audience, Console};

fn host(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, number))
}

/// The holders' console beside the operators' one.
fn holders_console(world: &World) -> Console {
    let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
    let address = AdminOptions::new(listens, None).unwrap();
    Console::new(world.accounts.clone(), options(address, Audience::Holders))
}

#[tokio::test]
async fn failures_at_the_holders_listener_close_no_sign_in_at_the_operators_one() {
    let world = World::owned().await;
    let holders = holders_console(&world);
    for number in 1..=31 {
        let call = sign_in(EMAIL, "wrong horse battery");
        let reply = World::answer_of(&holders, host(number), call).await;
        assert!([401, 429].contains(&reply.status), "{reply:?}");
    }
    let there = World::answer_of(&holders, host(99), sign_in(EMAIL, PASSWORD)).await;
    assert_eq!((there.status, there.header("retry-after")), (429, Some("60")), "{there:?}");
    assert_eq!(world.send_from(host(1), sign_in(EMAIL, PASSWORD)).await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_four_connections_of_a_stranger_keep_no_owner_from_signing_in() {
    let world = World::owned().await;
    let mut crowd = JoinSet::new();
    for connection in 0..24 {
        let holders = holders_console(&world);
        crowd.spawn(async move {
            for attempt in 0_u64.. {
                let email = format!("{connection}-{attempt}@example.com");
                let call = sign_in(&email, "wrong horse battery");
                World::answer_of(&holders, host(66), call).await;
            }
        });
    }
    for _sign_in in 0..20 {
        let reply = world.sign_in(EMAIL, PASSWORD).await;
        assert_eq!(reply.status, 303, "{reply:?}");
    }
    crowd.shutdown().await;
}

#[tokio::test]
async fn the_browser_that_sets_a_password_waits_for_no_strangers() {
    let world = World::owned().await;
    let token = world.invite("bob@example.com", Role::Support, Reach::All).await;
    let path = format!("/link/{}", token.expose());
    let set = Call::post(&path, &[("password", PASSWORD), ("again", PASSWORD)]);
    let reply = world.send(set).await;
    let cookies = reply.cookies();
    let device = cookies.split("; ").find(|pair| pair.starts_with("holdfast-device=")).unwrap();
    let email = "bob@example.com";
    assert_eq!(world.sign_in(email, "wrong horse battery").await.status, 401);
    assert_eq!(world.sign_in(email, PASSWORD).await.status, 429);
    assert_eq!(world.send(sign_in(email, PASSWORD).cookies(device)).await.status, 303);
}

#[tokio::test]
async fn signing_out_everywhere_ends_sessions_and_marks() {
    let world = World::owned().await;
    let (own, other) = (world.cookies().await, world.cookies().await);
    let page = world.send(Call::get("/account").cookies(&own)).await;
    assert!(page.text.contains("Known browsers") && page.text.contains("192.0.2.7"), "{page:?}");
    assert_eq!(super::columns::actions_stand_on_every_screen(&page.text), 1, "{page:?}");
    let form = world.send(Call::get("/account/sign-out").cookies(&own)).await;
    assert_eq!(form.status, 200, "{form:?}");
    let done = world.send(Call::post("/account/sign-out", &[]).cookies(&own)).await;
    assert_eq!((done.status, done.location()), (303, "/sign-in"), "{done:?}");
    for cookies in [&own, &other] {
        assert_eq!(world.send(Call::get("/account").cookies(cookies)).await.status, 303);
    }
    let device = own.split("; ").find(|pair| pair.starts_with("holdfast-device=")).unwrap();
    assert_eq!(world.sign_in(EMAIL, "wrong horse battery").await.status, 401);
    let reply = world.send(sign_in(EMAIL, PASSWORD).cookies(device)).await;
    assert_eq!(reply.status, 429, "the browser is a new one: {reply:?}");
}

#[tokio::test]
async fn another_role_is_used_under_another_token() {
    let world = World::owned().await;
    let token = world.invite(EMAIL, Role::Auditor, Reach::All).await;
    let cookies = world.cookies().await;
    let accept = Call::post(&format!("/link/{}", token.expose()), &[]).cookies(&cookies);
    assert_eq!(world.send(accept).await.status, 303);
    let choose = Call::post("/account/role", &[("role", "auditor")]).cookies(&cookies);
    let chosen = world.send(choose).await;
    assert_eq!((chosen.status, chosen.location()), (303, "/account"), "{chosen:?}");
    let page = Call::get("/account");
    assert_eq!(world.send(page.clone().cookies(&cookies)).await.status, 303, "it has ended");
    let shown = world.send(page.cookies(&chosen.cookies())).await;
    assert!(shown.status == 200 && shown.text.contains("auditor"), "{shown:?}");
}

#[tokio::test]
async fn a_sign_in_that_is_asked_for_again_says_why_and_has_the_address() {
    let world = World::owned().await;
    let again =
        world.send(Call::get("/sign-in?next=%2Fpeople%2Fnew").cookies(&world.cookies().await));
    let again = again.await.text;
    assert!(again.contains("Confirm your password"), "{again}");
    assert!(again.contains(&format!("value=\"{EMAIL}\"")), "{again}");
    let first = world.send(Call::get("/sign-in")).await.text;
    assert!(!first.contains("Confirm your password") && !first.contains(EMAIL), "{first}");
}
