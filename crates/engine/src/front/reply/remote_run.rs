//! Remote runs: a run of another process, as one request waits for it here.
//!
//! ```text
//! row poller ── row: leased ──► relay wanted ── events ──► caller
//!     └──────── row: at rest ─► the row's answer, less what was written
//! ```
//!
//! The row decides. Of text that was written already only the rest follows, and a row with another answer breaks
//! the stream: two answers are never joined into one. A relay carries no end: a node that dies while it sends has
//! not ended the operation, and its caller gets the outcome of the row.
//!
//! Once text was written the wait has no time limit any more, and a drain waits for its end as it does for own
//! runs; before that a drain ends it at once, because the caller can send to another node.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, StreamExt};
use holdfast_domain::operation::Snapshot;
use holdfast_wire::chat::chunk;
use holdfast_wire::chat::resume::{ResumeError, Resumption};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Reply, ReplyBody};
use crate::failure::RequestFailure;
use crate::front::Front;
use crate::front::row_poller::{PolledRow, RowWatch, is_leased};
use crate::relay::RelayEvent;
use crate::request_context::RequestContext;
use crate::results::is_large;

/// Wait of one request for a run of another process: its row, and its relay if there is one.
pub(crate) struct RemoteRun {
    front: Arc<Front>,
    context: RequestContext,
    watch: RowWatch,
    /// End of the wait; `None` once text was written, because an answer that has begun is sent to its end.
    first_event_by: Option<Instant>,
    /// Newest row that was leased, for a caller whose wait ends.
    seen: Option<Arc<Snapshot>>,
    relay: RelayState,
    /// Text that was written, by which the rest is found; an error if it cannot be resumed.
    written: Result<Resumption, ResumeError>,
    /// Token of the task set, held once text was written: a drain waits for it as for a run.
    begun: Option<TaskTrackerToken>,
    /// Reading of the answer, once the row is at rest.
    reading: Option<BoxFuture<'static, Reply>>,
}

/// State of the relay from the owning process.
enum RelayState {
    /// Not requested yet.
    Wanted,
    Open(BoxStream<'static, RelayEvent>),
    /// No relay, or none any more: the row decides.
    Closed,
}

/// Step of the wait.
pub(crate) enum RemoteProgress {
    /// Event to be written.
    Event(Bytes),
    /// Last step: the row's reply, or the failure of a wait that ended before it.
    Ended(Box<Reply>),
}

impl RemoteRun {
    pub(crate) fn new(front: &Arc<Front>, context: &RequestContext, watch: RowWatch) -> Self {
        let mut run = Self {
            front: Arc::clone(front),
            context: context.clone(),
            watch,
            first_event_by: Some(context.wait_until),
            seen: None,
            // JSON comes as a whole, from the row.
            relay: if context.delivery.stream { RelayState::Wanted } else { RelayState::Closed },
            written: Ok(Resumption::new()),
            begun: None,
            reading: None,
        };
        // A poll that others began may have read the row already: that row counts now, not at the next poll.
        run.on_row();
        run
    }

    pub(crate) const fn context(&self) -> &RequestContext {
        &self.context
    }

    /// True if an event was written.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Waits for the next step. Cancel safe.
    pub(crate) async fn more(&mut self) -> RemoteProgress {
        loop {
            let wait_end = self.first_event_by;
            let is_read = self.reading.is_some();
            let ended = match self.begun {
                Some(_) => self.front.cutting.cancelled(),
                None => self.front.draining.cancelled(),
            };
            tokio::select! {
                biased;
                relay = next_relay_event(&mut self.relay) => {
                    if let Some(event) = self.on_relay_event(relay) {
                        return RemoteProgress::Event(event);
                    }
                }
                reply = read(&mut self.reading) => return RemoteProgress::Ended(Box::new(reply)),
                // The last poll may have ended the task, and its row is read here by then.
                looked = self.watch.changed(), if !is_read => match looked {
                    Ok(()) => self.on_row(),
                    Err(_closed) => return RemoteProgress::Ended(Box::new(self.unfinished().await)),
                },
                () = until(wait_end) => return RemoteProgress::Ended(Box::new(self.unfinished().await)),
                () = ended => return RemoteProgress::Ended(Box::new(self.unfinished().await)),
            }
        }
    }

    /// Waits for the row's reply, and drops all events.
    pub(crate) async fn rest(mut self) -> Reply {
        loop {
            if let RemoteProgress::Ended(reply) = self.more().await {
                return *reply;
            }
        }
    }

    /// Cuts off a streamed reply what was written already; another text than that breaks the
    /// stream.
    pub(crate) async fn resume_reply(self, reply: Reply) -> Reply {
        let Self { front, context, written, begun, .. } = self;
        if begun.is_none() {
            return reply;
        }
        let Reply { outcome: Ok(ReplyBody::Streamed(stream)), replayed, rates, facts } = reply
        else {
            return reply;
        };
        let (id, is_large) = (context.id, is_large(stream.ready_bytes()));
        let rest = move || {
            let mut written = written?;
            written.restart();
            stream.resume_after(&mut written)
        };
        let rest = if is_large { front.results.run_blocking(rest).await } else { Some(rest()) };
        let outcome = match rest {
            Some(Ok(rest)) => Ok(ReplyBody::Streamed(Box::new(rest))),
            // Two answers are never joined into one: a repeated request gets the row's.
            Some(Err(error)) => {
                tracing::error!(operation.id = %id, %error, "a relayed stream was not ended by its row");
                Err(RequestFailure::Storage(Some(id)))
            }
            None => Err(RequestFailure::Internal(Some(id))),
        };
        Reply { outcome, replayed, rates, facts }
    }

    /// Takes the newest row: opens a relay while it is leased, reads the answer when it is at rest.
    fn on_row(&mut self) {
        let look = self.watch.borrow_and_update().clone();
        match look {
            PolledRow::Pending => {}
            PolledRow::Row(row) if is_leased(&row) => {
                if matches!(self.relay, RelayState::Wanted) {
                    let relay = row.operation.as_ref().and_then(|row| {
                        let own = self.front.membership.node.node();
                        self.front.relays.as_ref()?.open(&self.context, row, own)
                    });
                    self.relay = relay.map_or(RelayState::Closed, RelayState::Open);
                }
                self.seen = Some(row);
            }
            PolledRow::Row(row) => {
                let (front, context) = (Arc::clone(&self.front), self.context.clone());
                self.reading =
                    Some(async move { front.reply_at_rest(&row, &context).await }.boxed());
            }
            // A begun stream goes on: the run has not ended for that, and the next poll may read the row.
            PolledRow::Unreadable if self.begun.is_some() => {}
            PolledRow::Unreadable => {
                let reply = Reply::unbound(RequestFailure::Storage(Some(self.context.id)));
                self.reading = Some(std::future::ready(reply).boxed());
            }
        }
    }

    /// Takes an event of the relay, and returns what of it is new to this caller.
    fn on_relay_event(&mut self, step: Option<RelayEvent>) -> Option<Bytes> {
        let Ok(written) = &mut self.written else {
            self.relay = RelayState::Closed;
            return None;
        };
        match step {
            // A relay carries chunks and no end: the end of the stream comes from the row.
            Some(RelayEvent::Event(event)) if event == chunk::DONE => {}
            Some(RelayEvent::Event(event)) => match written.filter(&event) {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    self.begun.get_or_insert_with(|| self.front.runner.tasks.token());
                    // A begun answer is sent to its end, and a drain waits for it.
                    self.first_event_by = None;
                    let include_usage = self.context.delivery.include_usage;
                    let without_usage = |event: Bytes| {
                        if include_usage { chunk::with_no_usage(&event) } else { Some(event) }
                    };
                    let events: Vec<Bytes> = events.into_iter().filter_map(without_usage).collect();
                    return (!events.is_empty()).then(|| events.concat().into());
                }
                Err(error) => {
                    tracing::warn!(operation.id = %self.context.id, %error, "a relay was given up");
                    self.relay = RelayState::Closed;
                    // If no text was written, the row's answer is sent from its beginning.
                    self.written =
                        if self.begun.is_some() { Err(error) } else { Ok(Resumption::new()) };
                }
            },
            Some(RelayEvent::Restart) => written.restart(),
            None => {
                self.relay = RelayState::Closed;
                // The run has probably ended with its relay: poll at once, not at the next second.
                self.front.row_poller.poll_now(self.context.id);
            }
        }
        None
    }

    /// Makes the reply of a wait that ended early: the newest row, else *in progress*.
    fn unfinished(&self) -> BoxFuture<'static, Reply> {
        let (front, context, seen) =
            (Arc::clone(&self.front), self.context.clone(), self.seen.clone());
        async move {
            match seen {
                Some(row) => front.reply_of_row(&row, &context.caller, true).await,
                None => Reply::unbound(RequestFailure::InProgress(context.id)),
            }
        }
        .boxed()
    }
}

/// Next event of the relay; pending for ever if none is open.
async fn next_relay_event(relay: &mut RelayState) -> Option<RelayEvent> {
    match relay {
        RelayState::Open(relay) => relay.next().await,
        RelayState::Wanted | RelayState::Closed => std::future::pending().await,
    }
}

/// Reply of the row; pending for ever if it is not being read.
async fn read(reading: &mut Option<BoxFuture<'static, Reply>>) -> Reply {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Front {
    /// Creates the reply of a row at rest, in the delivery that the caller requested.
    async fn reply_at_rest(&self, row: &Snapshot, context: &RequestContext) -> Reply {
        let reply = self.reply_of_row(row, &context.caller, true).await;
        self.deliver(reply, context).await
    }
}
