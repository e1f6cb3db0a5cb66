//! A provider that does what a test wrote down, and a gate to stop it at.
//!
//! A call takes the next script: it may wait before a byte is sent, notifies the sink that it sends, then
//! streams, reports and waits as written, and ends. So a test decides how much was sent before a cancel or a
//! crash, and counts the runs: a call without a script has run and its outcome is unknown.
//!
//! No clock and no runtime: a task that waits at a [`Gate`] is woken by the test that opens it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason};
use holdfast_domain::ports::{Call, CallFailure, Sink, UnknownReason};
use holdfast_domain::usage::{MeterKind, Meters, UsageReport};
use holdfast_domain::{Currency, Micros, Provider};

/// Provider that runs a script for each call, in their order. A call that no script was left for
/// has an unknown outcome, and counts as a run.
///
/// ```
/// use holdfast_domain::Provider;
/// use holdfast_domain::answer::Delta;
/// use holdfast_domain::ports::{CallFailure, NotRunProof, Sink, UnknownReason};
/// use holdfast_testkit::{Script, ScriptedProvider, sample};
///
/// struct Deaf;
///
/// impl Sink for Deaf {
///     fn on_send(&mut self) {}
///     fn on_delta(&mut self, _delta: Delta) {}
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let turned_away = CallFailure::NotRun(NotRunProof::RateLimited);
/// let provider = ScriptedProvider::new([Script::failing(turned_away)]);
/// let call = sample::call("hello");
/// assert_eq!(provider.run(&call, &mut Deaf).await, Err(turned_away));
/// assert!(matches!(provider.run(&call, &mut Deaf).await, Err(CallFailure::Unknown(UnknownReason::Broken))));
/// # }
/// ```
pub struct ScriptedProvider {
    state: Mutex<ScriptQueue>,
    shape: Option<&'static str>,
    repeats_calls: bool,
}

struct ScriptQueue {
    scripts: VecDeque<Script>,
    calls: Vec<Call>,
}

/// Script of a call.
#[derive(Debug, Clone)]
pub struct Script {
    connecting: Option<Gate>,
    steps: Vec<ScriptStep>,
    ending: Result<Option<UsageReport>, CallFailure>,
}

#[derive(Debug, Clone)]
enum ScriptStep {
    Say(Delta),
    Report(UsageReport),
    RetryAfter(Duration),
    Charge(Currency, Micros),
    Wait(Gate),
}

impl Script {
    /// A call that ends well, with a report of these meters.
    #[must_use]
    pub fn finishing(meters: Option<Meters>) -> Self {
        Self::reporting(meters.map(|meters| report(&meters)))
    }

    /// A call that ends well, with this report.
    #[must_use]
    pub const fn reporting(report: Option<UsageReport>) -> Self {
        Self { connecting: None, steps: Vec::new(), ending: Ok(report) }
    }

    /// A call that fails.
    #[must_use]
    pub const fn failing(failure: CallFailure) -> Self {
        Self { connecting: None, steps: Vec::new(), ending: Err(failure) }
    }

    /// Streams this piece of the first choice.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.delta(ChoiceDelta { content: Some(text.to_owned()), ..ChoiceDelta::default() })
    }

    /// Ends the first choice.
    #[must_use]
    pub fn stop(self) -> Self {
        self.delta(ChoiceDelta { finish: Some(FinishReason::Stop), ..ChoiceDelta::default() })
    }

    /// Streams this delta.
    #[must_use]
    pub fn delta(mut self, gained: ChoiceDelta) -> Self {
        self.steps.push(ScriptStep::Say(Delta::from(vec![gained])));
        self
    }

    /// Reports what the answer used up, before the call ends.
    #[must_use]
    pub fn report(mut self, meters: Meters) -> Self {
        self.steps.push(ScriptStep::Report(report(&meters)));
        self
    }

    /// Requests a pause of so long.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.steps.push(ScriptStep::RetryAfter(time));
        self
    }

    /// Reports the charge of the gateway behind.
    #[must_use]
    pub fn charge(mut self, currency: Currency, charge: Micros) -> Self {
        self.steps.push(ScriptStep::Charge(currency, charge));
        self
    }

    /// Waits at the gate before anything is sent.
    #[must_use]
    pub fn wait_before_send(self, gate: &Gate) -> Self {
        Self { connecting: Some(gate.clone()), ..self }
    }

    /// Waits until the test opens the gate.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(ScriptStep::Wait(gate.clone()));
        self
    }
}

/// Report from which these meters are resolved.
fn report(meters: &Meters) -> UsageReport {
    let of = |kind| meters.count(kind).into();
    UsageReport {
        cached: of(MeterKind::CachedInput),
        written: of(MeterKind::CacheWrite),
        audio_in: of(MeterKind::AudioInput),
        reasoning: of(MeterKind::Reasoning),
        audio_out: of(MeterKind::AudioOutput),
        ..UsageReport::text(meters.prompt_tokens(), meters.completion_tokens())
    }
}

impl ScriptedProvider {
    /// Provider that follows these.
    #[must_use]
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let (scripts, calls) = (scripts.into_iter().collect(), Vec::new());
        let state = Mutex::new(ScriptQueue { scripts, calls });
        Self { state, shape: None, repeats_calls: false }
    }

    /// The same, which requires states of this shape in the next request.
    #[must_use]
    pub fn with_state_shape(self, shape: &'static str) -> Self {
        Self { shape: Some(shape), ..self }
    }

    /// The same, whose calls carry the mark of a repetition.
    #[must_use]
    pub fn repeating_calls(self) -> Self {
        Self { repeats_calls: true, ..self }
    }

    /// Number of calls.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.state().calls.len()
    }

    /// Calls in their order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    fn state(&self) -> MutexGuard<'_, ScriptQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, call: &Call) -> Option<Script> {
        let mut state = self.state();
        // Counted as it begins: a call that is cut, or that no script was left for, is a run too.
        state.calls.push(call.clone());
        state.scripts.pop_front()
    }
}

impl fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedProvider({} runs)", self.runs())
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn state_shape(&self) -> Option<&'static str> {
        self.shape
    }

    fn repeats_calls(&self) -> bool {
        self.repeats_calls
    }

    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        let Some(script) = self.next(call) else {
            return Err(CallFailure::Unknown(UnknownReason::Broken));
        };
        if let Some(gate) = script.connecting {
            gate.pass().await;
        }
        // After the gate: a test that drops the call at it has proof that no byte was sent.
        sink.on_send();
        for step in script.steps {
            match step {
                ScriptStep::Say(delta) => sink.on_delta(delta),
                ScriptStep::Report(report) => sink.on_usage(report),
                ScriptStep::RetryAfter(time) => sink.on_retry_after(time),
                ScriptStep::Charge(currency, charge) => sink.on_charge(currency, charge),
                ScriptStep::Wait(gate) => gate.pass().await,
            }
        }
        script.ending
    }
}

/// Stops every task that reaches it until the test opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<GateState>>);

#[derive(Default)]
struct GateState {
    reached: usize,
    open: bool,
    wakers: Vec<Waker>,
}

impl Gate {
    /// A closed one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody pass, from now on.
    pub fn open(&self) {
        let mut passage = self.passage();
        passage.open = true;
        passage.wake();
    }

    /// Waits until a task stands at it, or has passed.
    pub async fn reached(&self) {
        self.until(|passage| passage.reached > 0).await;
    }

    /// Waits until it is open.
    pub async fn pass(&self) {
        {
            let mut passage = self.passage();
            passage.reached = passage.reached.saturating_add(1);
            passage.wake();
        }
        self.until(|passage| passage.open).await;
    }

    async fn until(&self, done: impl Fn(&GateState) -> bool) {
        poll_fn(|context| {
            let mut passage = self.passage();
            if done(&passage) {
                return Poll::Ready(());
            }
            // Under the same lock as the look at the gate, so that no opening in between is missed.
            passage.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn passage(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate(open: {})", self.passage().open)
    }
}

impl GateState {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}
