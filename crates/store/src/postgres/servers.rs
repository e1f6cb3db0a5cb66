//! Servers of one database: the search for the one that is its primary, by every new connection.
//!
//! ```text
//! the last primary, then the others in the URL's order ─► connect ─► a primary? ── yes ─► the first that is
//!    └ no answer in RETRY: all of them once more, again and again        └ no ─► the next one at once
//! ```
//!
//! A proxy or a dead machine may keep an attempt waiting for seconds. So a connection is attempted anew each `RETRY`,
//! next to the attempts that have no answer yet: a primary that is there is found within that time, and a slow login
//! is not cut off. The search ends when all have refused, or after `SEARCH`.
//!
//! A standby is never used: it cannot be written, and what is read there was true a while ago. Nor is a server whose
//! [`history`] is not the one that this process has seen: a primary that was replaced and is back, or another database
//! under a known address.
//!
//! A primary that has crashed shows every commit of its own log, also those that no standby has. Only a commit that
//! comes after them, and waits for the standby, proves that a failover keeps them. So each connection commits once
//! before it is used, and a server that does not commit is not the primary: another one may be.

mod history;
mod refusal;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Executor as _};
use tokio::time::{Instant, interval_at, timeout};

use self::history::Histories;
use self::refusal::HostRefusal;
pub(super) use self::refusal::NoPrimary;
use super::error::has_code;
use super::session::{ServerRole, Session, role, set, within};
use crate::schema::url::{ServerDatabase, ServerHost};

/// Time without an answer after which a connection is attempted once more.
const RETRY: Duration = Duration::from_secs(1);
/// Attempts at one server at once.
const ATTEMPTS_MAX: usize = 2;
/// Time for the search. Shorter than the wait of those who need a connection, so that they get its reasons.
const SEARCH: Duration = Duration::from_secs(4);
/// Time for the first commit of a connection.
const PROOF: Duration = Duration::from_secs(3);
/// First commit of a connection: a message in the server's log, which no table has. Of the locks, whose numbers begin
/// with the text "a_commit", there are 16, so at most 16 such commits wait: the server does not end them while the
/// standby is away, and connections come and go.
const PROVE: &str = "SELECT set_config('lock_timeout', '2s', true),
    pg_advisory_xact_lock(7016436074694928756 + pg_backend_pid() % 16),
    pg_logical_emit_message(true, 'holdfast', '')";

/// Servers of a URL. Clones share what is known of them.
#[derive(Clone)]
pub(crate) struct Servers(Arc<ServersInner>);

struct ServersInner {
    hosts: Vec<ServerHost>,
    /// Position of the last primary.
    primary: AtomicUsize,
    histories: Histories,
    /// True if a commit waits for a standby, as it was read last.
    is_replicated: AtomicBool,
    /// True if a server does not let this role write the message of the first commit.
    is_unproven: AtomicBool,
    /// Reasons of the last search, while none was found.
    failure: Mutex<Option<String>>,
}

/// A connection to a primary, with the settings of its session.
pub(super) struct Primary {
    pub(super) connection: PgConnection,
    /// Options that lead to its server.
    pub(super) options: PgConnectOptions,
    /// Generation of the history that its server was found with ([`Servers::generation`]).
    pub(super) generation: u64,
    is_replicated: bool,
}

impl Primary {
    /// Another connection to the same server.
    pub(super) async fn connect_again(
        &self,
        session: Session,
    ) -> Result<PgConnection, sqlx::Error> {
        open(&self.options, session).await
    }
}

impl Servers {
    pub(crate) fn of(database: &ServerDatabase) -> Self {
        let (primary, histories) = (AtomicUsize::new(0), Histories::default());
        let (hosts, failure) = (database.hosts().to_vec(), Mutex::default());
        let (is_replicated, is_unproven) = (AtomicBool::new(false), AtomicBool::new(false));
        let inner = ServersInner { hosts, primary, histories, is_replicated, is_unproven, failure };
        Self(Arc::new(inner))
    }

    /// Number of changes of the history of the servers. A kept connection of an earlier one is not used again.
    pub(super) fn generation(&self) -> u64 {
        self.0.histories.generation()
    }

    /// True if a commit waited for a standby when this was read last: by a new connection, or a heartbeat.
    pub(crate) fn is_replicated(&self) -> bool {
        self.0.is_replicated.load(Ordering::Relaxed)
    }

    /// Keeps a new reading of that.
    pub(super) fn note_replication(&self, is_replicated: bool) {
        self.0.is_replicated.store(is_replicated, Ordering::Relaxed);
    }

    /// Finds the primary. Cancel safe: attempts end with the future.
    pub(super) async fn connect(&self, session: Session) -> Result<Primary, NoPrimary> {
        let mut refusals = BTreeMap::new();
        let searched = timeout(SEARCH, self.search(session, &mut refusals)).await;
        if let Some((at, primary)) = searched.ok().flatten() {
            self.note_primary(at);
            self.note_replication(primary.is_replicated);
            return Ok(primary);
        }
        let with_reason = |(at, host): (usize, &ServerHost)| {
            let refusal = refusals.remove(&at).unwrap_or(HostRefusal::Silent);
            (host.name.clone(), refusal)
        };
        let failure = NoPrimary::new(self.0.hosts.iter().enumerate().map(with_reason).collect());
        self.note_failure(&failure);
        Err(failure)
    }

    /// None once all have refused; the last reasons are noted.
    async fn search(
        &self,
        session: Session,
        refusals: &mut BTreeMap<usize, HostRefusal>,
    ) -> Option<(usize, Primary)> {
        let last = self.0.primary.load(Ordering::Relaxed);
        let mut order: Vec<(usize, &ServerHost)> = self.0.hosts.iter().enumerate().collect();
        order.sort_by_key(|(at, _host)| *at != last);
        let mut untried = order.iter();
        // Attempts at each server that have not ended.
        let mut under_way = BTreeMap::<usize, usize>::new();
        let attempt = |(at, host): &(usize, &ServerHost)| {
            let (at, host) = (*at, (*host).clone());
            async move { (at, attempt(host, session, &self.0).await) }
        };
        let mut attempts = FuturesUnordered::new();
        let mut begin = untried.next().into_iter().collect::<Vec<_>>();
        let mut again = interval_at(Instant::now() + RETRY, RETRY);
        loop {
            for host in begin.drain(..) {
                *under_way.entry(host.0).or_default() += 1;
                attempts.push(attempt(host));
            }
            tokio::select! {
                tried = attempts.next() => match tried? {
                    (at, Ok(primary)) => return Some((at, primary)),
                    (at, Err(refusal)) => {
                        under_way.entry(at).and_modify(|attempts| *attempts -= 1);
                        refusals.insert(at, refusal);
                        begin.extend(untried.next());
                    }
                },
                _moment = again.tick() => {
                    untried = [].iter();
                    // A server that is slow to log in or to commit would get slower by more of them.
                    let is_free = |host: &&(usize, &ServerHost)| {
                        under_way.get(&host.0).is_none_or(|attempts| *attempts < ATTEMPTS_MAX)
                    };
                    begin.extend(order.iter().filter(is_free));
                }
            }
        }
    }

    fn note_primary(&self, at: usize) {
        let ServersInner { hosts, primary, failure, .. } = &*self.0;
        let had_failed = failure.lock().unwrap_or_else(PoisonError::into_inner).take().is_some();
        let is_another = primary.swap(at, Ordering::Relaxed) != at;
        if (is_another || had_failed)
            && let Some(host) = hosts.get(at)
        {
            tracing::info!(server.host = %host.name, "the primary of the database was found");
        }
    }

    /// Logs reasons once, until they are others: a search follows the other while the primary is away.
    fn note_failure(&self, failure: &NoPrimary) {
        let mut last = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let text = failure.to_string();
        if last.as_deref() != Some(&text) {
            tracing::warn!("{text}");
            *last = Some(text);
        }
    }
}

async fn attempt(
    ServerHost { options, .. }: ServerHost,
    session: Session,
    ServersInner { histories, is_unproven, .. }: &ServersInner,
) -> Result<Primary, HostRefusal> {
    let connected = async {
        let mut connection = open(&options, session).await?;
        let role = role(&mut connection).await?;
        Ok((connection, role))
    };
    let (mut connection, role) = connected.await.map_err(HostRefusal::of_driver)?;
    let is_replicated = match role {
        ServerRole::Standby => return Err(HostRefusal::Standby),
        ServerRole::Primary { is_replicated } => is_replicated,
    };
    let history = histories.read(&mut connection).await.map_err(HostRefusal::of_driver)?;
    histories.check(history)?;
    match within(PROOF, connection.execute(PROVE)).await {
        Ok(_proved) => {}
        // A vendor's server without the function (42, 0A). Once: each new connection comes here.
        Err(error) if has_code(&error, &["42", "0A"]) => {
            if !is_unproven.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "the server takes no first commit: a row that no standby has may be believed");
            }
        }
        Err(error) => return Err(HostRefusal::of_proof(error)),
    }
    // Only now: a server that commits nothing must not make others look old.
    let generation = histories.accept(history)?;
    Ok(Primary { connection, options, generation, is_replicated })
}

async fn open(options: &PgConnectOptions, session: Session) -> Result<PgConnection, sqlx::Error> {
    let mut connection = options.clone().disable_statement_logging().connect().await?;
    set(&mut connection, session).await?;
    Ok(connection)
}
