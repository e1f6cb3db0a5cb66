//! Streamed completions: live from a run, from a run of another process, or replayed from storage.
//!
//! ```text
//! source    │ events come from                         │ the end comes from
//! Live      │ the run's chunk log                      │ its settlement
//! Remote    │ a relay, while there is one              │ the operation's row
//! Awaited   │ none yet: the head had to go out         │ the reply, once it is known
//! Nothing   │ all events are here: a replay            │ the last of them
//! ```
//!
//! A head goes out with the first event, or after five seconds without one: until then an error still has its
//! status. The closing events wait for the COMMIT of the settlement. A client that has read the end of a stream may
//! rely on its payment and its replay; sent earlier, a lost commit would break that promise.
//!
//! Two answers are never joined into one: if the row has another answer than the one that was begun, the stream
//! breaks, and a repeated request gets the row's.
//!
//! Dropping a stream has no effect on the run, which is a task of its own. A slow follower gets coarser chunks, and
//! the bytes of a large replay are counted until all of it was sent.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_domain::operation::{Phase, ProviderRefusal, Situation};
use holdfast_domain::private::Private;
use holdfast_domain::{ErrorChain, OperationId};
use holdfast_wire::chat::chunk;
use holdfast_wire::chat::resume::{ResumeError, Resumption};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::remote_run::{RemoteProgress, RemoteRun};
use super::{Reply, ReplyBody, ReplyFacts};
use crate::failure::RequestFailure;
use crate::front::Front;
use crate::rate_limit::RateLimitStatus;
use crate::request_context::RequestContext;
use crate::results::is_large;
use crate::tape::{ChunkLog, FollowOutcome, Follower, Outcome, Reader};

/// Streamed completion: events that are ready, and the source of the rest.
pub struct CompletionStream {
    ready: VecDeque<Bytes>,
    /// Source of the events that follow those that are ready.
    source: StreamSource,
    facts: ReplyFacts,
    /// Large answer behind a replay: its room in memory is counted until the stream is dropped.
    _room: Option<Bytes>,
}

/// Source of the rest of a stream.
enum StreamSource {
    /// No more events.
    Nothing,
    /// Run of this process, by its log and its settlement.
    Live(Box<LiveRun>),
    /// Run of another process, by its relay and its row.
    Remote(Box<RemoteRun>),
    /// Reply that is still awaited, and then sent as a whole.
    Awaited(Box<RequestContext>, BoxFuture<'static, Reply>),
}

/// Run of this process, with one follower of its log.
struct LiveRun {
    front: Arc<Front>,
    context: RequestContext,
    reader: Reader,
    follower: Follower,
    /// End of the wait for the first event; `None` after it.
    first_event_by: Option<Instant>,
}

/// Item of a stream.
#[derive(Debug)]
pub enum StreamItem {
    /// Event, framed as it is written.
    Event(Private<Bytes>),
    /// Break: the stream has no proper end, and no event follows.
    Broken(StreamFailure),
}

/// Cause of a break.
#[derive(Debug)]
pub enum StreamFailure {
    /// Definitive refusal by the provider, in the bytes that a retry gets.
    Refused(ProviderRefusal, Private<Bytes>),
    /// Any other failure.
    Failed(RequestFailure),
}

impl fmt::Debug for CompletionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            StreamSource::Nothing => "nothing",
            StreamSource::Live(_) => "a run",
            StreamSource::Remote(_) => "a run elsewhere",
            StreamSource::Awaited(..) => "an answer",
        };
        write!(f, "CompletionStream({} events ready, then {source})", self.ready.len())
    }
}

impl CompletionStream {
    /// Waits for the next item; `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> Option<StreamItem> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(StreamItem::Event(Private(event)));
            }
            let ended = match &mut self.source {
                StreamSource::Nothing => return None,
                StreamSource::Live(live) => match live.more().await {
                    NextEvents::Events(events) => {
                        self.ready = events;
                        continue;
                    }
                    NextEvents::Ended(facts, ending) => (*facts, ending),
                },
                StreamSource::Remote(joined) => match joined.more().await {
                    RemoteProgress::Event(event) => return Some(StreamItem::Event(Private(event))),
                    RemoteProgress::Ended(reply) => {
                        self.finish_with(*reply);
                        continue;
                    }
                },
                StreamSource::Awaited(context, reply) => match reply.await.into_delivery(context) {
                    Reply { outcome: Ok(ReplyBody::Streamed(stream)), .. } => {
                        // With the facts of the row, which the head could not have.
                        *self = *stream;
                        continue;
                    }
                    Reply { outcome: Ok(ReplyBody::Refused(refusal, body)), facts, .. } => {
                        (facts, Err(StreamFailure::Refused(refusal, body)))
                    }
                    Reply { outcome: Err(failure), facts, .. } => {
                        (facts, Err(StreamFailure::Failed(failure)))
                    }
                    // Never: a caller of this requested a stream.
                    Reply { outcome: Ok(ReplyBody::Completed(_)), facts, .. } => (
                        facts,
                        Err(StreamFailure::Failed(RequestFailure::Internal(Some(context.id)))),
                    ),
                },
            };
            let (facts, ending) = ended;
            (self.facts, self.source) = (facts, StreamSource::Nothing);
            match ending {
                Ok(closing) => self.ready = closing,
                Err(broken) => return Some(StreamItem::Broken(broken)),
            }
        }
    }

    /// Goes on with the row's reply after a run elsewhere has ended.
    fn finish_with(&mut self, reply: Reply) {
        if let StreamSource::Remote(joined) =
            std::mem::replace(&mut self.source, StreamSource::Nothing)
        {
            let context = Box::new(joined.context().clone());
            self.source = StreamSource::Awaited(context, joined.resume_reply(reply).boxed());
        }
    }

    /// Drops the text that was written already from a whole stream; an error if the texts differ.
    pub(crate) fn resume_after(mut self, written: &mut Resumption) -> Result<Self, ResumeError> {
        for event in std::mem::take(&mut self.ready) {
            self.ready.extend(written.filter(&event)?);
        }
        Ok(self)
    }

    /// Bytes of the events that are ready.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready.iter().map(Bytes::len).sum()
    }

    /// True if an event exists or was sent; a head that is due goes out before one.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match &self.source {
            StreamSource::Nothing => true,
            StreamSource::Live(live) => live.follower.has_begun(),
            StreamSource::Remote(joined) => joined.has_begun(),
            StreamSource::Awaited(..) => false,
        }
    }

    /// Facts for the log, complete once the stream has ended.
    #[must_use]
    pub const fn facts(&self) -> &ReplyFacts {
        &self.facts
    }
}

/// Step of following a run.
enum NextEvents {
    /// Events to write.
    Events(VecDeque<Bytes>),
    /// Closing events after the COMMIT of the settlement, or the cause of a break.
    Ended(Box<ReplyFacts>, Result<VecDeque<Bytes>, StreamFailure>),
}

impl LiveRun {
    /// Waits for events of the run, or for its end. Cancel safe.
    async fn more(&mut self) -> NextEvents {
        let events = match self.first_event_by {
            Some(first_event_by) => timeout_at(first_event_by, self.follower.more()).await,
            None => Ok(self.follower.more().await),
        };
        match events {
            Ok(events) if events.is_empty() => self.ending().await,
            Ok(events) => {
                // The limit is for the first piece: an answer that has begun is sent to its end.
                self.first_event_by = None;
                NextEvents::Events(events)
            }
            Err(_elapsed) => {
                let id = self.context.id;
                let in_progress = StreamFailure::Failed(RequestFailure::InProgress(id));
                NextEvents::Ended(Box::new(ReplyFacts::in_progress(id)), Err(in_progress))
            }
        }
    }

    async fn ending(&self) -> NextEvents {
        let followed = self.reader.follow(None).await;
        // The streamed text is the row's answer only if this very run has written the row.
        let is_own = matches!(
            &followed,
            FollowOutcome::Ended(Outcome::Row { body: Some(_), ran: true, snapshot, .. })
                if snapshot.operation.as_ref().is_some_and(|row| {
                    matches!(row.phase, Phase::Completed { .. })
                })
        );
        let id = self.context.id;
        let Reply { outcome, facts, .. } = self.front.to_reply(&self.context, followed).await;
        let closing = self.follower.closing().filter(|_closing| is_own);
        let ending = match (outcome, closing) {
            (Ok(ReplyBody::Completed(_)), Some(closing)) => Ok(closing),
            (Ok(ReplyBody::Refused(refusal, body)), _) => {
                Err(StreamFailure::Refused(refusal, body))
            }
            (Err(failure), _) => Err(StreamFailure::Failed(failure)),
            // Another answer than the one that was begun: a repeated request gets it.
            (Ok(ReplyBody::Completed(_) | ReplyBody::Streamed(_)), _) => {
                Err(StreamFailure::Failed(RequestFailure::Storage(Some(id))))
            }
        };
        NextEvents::Ended(Box::new(facts), ending)
    }
}

impl Front {
    /// Follows a run to its end, at most until `wait_until`. `Break`: its caller requested a stream, and that has
    /// begun, or has waited long enough for its head.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        context: &RequestContext,
        reader: Reader,
        wait_until: Option<Instant>,
    ) -> ControlFlow<Reply, FollowOutcome> {
        if !context.delivery.stream {
            return ControlFlow::Continue(reader.follow(wait_until).await);
        }
        // Another credential will not be able to read this answer again.
        let readable =
            reader.chunk_log().filter(|chunk_log| chunk_log.is_for(context.caller.bearer.id));
        let mut follower =
            readable.map(|chunk_log| chunk_log.follow(context.delivery.include_usage));
        let begun = async {
            match &mut follower {
                Some(follower) => follower.wait_begun().await,
                None => std::future::pending().await,
            }
        };
        let head_due = async {
            sleep_until(context.head_by).await;
            // Before that its errors are the caller's own: they have their status.
            reader.wait_bound().await;
        };
        // Biased: a run that has written chunks and ended is still sent as a stream, chunk by chunk.
        tokio::select! {
            biased;
            () = begun => {}
            followed = reader.follow(wait_until) => return ControlFlow::Continue(followed),
            () = head_due => {}
        }
        let rates = readable.map_or_else(RateLimitStatus::default, ChunkLog::rates);
        let facts = ReplyFacts {
            model: readable.map(|chunk_log| chunk_log.model().clone()),
            ..ReplyFacts::in_progress(context.id)
        };
        let (front, own) = (Arc::clone(self), context.clone());
        let source = if let Some(follower) = follower {
            StreamSource::Live(Box::new(LiveRun {
                front,
                context: own,
                reader,
                follower,
                first_event_by: wait_until,
            }))
        } else {
            let delivered = async move {
                let followed = reader.follow(wait_until).await;
                let reply = front.to_reply(&own, followed).await;
                front.deliver(reply, &own).await
            };
            StreamSource::Awaited(Box::new(context.clone()), delivered.boxed())
        };
        ControlFlow::Break(Reply { rates, ..Reply::from_source(source, facts) })
    }
}

impl Reply {
    /// A stream of these events, then of the text of a run on another node, and then of its row.
    pub(crate) fn from_remote_run(joined: RemoteRun, ready: VecDeque<Bytes>) -> Self {
        let facts = ReplyFacts::in_progress(joined.context().id);
        let source = StreamSource::Remote(Box::new(joined));
        Self { replayed: true, ..Self::from_events(ready, source, facts) }
    }

    fn from_source(source: StreamSource, facts: ReplyFacts) -> Self {
        Self::from_events(VecDeque::new(), source, facts)
    }

    fn from_events(ready: VecDeque<Bytes>, source: StreamSource, facts: ReplyFacts) -> Self {
        let stream = CompletionStream { ready, source, facts: facts.clone(), _room: None };
        let outcome = Ok(ReplyBody::Streamed(Box::new(stream)));
        Self { outcome, replayed: false, rates: RateLimitStatus::default(), facts }
    }
}

impl ReplyFacts {
    /// Facts of an operation that still runs.
    fn in_progress(id: OperationId) -> Self {
        Self {
            operation: Some(id),
            phase: Some(Phase::Leased.label()),
            situation: Some(Situation::InProgress),
            ..Self::default()
        }
    }
}

impl Front {
    /// Converts a reply to the requested delivery; a large answer on a blocking thread.
    pub(crate) async fn deliver(&self, reply: Reply, context: &RequestContext) -> Reply {
        if !reply.is_large() || !context.delivery.stream {
            return reply.into_delivery(context);
        }
        let (id, context) = (context.id, context.clone());
        // In a box: few answers are large.
        let travelling =
            Box::pin(self.results.run_blocking(move || reply.into_delivery(&context))).await;
        travelling.unwrap_or_else(|| Reply::unbound(RequestFailure::Internal(Some(id))))
    }
}

impl Reply {
    fn is_large(&self) -> bool {
        matches!(&self.outcome, Ok(ReplyBody::Completed(body)) if is_large(body.len()))
    }

    /// Converts a reply to the requested delivery: a stored completion becomes a stream of its text.
    pub(crate) fn into_delivery(self, context: &RequestContext) -> Self {
        if !context.delivery.stream {
            return self;
        }
        let Self { outcome, replayed, rates, facts } = self;
        let outcome = match outcome {
            Ok(ReplyBody::Completed(Private(body))) => replay_stored(context, body, &facts),
            other => other,
        };
        Self { outcome, replayed, rates, facts }
    }
}

fn replay_stored(
    context: &RequestContext,
    body: Bytes,
    facts: &ReplyFacts,
) -> Result<ReplyBody, RequestFailure> {
    match chunk::replay(&body, context.delivery.include_usage) {
        Ok(events) => {
            let (ready, facts) = (VecDeque::from(events), facts.clone());
            // The events are copies; the body stays for its permit, until all were written.
            let room = is_large(body.len()).then_some(body);
            let source = StreamSource::Nothing;
            Ok(ReplyBody::Streamed(Box::new(CompletionStream {
                ready,
                source,
                facts,
                _room: room,
            })))
        }
        Err(error) => {
            tracing::error!(operation.id = %context.id, error = %ErrorChain(&error), "a result was not read");
            Err(RequestFailure::Unreadable(context.id, facts.usage.clone().map(Box::new)))
        }
    }
}
