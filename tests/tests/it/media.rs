//! Pictures and sound: what they hold, what they cost, and that each has its own price.

use holdfast_tests::config::ACME;
use holdfast_tests::upstream::completion;
use holdfast_tests::{Config, Reply, Site, Upstream, request_key};
use serde_json::{Value, json};

use crate::check::{charge, check_completion, meters};

/// What the configuration charges each, besides its tokens.
const EACH: &str = "micros_each = { request = 7, image = 1_000 }";
const TOKENS: &str = "micros_per_million = { input = 2_500_000, cached_input = 250_000, \
    output = 10_000_000, reasoning = 12_000_000, audio_input = 40_000_000, \
    audio_output = 80_000_000 }";

fn config(upstream: &Upstream) -> Config {
    let tokens =
        "micros_per_million = { input = 2_500_000, cached_input = 250_000, output = 10_000_000 }";
    Config::upstream(upstream)
        .replace("micros_each = { request = 7 }", EACH)
        .replace(tokens, TOKENS)
        .replace("contract = 1", "contract = 1\nimage_tokens = 300")
}

fn body(content: &Value, more: &Value) -> String {
    let mut body = json!({
        "model": ACME,
        "max_completion_tokens": 50,
        "messages": [{"role": "user", "content": content}],
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

fn text() -> Value {
    json!({"type": "text", "text": "Say hello"})
}

fn picture(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn recording() -> Value {
    json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})
}

/// What one request holds, is charged and has metered.
#[track_caller]
fn check(content: &Value, more: &Value, answer: &Value, expected: (i64, i64, Value)) {
    let upstream = Upstream::start(Reply::json(200, answer));
    let (site, account) = Site::funded(&config(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &body(content, more));
    let completion = check_completion(&answer, &key, false);
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    let (hold, cost, counts) = expected;
    assert_eq!(operation["hold_micros"], hold, "{operation}");
    assert_eq!(operation["charge_micros"], cost, "{operation}");
    assert_eq!(charge(&completion), cost);
    assert_eq!(operation["meters"], counts);
    assert_eq!(operation["shortfall_micros"], 0);
    assert_eq!(site.balance(&account), (10_000_000 - cost, 0));
    site.verify();
}

#[test]
fn pictures_are_held_for_by_their_cap_and_charged_each() {
    let content = json!([
        text(),
        picture("https://pictures.example/one.png"),
        picture("data:image/png;base64,iVBORw0KGgo="),
    ]);
    // 9 bytes of text, 16 of frame, 64 for any prompt and 300 a picture at 2.5; 50 out at the dearest
    // 12; the request and two pictures.
    let hold = ((9 + 16 + 64 + 600) * 25_i64).div_euclid(10) + 1 + 600 + 7 + 2_000;
    // 60 tokens read anew, 40 from the cache, 15 out, 5 of reasoning; the request and two pictures.
    let cost = 150 + 10 + 150 + 60 + 7 + 2_000;
    let counts = [
        ("input", 60),
        ("cached_input", 40),
        ("output", 15),
        ("reasoning", 5),
        ("request", 1),
        ("image", 2),
    ];
    check(&content, &json!({}), &completion("Good day"), (hold, cost, meters(&counts)));
}

#[test]
fn sound_is_held_for_by_the_context_and_charged_by_its_own_prices() {
    let mut spoken = completion("Good day");
    spoken["usage"]["prompt_tokens_details"]["audio_tokens"] = json!(30);
    spoken["usage"]["completion_tokens_details"]["audio_tokens"] = json!(6);
    let content = json!([text(), recording()]);
    // The whole context at the dearest 40; 50 out at 80 where the model may speak, at 12 where not.
    let counts = [
        ("input", 30),
        ("cached_input", 40),
        ("audio_input", 30),
        ("output", 9),
        ("reasoning", 5),
        ("audio_output", 6),
        ("request", 1),
    ];
    let cost = 75 + 10 + 1_200 + 90 + 60 + 480 + 7;
    let voice = json!({
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "wav"},
    });
    let hold = 8_000 * 40 + 50 * 80 + 7;
    check(&content, &voice, &spoken, (hold, cost, meters(&counts)));

    let mut heard = completion("Good day");
    heard["usage"]["prompt_tokens_details"]["audio_tokens"] = json!(30);
    let counts = [
        ("input", 30),
        ("cached_input", 40),
        ("audio_input", 30),
        ("output", 15),
        ("reasoning", 5),
        ("request", 1),
    ];
    let cost = 75 + 10 + 1_200 + 150 + 60 + 7;
    let hold = 8_000 * 40 + 50 * 12 + 7;
    check(&content, &json!({}), &heard, (hold, cost, meters(&counts)));
}

#[test]
fn a_document_is_held_for_by_the_context_at_the_price_of_text() {
    let file = json!({
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
    });
    let hold = 8_000 * 25 / 10 + 50 * 12 + 7;
    let cost = 150 + 10 + 150 + 60 + 7;
    let counts =
        [("input", 60), ("cached_input", 40), ("output", 15), ("reasoning", 5), ("request", 1)];
    let content = json!([text(), file]);
    check(&content, &json!({}), &completion("Good day"), (hold, cost, meters(&counts)));
}
