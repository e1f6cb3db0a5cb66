//! Events as rows: how they are written and read, and this process's knowledge of their receivers.
//!
//! ```text
//! command, batch, reconciler ─▶ NewEvent ─▶ wanted? ─▶ INSERT … ON CONFLICT (id) DO NOTHING
//! ```
//!
//! An event is a row of the same transaction as its change, and never the reason for which that one fails: an
//! existing id was written before, and is skipped. An event that leaves out its currency gets it from the wallet's
//! row as it is written, so that a batch need not read it for every wallet.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use holdfast_domain::admin::event::{EventInterest, EventKinds, EventRecord, EventValue, NewEvent};
use holdfast_domain::{EventId, Timestamp, WalletId};
use sea_orm::Statement;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::rows::{BadRow, Cells};
use crate::schema::{Dialect, blob};

/// The columns that [`record`] reads, of `events AS e`; an entity selects them.
#[cfg(test)]
pub(crate) const EVENT: &str = "e.id, e.kind, e.wallet_id, e.created_at, e.data";

const INTO: &str = "INSERT INTO events (id, kind, wallet_id, created_at, data)";
/// Events that one statement writes: 500 binds.
const ROWS_MAX: usize = 100;
const INSERT_WITH_CURRENCY: &str = "INSERT INTO events (id, kind, wallet_id, created_at, data)
    SELECT $1, $2, w.id, $3, $4 || ',\"currency\":\"' || w.currency || '\"}'
    FROM wallets AS w WHERE w.id = $5 ON CONFLICT (id) DO NOTHING";

/// Condition: the event may be deleted at its age: its receivers are known by now, or it has none.
pub(crate) fn may_go(dialect: Dialect, webhooks: EventKinds) -> String {
    // Labels of the closed set, which need no binds.
    let sent: Vec<_> = webhooks.iter().map(|kind| format!("'{}'", kind.label())).collect();
    let is_fanned_out = match dialect {
        Dialect::Sqlite => "is_fanned_out = 1",
        Dialect::Postgres => "is_fanned_out",
    };
    if sent.is_empty() {
        return "TRUE".to_owned();
    }
    format!("({is_fanned_out} OR kind NOT IN ({}))", sent.join(", "))
}

/// Interest in events, shared by all that writes them in this process.
#[derive(Debug, Clone)]
pub struct SharedInterest {
    interest: Arc<RwLock<EventInterest>>,
    /// Moment at which the kinds of webhooks were read.
    learnt_at: Arc<RwLock<Option<Instant>>>,
    /// Signal to the reader of the outbox that a commit has written an event.
    written: Arc<Notify>,
}

/// Time for which a process keeps the webhooks' interest, before it reads that again.
const KNOWN_FOR: Duration = Duration::from_secs(5);

impl Default for SharedInterest {
    /// Every event has a receiver, until the webhooks were read.
    fn default() -> Self {
        let interest = Arc::new(RwLock::new(EventInterest::ALL));
        Self { interest, learnt_at: Arc::default(), written: Arc::default() }
    }
}

impl SharedInterest {
    pub(crate) fn get(&self) -> EventInterest {
        *self.interest.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// True for as long as the kinds of webhooks need not be read again.
    pub(crate) fn is_known(&self) -> bool {
        let learnt_at = *self.learnt_at.read().unwrap_or_else(PoisonError::into_inner);
        learnt_at.is_some_and(|at| at.elapsed() < KNOWN_FOR)
    }

    /// Notes that the kinds of webhooks were read just now.
    pub(crate) fn learnt(&self) {
        *self.learnt_at.write().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Takes the kinds of webhooks as a heartbeat has read them, if this process reads them at all: one without a
    /// reader of the outbox writes every kind. The heartbeat was sent at this moment: kinds that were read since are
    /// newer than its answer.
    #[cfg(feature = "postgres")]
    pub(crate) fn renew(&self, webhooks: EventKinds, sent: Instant) {
        let mut learnt_at = self.learnt_at.write().unwrap_or_else(PoisonError::into_inner);
        if learnt_at.is_some_and(|at| at < sent) {
            self.change(|interest| interest.webhooks = webhooks);
            *learnt_at = Some(sent);
        }
    }

    /// Signals that a commit of this process has written an event.
    pub(crate) fn on_written(&self) {
        self.written.notify_one();
    }

    /// Completes once a commit has written an event since the last completion. Cancel safe.
    pub(crate) async fn written(&self) {
        self.written.notified().await;
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut EventInterest)) {
        change(&mut self.interest.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// The events among these that may have a receiver. Reads the interest only if there are events.
    pub(crate) fn wanted<'e>(&self, events: &'e [NewEvent]) -> Vec<&'e NewEvent> {
        if events.is_empty() {
            return Vec::new();
        }
        let interest = self.get();
        events.iter().filter(|event| interest.wants(event.kind)).collect()
    }
}

/// Statement that writes an event of this moment.
pub(crate) fn insert(dialect: Dialect, event: &NewEvent, at: Timestamp) -> Statement {
    let Some(data) = unfinished(event) else { return insert_whole(dialect, &[event], at) };
    let (id, kind) = (blob(event.id.to_bytes()), event.kind.label().into());
    let (at, wallet) = (at.as_micros().into(), event.wallet.map(|id| id.to_bytes().to_vec()));
    dialect.statement(INSERT_WITH_CURRENCY, [id, kind, at, data.into(), wallet.into()])
}

/// Statements that write events of this moment, many of them in one: a wallet that is closed has one
/// for each of its keys.
pub(crate) fn insert_all(dialect: Dialect, events: &[NewEvent], at: Timestamp) -> Vec<Statement> {
    let (unfinished, whole): (Vec<_>, Vec<_>) =
        events.iter().partition(|event| unfinished(event).is_some());
    let many = whole.chunks(ROWS_MAX).map(|some| insert_whole(dialect, some, at));
    many.chain(unfinished.into_iter().map(|event| insert(dialect, event, at))).collect()
}

/// Statement that writes events that have all their members.
fn insert_whole(dialect: Dialect, events: &[&NewEvent], at: Timestamp) -> Statement {
    let row = |at: usize| {
        let places: Vec<_> = (1..=5).map(|it| format!("${}", at * 5 + it)).collect();
        format!("({})", places.join(", "))
    };
    let places: Vec<_> = (0..events.len()).map(row).collect();
    let sql = format!("{INTO} VALUES {} ON CONFLICT (id) DO NOTHING", places.join(", "));
    let values = events.iter().flat_map(|event| {
        let wallet = event.wallet.map(|id| id.to_bytes().to_vec());
        let (id, kind) = (blob(event.id.to_bytes()), event.kind.label().into());
        [id, kind, wallet.into(), at.as_micros().into(), object(event).into()]
    });
    Statement::from_sql_and_values(dialect.backend(), sql, values)
}

/// Data of an event that leaves out its currency, without the end of the object, so that the currency
/// can be put behind them; `None` for an event that has all its members.
pub(crate) fn unfinished(event: &NewEvent) -> Option<String> {
    if event.data.len() >= event.kind.members().len() {
        return None;
    }
    let mut data = object(event);
    data.pop();
    Some(data)
}

fn object(event: &NewEvent) -> String {
    let value = |value: &EventValue| match value {
        EventValue::Text(text) => Value::from(text.as_str()),
        EventValue::Integer(number) => Value::from(*number),
    };
    let members = event.data.iter();
    let members: Map<_, _> = members
        .map(|(name, it)| ((*name).to_owned(), it.as_ref().map_or(Value::Null, value)))
        .collect();
    Value::from(members).to_string()
}

/// Reads [`EVENT`].
pub(crate) fn record(cells: &mut Cells<'_>) -> Result<EventRecord, BadRow> {
    Ok(EventRecord {
        id: EventId::from_bytes(cells.bytes()?),
        kind: cells.get()?,
        wallet: cells.opt_bytes()?.map(WalletId::from_bytes),
        created_at: cells.timestamp()?,
        data: cells.text()?.into(),
    })
}
