//! The gate: host, key, places, paths. Every refusal is the envelope.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::{Reach, Role};
use holdfast_wire::api::rfc3339;
use http::Request;
use hyper::body::{Body, Frame};
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::world::{Call, World, key};

#[tokio::test]
async fn every_bad_key_gets_the_same_answer() {
    let world = World::new().await;
    let (id, ended) = world.admin_key(Role::Auditor, Reach::All).await;
    assert_eq!(world.send(Call::get("/wallets").bearer(&ended)).await.status, 200);
    let revoked = world.post(&format!("/admin_keys/{id}/revoke"), json!({})).await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let last = if world.owner.ends_with('x') { 'y' } else { 'x' };
    let wrong = format!("{}{last}", &world.owner[..world.owner.len() - 1]);
    let asks = [
        Call::get("/wallets"),
        Call::get("/wallets").bearer(&ended),
        Call::get("/wallets").bearer(&wrong),
        Call::get("/wallets").bearer("hfk_1_2"),
        Call::get("/wallets").bearer(""),
        Call::get("/wallets").header("authorization", &format!("Basic {}", world.owner)),
        Call::get("/nothing/here"),
        Call::get("/wallets").method("DELETE"),
    ];
    let mut bodies = Vec::new();
    for ask in asks {
        let told = world.send(ask).await;
        told.is_error(401, "invalid_admin_key");
        assert_eq!(told.header("www-authenticate"), Some("Bearer"));
        bodies.push(told.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
}

#[tokio::test]
async fn a_key_past_its_end_is_refused_by_the_databases_clock() {
    let world = World::new().await;
    let now = world.accounts.clock().await.unwrap();
    let ends_at = Timestamp::from_micros(now.as_micros() + 300_000);
    let body = json!({ "name": "brief", "role": "auditor", "ends_at": rfc3339(ends_at) });
    let issued = world.post("/admin_keys", body).await;
    assert_eq!(issued.status, 201, "{issued:?}");
    let brief = issued.json()["key"].as_str().unwrap().to_owned();
    while world.accounts.clock().await.unwrap() < ends_at {
        tokio::task::yield_now().await;
    }
    world.send(Call::get("/wallets").bearer(&brief)).await.is_error(401, "invalid_admin_key");
}

#[tokio::test]
async fn only_the_listeners_own_host_is_answered() {
    let world = World::new().await;
    for host in ["evil.example.com:8081", "localhost", "localhost:80"] {
        let told =
            world.send(Call::get("/wallets").bearer(&world.owner).header("host", host)).await;
        told.is_error(421, "wrong_host");
    }
    let bare = Call::get("/wallets").bearer(&world.owner).without("host");
    world.send(bare).await.is_error(421, "wrong_host");
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_envelope() {
    let world = World::new().await;
    world.get("/nothing/here").await.is_error(404, "not_found");
    world.get("/wallets/acme").await.is_error(404, "not_found");
    world.send(Call::get("").path("/admin").bearer(&world.owner)).await.is_error(404, "not_found");
    let refused = world.send(Call::get("/wallets").method("DELETE").bearer(&world.owner)).await;
    refused.is_error(405, "method_not_allowed");
    let allowed = refused.header("allow").unwrap();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

#[tokio::test]
async fn the_description_needs_no_key_and_has_no_secret() {
    let world = World::new().await;
    let told = world.send(Call::get("").path("/admin/openapi.json")).await;
    assert_eq!(told.status, 200);
    assert_eq!(told.header("content-type"), Some("application/json"));
    assert_eq!(told.json()["openapi"], "3.1.0");
    let elsewhere = Call::get("").path("/admin/openapi.json").header("host", "a");
    world.send(elsewhere).await.is_error(421, "wrong_host");
}

#[tokio::test]
async fn bodies_are_json_of_a_bounded_size_and_known_members() {
    let world = World::new().await;
    let ask = || Call::post("/wallets", &json!({})).bearer(&world.owner);
    for (body, code) in [
        ("{", "invalid_json"),
        ("[1]", "invalid_json"),
        ("[\"a\",\"USD\",null,null,null,null,null]", "invalid_json"),
        ("null", "invalid_value"),
        ("{} {}", "invalid_value"),
        ("{\"name\":\"a\",\"currency\":\"USD\"} x", "invalid_json"),
    ] {
        world.send(ask().body(body)).await.is_error(400, code);
    }
    for (body, param) in [
        (json!({ "name": "a" }), "currency"),
        (json!({ "name": "a", "currency": "USD", "nmae": 1 }), "nmae"),
        (json!({ "name": 7, "currency": "USD" }), "name"),
        (json!({ "name": "", "currency": "USD" }), "name"),
        (json!({ "name": "a", "currency": "dollars" }), "currency"),
        (json!({ "name": "a", "currency": "USD", "low_balance_micros": -1 }), "low_balance_micros"),
        (
            json!({ "name": "a", "currency": "USD", "low_balance_micros": 1.5 }),
            "low_balance_micros",
        ),
        (json!({ "name": "a", "currency": "USD", "key_spend_micros": 1 }), "key_spend_window"),
    ] {
        world.send(ask().body(body.to_string())).await.is_about(400, "invalid_value", param);
    }
    let text = ask().body("{}").header("content-type", "text/plain");
    world.send(text).await.is_error(415, "unsupported_media_type");
    let zipped = ask().body("{}").header("content-encoding", "gzip");
    world.send(zipped).await.is_error(415, "unsupported_media_type");
    let large = world.send(ask().body(vec![b' '; (1 << 20) + 1])).await;
    large.is_error(413, "request_too_large");
    assert_eq!(large.header("connection"), Some("close"));
    assert_eq!(world.get("/wallets").await.json()["data"], json!([]), "nothing was made");
}

/// A body that never comes.
struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_key_has_sixteen_requests_on_the_way_and_other_keys_have_their_own() {
    let world = World::new().await;
    let (_, auditor) = world.admin_key(Role::Auditor, Reach::All).await;
    let mut waiting = JoinSet::new();
    let silent = || {
        let request = Request::post("/admin/v1/wallets")
            .header("host", "localhost:8081")
            .header("authorization", format!("Bearer {}", world.owner))
            .header("idempotency-key", key())
            .body(Silence)
            .unwrap();
        let (api, client) = (world.api.clone(), IpAddr::V4(Ipv4Addr::LOCALHOST));
        async move { api.answer(request, client).await }
    };
    for _ in 0..16 {
        waiting.spawn(silent());
    }
    // All of them wait for their bodies once the key of each was looked up.
    let refused = loop {
        let told = world.get("/wallets").await;
        if told.status != 200 {
            break told;
        }
        // The look took a place that one of them was refused for: another comes instead of that.
        while waiting.try_join_next().is_some() {
            waiting.spawn(silent());
        }
    };
    refused.is_error(429, "too_many_requests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(world.send(Call::get("/wallets").bearer(&auditor)).await.status, 200);
    waiting.shutdown().await;
    assert_eq!(world.get("/wallets").await.status, 200, "hung up, and their places are free");
}

#[tokio::test]
async fn the_role_is_judged_before_anything_of_the_request_is_read() {
    let world = World::new().await;
    let (_, auditor) = world.admin_key(Role::Auditor, Reach::All).await;
    let ask = Call::post("/wallets?nonsense", &json!({})).bearer(&auditor).body("{");
    for ask in [ask.clone(), ask.without("idempotency-key")] {
        let told = world.send(ask).await;
        told.is_error(403, "forbidden");
        assert_eq!(told.json()["error"]["scope"], "wallet.create");
    }
}

/// Sends forged admin keys until the look-ups of their address are bounded.
async fn flood(world: &World) {
    for _bound in 0..10_000 {
        let mut forged = world.owner.clone().into_bytes();
        let digits = Uuid::new_v4().simple().to_string();
        for (place, digit) in (8..).zip(digits.bytes().take(12)) {
            forged[place] = digit;
        }
        let forged = String::from_utf8(forged).unwrap();
        let reply = world.send(Call::get("/wallets").bearer(&forged)).await;
        if reply.status == 429 {
            return;
        }
        reply.is_error(401, "invalid_admin_key");
    }
    panic!("forged admin keys are always looked up");
}

#[tokio::test]
async fn a_key_that_was_just_issued_is_let_in_beside_forged_ones() {
    let world = World::new().await;
    assert_eq!(world.get("/wallets").await.status, 200);
    flood(&world).await;
    let issued = world.post("/admin_keys", json!({ "name": "new", "role": "auditor" })).await;
    assert_eq!(issued.status, 201, "{issued:?}");
    let (id, bearer) = (issued.json()["id"].clone(), issued.json()["key"].clone());
    flood(&world).await;
    let reply = world.send(Call::get("/wallets").bearer(bearer.as_str().unwrap())).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let rotate = format!("/admin_keys/{}/rotate", id.as_str().unwrap());
    let rotated = world.post(&rotate, json!({ "grace_seconds": 0 })).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    let bearer = rotated.json()["key"].clone();
    flood(&world).await;
    let reply = world.send(Call::get("/wallets").bearer(bearer.as_str().unwrap())).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}
