//! The simulated provider where a stream is wanted: the same answer in pieces, at the pace that is asked
//! for, broken off where that is asked for.

use std::time::Duration;

use holdfast_domain::answer::{Answer, Delta, FinishReason};
use holdfast_domain::ports::{Call, CallFailure, Provider, ResponseMode, Sink, UnknownReason};
use holdfast_domain::request::Request;
use holdfast_providers::Simulator;
use tokio::time::Instant;

use crate::calls::{call, request, run};

fn streamed(request: Request) -> Call {
    Call { response_mode: ResponseMode::Streamed, ..call(request) }
}

/// Every piece and when it came.
#[derive(Default)]
struct TimedDeltas(Vec<(Delta, Option<Instant>)>);

impl Sink for TimedDeltas {
    fn on_send(&mut self) {}

    fn on_delta(&mut self, delta: Delta) {
        self.0.push((delta, Some(Instant::now())));
    }
}

impl TimedDeltas {
    /// What each piece says, of which choice.
    fn texts(&self) -> Vec<(u32, &str)> {
        let choices = self.0.iter().flat_map(|(delta, _)| &delta.choices);
        choices.filter_map(|choice| Some((choice.index, choice.content.as_deref()?))).collect()
    }

    fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        self.0.iter().for_each(|(delta, _)| answer.append(delta.clone()));
        answer
    }
}

#[tokio::test]
async fn says_it_word_by_word_and_ends_apart() {
    let mut pieces = TimedDeltas::default();
    let asked = streamed(Request { n: 2, ..request("hi  there") });
    Simulator::new().run(&asked, &mut pieces).await.unwrap();
    let said = [
        (0, ""),
        (1, ""),
        (0, "You "),
        (1, "(choice "),
        (0, "said: "),
        (1, "2) "),
        (0, "hi "),
        (1, "You "),
        (0, " "),
        (1, "said: "),
        (0, "there"),
        (1, "hi "),
        (1, " "),
        (1, "there"),
    ];
    assert_eq!(pieces.texts(), said);
    assert!(pieces.0.iter().all(|(delta, _)| delta.choices.len() == 1), "a choice at a time");
    let ends = pieces.0.iter().filter(|(delta, _)| delta.choices[0].finish.is_some());
    assert!(ends.clone().all(|(delta, _)| delta.choices[0].content.is_none()));
    assert_eq!(ends.count(), 2);
}

#[tokio::test]
async fn is_the_answer_that_comes_whole() {
    for text in ["hi there", "", "é € [[sim: x", "[[sim: no-usage]]\nx", "[[sim: overrun]]\na b"]
    {
        let asked = Request { n: 3, ..request(text) };
        let whole = run(&Simulator::new(), &call(asked.clone())).await;
        let pieces = run(&Simulator::new(), &streamed(asked)).await;
        assert_eq!((pieces.answer, pieces.outcome), (whole.answer, whole.outcome), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn keeps_the_pace_between_two_pieces() {
    let begun = Instant::now();
    let mut pieces = TimedDeltas::default();
    let asked = streamed(request("[[sim: pace 20ms]]\n[[sim: slow 1s]]\nhi"));
    Simulator::new().run(&asked, &mut pieces).await.unwrap();
    let came = pieces.0.iter().map(|(_, at)| at.unwrap().duration_since(begun).as_millis());
    let late: Vec<_> = came.zip([1_000, 1_020, 1_040, 1_060, 1_080]).collect();
    assert_eq!(late.len(), 5, "the opening, three words and the end");
    assert!(late.iter().all(|(came, at)| (*at..at + 5).contains(came)), "{late:?}");
    // What comes whole has no pieces to wait between.
    let begun = Instant::now();
    run(&Simulator::new(), &call(request("[[sim: pace 20ms]]\nhi there"))).await.outcome.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(20));
}

#[tokio::test]
async fn breaks_off_in_the_middle() {
    let ran = run(&Simulator::new(), &streamed(request("[[sim: break]]\nhalf of it"))).await;
    assert_eq!(ran.outcome, Err(CallFailure::Unknown(UnknownReason::Broken)));
    assert_eq!(ran.choices(), [("You said: ", None)]);
}

#[tokio::test(start_paused = true)]
async fn falls_silent_in_the_middle() {
    for arrival in [ResponseMode::Whole, ResponseMode::Streamed] {
        let mut pieces = TimedDeltas::default();
        let asked = Call { response_mode: arrival, ..call(request("[[sim: stall]]\nhalf of it")) };
        let provider = Simulator::new();
        let hours = Duration::from_secs(100 * 3_600);
        let ended = tokio::time::timeout(hours, provider.run(&asked, &mut pieces)).await;
        assert!(ended.is_err(), "it never ends");
        let answer = pieces.answer();
        let said = answer.choices().next().unwrap().1;
        assert_eq!((said.content.as_deref(), said.finish), (Some("You said: "), None));
    }
}

#[tokio::test]
async fn what_comes_first_of_two_bounds_counts_in_pieces_too() {
    let stop = vec!["two".to_owned()];
    let asked = streamed(Request { stop, ..request("one two three") });
    let ran = run(&Simulator::new(), &asked).await;
    assert_eq!(ran.choices(), [("You said: one ", Some(FinishReason::Stop))]);
    let bounded = Call { max_output_tokens: 3, ..streamed(request("hello there")) };
    let ran = run(&Simulator::new(), &bounded).await;
    assert_eq!(ran.choices(), [("You said: he", Some(FinishReason::Length))]);
}
