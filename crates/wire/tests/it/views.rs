//! The shapes of our own API and of the command line's `--json`, key by key.

use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::limits::Reservation;
use holdfast_domain::model::{Contract, FingerprintTerms, ModelAlias, PublicModelId};
use holdfast_domain::operation::{
    Attempt, Binding, Node, Operation, Owner, ProviderRefusal, Version,
};
use holdfast_domain::price::{PriceLine, PriceVersion, PriceVersionId, UnitPrices};
use holdfast_domain::secret::{Fingerprint, ServerSecret, ServerSecretId};
use holdfast_domain::usage::{MeterKind, MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{
    ApiKeyId, ClaimId, Incarnation, Micros, NodeName, OperationId, Phase, RequestKey, Situation,
    Timestamp, WalletId,
};
use holdfast_wire::api::{
    self, MismatchView, ModelListView, ModelView, OperationResult, OperationView, QuoteView,
    VerificationView, rfc3339,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::openapi::answer_fault;
use crate::schema;

const NIL: &str = "00000000-0000-0000-0000-00000000000";

pub(crate) fn shown(view: &impl Serialize) -> Value {
    serde_json::from_slice(&api::render(view)).unwrap()
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

#[test]
fn moments_sort_as_text() {
    for (micros, text) in [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_790_000_000_000_001, "2026-09-21T14:13:20.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (i64::MAX, "9999-12-31T23:59:59.999999Z"),
        (i64::MIN, "0000-01-01T00:00:00.000000Z"),
    ] {
        assert_eq!(rfc3339(Timestamp::from_micros(micros)), text);
    }
}

fn price() -> PriceVersion {
    PriceVersion {
        id: PriceVersionId::from_stored("a/b/USD/2026-01-01T00:00:00Z"),
        currency: "USD".parse().unwrap(),
        tariff: UnitPrices::from_fn(|kind| match kind {
            MeterKind::Request => 9,
            MeterKind::Image => 0,
            MeterKind::Output | MeterKind::Reasoning | MeterKind::AudioOutput => 600_000,
            MeterKind::Input
            | MeterKind::CachedInput
            | MeterKind::CacheWrite
            | MeterKind::AudioInput => 150_000,
        })
        .unwrap()
        .into(),
    }
}

#[test]
fn a_quote_tells_its_lines_without_those_of_nothing() {
    let line = |kind, units, rate| PriceLine { kind, units, rate };
    let lines = [
        line(MeterKind::Input, 91, 150_000),
        line(MeterKind::Output, 100, 600_000),
        line(MeterKind::Image, 0, 0),
        line(MeterKind::Request, 1, 9),
    ];
    let model = PublicModelId::try_from("a/b").unwrap();
    let told = shown(&QuoteView::of((&model, 5), &price(), Micros::new(83), &lines));
    let line = |kind: &str, units: u64, price: u64, per: u64| json!({"kind": kind, "units": units, "price_micros": price, "per_units": per});
    let expected = json!({
        "object": "quote",
        "model": "a/b",
        "contract": 5,
        "currency": "USD",
        "price_version": "a/b/USD/2026-01-01T00:00:00Z",
        "hold_micros": 83,
        "lines": [
            line("input", 91, 150_000, 1_000_000),
            line("output", 100, 600_000, 1_000_000),
            line("request", 1, 9, 1),
        ],
    });
    assert_eq!(told, expected);
    assert_eq!(answer_fault("Quote", &told), None);
}

pub(crate) fn operation(phase: Phase) -> Operation {
    let server_secret = ServerSecretId::from_bytes([1; 8]);
    let digest = ServerSecret::new(&[7; 32]).unwrap().body_digest_key(ApiKeyId::from_u128(2));
    Operation {
        id: OperationId::from_u128(1),
        api_key: ApiKeyId::from_u128(2),
        request_key: "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11".parse::<RequestKey>().unwrap(),
        wallet: WalletId::from_u128(3),
        binding: Binding {
            terms: FingerprintTerms { server_secret, fingerprint_version: 1, contract: 5 },
            fingerprint: Fingerprint::from_bytes([2; 32]),
            body_digest: digest.digest(b"x"),
        },
        model: PublicModelId::try_from("a/b").unwrap(),
        alias: None,
        price: price(),
        generation: 2,
        hold: Micros::new(500),
        reserved: Reservation::default(),
        owner: Owner {
            claim: ClaimId::from_u128(4),
            node: Node {
                name: NodeName::try_from("gw-1").unwrap(),
                incarnation: Incarnation::from_u128(6),
            },
        },
        created_at: at(0),
        admitted_at: at(1),
        deadline: at(2),
        cancel_asked: false,
        attempts: [Attempt {
            route: "p/m".into(),
            class: "finished".into(),
            latency: Duration::from_micros(1_999),
            may_be_billed: true,
            reason: None,
        }]
        .into(),
        phase,
        version: Version::FIRST,
    }
}

pub(crate) fn usage() -> UsageRecord {
    let meters = Meters::text(10, 5).unwrap();
    let metered = MeterReading {
        meters,
        source: MetersSource::Estimated,
        reasons: UsageReasons::NONE,
        provider_cost: Some(Micros::new(3)),
    };
    UsageRecord {
        metered,
        charge: Micros::new(40),
        shortfall: Micros::new(1),
        price_version: price().id,
    }
}

#[test]
fn a_completed_operation_shows_its_bill() {
    let operation = operation(Phase::Completed { usage: usage(), finished_at: at(3) });
    let view = OperationView::of(&operation, Situation::Completed);
    let expected = json!({
        "id": format!("{NIL}1"),
        "idempotency_key": "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        "api_key_id": format!("{NIL}2"),
        "situation": "completed",
        "status": "completed",
        "model": "a/b",
        "contract": 5,
        "generation": 2,
        "hold_id": operation.id.hold(2).to_string(),
        "usage_id": operation.id.usage().to_string(),
        "hold_micros": 500,
        "charge_micros": 40,
        "shortfall_micros": 1,
        "meters": {
            "input": 10, "cached_input": 0, "cache_write": 0, "audio_input": 0, "output": 5,
            "reasoning": 0, "audio_output": 0, "request": 1, "image": 0,
        },
        "meters_source": "estimated",
        "price_version": "a/b/USD/2026-01-01T00:00:00Z",
        "created_at": "1970-01-01T00:00:00.000000Z",
        "finished_at": "1970-01-01T00:00:03.000000Z",
    });
    assert_eq!(shown(&view), expected);
    let with = |more: Value| {
        let mut all = expected.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let kept = OperationResult::from_stored(br#"{"id":"chatcmpl_1","x":1.50}"#).unwrap();
    let bytes = api::render(&view.clone().with_result(kept));
    assert!(String::from_utf8(bytes).unwrap().contains(r#""result":{"id":"chatcmpl_1","x":1.50}"#));
    for (result, state) in [
        (OperationResult::Expired, "expired"),
        (OperationResult::Sealed, "sealed"),
        (OperationResult::None, "none"),
    ] {
        let shown = shown(&view.clone().with_result(result));
        assert_eq!(shown, with(json!({"result": null, "result_state": state})));
    }
    assert!(OperationResult::from_stored(b"{").is_err());
}

#[test]
fn what_is_not_known_is_null_and_what_is_free_costs_nothing() {
    let refusal = ProviderRefusal::Request;
    for (phase, charge, finished) in [
        (Phase::Leased, json!(null), false),
        (Phase::Recorded(usage()), json!(40), false),
        (Phase::Open, json!(0), false),
        (Phase::Refused { refusal, finished_at: at(3) }, json!(0), true),
        (Phase::Abandoned { finished_at: at(3) }, json!(0), true),
    ] {
        let label = phase.label();
        let has_usage = phase.usage().is_some();
        let view = shown(&OperationView::of(&operation(phase), Situation::Stale));
        assert_eq!(view["status"], label);
        assert_eq!(view["situation"], "stale");
        assert_eq!(view["charge_micros"], charge, "{label}");
        for name in ["usage_id", "meters", "meters_source"] {
            assert_eq!(view[name].is_null(), !has_usage, "{label} {name}");
        }
        assert_eq!(!view["finished_at"].is_null(), finished, "{label}");
    }
}

#[test]
fn models_are_openai_s_list_with_promises_and_prices() {
    let contract = Contract::new(PublicModelId::try_from("a/b").unwrap(), 5, 8_192, 1_000);
    let list = shown(&ModelListView::of(vec![ModelView::of(&contract, &[], at(7), &[price()])]));
    assert_eq!(schema::fault("ListModelsResponse", &list), None);
    assert_eq!(answer_fault("ModelList", &list), None);
    assert_eq!(
        list,
        json!({"object": "list", "data": [{
            "id": "a/b", "object": "model", "created": 7, "owned_by": "a", "context_length": 8192,
            "max_output_tokens": 1000, "contract": 5,
            "prices": [{
                "currency": "USD",
                "effective_from": "2026-01-01T00:00:00Z",
                "price_version": "a/b/USD/2026-01-01T00:00:00Z",
                "micros_per_million": {
                    "input": 150_000, "cached_input": 150_000, "cache_write": 150_000,
                    "audio_input": 150_000, "output": 600_000, "reasoning": 600_000,
                    "audio_output": 600_000,
                },
                "micros_each": {"request": 9, "image": 0},
                "tiers": [],
            }],
        }]})
    );
}

#[test]
fn aliases_of_a_model_are_listed_with_it() {
    let contract = Contract::new(PublicModelId::try_from("a/b").unwrap(), 5, 8_192, 1_000);
    let aliases = ["smart", "fast.1"].map(|alias| ModelAlias::try_from(alias).unwrap());
    let view = ModelView::of(&contract, &aliases, at(7), &[price()]);
    let list = shown(&ModelListView::of(vec![view]));
    assert_eq!(answer_fault("ModelList", &list), None);
    assert_eq!(list["data"][0]["id"], "a/b");
    assert_eq!(list["data"][0]["aliases"], json!(["smart", "fast.1"]));
}

#[test]
fn a_check_is_ok_when_nothing_mismatches() {
    let none = shown(&VerificationView::of(1, 2, 3, Vec::new()));
    assert_eq!(
        none,
        json!({"ok": true, "wallets": 1, "operations": 2, "transfers": 3, "mismatches": []})
    );
    let mismatch =
        MismatchView { wallet_id: Some("w".to_owned()), operation_id: None, text: "t".to_owned() };
    let some = shown(&VerificationView::of(1, 2, 3, vec![mismatch]));
    assert_eq!(some["ok"], false);
    assert_eq!(some["mismatches"], json!([{"wallet_id": "w", "text": "t"}]));
}
