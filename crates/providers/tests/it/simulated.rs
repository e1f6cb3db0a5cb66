//! The simulated provider's rules and directives, as its documentation has them.

use std::time::Duration;

use holdfast_domain::answer::FinishReason;
use holdfast_domain::hold::UsageBound;
use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{Call, CallFailure, NotRunProof, UnknownReason};
use holdfast_domain::request::{AssistantMessage, Content, ContentPart, Request, Role};
use holdfast_domain::usage::Meters;
use holdfast_providers::Simulator;
use tokio::time::Instant;

use crate::calls::{CallResult, call, message, request, run};

const REFUSED: CallFailure = CallFailure::Refused(ProviderRefusal::Request);
const NOT_RUN: CallFailure = CallFailure::NotRun(NotRunProof::Overloaded);

async fn say(request: Request) -> CallResult {
    run(&Simulator::new(), &call(request)).await
}

#[track_caller]
fn check(ran: &CallResult, text: &str, finish: FinishReason) {
    assert_eq!(ran.choices(), [(text, Some(finish))]);
}

#[tokio::test]
async fn echoes_the_last_user_message_and_counts_every_message() {
    let mut request = request("first");
    request.messages.push(message(Role::Assistant(AssistantMessage::default()), "aye"));
    request.messages.push(message(Role::User, "second"));
    request.messages.push(message(Role::System, "be kind"));
    let ran = say(request).await;
    check(&ran, "You said: second", FinishReason::Stop);
    // first: 2, aye: 1, second: 2, be kind: 2. The echo has 16 bytes.
    assert_eq!(ran.usage(), Some((7, 4)));
}

#[tokio::test]
async fn answers_a_prompt_that_says_nothing() {
    let mut request = request("");
    request.messages = vec![message(Role::System, "be kind")];
    check(&say(request).await, "You said nothing.", FinishReason::Stop);
}

#[tokio::test]
async fn joins_the_parts_of_a_message() {
    let mut request = request("");
    let parts =
        ["one", "[[sim: no-usage]]", "two"].map(|text| ContentPart::from(text.to_owned())).to_vec();
    request.messages[0].content = Some(Content::Parts(parts));
    let ran = say(request).await;
    check(&ran, "You said: one\ntwo", FinishReason::Stop);
    assert_eq!(ran.usage(), None);
}

#[tokio::test]
async fn choices_differ_and_are_all_counted() {
    let ran = say(Request { n: 3, ..request("hi") }).await;
    let stop = Some(FinishReason::Stop);
    let texts = ["You said: hi", "(choice 2) You said: hi", "(choice 3) You said: hi"];
    assert_eq!(ran.choices(), texts.map(|text| (text, stop)));
    assert_eq!(ran.usage(), Some((1, 3 + 6 + 6)));
}

#[tokio::test]
async fn ends_before_the_first_stop_sequence() {
    let stop = vec!["three".to_owned(), "two".to_owned()];
    let ran = say(Request { stop, ..request("one two three") }).await;
    check(&ran, "You said: one ", FinishReason::Stop);
    assert_eq!(ran.usage(), Some((4, 4)));
}

#[tokio::test]
async fn ends_at_the_token_bound_of_each_choice() {
    let bounded = Call { max_output_tokens: 3, ..call(Request { n: 2, ..request("hello there") }) };
    let ran = run(&Simulator::new(), &bounded).await;
    let length = Some(FinishReason::Length);
    assert_eq!(ran.choices(), [("You said: he", length), ("(choice 2) Y", length)]);
    assert_eq!(ran.usage(), Some((3, 6)));
}

#[tokio::test]
async fn a_bound_that_just_fits_is_not_reached() {
    let bounded = Call { max_output_tokens: 3, ..call(request("hi")) };
    check(&run(&Simulator::new(), &bounded).await, "You said: hi", FinishReason::Stop);
}

#[tokio::test]
async fn a_stop_sequence_within_the_bound_comes_first() {
    let stop = vec!["two".to_owned()];
    let bounded =
        Call { max_output_tokens: 5, ..call(Request { stop, ..request("one two three") }) };
    check(&run(&Simulator::new(), &bounded).await, "You said: one ", FinishReason::Stop);
}

#[tokio::test]
async fn the_bound_never_cuts_a_character() {
    let bounded = Call { max_output_tokens: 3, ..call(request("né€")) };
    let ran = run(&Simulator::new(), &bounded).await;
    check(&ran, "You said: n", FinishReason::Length);
    assert_eq!(ran.usage(), Some((2, 3)));
}

#[tokio::test]
async fn usage_fits_into_the_hold_of_the_strictest_contract() {
    let model = PublicModelId::try_from("holdfast/sim-1").unwrap();
    let contract =
        Contract { prompt_overhead_tokens: Some(0), ..Contract::new(model, 1, u64::MAX, 1_000) };
    for text in ["", "a", "a much longer text with é and €", "[[sim: slow 1ms]]\nx"] {
        let request = Request { n: 2, ..request(text) };
        let bound = UsageBound::of(&request.cost_factors(), &contract);
        let (prompt, completion) = say(request).await.usage().unwrap();
        assert!(prompt <= bound.prompt_tokens && completion <= bound.all_output_tokens());
    }
}

#[tokio::test]
async fn the_same_call_gets_the_same_answer() {
    let provider = Simulator::new();
    let once = run(&provider, &call(request("again"))).await;
    let twice = run(&provider, &call(request("again"))).await;
    assert_eq!((once.answer, once.outcome), (twice.answer, twice.outcome));
}

#[tokio::test]
async fn an_unknown_model_is_the_routes_mistake() {
    let ran = run(&Simulator::new(), &Call { model: "sim-9".into(), ..call(request("hi")) }).await;
    assert_eq!(ran.outcome, Err(CallFailure::NotRun(NotRunProof::Account)));
}

#[tokio::test]
async fn fails_as_directed_and_says_nothing() {
    for (directive, failure) in [
        ("refuse", REFUSED),
        ("context-overflow", CallFailure::Refused(ProviderRefusal::ContextLength)),
        ("fail-before", NOT_RUN),
        ("fail-after", CallFailure::Unknown(UnknownReason::Status)),
    ] {
        let ran = say(request(&format!("hi\n  [[sim: {directive}]]  "))).await;
        assert_eq!(ran.outcome, Err(failure), "{directive}");
        assert_eq!(ran.choices(), [], "{directive}");
    }
}

#[tokio::test]
async fn breaks_in_the_middle_of_every_choice() {
    let ran = say(Request { n: 2, ..request("[[sim: break]]\nhalf") }).await;
    assert_eq!(ran.outcome, Err(CallFailure::Unknown(UnknownReason::Broken)));
    assert_eq!(ran.choices(), [("You sai", None), ("(choice 2) Y", None)]);
}

#[tokio::test]
async fn reports_no_usage_where_it_is_missing_or_absurd() {
    for directive in ["no-usage", "absurd-usage"] {
        let ran = say(request(&format!("[[sim: {directive}]]\nhi"))).await;
        check(&ran, "You said: hi", FinishReason::Stop);
        assert_eq!(ran.usage(), None, "{directive}");
    }
}

#[tokio::test]
async fn overruns_every_hold() {
    let ran = say(Request { n: 2, ..request("[[sim: overrun]]\nhi") }).await;
    assert_eq!(ran.choices()[0], ("You said: hi", Some(FinishReason::Stop)));
    // The whole context, and twice what was asked for with a little more: two choices of 1,000 tokens.
    assert_eq!(ran.usage(), Some((8_000, 5_024)));
    assert_eq!(Meters::completion_max(2_000), 5_024);
}

#[tokio::test]
async fn fails_once_for_each_prompt() {
    let provider = Simulator::new();
    for text in ["one\n[[sim: fail-before-once]]", "two\n[[sim: fail-before-once]]"] {
        let first = run(&provider, &call(request(text))).await;
        assert_eq!(first.outcome, Err(NOT_RUN));
        for _again in 0..2 {
            check(
                &run(&provider, &call(request(text))).await,
                &format!("You said: {}", &text[..3]),
                FinishReason::Stop,
            );
        }
    }
}

#[tokio::test]
async fn forgets_the_oldest_prompt_that_failed_once() {
    let provider = Simulator::new();
    let prompt = |n: u32| call(request(&format!("[[sim: fail-before-once]]\n{n}")));
    for n in 0..=1_024 {
        assert_eq!(run(&provider, &prompt(n)).await.outcome, Err(NOT_RUN));
    }
    assert!(run(&provider, &prompt(1_024)).await.outcome.is_ok());
    assert_eq!(run(&provider, &prompt(0)).await.outcome, Err(NOT_RUN));
}

#[tokio::test(start_paused = true)]
async fn waits_as_long_as_directed_and_then_goes_on() {
    for (directive, millis) in [("250ms", 250), ("5s", 5_000), ("10m", 600_000)] {
        let begun = Instant::now();
        let ran = say(request(&format!("[[sim: slow {directive}]]\n[[sim: refuse]]"))).await;
        assert_eq!(ran.outcome, Err(REFUSED));
        let waited = begun.elapsed();
        let asked = Duration::from_millis(millis);
        assert!((asked..asked + Duration::from_millis(5)).contains(&waited), "{waited:?}");
    }
}

#[tokio::test]
async fn refuses_what_only_looks_like_a_directive() {
    for text in [
        "[[sim: refuze]]",
        "[[sim:]]",
        "[[sim: refuse",
        "[[sim: refuse]] please",
        "[[sim: slow]]",
        "[[sim: slow 5]]",
        "[[sim: slow s]]",
        "[[sim: slow 5h]]",
        "[[sim: slow -5s]]",
        "[[sim: slow 11m]]",
        "[[sim: slow 99999999999999999999s]]",
        "[[sim: slow 1s]]\n[[sim: slow 1s]]",
        "[[sim: pace]]",
        "[[sim: pace 1]]",
        "[[sim: fast 1s]]",
        "[[sim: pace 1s]]\n[[sim: pace 1s]]",
        "[[sim: stall]]\n[[sim: break]]",
        "[[sim: no-usage]]\n[[sim: overrun]]",
        "[[sim: fail-before-once]]\n[[sim: fail-before-once]]",
    ] {
        assert_eq!(say(request(text)).await.outcome, Err(REFUSED), "{text}");
    }
}

#[tokio::test]
async fn directives_count_in_the_last_user_message_alone() {
    let mut request = request("[[sim: refuse]]");
    request.messages.push(message(Role::Assistant(AssistantMessage::default()), "[[sim: refuse]]"));
    request.messages.push(message(Role::User, "say [[sim: refuse]]"));
    check(&say(request).await, "You said: say [[sim: refuse]]", FinishReason::Stop);
}
