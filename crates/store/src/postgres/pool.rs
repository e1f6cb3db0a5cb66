//! Connections for one purpose, and the work that runs on them: to its end whether or not its caller waits for it,
//! and no longer than is of use.
//!
//! ```text
//! acquire (ACQUIRE) -> a kept connection that answers in PING_TIMEOUT, or a new one -> work (wait_max)
//! release           -> kept, unless its error says that it is broken; those that nobody used for
//!                      IDLE are closed
//! ```
//!
//! The driver's own pool pings each connection that comes back, and waits for the answer as long as the network
//! pleases: behind a firewall that has forgotten them, its connections are gone for a quarter of an hour. Here a
//! connection is pinged before it is used, has `PING_TIMEOUT` to answer, and is dropped if its state is in doubt. A
//! pool whose work comes every few seconds, and can be sent twice, does without the ping.
//!
//! Work is a task of the store, not of its caller: a future dropped halfway would leave a transaction open that the
//! driver does not know of. If the wait for it ends, its connection is dropped with it: [`super::session`] has the
//! reason why the server gives up first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use holdfast_domain::Timestamp;
use sea_orm::{DbErr, QueryResult, RuntimeErr, Statement, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::error::{is_broken, proves_no_commit};
use super::servers::{Primary, Servers};
use super::session::{CLOCK, Session, begin_snapshot, is_healthy, within};

/// Longest wait of a caller for a connection.
const ACQUIRE: Duration = Duration::from_secs(5);
/// Time in which a kept connection has to answer a ping: a new one is made sooner than that.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Age at which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(300);
/// Time that a statement of a snapshot read is waited for beyond its limit: the server ends it first.
const ANSWER_LATE: Duration = Duration::from_secs(30);
/// Timeout of closing a connection or ending its transaction: one that takes longer is dead.
const END: Duration = Duration::from_secs(2);

/// Pool of connections for one purpose, all with one session.
pub(crate) struct ConnectionPool {
    shared: Arc<PoolInner>,
    tasks: TaskTracker,
    /// Longest run of the work, once it has a connection.
    wait_max: Duration,
    health: HealthCheck,
}

/// Check of a kept connection before its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthCheck {
    Ping,
    Skip,
}

struct PoolInner {
    servers: Servers,
    session: Session,
    room: Arc<Semaphore>,
    /// Places in all.
    places: usize,
    /// Kept connections, each with its generation and the time of its last use; the last one used is at the back.
    idle: Mutex<VecDeque<IdleConnection>>,
}

/// A transaction that came to no good end.
#[derive(Debug)]
pub(super) struct WriteFailure {
    pub(super) error: sqlx::Error,
    /// True if COMMIT was on its way when it failed.
    was_commit_sent: bool,
}

impl WriteFailure {
    /// True if the transaction was not committed: COMMIT was not sent, or the server proves it.
    pub(super) fn is_undone(&self) -> bool {
        !self.was_commit_sent || proves_no_commit(&self.error)
    }
}

/// A kept connection that is not in use.
struct IdleConnection {
    connection: PgConnection,
    generation: u64,
    since: Instant,
}

/// A connection that is in use, and its place.
struct ConnectionGuard {
    connection: PgConnection,
    generation: u64,
    _place: OwnedSemaphorePermit,
}

/// A transaction that reads, and sees all rows as they are at one moment.
pub(crate) struct PgReadTransaction {
    /// Locked for a statement at a time: SeaORM's builder shares what it reads through.
    taken: tokio::sync::Mutex<ConnectionGuard>,
    shared: Arc<PoolInner>,
    /// Longest wait for a statement.
    wait_max: Duration,
}

impl ConnectionPool {
    /// So many connections at most, made as they are needed.
    pub(super) fn new(
        servers: &Servers,
        session: Session,
        connections: u32,
        wait_max: Duration,
        tasks: &TaskTracker,
    ) -> Self {
        let places = usize::try_from(connections.max(1)).unwrap_or(1);
        let room = Arc::new(Semaphore::new(places));
        let servers = servers.clone();
        let shared = PoolInner { servers, session, room, places, idle: Mutex::default() };
        let (shared, tasks) = (Arc::new(shared), tasks.clone());
        Self { shared, tasks, wait_max, health: HealthCheck::Ping }
    }

    /// The same, for work that finds out by itself that a kept connection is broken.
    pub(super) fn without_ping(self) -> Self {
        Self { health: HealthCheck::Skip, ..self }
    }

    /// Connections that are kept and not in use, and those in use.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let used = self.shared.places.saturating_sub(self.shared.room.available_permits());
        (self.shared.idle().len(), used)
    }

    /// Does this on a connection, to its end: a statement that is dropped halfway may have
    /// happened, and leaves its connection behind.
    pub(super) async fn run<T, W>(&self, work: W) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, sqlx::Error>>
            + Send
            + 'static,
    {
        let (shared, wait_max, health) = (Arc::clone(&self.shared), self.wait_max, self.health);
        // A task of the store: `close` waits for it, and a caller that goes away does not end it.
        let running = self.tasks.spawn(async move {
            let mut taken = shared.acquire(health).await?;
            let done = within(wait_max, work(&mut taken.connection)).await;
            match &done {
                // Dropped with its place: the next caller makes a new one.
                Err(error) if is_broken(error) => {}
                Ok(_) | Err(_) => shared.release(taken),
            }
            done
        });
        running.await.map_err(|_panic_or_end| sqlx::Error::WorkerCrashed)?
    }

    /// Runs this in a transaction, with an explicit isolation level whatever the server's default is. It happens
    /// whether or not the caller waits for it.
    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, sqlx::Error>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, sqlx::Error>>
            + Send
            + 'static,
    {
        self.commit(work).await.map_err(|failure| failure.error)
    }

    /// The same, for a caller that has to know whether a transaction that failed may have been committed.
    pub(super) async fn commit<T, W>(&self, work: W) -> Result<T, WriteFailure>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, sqlx::Error>>
            + Send
            + 'static,
    {
        let sent = Arc::new(AtomicBool::new(false));
        let committing = Arc::clone(&sent);
        let written = self.run(move |connection| {
            Box::pin(async move {
                // No default of the server is relied on: a role may have another isolation.
                let begin = connection.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED");
                let mut transaction = begin.await?;
                let clock = sqlx::query_scalar(AssertSqlSafe(format!("SELECT {CLOCK}")));
                let now = clock.fetch_one(&mut *transaction).await?;
                let value = work(&mut transaction, Timestamp::from_micros(now)).await?;
                // Before it is sent: a wait that ends from here on proves nothing any more.
                committing.store(true, Ordering::Release);
                transaction.commit().await?;
                Ok(value)
            })
        });
        let was_commit_sent = || sent.load(Ordering::Acquire);
        written.await.map_err(|error| WriteFailure { error, was_commit_sent: was_commit_sent() })
    }

    /// Reads with one statement.
    pub(crate) async fn query(
        &self,
        statement: Statement,
    ) -> Result<Vec<QueryResult>, sqlx::Error> {
        self.run(move |connection| Box::pin(read(connection, statement))).await
    }

    /// Begins a read of several statements, each with this limit.
    pub(crate) async fn moment(
        &self,
        statement: Duration,
    ) -> Result<PgReadTransaction, sqlx::Error> {
        let shared = Arc::clone(&self.shared);
        let mut taken = shared.acquire(self.health).await?;
        // If this fails, or is dropped, the connection goes with it.
        within(self.wait_max, taken.connection.execute(begin_snapshot(statement))).await?;
        let wait_max = statement.saturating_add(ANSWER_LATE);
        Ok(PgReadTransaction { taken: tokio::sync::Mutex::new(taken), shared, wait_max })
    }

    /// Closes the connections, once they are not used any more.
    pub(crate) async fn close(&self) {
        // First, so that no caller takes a place, and no connection is kept from here on.
        self.shared.room.close();
        let idle = std::mem::take(&mut *self.shared.idle());
        for IdleConnection { connection, .. } in idle {
            if let Err(error) = within(END, connection.close()).await {
                tracing::debug!(%error, "a connection did not close");
            }
        }
    }
}

impl PoolInner {
    async fn acquire(&self, health: HealthCheck) -> Result<ConnectionGuard, sqlx::Error> {
        let taking = async {
            let place = Arc::clone(&self.room).acquire_owned().await;
            let place = place.map_err(|_closed| sqlx::Error::PoolClosed)?;
            // The last one used is the likeliest to be well; unused ones grow old at the front.
            let kept = self.idle().pop_back();
            // One of an earlier generation may lead to a primary that was replaced, and answers as if it were not.
            let kept = kept.filter(|kept| kept.generation == self.servers.generation());
            if let Some(IdleConnection { mut connection, generation, .. }) = kept
                && (health == HealthCheck::Skip
                    || within(PING_TIMEOUT, is_healthy(&mut connection)).await.unwrap_or(false))
            {
                // Any other answer, or none, drops the kept connection and makes a new one.
                return Ok(ConnectionGuard { connection, generation, _place: place });
            }
            let Primary { connection, generation, .. } = self.servers.connect(self.session).await?;
            Ok(ConnectionGuard { connection, generation, _place: place })
        };
        within(ACQUIRE, taking).await
    }

    fn release(&self, taken: ConnectionGuard) {
        let now = Instant::now();
        let mut idle = self.idle();
        // No timer closes idle connections: each return of a connection does.
        while idle.front().is_some_and(|kept| now.duration_since(kept.since) > IDLE) {
            drop(idle.pop_front());
        }
        // After `close` has taken the others this one would never be closed.
        if !self.room.is_closed() {
            let ConnectionGuard { connection, generation, .. } = taken;
            idle.push_back(IdleConnection { connection, generation, since: now });
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<IdleConnection>> {
        // A deque is whole after a panic: nothing is done to it in two steps.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PgReadTransaction {
    pub(crate) async fn query(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let mut taken = self.taken.lock().await;
        let found = within(self.wait_max, read(&mut taken.connection, statement)).await;
        found.map_err(|error| DbErr::Query(RuntimeErr::SqlxError(Arc::new(error))))
    }

    /// Ends the snapshot. A connection on which that fails is not used again.
    pub(crate) async fn end(self) {
        let mut taken = self.taken.into_inner();
        match within(END, taken.connection.execute("ROLLBACK")).await {
            Ok(_) => self.shared.release(taken),
            Err(error) => tracing::debug!(%error, "a read did not end"),
        }
    }
}

/// Rows of a statement that is written for both databases.
pub(super) async fn read(
    connection: &mut PgConnection,
    Statement { sql, values, .. }: Statement,
) -> Result<Vec<QueryResult>, sqlx::Error> {
    let values = SqlxValues(values.unwrap_or_else(|| Values(Vec::new())));
    let rows = sqlx::query_with(AssertSqlSafe(sql), values).fetch_all(connection).await?;
    Ok(rows.into_iter().map(QueryResult::from).collect())
}
