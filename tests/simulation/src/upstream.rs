//! Upstreams: two routes of models that answer, hang, fail, lie and refuse, by chance.
//!
//! They are the truth about runs: a call counts as run from its first byte until it is proven that it did not.
//! A prompt begins with the name of its key, and the answer repeats the prompt, so that an answer of another request
//! is seen.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::Provider;
use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason};
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{Call, CallFailure, NotRunProof, Sink, UnknownReason};
use holdfast_domain::request::Content;
use holdfast_domain::usage::UsageReport;
use tokio::time::sleep;

use crate::chance::{Chance, Draws};
use crate::defect::Defect;
use crate::keys::ONE_RUN;
use crate::process::Process;
use crate::recorder::{Invariant, Recorder};
use crate::step::Step;
use crate::store::InjectedFailure;

/// Names of the providers of the routes, in the order of their priority.
pub const ROUTES: [&str; 2] = ["one", "two"];

/// Reaction to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaction {
    /// Whole answer, with its usage.
    Answers,
    /// Whole answer after a long time.
    AnswersLate,
    /// Whole answer with a wrong usage, or none.
    Misreports,
    /// No end of it.
    Hangs,
    /// Part of an answer, then no end of it.
    HangsInAnswer,
    /// Part of an answer, then a broken connection.
    BreaksOff,
    /// Status that proves nothing.
    Fails,
    /// Refusal of the request for good.
    Refuses,
    /// Proof that it did not run.
    TurnsAway(NotRunProof),
    /// Part of an answer, then a false proof that it did not run.
    LiesAboutRun,
    /// The adapter panics.
    Panics,
}

impl Reaction {
    /// Reaction to a call. The upstreams are overloaded for some keys: most of their calls are turned away.
    fn draw(draws: &mut Draws, is_overloaded: bool) -> Self {
        if is_overloaded && draws.permille(850) {
            return Self::TurnsAway(NotRunProof::Overloaded);
        }
        draws.pick(&[
            (40, Self::Answers),
            (6, Self::AnswersLate),
            (5, Self::Misreports),
            (3, Self::Hangs),
            (4, Self::HangsInAnswer),
            (4, Self::BreaksOff),
            (5, Self::Fails),
            (6, Self::Refuses),
            (9, Self::TurnsAway(NotRunProof::Connect)),
            (5, Self::TurnsAway(NotRunProof::RateLimited)),
            (5, Self::TurnsAway(NotRunProof::Overloaded)),
            (2, Self::TurnsAway(NotRunProof::Account)),
            (2, Self::LiesAboutRun),
            (2, Self::Panics),
        ])
    }
}

/// Runs of one operation, as the upstreams know them.
#[derive(Debug, Clone, Copy, Default)]
struct RunCount {
    calls: u64,
    /// Calls that ran, or may have.
    runs: u64,
    last: Option<RunEnd>,
}

/// End of the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunEnd {
    Proven,
    Unknown,
}

/// All routes of all models, and the runs that they know of.
pub struct Upstream {
    recorder: Arc<Recorder>,
    chance: Chance,
    defect: Option<Defect>,
    runs: Mutex<BTreeMap<String, RunCount>>,
    /// Prices of whole answers by prompt; `None` of one with a wrong usage.
    costs: Mutex<BTreeMap<String, Vec<Option<i64>>>>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upstream")
    }
}

impl Upstream {
    /// Upstreams without runs.
    #[must_use]
    pub fn new(chance: Chance, recorder: &Arc<Recorder>, defect: Option<Defect>) -> Arc<Self> {
        let (runs, costs) = (Mutex::default(), Mutex::default());
        Arc::new(Self { recorder: Arc::clone(recorder), chance, defect, runs, costs })
    }

    /// Calls of a key that ran, or may have.
    #[must_use]
    pub fn runs(&self, key: &str) -> u64 {
        self.counts().get(key).map_or(0, |count| count.runs)
    }

    /// True if an answer to this prompt may cost so much.
    #[must_use]
    pub fn has_cost(&self, prompt: &str, micros: i64) -> bool {
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |cost: &Option<i64>| cost.is_none_or(|cost| cost == micros);
        costs.get(prompt).is_some_and(|costs| costs.iter().any(fits))
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, RunCount>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: the number of the call under its key.
    fn begin(&self, key: &str, route: &str) -> u64 {
        let mut runs = self.counts();
        let count = runs.entry(key.to_owned()).or_default();
        count.calls += 1;
        let is_second = route != ROUTES[0];
        match count.last.filter(|_last| is_second) {
            Some(RunEnd::Proven) => self.recorder.reach(Step::NextRoute),
            Some(RunEnd::Unknown) => self.recorder.reach(Step::NextRouteUnknown),
            None => {}
        }
        count.last = Some(RunEnd::Unknown);
        count.calls
    }

    /// Counts the first byte of a call.
    fn run(&self, key: &str, is_one_run: bool) {
        let runs = {
            let mut runs = self.counts();
            let count = runs.entry(key.to_owned()).or_default();
            count.runs += 1;
            count.runs
        };
        if runs > 1 && is_one_run {
            self.recorder.violate(Invariant::I1, format!("{key}: run {runs} times"));
        }
    }

    /// Takes a run back: it is proven that it was none.
    fn disprove(&self, key: &str, was_sent: bool) {
        let mut runs = self.counts();
        let count = runs.entry(key.to_owned()).or_default();
        count.runs -= u64::from(was_sent);
        count.last = Some(RunEnd::Proven);
    }
}

/// Route of an upstream, as one process calls it.
#[derive(Debug)]
pub struct RouteProvider {
    upstream: Arc<Upstream>,
    process: Arc<Process>,
    route: &'static str,
}

impl RouteProvider {
    /// Route of a process.
    #[must_use]
    pub fn new(upstream: &Arc<Upstream>, process: &Arc<Process>, route: &'static str) -> Arc<Self> {
        let (upstream, process) = (Arc::clone(upstream), Arc::clone(process));
        Arc::new(Self { upstream, process, route })
    }

    async fn wait(&self, time: Duration) {
        sleep(time).await;
        self.process.live().await;
    }

    /// Streams a part of the answer, each word after a pause.
    async fn say(&self, sink: &mut dyn Sink, draws: &mut Draws, words: &[&str]) {
        for word in words {
            self.wait(draws.millis(5, 700)).await;
            sink.on_delta(delta(ChoiceDelta {
                content: Some(format!("{word} ")),
                ..ChoiceDelta::default()
            }));
        }
    }

    async fn react(
        &self,
        reaction: Reaction,
        prompt: &str,
        (sink, draws): (&mut dyn Sink, &mut Draws),
    ) -> Result<Option<UsageReport>, CallFailure> {
        let words: Vec<&str> = prompt.split(' ').chain(["is", "a", "fine", "question"]).collect();
        let n_words = 2 + draws.below(3);
        let said = words.len().min(usize::try_from(n_words).unwrap_or(2));
        match reaction {
            Reaction::Answers | Reaction::AnswersLate | Reaction::Misreports => {
                if reaction == Reaction::AnswersLate {
                    self.wait(draws.millis(8_000, 45_000)).await;
                }
                self.say(sink, draws, &words).await;
                let finish = Some(FinishReason::Stop);
                sink.on_delta(delta(ChoiceDelta { finish, ..ChoiceDelta::default() }));
                let (input, output) = (3 + draws.below(5), 5 + draws.below(20));
                let report = |input, output| UsageReport {
                    has_content: true,
                    ..UsageReport::text(input, output)
                };
                let mut costs = self.upstream.costs.lock().unwrap_or_else(PoisonError::into_inner);
                let costs = costs.entry(prompt.to_owned()).or_default();
                if reaction == Reaction::Misreports {
                    costs.push(None);
                    let (absurd, beyond) = (report(u64::MAX, output), report(input, 400));
                    let nothing = report(0, 0);
                    return Ok(draws.pick(&[
                        (1, None),
                        (1, Some(absurd)),
                        (1, Some(beyond)),
                        (1, Some(nothing)),
                    ]));
                }
                costs.push(Some(i64::try_from(input + output).unwrap_or(0)));
                Ok(Some(report(input, output)))
            }
            Reaction::Hangs => pending().await,
            Reaction::HangsInAnswer => {
                self.say(sink, draws, words.split_at(said).0).await;
                pending().await
            }
            Reaction::BreaksOff => {
                self.say(sink, draws, words.split_at(said).0).await;
                Err(CallFailure::Unknown(UnknownReason::Broken))
            }
            Reaction::LiesAboutRun => {
                self.say(sink, draws, words.split_at(said).0).await;
                Err(CallFailure::NotRun(NotRunProof::Overloaded))
            }
            Reaction::Fails => {
                self.wait(draws.millis(1, 3_000)).await;
                if self.upstream.defect == Some(Defect::FailureAsProof) {
                    return Err(CallFailure::NotRun(NotRunProof::Overloaded));
                }
                Err(CallFailure::Unknown(UnknownReason::Status))
            }
            Reaction::Refuses => {
                self.wait(draws.millis(1, 1_000)).await;
                Err(CallFailure::Refused(ProviderRefusal::Request))
            }
            Reaction::TurnsAway(proof) => {
                self.wait(draws.millis(1, 1_000)).await;
                Err(CallFailure::NotRun(proof))
            }
            // Without the panic hook: it is no bug, and prints nothing.
            Reaction::Panics => resume_unwind(Box::new(InjectedFailure)),
        }
    }
}

fn delta(choice: ChoiceDelta) -> Delta {
    Delta::from(vec![choice])
}

/// Prompt of a call, and the name of its key.
fn prompt_of(call: &Call) -> (String, String) {
    let content = call.request.messages.last().and_then(|message| message.content.as_ref());
    let prompt = match content {
        Some(Content::Text(text)) => text.clone(),
        Some(Content::Parts(_)) | None => String::new(),
    };
    let key = prompt.split(' ').next().unwrap_or_default().to_owned();
    (prompt, key)
}

#[async_trait]
impl Provider for RouteProvider {
    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        self.process.live().await;
        let (prompt, key) = prompt_of(call);
        let upstream = &self.upstream;
        let nth = upstream.begin(&key, self.route);
        let chance =
            key.bytes().fold(upstream.chance, |chance, byte| chance.part("", u64::from(byte)));
        let mut draws = chance.part(self.route, nth).draws();
        let reaction = Reaction::draw(&mut draws, chance.part("mood", 0).draws().permille(200));
        let is_sent = reaction != Reaction::TurnsAway(NotRunProof::Connect);
        upstream
            .recorder
            .note(format_args!("n{}: {key} route {} {reaction:?}", self.process.slot, self.route));
        // Connecting: a call that is dropped meanwhile did not run.
        self.wait(draws.latency()).await;
        if is_sent {
            sink.on_send();
            upstream.run(&key, call.request.model.as_str() == ONE_RUN);
            self.wait(draws.latency()).await;
        }
        // Decided where the model is: whether its process ever hears of it is another question.
        if matches!(reaction, Reaction::TurnsAway(_)) {
            upstream.disprove(&key, is_sent);
        }
        let ended = self.react(reaction, &prompt, (sink, &mut draws)).await;
        self.process.live().await;
        ended
    }
}
