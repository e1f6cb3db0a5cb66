//! JSON Schemas of answers: completions, errors, and the views of operations, wallets and models.
//!
//! None of them is closed, because later versions may add members, and a generated client must not
//! refuse those. A test closes them and holds every view against them: a member that is rendered
//! and not described fails it.
//!
//! Lists of words (codes, labels, windows) come from the types that render them.

use holdfast_domain::limits::SpendWindow;
use holdfast_domain::request::{ServiceTier, ToolKind};
use holdfast_domain::usage::{MeterKind, MetersSource};
use serde_json::{Map, Value, json};

use super::request::model;
use super::shape::{
    any_of, array, described, labels, moment, named, natural, nullable, open, string, uuid, with,
    word, words,
};
use crate::error::Code;

/// Schemas of all answers, by the names under which `$ref` finds them.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("ChatCompletion", completion()),
        ("Choice", choice()),
        ("Usage", usage()),
        ("Meters", meters()),
        ("Operation", operation()),
        ("Wallet", wallet()),
        ("Model", model_view()),
        ("ModelList", model_list()),
        ("Quote", quote()),
        ("Health", open(json!({"status": word("ok")}), &["status"])),
        ("Readiness", readiness()),
        ("Error", error()),
    ]
}

fn completion() -> Value {
    open(
        json!({
            "id": json!({"type": "string", "pattern": "^chatcmpl_[0-9a-f]{32}$"}),
            "object": word("chat.completion"),
            "created": described(natural(), "Unix seconds."),
            "model": model(),
            "service_tier": described(
                labels(ServiceTier::ALL, ServiceTier::label), "Where the request asked for one."),
            "choices": array(named("Choice"), 1, None),
            "usage": named("Usage"),
            "moderation": described(moderation(), "Where the request asked for it."),
        }),
        &["id", "object", "created", "model", "choices", "usage"],
    )
}

fn moderation() -> Value {
    let side = || {
        open(
            json!({
                "type": words(&["moderation_results", "error"]),
                "model": json!({}),
                "results": json!({}),
                "code": string(),
                "message": string(),
            }),
            &["type"],
        )
    };
    open(json!({"input": side(), "output": side()}), &["input", "output"])
}

fn choice() -> Value {
    let ends = ["stop", "length", "content_filter", "tool_calls", "function_call"];
    let pieces = || nullable(array(json!({}), 0, None));
    let logprobs = open(json!({"content": pieces(), "refusal": pieces()}), &["content", "refusal"]);
    open(
        json!({
            "index": natural(),
            "message": message(),
            "logprobs": nullable(logprobs),
            "finish_reason": words(&ends),
        }),
        &["index", "message", "logprobs", "finish_reason"],
    )
}

fn message() -> Value {
    let called = |input: &str| open(json!({"name": string(), input: string()}), &["name", input]);
    let call = |kind: ToolKind, input: &str| {
        let kind = kind.label();
        open(
            json!({"id": string(), "type": word(kind), kind: called(input)}),
            &["id", "type", kind],
        )
    };
    let calls = any_of(&[call(ToolKind::Function, "arguments"), call(ToolKind::Custom, "input")]);
    let audio = open(
        json!({"id": string(), "expires_at": natural(), "data": string(), "transcript": string()}),
        &["id", "expires_at", "data", "transcript"],
    );
    open(
        json!({
            "role": word("assistant"),
            "content": nullable(string()),
            "refusal": nullable(string()),
            "annotations": array(json!({}), 0, None),
            "reasoning_content": string(),
            "audio": audio,
            "tool_calls": described(
                array(calls, 1, None), "Their ids are the gateway's; send them back as they came."),
            "function_call": called("arguments"),
        }),
        &["role", "content", "refusal", "annotations"],
    )
}

fn usage() -> Value {
    let counts = |names: &[&str]| {
        let all: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), natural())).collect();
        open(Value::Object(all), names)
    };
    let completion = [
        "reasoning_tokens",
        "audio_tokens",
        "accepted_prediction_tokens",
        "rejected_prediction_tokens",
    ];
    let charge = described(
        natural(),
        "What the caller pays for this operation, in millionths of the wallet's currency.",
    );
    open(
        json!({
            "prompt_tokens": natural(),
            "completion_tokens": natural(),
            "total_tokens": natural(),
            "prompt_tokens_details":
                counts(&["cached_tokens", "audio_tokens", "cache_write_tokens"]),
            "completion_tokens_details": counts(&completion),
            "customer_charge_micros": charge,
        }),
        &[
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_tokens_details",
            "completion_tokens_details",
            "customer_charge_micros",
        ],
    )
}

pub(super) fn by_kind(kinds: impl Iterator<Item = MeterKind> + Clone, text: &str) -> Value {
    let properties: Map<String, Value> =
        kinds.clone().map(|kind| (kind.label().to_owned(), natural())).collect();
    let required: Vec<&str> = kinds.map(MeterKind::label).collect();
    described(open(Value::Object(properties), &required), text)
}

fn meters() -> Value {
    by_kind(MeterKind::ALL.into_iter(), "Counts by disjoint kinds.")
}

fn operation() -> Value {
    let phases = ["leased", "recorded", "open", "completed", "refused", "abandoned"];
    let sources = [MetersSource::Reported, MetersSource::Estimated].map(MetersSource::label);
    let result = nullable(any_of(&[named("ChatCompletion"), named("Error")]));
    let schema = open(
        json!({
            "id": uuid(),
            "idempotency_key": uuid(),
            "api_key_id": uuid(),
            "situation": words(&["not_started", "in_progress", "stale", "completed"]),
            "status": words(&phases),
            "model": model(),
            "contract": natural(),
            "generation": described(natural(), "Counts its holds, from 1."),
            "hold_id": uuid(),
            "usage_id": nullable(uuid()),
            "hold_micros": natural(),
            "charge_micros": described(nullable(natural()), "Null as long as it runs."),
            "shortfall_micros": nullable(natural()),
            "meters": nullable(named("Meters")),
            "meters_source": nullable(words(&sources)),
            "price_version": string(),
            "created_at": moment(),
            "finished_at": nullable(moment()),
            "result": described(result, "The answer while it is kept."),
            "result_state": words(&["kept", "expired", "sealed", "none"]),
        }),
        &[],
    );
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let all: Vec<String> = members.map(|(name, _)| name.clone()).collect();
    with(schema, "required", json!(all))
}

fn wallet() -> Value {
    let amount = |text: &str| described(nullable(natural()), text);
    let key = open(
        json!({
            "id": uuid(),
            "models": described(
                nullable(array(model(), 0, None)), "Those that it may use; null for all."),
            "expires_at": nullable(moment()),
            "limits": limits(),
        }),
        &["id", "models", "expires_at", "limits"],
    );
    open(
        json!({
            "id": uuid(),
            "currency": json!({"type": "string", "pattern": "^[A-Z]{3}$"}),
            "available_micros": amount(
                "Millionths of the currency; null where the API key may not see the balance."),
            "held_micros": amount("What running operations may cost at most; null likewise."),
            "api_key": described(key, "The API key that asks."),
        }),
        &["id", "currency", "available_micros", "held_micros", "api_key"],
    )
}

/// Schema of an API key's limits and how much of each is used up; null where there is no limit.
fn limits() -> Value {
    let windows = SpendWindow::ALL.map(SpendWindow::label);
    let mut spend = json!({"window": words(&windows)});
    let mut count = json!({});
    for (counts, unit) in [(&mut count, ""), (&mut spend, "_micros")] {
        if let Some(counts) = counts.as_object_mut() {
            for name in ["limit", "used", "remaining"] {
                counts.insert(format!("{name}{unit}"), natural());
            }
            for name in ["window_start", "resets_at"] {
                counts.insert(name.to_owned(), nullable(moment()));
            }
        }
    }
    let count = || nullable(open(count.clone(), &["limit", "used", "remaining"]));
    let spend = open(spend, &["window", "limit_micros", "used_micros", "remaining_micros"]);
    let names = ["requests_per_minute", "tokens_per_minute", "concurrency", "spend"];
    open(
        json!({
            "requests_per_minute": count(),
            "tokens_per_minute": count(),
            "concurrency": count(),
            "spend": nullable(spend),
        }),
        &names,
    )
}

fn model_list() -> Value {
    open(
        json!({"object": word("list"), "data": array(named("Model"), 0, None)}),
        &["object", "data"],
    )
}

fn quote() -> Value {
    let kinds: Vec<&str> = MeterKind::ALL.into_iter().map(MeterKind::label).collect();
    let units =
        "Tokens, pictures or requests, at most, of the dearest kind that they can turn out to be.";
    let per =
        "1,000,000 for tokens, else 1: the line comes to `units` × `price_micros` / `per_units`.";
    let line = open(
        json!({
            "kind": words(&kinds),
            "units": described(natural(), units),
            "price_micros": natural(),
            "per_units": described(natural(), per),
        }),
        &["kind", "units", "price_micros", "per_units"],
    );
    let hold = "What a request with this body would hold now: the sum of the lines, rounded up once. It is \
                charged for what it uses, at most this.";
    open(
        json!({
            "object": word("quote"),
            "model": model(),
            "contract": natural(),
            "currency": string(),
            "price_version": string(),
            "hold_micros": described(natural(), hold),
            "lines": array(line, 1, None),
        }),
        &["object", "model", "contract", "currency", "price_version", "hold_micros", "lines"],
    )
}

fn model_view() -> Value {
    let kinds = |per_million: bool| {
        MeterKind::ALL.into_iter().filter(move |kind| kind.per_million() == per_million)
    };
    let per_million = || by_kind(kinds(true), "Micros for a million of each kind.");
    let each = || by_kind(kinds(false), "Micros for each.");
    let tier = open(
        json!({
            "above_prompt_tokens": natural(),
            "micros_per_million": per_million(),
            "micros_each": each(),
        }),
        &["above_prompt_tokens", "micros_per_million", "micros_each"],
    );
    let tiers =
        "What a whole request costs whose prompt has more tokens than that, the lowest first.";
    let price = open(
        json!({
            "currency": string(),
            "effective_from": nullable(moment()),
            "price_version": string(),
            "micros_per_million": per_million(),
            "micros_each": each(),
            "tiers": described(array(tier, 0, None), tiers),
        }),
        &[
            "currency",
            "effective_from",
            "price_version",
            "micros_per_million",
            "micros_each",
            "tiers",
        ],
    );
    open(
        json!({
            "id": model(),
            "object": word("model"),
            "created": natural(),
            "owned_by": string(),
            "context_length": natural(),
            "max_output_tokens": natural(),
            "contract": described(natural(), "The version of what the model promises."),
            "aliases": described(
                array(string(), 1, None),
                "Other names that requests may have for it; absent without any.",
            ),
            "prices": array(price, 0, None),
        }),
        &[
            "id",
            "object",
            "created",
            "owned_by",
            "context_length",
            "max_output_tokens",
            "contract",
            "prices",
        ],
    )
}

fn readiness() -> Value {
    open(
        json!({"status": words(&["ready", "draining", "storage_unavailable", "lost_commits"])}),
        &["status"],
    )
}

/// Schema of an error, with the closed list of codes; each endpoint lists those that it gives.
fn error() -> Value {
    let codes = Code::ALL.map(Code::label);
    let mut kinds: Vec<&str> = Code::ALL.iter().map(|code| code.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let fields = open(
        json!({
            "message": described(string(), "What happened and what to do next."),
            "type": words(&kinds),
            "param": described(nullable(string()), "The field that it is about."),
            "code": words(&codes),
            "charged_micros": described(natural(), "What the key was charged. Absent where that is not known yet."),
            "held_micros": described(
                natural(),
                "With insufficient_funds while running requests hold what is missing, if the API key may see the \
                 balance.",
            ),
            "operation_id": described(uuid(), "Once a key is bound; never on a conflict."),
            "meters": named("Meters"),
        }),
        &["message", "type", "param", "code"],
    );
    open(json!({"error": fields}), &["error"])
}
