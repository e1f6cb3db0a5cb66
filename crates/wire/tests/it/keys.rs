//! API keys as their bearer sees them.

use holdfast_domain::credential::{ApiKey, BalanceVisibility, Grant, UsageScope};
use holdfast_domain::limits::{Counter, CounterReadings, Limits, SpendLimit, SpendWindow};
use holdfast_domain::ports::{CounterSnapshot, NewApiKey};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, Micros, Timestamp, WalletId};
use holdfast_wire::api::{self, AccountView};
use serde::Serialize;
use serde_json::{Value, json};

use crate::openapi::answer_fault;

const NIL: &str = "00000000-0000-0000-0000-00000000000";

fn shown(view: &impl Serialize) -> Value {
    serde_json::from_slice(&api::render(view)).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn key(grant: Grant) -> ApiKey {
    let (id, wallet) = (ApiKeyId::from_u128(2), WalletId::from_u128(3));
    let new = NewApiKey { id, wallet, name: "ci".to_owned(), external_id: None, grant };
    ApiKey { revoked_at: Some(at(2)), ..new.issued_at(at(1)) }
}

fn limited(window: SpendWindow) -> Limits {
    Limits {
        requests_per_minute: Some(60),
        tokens_per_minute: None,
        concurrency: Some(4),
        spend: Some(SpendLimit { micros: Micros::new(25), window }),
    }
}

fn granted() -> Grant {
    let models = ["a/c", "a/b", "d/*"].map(|id| id.try_into().unwrap());
    Grant {
        limits: limited(SpendWindow::Month),
        models: Some(models.into()),
        balance: BalanceVisibility::Hidden,
        usage: UsageScope::Key,
        ends_at: Some(at(3)),
    }
}

#[test]
fn a_caller_sees_its_limits_and_the_balance_only_where_it_may() {
    let wallet = Wallet {
        id: WalletId::from_u128(3),
        name: "acme".to_owned(),
        currency: "EUR".parse().unwrap(),
        available: Micros::new(10),
        held: Micros::new(5),
        suspended_at: None,
    };
    let used = [61, 7, 3, 1, 2, 30];
    let tally: CounterReadings = Counter::ALL.into_iter().zip(used).collect();
    // 1970-02-28T12:34:56Z
    let standing = CounterSnapshot { counters: tally, now: at(5_056_496) };
    let hidden = shown(&AccountView::of(&wallet, &key(granted()), &standing));
    assert_eq!(answer_fault("Wallet", &hidden), None);
    let expected = json!({
        "id": format!("{NIL}3"), "currency": "EUR",
        "available_micros": null, "held_micros": null,
        "api_key": {
            "id": format!("{NIL}2"), "models": ["a/b", "a/c", "d/*"],
            "expires_at": "1970-01-01T00:00:03.000000Z",
            "limits": {
                "requests_per_minute": {
                    "limit": 60, "used": 61, "remaining": 0,
                    "window_start": "1970-02-28T12:34:00.000000Z",
                    "resets_at": "1970-02-28T12:35:00.000000Z",
                },
                "tokens_per_minute": null,
                "concurrency": {
                    "limit": 4, "used": 3, "remaining": 1, "window_start": null, "resets_at": null,
                },
                "spend": {
                    "window": "month", "limit_micros": 25, "used_micros": 30,
                    "remaining_micros": 0,
                    "window_start": "1970-02-01T00:00:00.000000Z",
                    "resets_at": "1970-03-01T00:00:00.000000Z",
                },
            },
        },
    });
    assert_eq!(hidden, expected);
    for (window, used, start, end) in [
        (SpendWindow::Total, 1, Value::Null, Value::Null),
        (
            SpendWindow::Day,
            2,
            json!("1970-02-28T00:00:00.000000Z"),
            json!("1970-03-01T00:00:00.000000Z"),
        ),
    ] {
        let grant = Grant { limits: limited(window), ..Grant::default() };
        let view = shown(&AccountView::of(&wallet, &key(grant), &standing));
        assert_eq!(answer_fault("Wallet", &view), None);
        assert_eq!((&view["available_micros"], &view["held_micros"]), (&json!(10), &json!(5)));
        assert_eq!(view.get("name"), None, "the wallet's name is the operator's");
        let spend = &view["api_key"]["limits"]["spend"];
        assert_eq!(
            (&spend["window"], &spend["used_micros"]),
            (&json!(window.label()), &json!(used))
        );
        assert_eq!((&spend["window_start"], &spend["resets_at"]), (&start, &end));
        assert_eq!(spend["remaining_micros"], 25 - used);
    }
}
