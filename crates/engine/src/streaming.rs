//! An answer that is told while it is said: to a caller that started its run, or that came to it later,
//! and again from what was kept. Dropping it changes nothing: the run is a task of its own.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_domain::OperationId;
use holdfast_domain::operation::{Phase, ProviderRefusal};
use holdfast_wire::chat::chunk;
use holdfast_wire::chat::resume::{Resumption, Unresumable};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::Engine;
use crate::rates::Rates;
use crate::remote_run::{Progress, RemoteRun};
use crate::reply::{Answered, Facts, Failure, Reply};
use crate::results::is_large;
use crate::submit::Ask;
use crate::tape::{Followed, Follower, Outcome, Reader, Track};

/// A completion as events of a stream.
pub struct Stream {
    ready: VecDeque<Bytes>,
    /// What follows that.
    source: Source,
    facts: Facts,
    /// The answer that is replayed, where its bytes are counted until all of it was told.
    _room: Option<Bytes>,
}

/// Where the rest of a stream comes from.
enum Source {
    /// Nowhere: that is all.
    Nothing,
    /// From the run that says it here.
    Live(Box<Live>),
    /// From the run of another process, and from its row.
    Remote(Box<RemoteRun>),
    /// From what an answer that is not told as it is said comes to.
    Awaited(Box<Ask>, BoxFuture<'static, Reply>),
}

/// The run that says it, and where its reader is.
struct Live {
    engine: Arc<Engine>,
    ask: Ask,
    reader: Reader,
    follower: Follower,
    /// Until when its reader waits for the first of it.
    patience: Option<Instant>,
}

/// A piece of a stream.
pub enum Piece {
    /// The bytes of an event.
    Event(Bytes),
    /// It will never be whole; nothing follows.
    Broken(Broken),
}

/// Why a stream has no end.
pub enum Broken {
    /// The provider's definitive refusal, as whoever asks again is told.
    Refused(ProviderRefusal, Bytes),
    /// Anything else.
    Failed(Failure),
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Nothing => "nothing",
            Source::Live(_) => "a run",
            Source::Remote(_) => "a run elsewhere",
            Source::Awaited(..) => "an answer",
        };
        write!(f, "Stream({} events ready, then {source})", self.ready.len())
    }
}

impl fmt::Debug for Piece {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "Event({} bytes)", event.len()),
            Self::Broken(broken) => write!(f, "Broken({broken:?})"),
        }
    }
}

impl fmt::Debug for Broken {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal, body) => write!(f, "Refused({refusal:?}, {} bytes)", body.len()),
            Self::Failed(failure) => write!(f, "Failed({failure:?})"),
        }
    }
}

impl Stream {
    /// The next piece, as soon as it is there; `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Piece::Event(event));
            }
            let ended = match &mut self.source {
                Source::Nothing => return None,
                Source::Live(live) => match live.more().await {
                    More::Said(events) => {
                        self.ready = events;
                        continue;
                    }
                    More::Ended(facts, ending) => (*facts, ending),
                },
                Source::Remote(joined) => match joined.more().await {
                    Progress::Said(event) => return Some(Piece::Event(event)),
                    Progress::Rests(reply) => {
                        self.rest(*reply);
                        continue;
                    }
                },
                Source::Awaited(ask, reply) => match reply.await.travelling(ask) {
                    Reply { outcome: Ok(Answered::Streamed(stream)), .. } => {
                        *self = *stream;
                        continue;
                    }
                    Reply { outcome: Ok(Answered::Refused(refusal, body)), facts, .. } => {
                        (facts, Err(Broken::Refused(refusal, body)))
                    }
                    Reply { outcome: Err(failure), facts, .. } => {
                        (facts, Err(Broken::Failed(failure)))
                    }
                    // Never: whoever is answered by this wants a stream.
                    Reply { outcome: Ok(Answered::Completed(_)), facts, .. } => {
                        (facts, Err(Broken::Failed(Failure::Internal(Some(ask.id)))))
                    }
                },
            };
            let (facts, ending) = ended;
            (self.facts, self.source) = (facts, Source::Nothing);
            match ending {
                Ok(closing) => self.ready = closing,
                Err(broken) => return Some(Piece::Broken(broken)),
            }
        }
    }

    /// The run elsewhere is over, and this is what its row says.
    fn rest(&mut self, reply: Reply) {
        if let Source::Remote(joined) = std::mem::replace(&mut self.source, Source::Nothing) {
            let ask = Box::new(joined.ask().clone());
            self.source = Source::Awaited(ask, joined.resumed(reply).boxed());
        }
    }

    /// What of a stream that is there as a whole was not written yet.
    pub(crate) fn resumed(mut self, written: &mut Resumption) -> Result<Self, Unresumable> {
        let all = std::mem::take(&mut self.ready).into_iter();
        let rest = all.filter_map(|event| written.pass(&event).transpose());
        self.ready = rest.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Bytes that wait to be told.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready.iter().map(Bytes::len).sum()
    }

    /// Whether there is anything to tell: a head that was waited for long enough goes out without.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match &self.source {
            Source::Nothing => true,
            Source::Live(live) => live.follower.has_begun(),
            Source::Remote(joined) => joined.has_begun(),
            Source::Awaited(..) => false,
        }
    }

    /// What is known of the operation, for the log: all of it when the stream has ended.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// What comes of waiting for a run.
enum More {
    /// Events.
    Said(VecDeque<Bytes>),
    /// The last events, once the settlement has committed, or why there are none.
    Ended(Box<Facts>, Result<VecDeque<Bytes>, Broken>),
}

impl Live {
    /// What is said next. Cancel safe.
    async fn more(&mut self) -> More {
        let said = match self.patience {
            Some(patience) => timeout_at(patience, self.follower.more()).await,
            None => Ok(self.follower.more().await),
        };
        match said {
            Ok(said) if said.is_empty() => self.ending().await,
            Ok(said) => {
                self.patience = None;
                More::Said(said)
            }
            Err(_elapsed) => {
                let id = self.ask.id;
                let in_progress = Broken::Failed(Failure::InProgress(id));
                More::Ended(Box::new(Facts::in_progress(id)), Err(in_progress))
            }
        }
    }

    async fn ending(&self) -> More {
        let followed = self.reader.follow(None).await;
        // What was told is the row's answer only if this run has written it.
        let is_own = matches!(
            &followed,
            Followed::Ended(Outcome::Row { body: Some(_), ran: true, snapshot, .. })
                if snapshot.operation.as_ref().is_some_and(|row| {
                    matches!(row.phase, Phase::Completed { .. })
                })
        );
        let id = self.ask.id;
        let Reply { outcome, facts, .. } = self.engine.told(&self.ask, followed).await;
        let closing = self.follower.closing().filter(|_closing| is_own);
        let ending = match (outcome, closing) {
            (Ok(Answered::Completed(_)), Some(closing)) => Ok(closing),
            (Ok(Answered::Refused(refusal, body)), _) => Err(Broken::Refused(refusal, body)),
            (Err(failure), _) => Err(Broken::Failed(failure)),
            // Another answer than the one that was begun: whoever asks again gets it.
            (Ok(Answered::Completed(_) | Answered::Streamed(_)), _) => {
                Err(Broken::Failed(Failure::Storage(Some(id))))
            }
        };
        More::Ended(Box::new(facts), ending)
    }
}

impl Engine {
    /// Follows a run to its end, at most until `patience`. `Break`: its caller wants a stream, and that
    /// has begun, or has waited long enough for its head.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        ask: &Ask,
        reader: Reader,
        patience: Option<Instant>,
    ) -> ControlFlow<Reply, Followed> {
        if !ask.delivery.stream {
            return ControlFlow::Continue(reader.follow(patience).await);
        }
        // Another credential will not be able to read this answer again.
        let heard = reader.track().filter(|track| track.is_for(ask.caller.bearer.id));
        let mut follower = heard.map(|track| track.follow(ask.delivery.include_usage));
        let begun = async {
            match &mut follower {
                Some(follower) => follower.begun().await,
                None => std::future::pending().await,
            }
        };
        let head_due = async {
            sleep_until(ask.head_by).await;
            // Before that its errors are the caller's own: they have their status.
            reader.admitted().await;
        };
        tokio::select! {
            biased;
            () = begun => {}
            followed = reader.follow(patience) => return ControlFlow::Continue(followed),
            () = head_due => {}
        }
        let rates = heard.map_or_else(Rates::default, Track::rates);
        let facts =
            Facts { model: heard.map(|track| track.model().clone()), ..Facts::in_progress(ask.id) };
        let (engine, own) = (Arc::clone(self), ask.clone());
        let source = if let Some(follower) = follower {
            Source::Live(Box::new(Live { engine, ask: own, reader, follower, patience }))
        } else {
            let told = async move {
                let followed = reader.follow(patience).await;
                let reply = engine.told(&own, followed).await;
                engine.travelling(reply, &own).await
            };
            Source::Awaited(Box::new(ask.clone()), told.boxed())
        };
        ControlFlow::Break(Reply { rates, ..Reply::streamed(source, facts) })
    }
}

impl Reply {
    /// A stream of what a run elsewhere says after these events, and of what its row says then.
    pub(crate) fn joined(joined: RemoteRun, ready: VecDeque<Bytes>) -> Self {
        let facts = Facts::in_progress(joined.ask().id);
        let source = Source::Remote(Box::new(joined));
        Self { replayed: true, ..Self::streaming(ready, source, facts) }
    }

    fn streamed(source: Source, facts: Facts) -> Self {
        Self::streaming(VecDeque::new(), source, facts)
    }

    fn streaming(ready: VecDeque<Bytes>, source: Source, facts: Facts) -> Self {
        let stream = Stream { ready, source, facts: facts.clone(), _room: None };
        let outcome = Ok(Answered::Streamed(Box::new(stream)));
        Self { outcome, replayed: false, rates: Rates::default(), facts }
    }
}

impl Facts {
    /// What is known of an operation that runs.
    fn in_progress(id: OperationId) -> Self {
        Self { operation: Some(id), phase: Some(Phase::Leased.label()), ..Self::default() }
    }
}

impl Engine {
    /// The same as whoever asked wants it to travel; a large answer becomes a stream beside what else runs.
    pub(crate) async fn travelling(&self, reply: Reply, ask: &Ask) -> Reply {
        if !reply.is_large() || !ask.delivery.stream {
            return reply.travelling(ask);
        }
        let (id, ask) = (ask.id, ask.clone());
        // In a box: few are.
        let travelling = Box::pin(self.beside(move || reply.travelling(&ask))).await;
        travelling.unwrap_or_else(|| Reply::unbound(Failure::Internal(Some(id))))
    }
}

impl Reply {
    fn is_large(&self) -> bool {
        matches!(&self.outcome, Ok(Answered::Completed(body)) if is_large(body.len()))
    }

    /// The same, as whoever asked wants it to travel: an answer that is whole becomes a stream of its
    /// text.
    pub(crate) fn travelling(self, ask: &Ask) -> Self {
        if !ask.delivery.stream {
            return self;
        }
        let Self { outcome, replayed, rates, facts } = self;
        let outcome = match outcome {
            Ok(Answered::Completed(body)) => kept(ask, body, &facts),
            other => other,
        };
        Self { outcome, replayed, rates, facts }
    }
}

fn kept(ask: &Ask, body: Bytes, facts: &Facts) -> Result<Answered, Failure> {
    match chunk::replay(&body, ask.delivery.include_usage) {
        Ok(events) => {
            let (ready, facts) = (VecDeque::from(events), facts.clone());
            let room = is_large(body.len()).then_some(body);
            let source = Source::Nothing;
            Ok(Answered::Streamed(Box::new(Stream { ready, source, facts, _room: room })))
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(operation.id = %ask.id, error, "a result was not read");
            Err(Failure::Unreadable(ask.id, facts.usage.clone().map(Box::new)))
        }
    }
}
