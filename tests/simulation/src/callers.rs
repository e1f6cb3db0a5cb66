//! Callers: they send a key to some node, hang up, and send it again to another one until it has its answer.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::CredentialId;
use holdfast_domain::credential::Bearer;
use holdfast_domain::operation::Phase;
use holdfast_domain::private::Private;
use holdfast_domain::secret::CredentialSecret;
use holdfast_engine::{Engine, RunMode, Submission};
use holdfast_testkit::sample;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::answers::{Answer, Answers};
use crate::chance::{Chance, Draws};
use crate::keys::Key;
use crate::node::{LiveProcess, NODES, Nodes};
use crate::recorder::Recorder;
use crate::step::Step;
use crate::store::Store;

/// Sends of one caller, before it gives up.
const SENDS_MAX: u64 = 8;
/// Wait of a caller that does not hang up.
const PATIENCE: Duration = Duration::from_secs(90);

/// Bearer of this number.
#[must_use]
pub fn bearer(number: u8) -> Bearer {
    let id = CredentialId::from_u128(u128::from(number));
    Bearer { id, secret: CredentialSecret::new([number; 32]) }
}

/// World of a caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Recorder of the run.
    pub recorder: Arc<Recorder>,
    /// Database server, to see what a refusal was for.
    pub store: Arc<Store>,
    /// Nodes that it can reach.
    pub nodes: Arc<Nodes>,
    /// Answers of all callers.
    pub answers: Arc<Answers>,
    /// Key that it sends.
    pub key: Key,
    /// True if it sends another request than the others of its key.
    pub is_other: bool,
    /// Number among the callers of its key.
    pub number: u64,
}

impl Caller {
    /// Calls until there is a final answer, or none is worth waiting for.
    pub async fn call(self, chance: Chance) {
        let mut draws = chance.draws();
        let streams = draws.permille(500);
        for _send in 0..SENDS_MAX {
            let slot = Self::slot(&mut draws);
            let hangs_up = if draws.permille(400) { draws.millis(20, 12_000) } else { PATIENCE };
            let answer = match self.nodes.running(slot) {
                Some(running) => {
                    self.send(&running, (streams, RunMode::RunOrReplay), hangs_up).await
                }
                None => None,
            };
            let is_over = answer
                .as_ref()
                .is_some_and(|answer| answer.is_final() || matches!(answer, Answer::OtherRequest));
            if is_over {
                return;
            }
            if draws.permille(60) {
                self.cancel(&mut draws).await;
            }
            sleep(draws.millis(10, 9_000)).await;
        }
    }

    /// Sends the key once more at the end of a run, without the right to begin a run.
    pub async fn replay(&self, slot: usize, streams: bool) -> Option<Answer> {
        let running = self.nodes.running(slot)?;
        self.send(&running, (streams, RunMode::ReplayOnly), PATIENCE).await
    }

    /// Cancels the key or looks it up now and then, whatever becomes of it.
    pub async fn meddle(self, chance: Chance) {
        let mut draws = chance.draws();
        for _time in 0..draws.below(7) {
            sleep(draws.millis(20, 9_000)).await;
            self.cancel(&mut draws).await;
        }
    }

    fn slot(draws: &mut Draws) -> usize {
        usize::try_from(draws.below(u64::try_from(NODES).unwrap_or(1))).unwrap_or(0)
    }

    /// Sends one request; `None` if there was no answer.
    async fn send(
        &self,
        running: &LiveProcess,
        (streams, mode): (bool, RunMode),
        hangs_up: Duration,
    ) -> Option<Answer> {
        let sent = self.recorder.elapsed();
        let row = self.store.journal.operation(self.key.operation);
        let now = sample::NOW.after(sent);
        let is_too_soon = row
            .as_ref()
            .is_some_and(|row| row.phase == Phase::Open && !row.reopens_in(now).is_zero());
        let may_claim = row.as_ref().is_none_or(|row| row.phase == Phase::Open);
        let has_lapsed = may_claim && running.process.has_lapsed(now);
        let (name, slot) = (&self.key.name, running.process.slot);
        let body = self.key.body(&self.key.prompt(self.is_other), streams);
        let (engine, key) = (Arc::clone(&running.engine), self.key.clone());
        let recorder = Arc::clone(&self.recorder);
        // A task of its own, as a connection has: a panic of a port ends only it, and hanging up drops it.
        let mut connection = JoinSet::new();
        connection.spawn(async move { ask(&engine, &recorder, &key, body, mode).await });
        let answered = async {
            tokio::select! {
                biased;
                () = running.process.end() => None,
                answer = connection.join_next() => answer.and_then(Result::ok).flatten(),
            }
        };
        let answer = timeout(hangs_up, answered).await.ok().flatten();
        let label = answer.as_ref().map_or_else(|| "no answer".to_owned(), Answer::label);
        let number = self.number;
        self.recorder.note(format_args!("caller {number} of {name} at n{slot}: {label}"));
        if is_too_soon && answer == Some(Answer::NotEnded("not run")) {
            self.recorder.reach(Step::TooSoon);
        }
        if has_lapsed && answer == Some(Answer::Later("storage unavailable")) {
            self.recorder.reach(Step::LeaseLost);
        }
        if let Some(answer) = &answer {
            self.answers.take(&self.key, self.is_other, sent, answer);
        }
        answer
    }

    /// Cancels the key, or looks it up.
    async fn cancel(&self, draws: &mut Draws) {
        let Some(running) = self.nodes.running(Self::slot(draws)) else { return };
        let (engine, key, is_look_up) = (running.engine, self.key.clone(), draws.permille(300));
        let mut connection = JoinSet::new();
        connection.spawn(async move {
            let bearer = bearer(key.bearer).expose();
            let Ok(caller) = engine.authenticate(&bearer, PEER).await else { return };
            // Its outcome is the row's, which the end of the run judges.
            if is_look_up {
                drop(engine.look_up(&caller, key.request_key).await);
            } else {
                drop(engine.cancel(&caller, key.request_key).await);
            }
        });
        let (name, slot) = (&self.key.name, running.process.slot);
        let verb = if is_look_up { "looked up" } else { "cancelled" };
        self.recorder.note(format_args!("{name} {verb} at n{slot}"));
        tokio::select! {
            biased;
            () = running.process.end() => {}
            _done = connection.join_next() => {}
        }
    }
}

/// Address of every caller.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn ask(
    engine: &Engine,
    recorder: &Recorder,
    key: &Key,
    body: String,
    mode: RunMode,
) -> Option<Answer> {
    let caller = engine.authenticate(&bearer(key.bearer).expose(), PEER).await.ok()?;
    let serving = engine.serving();
    let in_flight = Arc::new(engine.enter(&serving, &caller)?);
    let submission = Submission {
        serving,
        caller,
        request_key: key.request_key,
        mode,
        body: Private(Bytes::from(body)),
        memory: None,
        max_charge: Ok(None),
        retry_wait: Duration::from_secs(40),
        in_flight,
        trace: None,
    };
    let reply = engine.complete(submission).await;
    if reply.replayed {
        recorder.reach(Step::Attached);
    }
    Some(Answer::read(reply).await)
}
