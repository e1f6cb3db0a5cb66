//! What reaches a log through `{:?}` tells lengths, never what was asked or answered.

use std::fmt::Debug;

use holdfast_domain::answer::{Answer, ChoiceDelta, Delta, FinishReason};
use holdfast_testkit::sample;

const SECRET: &str = "the treasure is under the old oak";

#[track_caller]
fn check(value: &dyn Debug, expected: &str) {
    assert_eq!(format!("{value:?}"), expected);
    assert!(!format!("{value:#?}").contains("oak"));
}

#[test]
fn requests_and_calls_tell_their_length() {
    let mut request = sample::request(SECRET);
    request.messages[0].name = Some("oak".to_owned());
    request.stop = vec!["oak".to_owned()];
    request.user = Some("oak".to_owned());
    request.metadata = [("oak".to_owned(), "oak".to_owned())].into();
    check(&request, "Request(holdfast/sample, 1 messages, 48 bytes)");
    let call = format!("{:?}", sample::call(SECRET));
    assert!(call.contains("Request(holdfast/sample, 1 messages, 33 bytes)"), "{call}");
}

#[test]
fn answers_tell_their_length() {
    let choice = ChoiceDelta {
        index: 0,
        content: Some(SECRET.to_owned()),
        refusal: Some("oak".to_owned()),
        finish: Some(FinishReason::Stop),
        ..ChoiceDelta::default()
    };
    let delta = Delta { choices: vec![choice] };
    let shown = "content Some(33), refusal Some(3), finish Some(Stop))";
    check(&delta, &format!("Delta {{ choices: [ChoiceDelta(0: {shown}] }}"));
    let mut answer = Answer::default();
    answer.append(delta);
    check(&answer, &format!("Answer {{ choices: {{0: Choice({shown}}} }}"));
}
