//! Usage of a provider's whole answer, read into disjoint meters.

use holdfast_domain::price::UnitPrices;
use holdfast_domain::usage::{MeterKind, Meters, ReportedCount, UsageCeiling, UsageReport};
use holdfast_wire::chat::upstream::{AnswerContext, read_completion, read_completion_in};

use crate::upstream::{USAGE, answer, choice};

/// Meters of a report, at a ceiling that is seldom met; `None` if it is not accepted.
pub(crate) fn resolved(report: Option<UsageReport>) -> Option<Meters> {
    let ceiling = UsageCeiling { context_tokens: 1_000_000, output_tokens: 1_000 };
    let prices: holdfast_domain::price::Tariff =
        UnitPrices::from_fn(|_kind| 1_000_000).unwrap().into();
    report?.resolve(&ceiling, |meters| prices.cost(meters)).ok().map(|usage| usage.meters)
}

/// The meters of a body.
fn meters_of(body: &str) -> Option<Meters> {
    resolved(read_completion(body.as_bytes(), 1).unwrap().usage)
}

/// The meters of an answer that says something.
fn meters(usage: &str) -> Option<Meters> {
    meters_of(&answer(&choice("\"hi\"", "\"stop\""), usage))
}

#[track_caller]
fn metered(usage: &str, expected: &[(MeterKind, u64)]) {
    let expected = Meters::from_fn(|kind| {
        let count = expected.iter().find(|(k, _)| *k == kind).map(|(_, count)| *count);
        count.unwrap_or(u64::from(kind == MeterKind::Request))
    })
    .ok();
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
        r#"{"prompt_tokens":"","completion_tokens":5}"#,
        r#"{"prompt_tokens":"+10","completion_tokens":5}"#,
        r#"{"prompt_tokens":"1e1","completion_tokens":5}"#,
        r#"{"prompt_tokens":[10],"completion_tokens":5}"#,
        r#"{"prompt_tokens":true,"completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":0}"#,
        r#"{"prompt_tokens":1099511627777,"completion_tokens":5}"#,
        r#"{"prompt_tokens":1e300,"completion_tokens":5}"#,
        // A part that is sane saves no whole that is not.
        r#"{"prompt_tokens":2000000000000,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":1000000000000}}"#,
    ] {
        assert_eq!(meters(usage), None, "{usage}");
    }
}

#[test]
fn a_part_that_cannot_be_true_leaves_the_rest_of_its_report() {
    use MeterKind::{AudioInput, AudioOutput, CacheWrite, CachedInput, Input, Output, Reasoning};
    let with = |members: &str| format!(r#"{{"prompt_tokens":10,"completion_tokens":5,{members}}}"#);
    let plain = [(Input, 10), (Output, 5)];
    for (members, expected) in [
        (r#""prompt_tokens_details":{"cached_tokens":-1}"#, &plain[..]),
        (r#""prompt_tokens_details":{"cached_tokens":1.5}"#, &plain),
        (r#""prompt_tokens_details":{"cached_tokens":"x"}"#, &plain),
        (r#""prompt_tokens_details":7"#, &plain),
        (r#""prompt_tokens_details":[]"#, &plain),
        (r#""completion_tokens_details":"none""#, &plain),
        (r#""total_tokens":-1"#, &plain),
        (r#""total_tokens":{}"#, &plain),
        (r#""prompt_tokens_details":{"cached_tokens":11}"#, &[(CachedInput, 10), (Output, 5)]),
        (
            r#""prompt_tokens_details":{"cached_tokens":"4.0"}"#,
            &[(Input, 6), (CachedInput, 4), (Output, 5)],
        ),
        (r#""prompt_cache_hit_tokens":11"#, &[(CachedInput, 10), (Output, 5)]),
        (
            r#""prompt_tokens_details":{"cached_tokens":null},"prompt_cache_hit_tokens":4"#,
            &[(Input, 6), (CachedInput, 4), (Output, 5)],
        ),
        (
            r#""prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":5}"#,
            &[(CachedInput, 6), (CacheWrite, 4), (Output, 5)],
        ),
        (r#""prompt_tokens_details":{"audio_tokens":11}"#, &[(AudioInput, 10), (Output, 5)]),
        (r#""completion_tokens_details":{"audio_tokens":6}"#, &[(Input, 10), (AudioOutput, 5)]),
        (r#""completion_tokens_details":{"reasoning_tokens":6}"#, &[(Input, 10), (Reasoning, 5)]),
        // The total says that it stands beside.
        (
            r#""total_tokens":21,"completion_tokens_details":{"reasoning_tokens":6}"#,
            &[(Input, 10), (Output, 5), (Reasoning, 6)],
        ),
        (
            r#""total_tokens":26,"prompt_tokens_details":{"audio_tokens":11}"#,
            &[(Input, 10), (AudioInput, 11), (Output, 5)],
        ),
        (r#""total_tokens":"22""#, &[(Input, 10), (Output, 12)]),
    ] {
        metered(&with(members), expected);
    }
    metered(r#"{"prompt_tokens":"10","completion_tokens":5.0}"#, &plain);
}

#[test]
fn usage_of_a_whole_answer_is_found_where_streams_have_it() {
    let body = |members: &str, choice: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"message":{{"content":"hi"}},"finish_reason":"stop"{choice}}}]{members}}}"#
        )
    };
    let usage = format!(r#","usage":{USAGE}"#);
    for (members, choice) in [
        (usage.as_str(), ""),
        ("", usage.as_str()),
        (&format!(r#","usage":{{}},"x_groq":{{"usage":{USAGE}}}"#), ""),
        (
            &format!(
                r#","usage":{{"prompt_tokens":0,"completion_tokens":0}},"x_groq":{{"usage":{USAGE}}}"#
            ),
            "",
        ),
    ] {
        assert_eq!(
            meters_of(&body(members, choice)),
            Meters::text(10, 5).ok(),
            "{members}{choice}"
        );
    }
}

#[test]
fn a_report_above_the_ceiling_of_its_run_replaces_none_below_it() {
    let ceiling = UsageCeiling { context_tokens: 1_000, output_tokens: 100 };
    let context = AnswerContext::of_choices(1);
    let completion = |first: &str, second: &str| {
        let body = answer(&choice("\"x\"", "\"stop\""), first);
        let body = body.strip_suffix('}').unwrap();
        let body = format!(r#"{body},"x_groq":{{"usage":{second}}}}}"#);
        let read = read_completion_in(body.as_bytes(), &context, ceiling);
        read.unwrap().usage.unwrap().completion
    };
    let absurd = r#"{"prompt_tokens":10,"completion_tokens":1000000}"#;
    let later = r#"{"prompt_tokens":10,"completion_tokens":6}"#;
    assert_eq!(completion(USAGE, absurd), ReportedCount::Count(5));
    assert_eq!(completion(absurd, USAGE), ReportedCount::Count(5));
    assert_eq!(completion(USAGE, later), ReportedCount::Count(6));
}

#[test]
fn a_silent_answer_may_cost_no_completion() {
    let body = answer(&choice("\"\"", "\"stop\""), r#"{"prompt_tokens":10,"completion_tokens":0}"#);
    assert_eq!(meters_of(&body), Meters::text(10, 0).ok());
    let refusal = answer(
        r#"{"index":0,"message":{"refusal":"no"},"finish_reason":"stop"}"#,
        r#"{"prompt_tokens":10,"completion_tokens":0}"#,
    );
    assert_eq!(meters_of(&refusal), None);
    let call = r#"{"index":0,"message":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"stop"}"#;
    let call = answer(call, r#"{"prompt_tokens":10,"completion_tokens":0}"#);
    assert_eq!(meters_of(&call), None);
}
