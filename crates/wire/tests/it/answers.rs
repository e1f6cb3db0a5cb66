//! The completion that a caller gets.

use holdfast_domain::answer::{Answer, ChoiceDelta, Delta, FinishReason};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::PriceVersionId;
use holdfast_domain::usage::{Kind, Metered, Meters, MetersSource, UsageRecord};
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_wire::chat::completion::{CompletionView, render};
use serde_json::{Value, json};

use crate::schema;

fn choice(index: u32, content: Option<&str>, refusal: Option<&str>) -> ChoiceDelta {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ChoiceDelta {
        index,
        content: owned(content),
        refusal: owned(refusal),
        ..ChoiceDelta::default()
    }
}

fn rendered(choices: Vec<ChoiceDelta>) -> Value {
    let mut answer = Answer::default();
    answer.append(Delta { choices });
    let meters = Meters::by(|kind| match kind {
        Kind::Input => 1,
        Kind::CachedInput => 2,
        Kind::CacheWrite => 4,
        Kind::AudioInput => 8,
        Kind::Output => 16,
        Kind::Reasoning => 32,
        Kind::AudioOutput => 64,
        Kind::Request | Kind::Image => 1,
    });
    let body = render(&CompletionView {
        id: OperationId::from_u128(0xabc),
        created: Timestamp::from_micros(1_790_000_000_999_999),
        model: &PublicModelId::try_from("a/b").unwrap(),
        answer: &answer,
        usage: &UsageRecord {
            metered: Metered { meters: meters.unwrap(), source: MetersSource::Reported },
            charge: Micros::new(123),
            shortfall: Micros::new(9),
            price_version: PriceVersionId::from_stored("a/b/USD/2026-01-01T00:00:00Z"),
        },
    });
    let value = serde_json::from_slice(&body).unwrap();
    assert_eq!(schema::fault("CreateChatCompletionResponse", &value), None);
    value
}

#[test]
fn a_completion_is_what_openai_s_clients_read() {
    let ended = |finish, choice| ChoiceDelta { finish: Some(finish), ..choice };
    let body = rendered(vec![
        ended(FinishReason::ContentFilter, choice(1, None, Some("no"))),
        ended(FinishReason::Stop, choice(0, Some("hi \"é\"\u{0}"), None)),
    ]);
    let said = |index, content: Value, refusal: Value, finish| {
        json!({
            "index": index,
            "message": {"role": "assistant", "content": content, "refusal": refusal, "annotations": []},
            "logprobs": null,
            "finish_reason": finish,
        })
    };
    assert_eq!(
        body,
        json!({
            "id": "chatcmpl_00000000000000000000000000000abc",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "a/b",
            "choices": [
                said(0, json!("hi \"é\"\u{0}"), json!(null), "stop"),
                said(1, json!(null), json!("no"), "content_filter"),
            ],
            "usage": {
                "prompt_tokens": 15,
                "completion_tokens": 112,
                "total_tokens": 127,
                "prompt_tokens_details": {
                    "cached_tokens": 2, "audio_tokens": 8, "cache_write_tokens": 4,
                },
                "completion_tokens_details": {
                    "reasoning_tokens": 32, "audio_tokens": 64,
                    "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
                },
                "customer_charge_micros": 123,
            },
        })
    );
}

#[test]
fn a_choice_that_was_cut_ends_with_length() {
    let body = rendered(vec![choice(0, Some("so f"), None), choice(1, None, None)]);
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["choices"][1]["message"]["content"], Value::Null);
}
