//! An answer that is told while it is said: to a caller that started its run, or that came to it later,
//! and again from what was kept. Dropping it changes nothing: the run is a task of its own.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::operation::{Phase, ProviderRefusal};
use holdfast_wire::chat::chunk;
use tokio::time::Instant;

use crate::Engine;
use crate::reply::{Answered, Facts, Failure, Reply};
use crate::submit::Ask;
use crate::tape::{Followed, Follower, Outcome, Reader};

/// A completion as events of a stream.
pub struct Stream {
    ready: VecDeque<Bytes>,
    live: Option<Live>,
    facts: Facts,
}

/// The run that says it, and where its reader is.
struct Live {
    engine: Arc<Engine>,
    ask: Ask,
    reader: Reader,
    follower: Follower,
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
        write!(f, "Stream({} events ready, live: {})", self.ready.len(), self.live.is_some())
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
        if self.ready.is_empty()
            && let Some(live) = &mut self.live
        {
            self.ready = live.follower.more().await;
            if self.ready.is_empty() {
                let (facts, ending) = live.ending().await;
                (self.facts, self.live) = (facts, None);
                match ending {
                    Ok(closing) => self.ready = closing,
                    Err(broken) => return Some(Piece::Broken(broken)),
                }
            }
        }
        self.ready.pop_front().map(Piece::Event)
    }

    /// What is known of the operation, for the log: all of it when the stream has ended.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }
}

impl Live {
    /// The last events, once the settlement has committed, or why there are none.
    async fn ending(&self) -> (Facts, Result<VecDeque<Bytes>, Broken>) {
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
        (facts, ending)
    }
}

impl Engine {
    /// Follows a run to its end, at most until `patience`. `Break`: its caller wants a stream, and that
    /// has begun.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        ask: &Ask,
        reader: Reader,
        patience: Option<Instant>,
    ) -> ControlFlow<Reply, Followed> {
        let heard = reader.track().filter(|track| {
            // Another credential will not be able to read this answer again.
            ask.delivery.stream && track.is_for(ask.caller.bearer.id)
        });
        let Some(track) = heard else {
            return ControlFlow::Continue(reader.follow(patience).await);
        };
        let mut follower = track.follow(ask.delivery.include_usage);
        tokio::select! {
            biased;
            () = follower.begun() => {}
            followed = reader.follow(patience) => return ControlFlow::Continue(followed),
        }
        let facts = Facts {
            operation: Some(ask.id),
            model: Some(track.model().clone()),
            phase: Some(Phase::Leased.label()),
            ..Facts::default()
        };
        let rates = track.rates();
        let (engine, ask) = (Arc::clone(self), ask.clone());
        let live = Some(Live { engine, ask, reader, follower });
        let stream = Stream { ready: VecDeque::new(), live, facts: facts.clone() };
        let outcome = Ok(Answered::Streamed(Box::new(stream)));
        ControlFlow::Break(Reply { outcome, replayed: false, rates, facts })
    }
}

impl Reply {
    /// The same, as whoever asked wants it to travel: an answer that is whole becomes a stream of its
    /// text.
    pub(crate) fn travelling(self, ask: &Ask) -> Self {
        if !ask.delivery.stream {
            return self;
        }
        let Self { outcome, replayed, rates, facts } = self;
        let outcome = match outcome {
            Ok(Answered::Completed(body)) => kept(ask, &body, &facts),
            other => other,
        };
        Self { outcome, replayed, rates, facts }
    }
}

fn kept(ask: &Ask, body: &[u8], facts: &Facts) -> Result<Answered, Failure> {
    match chunk::replay(body, ask.delivery.include_usage) {
        Ok(events) => {
            let (ready, facts) = (VecDeque::from(events), facts.clone());
            Ok(Answered::Streamed(Box::new(Stream { ready, live: None, facts })))
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(operation.id = %ask.id, error, "a result was not read");
            Err(Failure::Unreadable(ask.id, facts.usage.clone().map(Box::new)))
        }
    }
}
