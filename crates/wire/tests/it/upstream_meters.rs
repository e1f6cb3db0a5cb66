//! Usage of a provider's whole answer, read into disjoint meters.

use holdfast_domain::usage::{MeterKind, Meters};
use holdfast_wire::chat::upstream::read_completion;

use crate::upstream::{USAGE, answer, choice};

/// The meters of an answer that says something.
fn meters(usage: &str) -> Option<Meters> {
    let body = answer(&choice("\"hi\"", "\"stop\""), usage);
    read_completion(body.as_bytes(), 1).unwrap().meters
}

#[track_caller]
fn metered(usage: &str, expected: &[(MeterKind, u64)]) {
    let expected = Meters::from_fn(|kind| {
        let count = expected.iter().find(|(k, _)| *k == kind).map(|(_, count)| *count);
        count.unwrap_or(u64::from(kind == MeterKind::Request))
    });
    assert_eq!(meters(usage), expected, "{usage}");
}

#[test]
fn usage_becomes_disjoint_meters() {
    use MeterKind::{AudioInput, AudioOutput, CacheWrite, CachedInput, Input, Output, Reasoning};
    metered(USAGE, &[(Input, 10), (Output, 5)]);
    metered(
        r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
            "prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":20,"audio_tokens":0},
            "completion_tokens_details":{"reasoning_tokens":40,"rejected_prediction_tokens":3},
            "cost":0.1}"#,
        &[(Input, 50), (CachedInput, 30), (CacheWrite, 20), (Output, 10), (Reasoning, 40)],
    );
    metered(
        r#"{"prompt_tokens":100,"completion_tokens":50,
            "prompt_tokens_details":{"cached_tokens":30,"audio_tokens":40},
            "completion_tokens_details":{"reasoning_tokens":10,"audio_tokens":25}}"#,
        &[
            (Input, 30),
            (CachedInput, 30),
            (AudioInput, 40),
            (Output, 15),
            (Reasoning, 10),
            (AudioOutput, 25),
        ],
    );
    // Some of the audio was cached.
    metered(
        r#"{"prompt_tokens":100,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":70,"audio_tokens":40}}"#,
        &[(CachedInput, 70), (AudioInput, 30), (Input, 0), (Output, 5)],
    );
    metered(
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,
            "completion_tokens_details":{"reasoning_tokens":null}}"#,
        &[(Input, 10), (Output, 5)],
    );
    metered(
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,
            "prompt_cache_miss_tokens":6}"#,
        &[(Input, 6), (CachedInput, 4), (Output, 5)],
    );
    metered(
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,
            "prompt_tokens_details":{"cached_tokens":4}}"#,
        &[(Input, 6), (CachedInput, 4), (Output, 5)],
    );
}

#[test]
fn usage_that_cannot_be_true_is_not_believed() {
    for usage in [
        "null",
        "{}",
        "7",
        r#"{"prompt_tokens":10}"#,
        r#"{"completion_tokens":10}"#,
        r#"{"prompt_tokens":null,"completion_tokens":5}"#,
        r#"{"prompt_tokens":-1,"completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5.5}"#,
        r#"{"prompt_tokens":"10","completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":0}"#,
        r#"{"prompt_tokens":1099511627777,"completion_tokens":5}"#,
        r#"{"prompt_tokens":1e300,"completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":11}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":7}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"audio_tokens":11}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"audio_tokens":6}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":5}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":6}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":11}"#,
        // Each part is sane, their sum is not.
        r#"{"prompt_tokens":2000000000000,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":1000000000000}}"#,
    ] {
        assert_eq!(meters(usage), None, "{usage}");
    }
}

#[test]
fn a_silent_answer_may_cost_no_completion() {
    let body = answer(&choice("\"\"", "\"stop\""), r#"{"prompt_tokens":10,"completion_tokens":0}"#);
    assert_eq!(read_completion(body.as_bytes(), 1).unwrap().meters, Meters::text(10, 0));
    let refusal = answer(
        r#"{"index":0,"message":{"refusal":"no"},"finish_reason":"stop"}"#,
        r#"{"prompt_tokens":10,"completion_tokens":0}"#,
    );
    assert_eq!(read_completion(refusal.as_bytes(), 1).unwrap().meters, None);
    let call = r#"{"index":0,"message":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"stop"}"#;
    let call = answer(call, r#"{"prompt_tokens":10,"completion_tokens":0}"#);
    assert_eq!(read_completion(call.as_bytes(), 1).unwrap().meters, None);
}
