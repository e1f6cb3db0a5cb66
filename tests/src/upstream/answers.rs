//! Answers of the server: OpenAI's shapes with the server's own marks all over them. A mark that appears in any
//! other place has leaked.

use serde_json::{Value, json};

/// Texts that only the upstream sends. None of them may be seen outside.
pub const MARKS: [&str; 8] = [
    "mark-of-id",
    "mark-of-model",
    "mark-of-fingerprint",
    "mark-of-header",
    "mark-of-message",
    "mark-of-code",
    "mark-of-extra",
    "upstream-model-mark",
];

/// A completion with this text that reports 100 prompt tokens (40 cached) and 20 of completion (5 of reasoning).
#[must_use]
pub fn completion(text: &str) -> Value {
    json!({
        "id": "chatcmpl-mark-of-id",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "mark-of-model",
        "system_fingerprint": "mark-of-fingerprint",
        "service_tier": "mark-of-extra",
        "x_extra": {"provider": "mark-of-extra"},
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text, "x_extra": "mark-of-extra"},
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 40, "x_extra": 1},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    })
}

/// An error with this code.
#[must_use]
pub fn error(code: &str) -> Value {
    json!({"error": {
        "message": "mark-of-message: something of the upstream's own",
        "type": "mark-of-extra",
        "param": "mark-of-extra",
        "code": code,
    }})
}

/// The marks that a text has and should not have.
#[must_use]
pub fn marked(text: &str) -> Vec<&'static str> {
    MARKS.into_iter().filter(|mark| text.contains(mark)).collect()
}

/// A whole answer.
pub(super) fn render(status: u16, body: &str) -> String {
    let head = head(status, "application/json");
    format!("{head}content-length: {}\r\n\r\n{body}", body.len())
}

/// The head of an answer that streams.
pub(super) fn stream_head() -> String {
    format!("{}transfer-encoding: chunked\r\n\r\n", head(200, "text/event-stream"))
}

fn head(status: u16, content_type: &str) -> String {
    // With these it would be heeded, which only a test of it requests.
    let retry_after = if matches!(status, 429 | 503 | 529) { "" } else { "retry-after: 3600\r\n" };
    format!(
        "HTTP/1.1 {status} mark-of-header\r\ncontent-type: {content_type}\r\nserver: \
         mark-of-header\r\nx-request-id: mark-of-header\r\nopenai-organization: mark-of-header\r\n\
         set-cookie: a=mark-of-header\r\n{retry_after}x-ratelimit-remaining-tokens: \
         7\r\nlocation: http://localhost/mark-of-header\r\n"
    )
}
