//! Calls that begin valid and vary one thing, and a sink that keeps what was said.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::answer::{Answer, Delta, FinishReason};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::ports::{Call, CallFailure, FailureNote, Provider, ResponseMode, Sink};
use holdfast_domain::price::UnitPrices;
use holdfast_domain::request::{Content, Message, Request, Role};
use holdfast_domain::state::ProviderStates;
use holdfast_domain::usage::{UsageCeiling, UsageReport};

pub(crate) fn message(role: Role, text: &str) -> Message {
    Message::new(role, Some(Content::Text(text.to_owned())))
}

/// A request whose only message is the user's.
pub(crate) fn request(text: &str) -> Request {
    let model = PublicModelId::try_from("holdfast/sim-1").unwrap();
    Request::new(model, vec![message(Role::User, text)])
}

/// A call for the upstream model `sim-1` with a bound of 1,000 tokens.
pub(crate) fn call(request: Request) -> Call {
    Call {
        request: Arc::new(request),
        model: "sim-1".into(),
        max_output_tokens: 1_000,
        context_tokens: 8_000,
        key: None,
        connect: Duration::from_secs(5),
        response_mode: ResponseMode::Whole,
        states: ProviderStates::new(),
    }
}

/// What became of a call.
pub(crate) struct CallResult {
    pub(crate) outcome: Result<Option<UsageReport>, CallFailure>,
    pub(crate) answer: Answer,
    /// Whether the sink was told of the sending.
    pub(crate) was_sent: bool,
    /// Pause that the server asked for.
    pub(crate) pause: Option<Duration>,
    /// Note of the failure.
    pub(crate) note: Option<String>,
}

impl CallResult {
    /// The text and the end of each choice.
    pub(crate) fn choices(&self) -> Vec<(&str, Option<FinishReason>)> {
        let said = self.answer.choices();
        said.map(|(_, choice)| (choice.content.as_deref().unwrap_or(""), choice.finish)).collect()
    }

    /// Prompt and completion tokens of an accepted report.
    pub(crate) fn usage(&self) -> Option<(u64, u64)> {
        let ceiling = UsageCeiling { context_tokens: 8_000, output_tokens: 2_000 };
        let prices: holdfast_domain::price::Tariff = UnitPrices::from_fn(|_kind| 1).unwrap().into();
        let meters =
            self.outcome.unwrap()?.resolve(&ceiling, |meters| prices.cost(meters)).ok()?.meters;
        Some((meters.prompt_tokens(), meters.completion_tokens()))
    }
}

pub(crate) async fn run(provider: &dyn Provider, call: &Call) -> CallResult {
    let mut heard = RecordingSink::default();
    let outcome = provider.run(call, &mut heard).await;
    let RecordingSink { answer, was_sent, pause, note } = heard;
    CallResult { outcome, answer, was_sent, pause, note }
}

#[derive(Default)]
struct RecordingSink {
    answer: Answer,
    was_sent: bool,
    pause: Option<Duration>,
    note: Option<String>,
}

impl Sink for RecordingSink {
    fn on_send(&mut self) {
        self.was_sent = true;
    }

    fn on_delta(&mut self, delta: Delta) {
        self.answer.append(delta);
    }

    fn on_retry_after(&mut self, time: Duration) {
        self.pause = Some(time);
    }

    fn on_failure_note(&mut self, note: FailureNote) {
        self.note = Some(note.as_str().to_owned());
    }
}
