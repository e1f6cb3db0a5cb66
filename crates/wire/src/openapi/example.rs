//! Bodies that show how it looks. A test holds them against their shapes.

use holdfast_domain::usage::MeterKind;
use serde_json::{Map, Value, json};

pub(super) fn request() -> Value {
    json!({
        "model": "holdfast/sim-1",
        "messages": [{"role": "user", "content": "Say hello"}],
        "max_completion_tokens": 100,
    })
}

pub(super) fn quote() -> Value {
    let line = |kind: MeterKind, units: u64, price: u64, per: u64| json!({"kind": kind.label(), "units": units, "price_micros": price, "per_units": per});
    json!({
        "object": "quote",
        "model": "holdfast/sim-1",
        "contract": 1,
        "currency": "USD",
        "price_version": "holdfast/sim-1/USD/2026-01-01T00:00:00Z",
        "hold_micros": 589,
        "lines": [
            line(MeterKind::Input, 91, 2_000_000, 1_000_000),
            line(MeterKind::Output, 100, 4_000_000, 1_000_000),
            line(MeterKind::Request, 1, 7, 1),
        ],
    })
}

pub(super) fn completion() -> Value {
    json!({
        "id": "chatcmpl_7a1c0c2f5d5e8f0f9b3c6d1e2f304152",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "holdfast/sim-1",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "You said: Say hello",
                "refusal": null,
                "annotations": [],
            },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 5,
            "total_tokens": 8,
            "prompt_tokens_details":
                {"cached_tokens": 0, "audio_tokens": 0, "cache_write_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
            "customer_charge_micros": 26,
        },
    })
}

pub(super) fn operation() -> Value {
    let count = |kind: MeterKind| match kind {
        MeterKind::Input => 3,
        MeterKind::Output => 5,
        MeterKind::Request => 1,
        MeterKind::CachedInput
        | MeterKind::CacheWrite
        | MeterKind::AudioInput
        | MeterKind::Reasoning
        | MeterKind::AudioOutput
        | MeterKind::Image => 0,
    };
    let meters: Map<String, Value> = MeterKind::ALL
        .into_iter()
        .map(|kind| (kind.label().to_owned(), json!(count(kind))))
        .collect();
    json!({
        "id": super::EXAMPLE_OPERATION.to_string(),
        "idempotency_key": super::EXAMPLE_KEY,
        "api_key_id": "0199d3a8-0f6e-7c3a-8f1b-2d4c6e8f0a1b",
        "situation": "completed",
        "status": "completed",
        "model": "holdfast/sim-1",
        "contract": 1,
        "generation": 1,
        "hold_id": "5f0c1d2e-3b4a-8968-8796-a5b4c3d2e1f0",
        "usage_id": "6a1d2e3f-4c5b-8a79-9697-b6c5d4e3f201",
        "hold_micros": 540,
        "charge_micros": 26,
        "shortfall_micros": 0,
        "meters": meters,
        "meters_source": "reported",
        "price_version": "holdfast/sim-1/USD/2026-01-01T00:00:00Z",
        "created_at": "2026-11-20T12:00:00.000000Z",
        "finished_at": "2026-11-20T12:00:01.250000Z",
        "result": completion(),
        "result_state": "kept",
    })
}

pub(super) fn wallet() -> Value {
    json!({
        "id": "0199d3a8-1b2c-7d3e-8f40-516273849506",
        "currency": "USD",
        "available_micros": 9_999_974,
        "held_micros": 0,
        "api_key": {
            "id": "0199d3a8-0f6e-7c3a-8f1b-2d4c6e8f0a1b",
            "models": null,
            "expires_at": null,
            "limits": {
                "requests_per_minute": {
                    "limit": 60,
                    "used": 1,
                    "remaining": 59,
                    "window_start": "2026-11-20T12:00:00.000000Z",
                    "resets_at": "2026-11-20T12:01:00.000000Z",
                },
                "tokens_per_minute": null,
                "concurrency": null,
                "spend": {
                    "window": "month",
                    "limit_micros": 25_000_000,
                    "used_micros": 26,
                    "remaining_micros": 24_999_974,
                    "window_start": "2026-11-01T00:00:00.000000Z",
                    "resets_at": "2026-12-01T00:00:00.000000Z",
                },
            },
        },
    })
}
