//! The scripted provider says what was written down, in order, and counts what it was asked.

use holdfast_domain::Provider;
use holdfast_domain::answer::{Answer, Delta, FinishReason};
use holdfast_domain::ports::{CallFailure, NotRunProof, Sink, UnknownReason};
use holdfast_domain::usage::UsageReport;
use holdfast_testkit::{Gate, Script, ScriptedProvider, join_all, sample};

#[derive(Default)]
struct AnswerSink(Answer);

impl Sink for AnswerSink {
    fn on_send(&mut self) {}

    fn on_delta(&mut self, delta: Delta) {
        self.0.append(delta);
    }
}

#[tokio::test]
async fn a_script_is_followed_and_then_the_next_one() {
    let not_run = CallFailure::NotRun(NotRunProof::RateLimited);
    let report = Some(UsageReport::text(3, 2));
    let provider = ScriptedProvider::new([
        Script::failing(not_run),
        Script::reporting(report).say("hel").say("lo").stop(),
    ]);
    let mut heard = AnswerSink::default();
    assert_eq!(provider.run(&sample::call("one"), &mut heard).await, Err(not_run));
    assert_eq!(heard.0, Answer::default());
    assert_eq!(provider.run(&sample::call("two"), &mut heard).await, Ok(report));
    let (_, choice) = heard.0.choices().next().unwrap();
    assert_eq!(
        (choice.content.as_deref(), choice.finish),
        (Some("hello"), Some(FinishReason::Stop))
    );
    assert!(heard.0.is_complete(1));
    let beyond = provider.run(&sample::call("three"), &mut heard).await;
    assert_eq!(beyond, Err(CallFailure::Unknown(UnknownReason::Broken)));
    let asked: Vec<_> = provider.calls().iter().map(|call| (*call.request).clone()).collect();
    assert_eq!(asked, ["one", "two", "three"].map(sample::request));
    assert_eq!(provider.runs(), 3);
}

#[tokio::test]
async fn a_gate_holds_a_run_until_the_test_opens_it() {
    let gate = Gate::new();
    let provider = ScriptedProvider::new([Script::finishing(None).say("a").wait(&gate).say("b")]);
    let run = async {
        let mut heard = AnswerSink::default();
        provider.run(&sample::call("one"), &mut heard).await.unwrap();
        heard.0.text_bytes()
    };
    let test = async {
        gate.reached().await;
        assert_eq!(provider.runs(), 1);
        gate.open();
        0
    };
    let both: [std::pin::Pin<Box<dyn Future<Output = u64>>>; 2] = [Box::pin(run), Box::pin(test)];
    assert_eq!(join_all(both).await, [2, 0]);
}
