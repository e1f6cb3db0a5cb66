//! Any bytes as a request body: read or refused, never a panic. What is read is JSON to another reader
//! too, and what is sent of it says the same when it is read back.
#![no_main]

use holdfast_domain::request::Request;
use holdfast_fuzz::{bound_to, sent};
use holdfast_wire::chat::request::{BadRequest, Delivery, Parsed, parse};
use holdfast_wire::error::Code;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

/// The model's own bound, where the request sets none.
const UNBOUNDED: u64 = 4_096;
/// More than any message of ours has, however much a body repeats.
const MESSAGE_BYTES_MAX: usize = 2_048;

fuzz_target!(|body: &[u8]| {
    let is_json = serde_json::from_slice::<IgnoredAny>(body).is_ok();
    match parse(body) {
        Ok(Parsed { request, .. }) => {
            assert!(is_json, "read, and yet no JSON");
            check_read(request);
        }
        Err(bad) => check_refused(&bad, is_json),
    }
});

fn check_read(request: Request) {
    let body = sent(&request, UNBOUNDED);
    let again = parse(&body).expect("what is sent can be read");
    assert_eq!(again.delivery, Delivery::default(), "how an answer travels is not sent");
    let bound = request.max_output_tokens.or(Some(UNBOUNDED));
    let request = Request { max_output_tokens: bound, ..request };
    // Not `assert_eq!`: requests do not print what they say.
    assert!(again.request == request, "{}", String::from_utf8_lossy(&body));
    assert_eq!(bound_to(&again.request), bound_to(&request));
    assert_eq!(sent(&again.request, UNBOUNDED), body);
}

fn check_refused(bad: &BadRequest, is_json: bool) {
    assert!(is_json || bad.code == Code::InvalidJson, "refused for what it says: {bad:?}");
    for text in bad.param.iter().chain([&bad.message]) {
        assert!(text.len() <= MESSAGE_BYTES_MAX, "{} bytes", text.len());
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}
