//! A run of another process, as one request waits for it here: its text while a relay carries it, then the
//! answer of its row. The row has the last word. Of text that was written already only the rest follows, and
//! a row with another answer breaks the stream: two answers are never told as one.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, StreamExt};
use holdfast_domain::operation::Snapshot;
use holdfast_wire::chat::chunk;
use holdfast_wire::chat::resume::Resumption;
use tokio::time::{Instant, sleep_until};

use crate::Engine;
use crate::elsewhere::{Look, Watch, is_leased};
use crate::relay::RelayEvent;
use crate::reply::{Answered, Failure, Reply};
use crate::results::is_large;
use crate::submit::Ask;

/// One request that waits.
pub(crate) struct RemoteRun {
    engine: Arc<Engine>,
    ask: Ask,
    watch: Watch,
    /// Until when it waits; for good once it has heard something.
    patience: Option<Instant>,
    /// The newest row that is leased.
    seen: Option<Arc<Snapshot>>,
    relay: RelayState,
    written: Resumption,
    has_begun: bool,
    /// A look at the row that is under way: `None` comes of it where it is leased yet.
    reading: Option<BoxFuture<'static, Option<Reply>>>,
}

/// The relay from the process that runs it.
enum RelayState {
    /// Not asked for yet.
    Wanted,
    Open(BoxStream<'static, RelayEvent>),
    /// None, or no more of it.
    Closed,
}

/// A step of waiting.
pub(crate) enum Progress {
    /// An event.
    Said(Bytes),
    /// What the row says, or why that is not waited for: nothing more is said.
    Rests(Box<Reply>),
}

impl RemoteRun {
    pub(crate) fn new(engine: &Arc<Engine>, ask: &Ask, watch: Watch) -> Self {
        Self {
            engine: Arc::clone(engine),
            ask: ask.clone(),
            watch,
            patience: Some(ask.patience),
            seen: None,
            // JSON comes as a whole, from the row.
            relay: if ask.delivery.stream { RelayState::Wanted } else { RelayState::Closed },
            written: Resumption::new(),
            has_begun: false,
            reading: None,
        }
    }

    pub(crate) const fn ask(&self) -> &Ask {
        &self.ask
    }

    /// Whether anything was said.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// What is said next. Cancel safe.
    pub(crate) async fn more(&mut self) -> Progress {
        self.look();
        loop {
            let patience = self.patience;
            tokio::select! {
                biased;
                heard = heard(&mut self.relay) => {
                    if let Some(event) = self.hear(heard) {
                        return Progress::Said(event);
                    }
                }
                read = read(&mut self.reading) => {
                    self.reading = None;
                    if let Some(reply) = read {
                        return Progress::Rests(Box::new(reply));
                    }
                }
                looked = self.watch.changed() => match looked {
                    Ok(()) => self.look(),
                    Err(_nobody_looks) => return Progress::Rests(Box::new(self.unfinished().await)),
                },
                () = until(patience) => return Progress::Rests(Box::new(self.unfinished().await)),
                () = self.engine.draining.cancelled() => {
                    return Progress::Rests(Box::new(self.unfinished().await));
                }
            }
        }
    }

    /// What the row comes to, for whoever wants nothing before.
    pub(crate) async fn rest(mut self) -> Reply {
        loop {
            if let Progress::Rests(reply) = self.more().await {
                return *reply;
            }
        }
    }

    /// What of a reply is left to be told, where some of it was.
    pub(crate) async fn resumed(self, reply: Reply) -> Reply {
        let Self { engine, ask, mut written, has_begun, .. } = self;
        if !has_begun {
            return reply;
        }
        let Reply { outcome: Ok(Answered::Streamed(stream)), replayed, rates, facts } = reply
        else {
            return reply;
        };
        written.restart();
        let (id, is_large) = (ask.id, is_large(stream.ready_bytes()));
        let rest = move || stream.resumed(&mut written);
        let rest = if is_large { engine.beside(rest).await } else { Some(rest()) };
        let outcome = match rest {
            Some(Ok(rest)) => Ok(Answered::Streamed(Box::new(rest))),
            // Another answer than the one that was begun: whoever asks again gets it.
            Some(Err(error)) => {
                tracing::error!(operation.id = %id, %error, "a relay told something else than its row");
                Err(Failure::Storage(Some(id)))
            }
            None => Err(Failure::Internal(Some(id))),
        };
        Reply { outcome, replayed, rates, facts }
    }

    /// Takes the newest look.
    fn look(&mut self) {
        let look = self.watch.borrow_and_update().clone();
        match look {
            Look::Pending => {}
            Look::Row(row) if is_leased(&row) => {
                if matches!(self.relay, RelayState::Wanted) {
                    let heard =
                        row.operation.as_ref().and_then(|row| self.engine.hear(&self.ask, row));
                    self.relay = heard.map_or(RelayState::Closed, RelayState::Open);
                }
                self.seen = Some(row);
            }
            Look::Row(row) => {
                let (engine, ask) = (Arc::clone(&self.engine), self.ask.clone());
                self.reading = Some(async move { Some(engine.at_rest(&row, &ask).await) }.boxed());
            }
            Look::Unreadable => {
                let reply = Reply::unbound(Failure::Storage(Some(self.ask.id)));
                self.reading = Some(std::future::ready(Some(reply)).boxed());
            }
        }
    }

    /// Takes what was heard; what of it is to be written.
    fn hear(&mut self, heard: Option<RelayEvent>) -> Option<Bytes> {
        match heard {
            Some(RelayEvent::Said(event)) => match self.written.pass(&event) {
                Ok(event) => {
                    let event = event?;
                    (self.has_begun, self.patience) = (true, None);
                    let include_usage = self.ask.delivery.include_usage;
                    return Some(if include_usage { chunk::with_no_usage(&event) } else { event });
                }
                // The row decides.
                Err(error) => {
                    tracing::warn!(operation.id = %self.ask.id, %error, "a relay was given up");
                    self.relay = RelayState::Closed;
                }
            },
            Some(RelayEvent::Restart) => self.written.restart(),
            None => {
                self.relay = RelayState::Closed;
                // It was written before the relay ended.
                let (engine, ask) = (Arc::clone(&self.engine), self.ask.clone());
                self.reading = Some(
                    async move {
                        let row =
                            engine.reconciled(ask.id).await.ok().filter(|row| !is_leased(row))?;
                        Some(engine.at_rest(&row, &ask).await)
                    }
                    .boxed(),
                );
            }
        }
        None
    }

    /// What is told to one who waits no longer.
    fn unfinished(&self) -> BoxFuture<'static, Reply> {
        let (engine, ask, seen) = (Arc::clone(&self.engine), self.ask.clone(), self.seen.clone());
        async move {
            match seen {
                Some(row) => engine.reply_of_row(&row, &ask.caller, true).await,
                None => Reply::unbound(Failure::InProgress(ask.id)),
            }
        }
        .boxed()
    }
}

/// What is heard next; pending where nothing is.
async fn heard(relay: &mut RelayState) -> Option<RelayEvent> {
    match relay {
        RelayState::Open(heard) => heard.next().await,
        RelayState::Wanted | RelayState::Closed => std::future::pending().await,
    }
}

/// What comes of a look; pending where none is under way.
async fn read(reading: &mut Option<BoxFuture<'static, Option<Reply>>>) -> Option<Reply> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

async fn until(patience: Option<Instant>) {
    match patience {
        Some(patience) => sleep_until(patience).await,
        None => std::future::pending().await,
    }
}

impl Engine {
    /// What a row that is not leased says to this caller.
    async fn at_rest(&self, row: &Snapshot, ask: &Ask) -> Reply {
        let reply = self.reply_of_row(row, &ask.caller, true).await;
        self.travelling(reply, ask).await
    }
}
