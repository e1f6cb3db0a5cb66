//! Lifecycle of connections: accepted within limits, served one task each, finished at shutdown.
//!
//! - Within the limits, of all connections and of one address, a connection is served.
//! - Beyond them, up to 64 at once (8 of one address) hear `overloaded` and are closed. Probes
//!   are answered there as usual, so that a full process does not look dead to its balancer.
//! - Any more are closed unheard.
//!
//! At shutdown the listener is dropped first, so that new connections go elsewhere. Connections
//! answer the request in flight and close; those left after five seconds are cut. Operations do
//! not end with their connections: the engine owns them.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_engine::Engine;
use holdfast_wire::error::Code;
use http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::Options;
use crate::body::BodyBudget;
use crate::description::Description;
use crate::error::Problem;
use crate::live_config::{HttpConfig, LiveConfig};
use crate::peers::{AddressCounts, AddressPermit, is_trusted};
use crate::refusals;
use crate::reply::{HttpResponse, problem, with_request_id};
use crate::response_body::AbortSignal;
use crate::route::route;
use crate::service::{Service, answer_probe};
use crate::socket::CallerSocket;
use crate::timed_stream::{BusyFlag, GuardedBody, ReadTimeouts, TimedStream};

/// Pause after an error of the listener, such as too many open files, which would repeat at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond the limit that are told so at once; more are closed unheard.
const TURNED_AWAY_MAX: usize = 64;
/// The same for one address.
const TURNED_AWAY_PER_ADDRESS: usize = 8;
/// Time for the head of a request that is turned away: a slow client must not hold the place.
const REFUSED: Duration = Duration::from_secs(1);
/// Time for answers in flight at shutdown, once everything else has ended.
const FINISH: Duration = Duration::from_secs(5);

/// Serves the public API until `shutdown`, then lets connections finish for a short while.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    current: Arc<LiveConfig>,
    shutdown: CancellationToken,
) {
    let places = ConnectionLimiter::default();
    let service = Arc::new(Service {
        engine,
        current: Arc::clone(&current),
        description: Description::render(),
        counts: Arc::default(),
        bodies: BodyBudget::default(),
    });
    let connections = TaskTracker::new();
    let mut tick = tokio::time::interval(refusals::WHILE);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &shutdown) => accepted,
            _ = tick.tick() => {
                service.counts.refusals.tell_old();
                continue;
            }
        };
        let Some(accepted) = accepted else { break };
        let (shutdown, service) = (shutdown.clone(), Arc::clone(&service));
        let serving = current.get();
        let (address, options) = (accepted.1.ip(), serving.options);
        if let Some(place) = places.take(address, &serving) {
            connections.spawn(async move {
                let answer = |request, client| Arc::clone(&service).answer(request, client);
                connection(accepted, &options, &shutdown, answer).await;
                drop(place);
            });
        } else if let Some(place) = places.take_to_refuse(address) {
            connections.spawn(async move {
                let answer = |request, _client| answer_beyond_limit(&service.engine, request);
                let options = Options { header_time: options.header_time.min(REFUSED), ..options };
                connection(accepted, &options, &shutdown, answer).await;
                drop(place);
            });
        }
    }
    drop(listener);
    finish(&connections).await;
}

/// Lets connections finish for a short while.
pub(crate) async fn finish(connections: &TaskTracker) {
    connections.close();
    if tokio::time::timeout(FINISH, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut at the end");
    }
}

/// Limiter of connections, in all and by address, within limits that a reload may change.
#[derive(Default)]
struct ConnectionLimiter {
    served: ConnectionSlots,
    of_addresses: AddressCounts,
    refused: ConnectionSlots,
    refused_of_addresses: AddressCounts,
}

/// The place of one connection, until it is dropped.
struct ConnectionPermit {
    _slot: Arc<()>,
    _of_address: AddressPermit,
}

impl ConnectionLimiter {
    /// A place for a connection that is served.
    fn take(&self, address: IpAddr, serving: &HttpConfig) -> Option<ConnectionPermit> {
        let options = &serving.options;
        let is_proxy = is_trusted(&serving.trusted, address);
        let most = if is_proxy { usize::MAX } else { options.connections_per_address };
        // The address first: where the second `take` fails, dropping this permit undoes the first.
        let of_address = self.of_addresses.take(address, most)?;
        let slot = self.served.take(options.connections)?;
        Some(ConnectionPermit { _slot: slot, _of_address: of_address })
    }

    /// A place for one that is told that there is none, unless it is a probe. No address has them all.
    fn take_to_refuse(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let of_address = self.refused_of_addresses.take(address, TURNED_AWAY_PER_ADDRESS)?;
        let slot = self.refused.take(TURNED_AWAY_MAX)?;
        Some(ConnectionPermit { _slot: slot, _of_address: of_address })
    }
}

/// Connections at once, within a limit that may change. Each has a clone of the pointer, and only the
/// task that accepts them makes clones.
#[derive(Default)]
struct ConnectionSlots(Arc<()>);

impl ConnectionSlots {
    /// Room for one more, until it is dropped.
    fn take(&self, most: usize) -> Option<Arc<()>> {
        // Safe from a race, because one task takes; drops meanwhile only make room.
        (Arc::strong_count(&self.0) <= most).then(|| Arc::clone(&self.0))
    }
}

/// The client of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Peer address of the connection; behind a proxy it is the proxy's.
    pub(crate) address: IpAddr,
    pub(crate) cut: AbortSignal,
}

/// The next connection; `None` at the end.
pub(crate) async fn accept(
    listener: &TcpListener,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return None,
        };
        match accepted {
            Ok(accepted) => return Some(accepted),
            Err(error) => log_accept_error(&error),
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// The answer on a connection beyond the limit: whoever watches the process is heard all the same.
async fn answer_beyond_limit(engine: &Engine, request: http::Request<Incoming>) -> HttpResponse {
    let probe = match route(request.method(), request.uri().path()) {
        Ok(route) => answer_probe(engine, route).await,
        Err(_) => None,
    };
    let mut answer = probe.unwrap_or_else(|| problem(&Problem::new(Code::Overloaded)));
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    with_request_id(answer, Uuid::new_v4())
}

fn log_accept_error(error: &std::io::Error) {
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "a connection was not accepted");
}

/// Serves one connection until it ends, or until its request in flight is answered at shutdown.
pub(crate) async fn connection<F, R>(
    (stream, address): (TcpStream, SocketAddr),
    options: &Options,
    shutdown: &CancellationToken,
    answer: F,
) where
    F: Fn(http::Request<Incoming>, Client) -> R,
    R: Future<Output = HttpResponse>,
{
    if let Err(error) = stream.set_nodelay(true) {
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, "a connection keeps its delay");
    }
    let client = Client { address: address.ip(), cut: AbortSignal::default() };
    let stage = BusyFlag::default();
    // Mapped, not awaited by another future, which would have room for it twice.
    let service = service_fn(|request: http::Request<Incoming>| {
        let turn = stage.begin();
        answer(request, client.clone())
            .map(|answer| Ok::<_, Infallible>(answer.map(|body| GuardedBody::new(body, turn))))
    });
    // Twice the limit, so that a head just over it gets a body that says so.
    let buffer = options.header_bytes.saturating_mul(2).max(16_384);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // That is the connection's own business.
        .header_read_timeout(None)
        .max_buf_size(buffer)
        .serve_connection(
            TokioIo::new(TimedStream::new(
                CallerSocket::new(stream, options.write_time, client.cut.clone()),
                stage.clone(),
                ReadTimeouts { head: options.header_time, idle: options.idle_time },
            )),
            service,
        );
    let mut connection = pin!(connection);
    let served = tokio::select! {
        // No lots are drawn at each step.
        biased;
        served = connection.as_mut() => served,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        // A client that goes away is nobody's mistake.
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, "a connection ended");
    }
}
