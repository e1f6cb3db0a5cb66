//! Texts that people type: what no field takes, and the one form in which all of them are stored and compared.

use holdfast_accounts::Request as AccountRequest;
use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, ActorId, DepositReference, NewPosting, PostingDetails,
    RequestBinding, WalletAction, WalletBounds, WalletRecord,
};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{AdminKeyId, CommandKey, Currency, Micros, PostingId, Timestamp, WalletId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Call, Reply, World, deposit, key};

/// One of each kind that is not seen, or changes how its neighbours are.
const HIDDEN: [char; 22] = [
    '\u{1b}',
    '\u{85}',
    '\u{ad}',
    '\u{34f}',
    '\u{61c}',
    '\u{115f}',
    '\u{17b4}',
    '\u{180e}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{202e}',
    '\u{2028}',
    '\u{2060}',
    '\u{2069}',
    '\u{2800}',
    '\u{3164}',
    '\u{e000}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{e0041}',
];

/// Every field that people type text into: method, path, member, and a body that stands without it.
async fn fields(world: &World) -> Vec<(&'static str, String, &'static str, Value)> {
    let wallet = world.wallet("fields", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let mut fields = Vec::new();
    let mut add = |method, path: &str, members: &[&'static str], body: Value| {
        fields
            .extend(members.iter().map(|member| (method, path.to_owned(), *member, body.clone())));
    };
    let new = json!({ "name": "n", "currency": "USD" });
    add("POST", "/wallets", &["name", "external_id", "reason"], new);
    let path = format!("/wallets/{wallet}");
    add("PATCH", &path, &["name", "external_id", "reason"], json!({}));
    add("POST", &format!("{path}/suspend"), &["reason"], json!({}));
    let new = json!({ "wallet_id": wallet, "reason": "r" });
    add("POST", "/api_keys", &["name", "external_id", "reason"], new);
    let path = format!("/api_keys/{api_key}");
    add("PATCH", &path, &["name", "external_id", "reason"], json!({}));
    add("POST", &format!("{path}/revoke"), &["reason"], json!({}));
    let members = ["source", "external_reference", "note", "reason"];
    add("POST", "/deposits", &members, deposit(&wallet, 5));
    let new = json!({ "wallet_id": wallet, "amount_micros": 5, "reason": "r" });
    add("POST", "/adjustments", &["reason", "note"], new);
    let new = json!({ "name": "n", "role": "auditor" });
    add("POST", "/admin_keys", &["name", "reason"], new);
    let new = json!({ "email": "ada@example.com", "role": "auditor" });
    add("POST", "/people", &["email", "name", "reason"], new);
    let new = json!({ "url": "https://hooks.example.com/in" });
    add("POST", "/webhooks", &["description", "reason"], new);
    fields
}

#[tokio::test]
async fn no_field_takes_a_character_that_is_not_seen() {
    let world = World::new().await;
    let mut tried = 0;
    for (method, path, member, body) in fields(&world).await {
        for hidden in HIDDEN {
            for (before, after) in [("", "ada@example.com"), ("ada", "@example.com")] {
                let mut body = body.clone();
                body[member] = json!(format!("{before}{hidden}{after}"));
                let call = Call::post(&path, &body).method(method).bearer(&world.owner);
                let refused = world.send(call).await;
                refused.is_about(400, "invalid_value", member);
                let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
                // A blank around a text is what is wrong with it before its characters are.
                let place = before.chars().count() + 1;
                let told = format!("U+{:04X} at character {place}", u32::from(hidden));
                let is_blank = hidden.is_whitespace();
                assert!(is_blank || message.contains(&told), "{path} {member}: {message}");
                tried += 1;
            }
        }
    }
    assert!(tried > 900, "{tried}");
}

#[tokio::test]
async fn a_new_payment_is_booked_under_a_reference_of_visible_ascii_only() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 0).await;
    let body = |reference: &str| {
        let mut body = deposit(&wallet, 5_000);
        body["external_reference"] = json!(reference);
        body
    };
    for spelling in [
        "Vế Café 7",
        "pi 7",
        "p\u{456}_7",
        "Ve\u{302}\u{301} Cafe\u{301} 7",
        "Vê\u{301} Café 7",
        "Vế\u{a0}Café 7",
        "Vế\u{3000}Cafe\u{301}\u{202f}7",
    ] {
        let refused = world.post("/deposits", body(spelling)).await;
        refused.is_about(400, "invalid_value", "external_reference");
    }
    let wallet = world.get(&format!("/wallets/{wallet}")).await.json();
    assert_eq!(wallet["available_micros"], 0);
}

#[tokio::test]
async fn a_name_is_taken_and_found_in_every_spelling() {
    let world = World::new().await;
    let new = |name: &str| json!({ "name": name, "currency": "USD", "external_id": name });
    let made = world.post("/wallets", new("Cafe\u{301} 1")).await.json();
    assert_eq!((&made["name"], &made["external_id"]), (&json!("Café 1"), &json!("Café 1")));
    for spelling in ["Café 1", "Cafe\u{301} 1", "Café\u{a0}1"] {
        world.post("/wallets", new(spelling)).await.is_error(409, "name_taken");
        let other = json!({ "name": "b", "currency": "USD", "external_id": spelling });
        world.post("/wallets", other).await.is_error(409, "external_id_taken");
        for member in ["name", "external_id"] {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair(member, spelling)
                .finish();
            let found = world.get(&format!("/wallets?{query}")).await.json();
            assert_eq!(found["data"][0]["id"], made["id"], "{member} {spelling:?}");
        }
    }
    let family = world.wallet("👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}", 0).await;
    assert_eq!(
        world.get(&format!("/wallets/{family}")).await.json()["name"],
        "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}"
    );
}

#[tokio::test]
async fn one_address_is_one_person_however_its_domain_is_spelled() {
    let world = World::new().await;
    let invite = async |email: &str| -> Reply {
        world.post("/people", json!({ "email": email, "role": "support" })).await
    };
    for spellings in [
        ["ada@example.com", "ada@example.com.", "ADA@ｅxample.com"],
        ["ada@bücher.example", "ada@xn--bcher-kva.example", "ada@BU\u{308}CHER.example。"],
    ] {
        let [first, others @ ..] = spellings;
        let person = invite(first).await.json();
        for other in others {
            assert_eq!(invite(other).await.json()["id"], person["id"], "{other}");
        }
    }
    assert_eq!(world.get("/people").await.json()["data"].as_array().unwrap().len(), 2);
    let shown = world.get("/people").await.json();
    assert_eq!(shown["data"][0]["email"], "ada@xn--bcher-kva.example");
}

/// What a version before the rule did: the command as it was then, past the rule of its texts.
async fn act(world: &World, key: &str, digest: [u8; 32], action: AccountAction) {
    let command = AccountCommand {
        is_after_restore: false,
        bounds: WalletBounds::DEFAULT,
        actor: ActorId::AdminKey(owner(world).await),
        address: None,
        request: RequestBinding {
            key: key.parse::<Uuid>().map(CommandKey::from).unwrap(),
            digest,
            canonical: None,
        },
        reason: None,
        action,
    };
    let secret = ServerSecret::new(&[7; 32]).unwrap();
    world.store.administer(&command, &secret).await.unwrap();
}

async fn owner(world: &World) -> AdminKeyId {
    let listed = world.get("/admin_keys").await.json();
    let owner = listed["data"].as_array().unwrap().iter().find(|it| it["role"] == "owner");
    owner.unwrap()["id"].as_str().unwrap().parse().unwrap()
}

/// Digest of a change, as its request has it.
fn digest(key: &str, path: &str, body: &str) -> [u8; 32] {
    let key = CommandKey::from(key.parse::<Uuid>().unwrap());
    let parts = [b"POST".as_slice(), path.as_bytes(), b"", body.as_bytes()];
    AccountRequest::new(key, &parts, None).digest
}

fn wallet(name: &str) -> WalletRecord {
    let wallet = Wallet {
        id: WalletId::from(Uuid::new_v4()),
        name: name.to_owned(),
        currency: Currency::USD,
        available: Micros::ZERO,
        held: Micros::ZERO,
        suspended_at: None,
    };
    WalletRecord {
        wallet,
        external_id: None,
        low_balance: None,
        key_spend: None,
        edited: 0,
        created_at: Timestamp::from_micros(0),
        closed_at: None,
    }
}

#[tokio::test]
async fn a_request_that_was_done_before_the_rule_is_repeated() {
    let world = World::new().await;
    for name in ["in\u{200b}visible", "Cafe\u{301}"] {
        let key = key();
        let body = format!(
            "{{\"name\":\"{name}\",\"currency\":\"USD\",\"external_id\":null,\
             \"low_balance_micros\":null,\"key_spend_micros\":null,\"key_spend_window\":null,\
             \"reason\":null}}"
        );
        let record = wallet(name);
        let id = record.wallet.id.to_string();
        let digest = digest(&key, "/admin/v1/wallets", &body);
        act(&world, &key, digest, AccountAction::Wallet(WalletAction::Create(record))).await;
        let again = Call::post("/wallets", &serde_json::from_str(&body).unwrap()).key(&key);
        let again = world.send(again.bearer(&world.owner)).await;
        assert_eq!(again.json()["id"], *id, "{again:?}");
        assert_eq!(again.json()["name"], *name);
        // It is found as it is written, and another one of its name is refused.
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("name", name).finish();
        assert_eq!(world.get(&format!("/wallets?{query}")).await.json()["data"][0]["id"], *id);
    }
    let taken = json!({ "name": "Café", "currency": "USD" });
    world.post("/wallets", taken).await.is_error(409, "name_taken");
    // Under another key, or with another text, nothing was done.
    let other = json!({ "name": "in\u{200b}visible", "currency": "USD" });
    world.post("/wallets", other).await.is_about(400, "invalid_value", "name");
}

#[tokio::test]
async fn a_payment_that_was_booked_before_the_rule_is_not_booked_again() {
    let world = World::new().await;
    let id = world.wallet("acme", 0).await;
    for reference in ["Cafe\u{301}", "Vê\u{301} 7", "a\u{a0}b"] {
        let (key, amount) = (key(), Micros::new(5));
        let posting = PostingId::from(key.parse::<Uuid>().unwrap());
        let wallet = id.parse().unwrap();
        let posting = Posting::new(posting, wallet, PostingKind::Deposit, amount).unwrap();
        let booked = DepositReference::booked("test".to_owned(), reference.to_owned());
        let details = PostingDetails { reference: Some(booked), ..PostingDetails::default() };
        let new = NewPosting { posting, details, allowance: None, currency: None };
        act(&world, &key, [0; 32], AccountAction::Post(new)).await;
        let mut again = deposit(&id, 5);
        again["external_reference"] = json!(reference);
        let again = world.post("/deposits", again).await;
        assert_eq!(again.json()["id"], *key, "{reference:?}: {again:?}");
    }
    let wallet = world.get(&format!("/wallets/{id}")).await.json();
    assert_eq!(wallet["available_micros"], 15);
}
