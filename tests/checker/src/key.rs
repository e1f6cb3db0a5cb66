//! Model of one request key: what a gateway that does one step at a time may answer.
//!
//! ```text
//! free ─▶ bound to a request ─▶ ran ─▶ answered, for ever
//!            │  ▲  turned away: it did not run, and may run again
//!            └──┘
//! ```
//!
//! An answer that is not final (503, 409 in progress) proves nothing of what its request did later, so it is a step that
//! may happen at any later moment or never, as a call whose connection was cut is. A run was sent at some moment before
//! it arrived; bytes on their way outlive the process that sent them.

use todc_utils::specifications::Specification;

use crate::history::{Answer, Reaction};
use crate::outcome::Outcome;
use crate::records::{KeyId, KeyRecords};
use crate::search::{Interval, has_order};
use crate::{Rule, Violation};

/// A final answer, as far as two of them have to be the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FinalAnswer {
    status: u16,
    content: String,
    operation: Option<String>,
    charge_micros: Option<i64>,
    /// `None`: it was a stream.
    bytes: Option<String>,
}

/// A step that one record stands for.
#[derive(Debug, Clone)]
enum Step {
    /// The upstream was sent the request.
    Run { request: String, is_proven_not_run: bool },
    /// A caller has a final answer.
    Answered { request: String, answer: FinalAnswer, needs_run: bool },
    /// A caller was refused because the key is bound to another request.
    Conflict { request: String },
    /// A caller has an answer that no bound and ended key gives.
    NotEnded { request: String },
    /// A request that may have bound the key.
    Perhaps { request: String },
}

/// State of a request key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct State {
    bound: Option<String>,
    may_have_run: bool,
    answer: Option<FinalAnswer>,
}

impl State {
    /// The key after a request of it; `None` if it is bound to another one.
    fn bound_to(&self, request: &str) -> Option<Self> {
        let is_other = self.bound.as_ref().is_some_and(|bound| bound != request);
        (!is_other).then(|| Self { bound: Some(request.to_owned()), ..self.clone() })
    }

    /// The key after a final answer; `None` if it had another one.
    fn answered(self, answer: &FinalAnswer) -> Option<Self> {
        let Some(known) = &self.answer else {
            return Some(Self { answer: Some(answer.clone()), ..self });
        };
        let bytes = known.bytes.as_ref().or(answer.bytes.as_ref()).cloned();
        let whole = |it: &FinalAnswer| FinalAnswer { bytes: bytes.clone(), ..it.clone() };
        // Two streams, or a stream and a body, have the content in common, and two bodies have the bytes.
        let is_same = whole(known) == whole(answer)
            && answer.bytes.as_ref().is_none_or(|of_answer| Some(of_answer) == bytes.as_ref());
        is_same.then(|| Self { answer: Some(whole(known)), ..self })
    }
}

/// The model of a request key.
struct Model;

impl Specification for Model {
    type State = State;
    type Operation = Step;

    fn init() -> State {
        State::default()
    }

    fn apply(step: &Step, state: &State) -> (bool, State) {
        let next = match step {
            Step::Run { request, is_proven_not_run } => state
                .bound_to(request)
                .filter(|next| !next.may_have_run && next.answer.is_none())
                .map(|next| State { may_have_run: !is_proven_not_run, ..next }),
            Step::Answered { request, answer, needs_run } => state
                .bound_to(request)
                .filter(|next| next.may_have_run || !needs_run)
                .and_then(|next| next.answered(answer)),
            Step::Conflict { request } => {
                let is_other = state.bound.as_ref().is_some_and(|bound| bound != request);
                is_other.then(|| state.clone())
            }
            Step::NotEnded { request } => {
                let is_ended = state.answer.is_some() || state.bound_to(request).is_none();
                (!is_ended).then(|| state.clone())
            }
            // Bound to another one, it was a conflict whose answer nobody read.
            Step::Perhaps { request } => {
                Some(state.bound_to(request).unwrap_or_else(|| state.clone()))
            }
        };
        next.map_or_else(|| (false, state.clone()), |next| (true, next))
    }
}

/// Judges the records of a request key.
pub(crate) fn check(id: &KeyId<'_>, records: &KeyRecords<'_>) -> Option<Violation> {
    let steps = steps(records);
    if has_order::<Model>(&steps) {
        return None;
    }
    Some(Violation {
        rule: Rule::Key,
        object: id.object(),
        text: explain(&steps),
        lines: records.lines(),
    })
}

fn steps(records: &KeyRecords<'_>) -> Vec<Interval<Step>> {
    let mut steps = Vec::new();
    let first = records.calls.iter().map(|it| it.record.called).min();
    for run in &records.runs {
        let run = &run.record;
        let is_proven_not_run = run.reaction == Reaction::TurnedAway;
        let step = Step::Run { request: run.request.clone(), is_proven_not_run };
        let called = first.unwrap_or(run.at).min(run.at);
        steps.push(Interval { called, returned: Some(run.at), step });
    }
    for call in &records.calls {
        let call = &call.record;
        let request = call.request.clone();
        let perhaps = Step::Perhaps { request: request.clone() };
        let answer = call.answer.as_ref();
        let outcome = answer.and_then(|it| Some((it, Outcome::of(it)?)));
        let Some((answer, outcome)) = outcome else {
            steps.push(Interval { called: call.called, returned: None, step: perhaps });
            continue;
        };
        let step = match outcome {
            Outcome::Completed | Outcome::Refused | Outcome::Abandoned => Step::Answered {
                request,
                answer: final_answer(answer),
                needs_run: outcome != Outcome::Abandoned,
            },
            Outcome::Conflict => Step::Conflict { request },
            Outcome::Unbound | Outcome::NotRun => Step::NotEnded { request },
            Outcome::Later => perhaps.clone(),
        };
        if outcome == Outcome::NotRun {
            // Bound by it or not: routes that were passed over bind nothing.
            steps.push(Interval { called: call.called, returned: None, step: perhaps });
        }
        let returned = call.returned.filter(|_| outcome != Outcome::Later);
        steps.push(Interval { called: call.called, returned, step });
    }
    steps
}

fn final_answer(answer: &Answer) -> FinalAnswer {
    let Answer { status, code: _, bytes, content, operation, charge_micros } = answer.clone();
    FinalAnswer { status, content, operation, charge_micros, bytes }
}

/// The likeliest reason, for people: the verdict is the search's.
fn explain(steps: &[Interval<Step>]) -> String {
    let mut requests: Vec<&str> = Vec::new();
    let mut answers: Vec<&FinalAnswer> = Vec::new();
    let mut runs = 0;
    for timed in steps {
        match &timed.step {
            Step::Run { is_proven_not_run, .. } => runs += usize::from(!is_proven_not_run),
            Step::Answered { request, answer, .. } => {
                requests.push(request);
                answers.push(answer);
            }
            Step::Conflict { .. } | Step::NotEnded { .. } | Step::Perhaps { .. } => {}
        }
    }
    requests.sort_unstable();
    requests.dedup();
    let state = State::default();
    let folded = answers.iter().try_fold(state, |state, answer| state.answered(answer));
    let reason = if runs > 1 {
        "may have run more than once"
    } else if requests.len() > 1 {
        "answers to more than one request"
    } else if folded.is_none() {
        "final answers that are not the same"
    } else {
        "no order of its calls, answers and runs"
    };
    format!("{reason} ({runs} runs, {} final answers)", answers.len())
}
