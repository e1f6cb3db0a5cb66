//! JSON Schemas of usage: Holdfast's report, and OpenAI's pages of buckets. As the schemas of other
//! answers, none of them is closed.

use holdfast_domain::usage::MeterKind;
use serde_json::{Value, json};

use super::answer::by_kind;
use super::shape::{
    array, boolean, described, moment, natural, nullable, open, string, uuid, word,
};

/// Schemas of answers about usage, by the names under which `$ref` finds them.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("UsageReport", usage_report()),
        ("CompletionsUsagePage", page(completions_usage())),
        ("CostsPage", page(costs())),
    ]
}

fn usage_report() -> Value {
    let names = [
        "start",
        "model",
        "currency",
        "completed",
        "refused",
        "abandoned",
        "estimated",
        "meters",
        "charge_micros",
        "refunded_micros",
    ];
    let row = open(
        json!({
            "start": described(string(), "The hour, day or month: `2026-11-01T09:00:00Z`, `2026-11-01`, `2026-11`."),
            "model": described(nullable(string()), "Where models are told apart."),
            "currency": string(),
            "completed": described(natural(), "Requests that were answered and settled."),
            "refused": described(natural(), "Requests that the provider refused; not charged."),
            "abandoned": described(natural(), "Requests without a known outcome; not charged."),
            "estimated": described(natural(), "Of the completed, those metered by the gateway."),
            "meters": by_kind(MeterKind::ALL.into_iter(), "Units of the completed."),
            "charge_micros": described(natural(), "Charges of the completed."),
            "refunded_micros": described(natural(), "Refunds of those charges, whenever they were made."),
        }),
        &names,
    );
    open(
        json!({
            "object": word("usage"),
            "api_key_id": uuid(),
            "wallet_id": described(uuid(), "Where the key was issued to read its whole wallet: the sums are of all its keys."),
            "from": moment(),
            "to": moment(),
            "data": array(row, 0, None),
        }),
        &["object", "api_key_id", "from", "to", "data"],
    )
}

/// A page of OpenAI's: buckets, each with results of this shape.
fn page(result: Value) -> Value {
    let bucket = open(
        json!({
            "object": word("bucket"),
            "start_time": described(natural(), "Unix seconds."),
            "end_time": described(natural(), "Unix seconds, not included."),
            "results": array(result, 0, None),
        }),
        &["object", "start_time", "end_time", "results"],
    );
    open(
        json!({
            "object": word("page"),
            "data": array(bucket, 0, None),
            "has_more": boolean(),
            "next_page": nullable(string()),
        }),
        &["object", "data", "has_more", "next_page"],
    )
}

fn completions_usage() -> Value {
    let nothing = || json!({"type": "null"});
    open(
        json!({
            "object": word("organization.usage.completions.result"),
            "input_tokens": described(natural(), "Cached and cache-write tokens among them."),
            "output_tokens": described(natural(), "Reasoning tokens among them."),
            "num_model_requests": described(natural(), "Requests that were answered."),
            "input_cached_tokens": natural(),
            "input_cache_write_tokens": natural(),
            "input_uncached_tokens": natural(),
            "input_audio_tokens": natural(),
            "output_audio_tokens": natural(),
            "project_id": nothing(),
            "user_id": nothing(),
            "api_key_id": nullable(string()),
            "model": nullable(string()),
            "batch": nothing(),
            "service_tier": nothing(),
        }),
        &["object", "input_tokens", "output_tokens", "num_model_requests"],
    )
}

fn costs() -> Value {
    let amount = open(
        json!({
            "value": described(json!({"type": "number", "minimum": 0}), "Units of the currency, exact to the micro."),
            "currency": described(string(), "In small letters."),
        }),
        &["value", "currency"],
    );
    open(
        json!({
            "object": word("organization.costs.result"),
            "amount": amount,
            "line_item": described(nullable(string()), "The model, where lines are told apart."),
            "project_id": json!({"type": "null"}),
            "api_key_id": nullable(string()),
        }),
        &["object", "amount", "line_item", "project_id"],
    )
}
