//! Pause in the body of an error.
//!
//! | member | servers |
//! |---|---|
//! | `error.details[]` of `@type` `type.googleapis.com/google.rpc.RetryInfo`, `retryDelay`: `"38s"` | Google's error model; the body of its endpoint for OpenAI's clients may be a list |
//! | `error.metadata.headers`: `X-RateLimit-Reset` in milliseconds since the Unix epoch, if its `Remaining` is 0 | OpenRouter's guide to limits |
//! | either of them in a text of JSON at `error.metadata.raw` or `error.message` | OpenRouter, and relays of Google |
//!
//! Never: a time within the text of a message, which may quote the prompt.

use std::time::Duration;

use holdfast_net::{clock, time_until};
use holdfast_wire::json::{Node, parse_answer};

const RETRY_INFO: &str = "google.rpc.RetryInfo";

/// Maximum depth of bodies within bodies.
const LEVELS_MAX: usize = 3;

/// Pause in a body; `None` if there is no readable one.
pub(crate) fn pause(body: &[u8]) -> Option<Duration> {
    pause_within(body, LEVELS_MAX, clock())
}

fn pause_within(body: &[u8], levels: usize, now: Duration) -> Option<Duration> {
    let levels = levels.checked_sub(1)?;
    let tree = parse_answer(body).ok()?;
    let top = tree.as_array().and_then(<[_]>::first).unwrap_or(&tree);
    let error = top.get("error").unwrap_or(top);
    let metadata = error.get("metadata");
    let own = retry_info(error, now)
        .or_else(|| metadata.and_then(|metadata| limit(metadata.get("headers")?, now)));
    own.or_else(|| {
        let texts = [metadata.and_then(|metadata| metadata.get("raw")), error.get("message")];
        texts.into_iter().flatten().find_map(|node| {
            let text = node.as_str()?.trim_start();
            let is_json = text.starts_with('{') || text.starts_with('[');
            pause_within(text.as_bytes(), levels, now).filter(|_pause| is_json)
        })
    })
}

fn retry_info(error: &Node<'_>, now: Duration) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let of_detail = |detail: &Node<'_>| {
        let kind = detail.get("@type")?.as_str()?;
        let delay = detail.get("retryDelay").filter(|_delay| kind.ends_with(RETRY_INFO))?;
        // Protobuf's JSON has a text; some relays have the fields of the duration instead.
        match delay.as_str() {
            Some(text) => time_until(text, now),
            None => time_until(delay.get("seconds").and_then(spelling)?, now),
        }
    };
    details.iter().filter_map(of_detail).max()
}

fn limit(headers: &Node<'_>, now: Duration) -> Option<Duration> {
    let Node::Object(members) = headers else { return None };
    let value = |name: &str| {
        let found = members.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| spelling(value))
    };
    value("x-ratelimit-remaining").filter(|remaining| remaining.trim() == "0")?;
    time_until(value("x-ratelimit-reset")?, now)
}

/// A text, or the digits of a number.
fn spelling<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    node.as_str().or_else(|| node.as_number())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_824_000);

    #[track_caller]
    fn check(body: &str, millis: Option<u64>) {
        let pause = pause_within(body.as_bytes(), LEVELS_MAX, NOW);
        assert_eq!(pause, millis.map(Duration::from_millis), "{body}");
    }

    fn google(delay: &str) -> String {
        format!(
            r#"{{"error":{{"code":429,"message":"Please retry in 99s.","status":"RESOURCE_EXHAUSTED","details":[
            {{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{{"quotaId":"x"}}]}},
            {{"@type":"type.googleapis.com/google.rpc.Help"}},
            {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":{delay}}}]}}}}"#
        )
    }

    fn quoted(text: &str) -> String {
        serde_json::to_string(text).unwrap()
    }

    #[test]
    fn retry_info_is_read_in_every_form_of_googles_body() {
        let body = google("\"38s\"");
        check(&body, Some(38_000));
        check(&format!("[{body}]"), Some(38_000));
        check(&format!("[{body},{body}]"), Some(38_000));
        check(&google("\"38.25s\""), Some(38_250));
        check(&google("\"0.500s\""), Some(500));
        check(&google(r#"{"seconds":38,"nanos":0}"#), Some(38_000));
        check(&google(r#"{"seconds":"38"}"#), Some(38_000));
        let raw = quoted(&body);
        let relayed = format!(
            r#"{{"error":{{"message":"Provider returned error","code":429,"metadata":{{"raw":{raw}}}}}}}"#
        );
        check(&relayed, Some(38_000));
        check(&format!(r#"{{"error":{{"code":429,"message":{raw}}}}}"#), Some(38_000));
        let deep = (0..9).fold(body, |body, _| format!(r#"{{"message":{}}}"#, quoted(&body)));
        check(&deep, None);
    }

    #[test]
    fn openrouters_exhausted_limit_is_read() {
        let body = |remaining: &str, reset: &str| {
            format!(
                r#"{{"error":{{"message":"Rate limit exceeded: free-models-per-min","code":429,"metadata":{{"headers":{{
                "X-RateLimit-Limit":"20","X-RateLimit-Remaining":{remaining},"X-RateLimit-Reset":{reset}}}}}}}}}"#
            )
        };
        check(&body("\"0\"", "\"1795824045000\""), Some(45_000));
        check(&body("0", "1795824045000"), Some(45_000));
        check(&body("\"1\"", "\"1795824045000\""), None);
        check(&body("\"0\"", "\"1795823999000\""), None);
    }

    #[test]
    fn an_unreadable_delay_is_no_pause() {
        for delay in ["\"\"", "\"-38s\"", "\"soon\"", "null", "\"0s\"", "{}", "[]", "true"] {
            check(&google(delay), None);
        }
        for body in [
            "",
            "<html>",
            "[]",
            "{}",
            r#"{"error":"Please retry in 38s"}"#,
            r#"{"error":{"message":"Please retry in 38s","details":[{"retryDelay":"38s"}]}}"#,
            r#"{"error":{"details":{"@type":"google.rpc.RetryInfo","retryDelay":"38s"}}}"#,
            r#"{"error":{"details":[{"@type":"google.rpc.Other","retryDelay":"38s"}]}}"#,
        ] {
            check(body, None);
        }
    }
}
