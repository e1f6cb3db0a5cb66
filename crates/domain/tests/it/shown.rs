//! What reaches a log through `{:?}` tells lengths, never what was asked or answered.

use std::fmt::Debug;

use holdfast_domain::answer::{Answer, ChoiceDelta, Delta, FinishReason};
use holdfast_domain::conduct::Conduct;
use holdfast_domain::{Currency, RequestKey};
use holdfast_testkit::{MemoryJournal, NoPause, sample};

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
    let delta = Delta::from(vec![choice]);
    let shown = "content Some(33), refusal Some(3), finish Some(Stop))";
    let beside = "service_tier: None, predicted: None, moderation: None";
    check(&delta, &format!("Delta {{ choices: [ChoiceDelta(0: {shown}], {beside} }}"));
    let mut answer = Answer::default();
    answer.append(delta);
    let beside =
        "service_tier: None, predicted: Predicted { accepted: 0, rejected: 0 }, moderation: None";
    check(&answer, &format!("Answer {{ choices: {{0: Choice({shown}}}, {beside} }}"));
}

#[test]
fn a_sealed_result_tells_its_length_and_whose_it_is() {
    let result = sample::result(SECRET);
    let (bytes, credential) = (result.sealed.len(), result.credential);
    check(&result, &format!("SealedResult({bytes} bytes for {credential})"));
}

#[test]
fn an_order_is_shown_as_its_claim_and_its_conduct_as_what_it_may_reap() {
    let claim = sample::claim().request(SECRET).build();
    check(&sample::order(&claim), &format!("{claim:?}"));
    let journal = MemoryJournal::with_funds(0);
    let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
    check(&conduct, "Conduct(orphan_grace: None)");
}

#[test]
fn values_are_shown_with_their_names() {
    check(&"EUR".parse::<Currency>().unwrap(), "Currency(EUR)");
    let key = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
    check(&key.parse::<RequestKey>().unwrap(), &format!("RequestKey({key})"));
}
