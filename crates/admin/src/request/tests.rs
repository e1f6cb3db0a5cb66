//! Digests of fixed requests, which never change: a row of any version is compared with them.

use serde_json::json;

use super::*;
use crate::api_keys::{ApiKeyBulk, ApiKeyDraft, ApiKeyEdit};
use crate::people::{InvitationDraft, PersonEndBody};
use crate::postings::{AdjustmentDraft, DepositDraft, RefundDraft};
use crate::wallets::{WalletDraft, WalletEdit};
use crate::webhooks::{WebhookDraft, WebhookEdit};

const WALLET: &str = "01a21fa8-5b8c-72cf-8590-65c622ff7bca";

/// Both digests of a request, in hexadecimal digits.
fn digests<T: ChangeBody>(method: &str, path: &str, body: &Value) -> [String; 2] {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = method.parse().unwrap();
    parts.uri = format!("/admin/v1{path}").parse().unwrap();
    let query: ChangeQuery = read_query(parts.uri.query().unwrap_or_default()).unwrap();
    let body: T = from_json(body.to_string().as_bytes()).unwrap();
    let key = CommandKey::from(Uuid::from_u128(7));
    let request = bound(key, &parts, query.dry_run.unwrap_or(false), &body).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|it| format!("{it:02x}")).collect::<String>();
    [hex(&request.digest), hex(&request.canonical.unwrap().to_bytes())]
}

fn deposit() -> Value {
    json!({
        "wallet_id": WALLET, "amount_micros": 12_000_000, "source": "stripe",
        "external_reference": "pi_1",
    })
}

fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[name] = value;
    body
}

#[test]
fn digests_of_requests_never_change() {
    let wallet = json!({ "name": "acme", "currency": "USD" });
    let edit = json!({ "external_id": null, "name": "acme", "reason": "moved" });
    let key =
        json!({ "wallet_id": WALLET, "name": "app", "spend_micros": 5, "spend_window": "day" });
    let keys = json!({ "wallet_id": WALLET, "keys": [{ "name": "a" }, { "concurrency": 3 }] });
    let person = json!({ "email": "ada@example.com", "name": "Ada", "role": "finance" });
    let webhook = json!({ "url": "https://example.com/in", "kinds": ["wallet.low"] });
    let adjustment = json!({ "wallet_id": WALLET, "amount_micros": -5, "reason": "“May”" });
    let refund = json!({ "operation_id": WALLET, "amount_micros": 5, "note": "ticket 1" });
    let [suspended, keyed] = [format!("/wallets/{WALLET}/suspend"), format!("/api_keys/{WALLET}")];
    let (patched, ended) = (format!("/wallets/{WALLET}"), format!("/people/{WALLET}/end"));
    let hooked = format!("/webhooks/{WALLET}");
    let made = [
        digests::<DepositDraft>("POST", "/deposits", &deposit()),
        digests::<DepositDraft>("POST", "/deposits?dry_run=true", &deposit()),
        digests::<AdjustmentDraft>("POST", "/adjustments", &adjustment),
        digests::<RefundDraft>("POST", "/refunds", &refund),
        digests::<WalletDraft>("POST", "/wallets", &wallet),
        digests::<WalletEdit>("PATCH", &patched, &edit),
        digests::<ReasonBody>("POST", &suspended, &json!({})),
        digests::<ApiKeyDraft>("POST", "/api_keys", &key),
        digests::<ApiKeyBulk>("POST", "/api_keys/bulk", &keys),
        digests::<ApiKeyEdit>("PATCH", &keyed, &json!({ "models": null, "ends_at": null })),
        digests::<InvitationDraft>("POST", "/people", &person),
        digests::<PersonEndBody>("POST", &ended, &json!({})),
        digests::<WebhookDraft>("POST", "/webhooks", &webhook),
        digests::<WebhookEdit>("PATCH", &hooked, &json!({ "kinds": null })),
    ];
    let golden: Vec<_> = include_str!("digests.txt").lines().map(str::to_owned).collect();
    let made: Vec<_> = made.iter().map(|digests| digests.join(" ")).collect();
    assert_eq!(made, golden, "a request key that is bound would belong to another request");
}

#[test]
fn a_canonical_digest_is_of_what_is_present_and_of_nothing_else() {
    let canonical = |path: &str, body: &Value| {
        let [_digest, canonical] = digests::<DepositDraft>("POST", path, body);
        canonical
    };
    let plain = canonical("/deposits", &deposit());
    for name in ["reason", "note", "currency"] {
        let of_null = canonical("/deposits", &with(&deposit(), name, Value::Null));
        assert_eq!(of_null, plain, "{name}");
        assert_ne!(canonical("/deposits", &with(&deposit(), name, json!("USD"))), plain, "{name}");
    }
    assert_eq!(canonical("/deposits?dry_run=false", &deposit()), plain);
    assert_ne!(canonical("/deposits?dry_run=true", &deposit()), plain);
    let [digest, _canonical] = digests::<DepositDraft>("POST", "/deposits", &deposit());
    let of_null = with(&deposit(), "currency", Value::Null);
    let [of_null, _canonical] = digests::<DepositDraft>("POST", "/deposits", &of_null);
    assert_eq!(of_null, digest, "a member that a version has added changes no frozen digest");
}

#[test]
fn null_in_an_edit_is_another_request_than_absence() {
    let canonical = |body: &Value| {
        let [_digest, canonical] = digests::<WalletEdit>("PATCH", "/wallets/x", body);
        canonical
    };
    let nothing = canonical(&json!({}));
    let all = ["external_id", "low_balance_micros", "key_spend_micros", "key_spend_window"];
    assert!(all.iter().all(|name| canonical(&json!({ *name: null })) != nothing));
    assert_eq!(canonical(&json!({ "reason": null })), nothing);
    let canonical = |body: &Value| {
        let [_digest, canonical] = digests::<ApiKeyEdit>("PATCH", "/api_keys/x", body);
        canonical
    };
    let nothing = canonical(&json!({}));
    let limits = ["requests_per_minute", "tokens_per_minute", "concurrency", "spend_micros"];
    let others = ["external_id", "spend_window", "models", "ends_at"];
    let all = limits.iter().chain(&others);
    for name in all {
        assert_ne!(canonical(&json!({ *name: null })), nothing, "{name}");
    }
    let canonical = |body: &Value| {
        let [_digest, canonical] = digests::<WebhookEdit>("PATCH", "/webhooks/x", body);
        canonical
    };
    let nothing = canonical(&json!({}));
    assert!(["kinds", "description"].iter().all(|it| canonical(&json!({ *it: null })) != nothing));
}

#[test]
fn no_digest_has_anything_of_a_person() {
    let digests = |name: &str| {
        let person =
            json!({ "email": format!("{name}@example.com"), "name": name, "role": "owner" });
        digests::<InvitationDraft>("POST", "/people", &person)
    };
    assert_eq!(digests("ada"), digests("bob"));
}
