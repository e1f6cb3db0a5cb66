//! The sidecar's listener. Its clients are programs of one machine. A connection has [`HEAD_TIME`] for each head and
//! [`IDLE_TIME`] between two requests, so that connections without requests do not keep the others waiting. Beyond [`LIMITS`] the health is
//! answered, and all else refused.

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use holdfast_net::{
    Admission, AnswerLength, ConnectionLimiter, GuardedBody, ListenerLimits, Network, ReadTimeouts,
    await_first_event, serve_stream, set_nodelay,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Sidecar;
use crate::journal::{JournalFile, LostJournal};
use crate::service::{LocalCaller, Service};
use crate::socket::CallerSocket;

/// Connections at once, a quarter of them for one address that is not loopback.
const LIMITS: ListenerLimits = ListenerLimits::by_quarters(2_048);
/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Time for a head, from its first byte or from the beginning of the connection.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time without a byte between two requests. It exceeds what the connection pools of common clients keep, because a
/// client may lose a request that it sends as its connection is closed.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// Timeouts of a connection's reads.
const READS: ReadTimeouts = ReadTimeouts { head: HEAD_TIME, idle: IDLE_TIME };
/// Pause after an error of the listener, such as too many open files, which would repeat at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for answers in flight at shutdown; a client repeats a call that was cut, under the same key.
const DRAIN: Duration = Duration::from_secs(30);
/// Between two sweeps of the table.
const SWEEP: Duration = Duration::from_secs(10);

/// Serves until `shutdown`, then lets answers in flight finish, for 30 s at most.
///
/// # Errors
///
/// [`LostJournal`] if the journal's file is another one by now: then it ends as by `shutdown`.
pub async fn serve(
    listener: TcpListener,
    sidecar: Sidecar,
    shutdown: CancellationToken,
) -> Result<(), LostJournal> {
    let Sidecar { service } = sidecar;
    let shutdown = shutdown.child_token();
    let connections = TaskTracker::new();
    let cut = service.cut.clone();
    let (places, loopback) = (ConnectionLimiter::default(), Network::LOOPBACK);
    let file = service.registry.journal_file();
    let mut lost = pin!(OptionFuture::from(file.map(JournalFile::lost)));
    let mut end = Ok(());
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = sweep.tick() => {
                service.registry.sweep();
                continue;
            }
            Some(error) = &mut lost => {
                tracing::error!(%error, "draining");
                end = Err(error);
                shutdown.cancel();
                break;
            }
            () = shutdown.cancelled() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = places.admit(address.ip(), LIMITS, &loopback) else { continue };
        let (service, shutdown, cut) = (Arc::clone(&service), shutdown.clone(), cut.clone());
        // A task for each connection, on the tracker that shutdown waits for; `cut` ends those that outlast it.
        connections.spawn(async move {
            tokio::select! {
                () = connection(stream, &place, &service, &shutdown) => {}
                () = cut.cancelled() => {}
            }
            drop(place);
        });
    }
    // Before the wait: a client that connects during it is refused at once, not left unanswered.
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut at the end");
        cut.cancel();
        connections.wait().await;
    }
    // After the connections: a client that hangs up while they finish may still begin a
    // cancellation.
    service.tasks.close();
    service.tasks.wait().await;
    // No other task has them any more; else the last ends are lost, and replay once.
    if let Some(registry) = Arc::into_inner(service).and_then(|it| Arc::into_inner(it.registry)) {
        registry.close().await;
    }
    end
}

async fn connection(
    stream: TcpStream,
    place: &Admission,
    service: &Service,
    shutdown: &CancellationToken,
) {
    set_nodelay(&stream);
    let local = match stream.local_addr() {
        Ok(local) => local,
        Err(error) => {
            tracing::debug!(%error, "a connection has no address");
            return;
        }
    };
    let _connection = service.health.connect();
    let caller = LocalCaller { socket: Arc::new(stream), state: Arc::default(), local };
    let io = CallerSocket::new(Arc::clone(&caller.socket), Arc::clone(&caller.state));
    match place {
        Admission::Served(_) => {
            let answer = |request| service.answer(request, caller.clone());
            serve_stream(io, (HEAD_BYTES_MAX, READS), shutdown, answer).await;
        }
        Admission::Spare(place) => {
            // The sidecar's own pages and refusals wait for no gateway.
            let caller = &caller;
            let answer = |request| async move {
                let (_given, turn) = place.begin(AnswerLength::Brief).await;
                let answer = service.answer_beyond_limit(request, caller.clone()).await;
                answer.map(|body| GuardedBody::new(body, turn))
            };
            let heads = (HEAD_BYTES_MAX, place.reads(READS));
            let connection = async {
                await_first_event(&caller.socket).await;
                place.serve(serve_stream(io, heads, shutdown, answer)).await;
            };
            place.run(connection).await;
        }
    }
}
