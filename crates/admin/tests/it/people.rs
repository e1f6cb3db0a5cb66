//! People through the API: invited, shown, ended, and what each of them may not be.

use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::secret::LinkToken;
use serde_json::{Value, json};

use crate::world::{Call, World, key, reach};

fn invitation(email: &str, role: &str) -> Value {
    json!({ "email": email, "name": "Ada", "role": role })
}

/// Invites somebody, who accepts.
async fn member(world: &World, email: &str, role: &str, wallet: Option<&str>) -> String {
    let mut body = invitation(email, role);
    body["wallet_id"] = json!(wallet);
    let told = world.post("/people", body).await;
    assert_eq!(told.status, 201, "{told:?}");
    accept(world, &told.json()).await;
    told.json()["id"].as_str().unwrap().to_owned()
}

async fn accept(world: &World, told: &Value) {
    let token = told["url"].as_str().unwrap().strip_prefix("/link/").unwrap();
    let token = LinkToken::parse(token).unwrap();
    let password = "correct horse battery".parse().unwrap();
    world.accounts.accept_link(&token, Some(&password), None).await.unwrap();
}

#[tokio::test]
async fn a_link_is_told_once_and_a_person_is_shown_with_what_they_may() {
    let world = World::new().await;
    let ask = Call::post("/people", &invitation("Ada@Example.com", "support")).key(&key());
    let ask = ask.bearer(&world.owner);
    let told = world.send(ask.clone()).await;
    assert_eq!(told.status, 201, "{told:?}");
    let (told, id) = (told.json(), told.json()["id"].as_str().unwrap().to_owned());
    let again = world.send(ask).await;
    assert_eq!((again.json()["id"].as_str(), &again.json()["url"]), (Some(&*id), &Value::Null));
    assert!(again.json()["notice"].as_str().unwrap().contains("/link"));
    let shown = world.get(&format!("/people/{id}")).await.json();
    assert_eq!((&shown["email"], &shown["name"]), (&json!("ada@example.com"), &json!("Ada")));
    assert_eq!((&shown["state"], &shown["grants"]), (&json!("pending"), &json!([])));
    assert_eq!(shown["link"]["role"], "support");
    accept(&world, &told).await;
    let listed = world.get("/people").await.json();
    assert_eq!(listed["data"][0]["state"], "active");
    assert_eq!(listed["data"][0]["grants"][0]["role"], "support");
    assert_eq!(listed["data"][0]["link"], Value::Null);
    let trail = world.get(&format!("/audit?thing=person:{id}")).await;
    assert_eq!(trail.json()["data"].as_array().unwrap().len(), 2);
    assert!(!format!("{}", trail.json()).contains("example.com"));
    let by = world.get(&format!("/audit?actor=person:{id}")).await.json();
    assert_eq!(by["data"][0]["use_case"], "person.accept");
}

#[tokio::test]
async fn what_cannot_stand_in_an_invitation_is_refused() {
    let world = World::new().await;
    for (email, role, param) in [
        ("ada", "support", "email"),
        ("ada@example.com", "holder_viewer", "wallet_id"),
        ("ada@example.com", "root", "role"),
    ] {
        let refused = world.post("/people", invitation(email, role)).await;
        refused.is_error(400, "invalid_value");
        assert_eq!(refused.json()["error"]["param"], param);
    }
    let (_, operator) = world.admin_key(Role::Operator, Reach::All).await;
    let ask = Call::post("/people", &invitation("a@b", "support")).bearer(&operator);
    world.send(ask).await.is_error(403, "forbidden");
}

#[tokio::test]
async fn a_person_who_has_ended_is_erased_and_stays_listed() {
    let world = World::new().await;
    let id = member(&world, "ada@example.com", "support", None).await;
    let ended = world.post(&format!("/people/{id}/end"), json!({ "erase": true })).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    let shown = world.get(&format!("/people/{id}")).await.json();
    assert_eq!((&shown["email"], &shown["state"]), (&Value::Null, &json!("ended")));
    let path = format!("/people/{id}/link");
    world.post(&path, json!({})).await.is_error(409, "person_ended");
    let missing = format!("/people/{}/end", key());
    world.post(&missing, json!({})).await.is_error(404, "not_found");
}

#[tokio::test]
async fn a_role_ends_alone_and_what_nobody_is_offered_has_no_link() {
    let world = World::new().await;
    let id = member(&world, "ada@example.com", "support", None).await;
    let ended = world.post(&format!("/people/{id}/grants/end"), json!({ "role": "support" })).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    let path = format!("/people/{id}/link");
    world.post(&path, json!({})).await.is_error(409, "nothing_offered");
}

#[tokio::test]
async fn an_owners_link_is_not_made_over_the_network_and_the_last_owner_stays() {
    let world = World::new().await;
    let id = member(&world, "ada@example.com", "owner", None).await;
    let path = format!("/people/{id}/link");
    world.post(&path, json!({})).await.is_error(403, "beyond_role");
    let keys = world.get("/admin_keys").await.json();
    let key = keys["data"][0]["id"].as_str().unwrap();
    let (own, bearer) = world.admin_key(Role::Owner, Reach::All).await;
    let revoke = Call::post(&format!("/admin_keys/{key}/revoke"), &json!({})).bearer(&bearer);
    assert_eq!(world.send(revoke).await.status, 200);
    let end = Call::post(&format!("/people/{id}/end"), &json!({})).bearer(&bearer);
    assert_eq!(world.send(end).await.status, 200, "a key is left");
    let revoke = Call::post(&format!("/admin_keys/{own}/revoke"), &json!({})).bearer(&bearer);
    world.send(revoke).await.is_error(409, "last_owner");
}

#[tokio::test]
async fn a_holder_sees_and_ends_what_is_of_their_wallet_and_waits_for_no_links_of_others() {
    let world = World::new().await;
    let [own, other] = [world.wallet("acme", 0).await, world.wallet("other", 0).await];
    let (_, holder) = world.admin_key(Role::HolderAdmin, reach(&own)).await;
    let stranger = member(&world, "stranger@example.com", "holder_viewer", Some(&other)).await;
    let ask = Call::get(&format!("/people/{stranger}")).bearer(&holder);
    world.send(ask).await.is_error(404, "not_found");
    let mut body = invitation("bob@example.com", "holder_viewer");
    body["wallet_id"] = json!(own);
    let told = world.send(Call::post("/people", &body).bearer(&holder)).await;
    assert_eq!(told.status, 201, "{told:?}");
    let bob = told.json()["id"].as_str().unwrap().to_owned();
    let listed = world.send(Call::get("/people").bearer(&holder)).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let end = Call::post(&format!("/people/{bob}/end"), &json!({})).bearer(&holder);
    world.send(end).await.is_error(403, "forbidden");
    let waiting = world.post("/people", invitation("carol@example.com", "owner")).await;
    assert_eq!(waiting.status, 201);
    body["email"] = json!("carol@example.com");
    let told = world.send(Call::post("/people", &body).bearer(&holder)).await;
    assert_eq!(told.status, 201, "the link of the operators is none of theirs: {told:?}");
    let carol = format!("/people/{}", told.json()["id"].as_str().unwrap());
    let seen = world.send(Call::get(&carol).bearer(&holder)).await.json();
    assert_eq!(
        (&seen["state"], &seen["link"]["role"]),
        (&json!("pending"), &json!("holder_viewer"))
    );
    assert!(seen["created_by"].as_str().unwrap().starts_with("admin_key:"), "{seen}");
    assert_ne!(seen["created_by"], world.get(&carol).await.json()["created_by"]);
    // Within the wallet a link that sets a password stays.
    let dan = member(&world, "dan@example.com", "holder_viewer", Some(&own)).await;
    let renew = Call::post(&format!("/people/{dan}/link"), &json!({})).bearer(&holder);
    assert_eq!(world.send(renew).await.status, 200);
    let mut body = invitation("dan@example.com", "holder_developer");
    body["wallet_id"] = json!(own);
    let refused = world.send(Call::post("/people", &body).bearer(&holder)).await;
    refused.is_error(409, "person_has_link");
}
