//! The public listener: which connections are served, and which are told that there is no room.
//!
//! - Within the limits, of all connections and of one address, a connection is served.
//! - Beyond them, up to 64 at once (8 of one address) hear `overloaded` and are closed. Probes
//!   are answered there as usual, so that a full process does not look dead to its balancer.
//! - Any more are closed unheard.
//!
//! At its end ([`departure`](crate::departure)) answers close their connections, idle ones are closed, and then
//! the listener is dropped; those that there are finish ([`connection`](crate::connection)). Operations do not end
//! with their connections: the engine owns them.
//!
//! [`PublicApi::ask`] answers within the process what the listener answers to a socket: the same service, with
//! the same keys, limits and line in the log. The connection is a pipe in memory, and nobody counts it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::report::HolderReports;
use holdfast_engine::Engine;
use holdfast_telemetry::traces::Tracer;
use holdfast_wire::error::Code;
use http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::Options;
use crate::body::BodyBudget;
use crate::connection::{accept, connection, finish};
use crate::cors::Cors;
use crate::departure::Departure;
use crate::description::Description;
use crate::listener::Listener;
use crate::live_options::{HttpConfig, LiveOptions};
use crate::local::{self, LocalBody};
use crate::peers::{AddressCounts, AddressPermit, is_trusted};
use crate::probe::answer_probe;
use crate::problem::Problem;
use crate::refusals;
use crate::reply::{HttpResponse, problem, with_request_id};
use crate::route::route;
use crate::service::Service;

/// Connections beyond the limit that are told so at once; more are closed unheard.
const TURNED_AWAY_MAX: usize = 64;
/// The same for one address.
const TURNED_AWAY_PER_ADDRESS: usize = 8;
/// Time for the head of a request that is turned away: a slow client must not hold the place.
const REFUSED: Duration = Duration::from_secs(1);
/// Parts of a process that the public API asks.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Completions, operations and accounts.
    pub engine: Arc<Engine>,
    /// Usage.
    pub reports: Arc<dyn HolderReports>,
    /// Traces of requests; `None` where they are off.
    pub tracer: Option<Arc<Tracer>>,
}

/// The public API of this process: for its listener, and for whoever asks it within the process.
#[derive(Debug, Clone)]
pub struct PublicApi(Arc<Service>);

impl PublicApi {
    /// The API over these parts, under these options, until this departure is over.
    #[must_use]
    pub fn new(
        Ports { engine, reports, tracer }: Ports,
        live: Arc<LiveOptions>,
        departure: Departure,
    ) -> Self {
        Self(Arc::new(Service {
            engine,
            reports,
            live,
            description: Description::render(),
            counts: Arc::default(),
            tracer,
            bodies: BodyBudget::default(),
            departure,
        }))
    }

    /// Answers a request within the process, as if this client had sent it to the listener. Dropping the
    /// answer is a hang-up.
    ///
    /// # Errors
    ///
    /// A `hyper::Error` where the answer broke off before its head.
    pub async fn ask(
        &self,
        request: http::Request<Bytes>,
        client: IpAddr,
    ) -> Result<http::Response<LocalBody>, hyper::Error> {
        local::ask(&self.0, request, client).await
    }
}

/// Serves the public API until its departure is over, then lets connections finish for a short while.
pub async fn serve(listener: Listener, PublicApi(service): PublicApi) {
    let places = ConnectionLimiter::default();
    let live = Arc::clone(&service.live);
    let departure = service.departure.clone();
    let connections = TaskTracker::new();
    let mut tick = tokio::time::interval(refusals::WHILE);
    loop {
        // A tick that drops `accept` loses no connection: whatever it did not return is still in the backlog.
        let accepted = tokio::select! {
            accepted = accept(&listener, departure.over()) => accepted,
            _ = tick.tick() => {
                service.counts.refusals.tell_old();
                continue;
            }
        };
        let Some(accepted) = accepted else { break };
        let (shutdown, service) = (departure.of_connection(), Arc::clone(&service));
        let address = accepted.1.ip();
        let (options, place) = live.read(|config| (config.options, places.take(address, config)));
        if let Some(place) = place {
            connections.spawn(async move {
                let answer = |request, client| Arc::clone(&service).answer(request, client);
                connection(accepted, &options, &shutdown, answer).await;
                drop(place);
            });
        } else if let Some(place) = places.take_to_refuse(address) {
            connections.spawn(async move {
                let answer = |request, _client| answer_beyond_limit(&service, request);
                let options = Options { header_time: options.header_time.min(REFUSED), ..options };
                connection(accepted, &options, &shutdown, answer).await;
                drop(place);
            });
        }
    }
    drop(listener);
    finish(&connections).await;
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
    fn take(&self, address: IpAddr, config: &HttpConfig) -> Option<ConnectionPermit> {
        let options = &config.options;
        let is_proxy = is_trusted(&config.trusted, address);
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

/// The answer on a connection beyond the limit: whoever watches the process is heard all the same.
async fn answer_beyond_limit(service: &Service, request: http::Request<Incoming>) -> HttpResponse {
    let (head, _body) = request.into_parts();
    let cors = service.live.read(|config| Cors::of(&config.origins, &head.headers));
    let mut answer = match (cors.preflight(&head), route(&head.method, head.uri.path())) {
        (Some(answer), _) => answer,
        (None, route) => {
            let probe = match route {
                Ok(route) => answer_probe(&service.engine, route).await,
                Err(_) => None,
            };
            cors.put(probe.unwrap_or_else(|| problem(&Problem::new(Code::Overloaded))))
        }
    };
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    with_request_id(answer, Uuid::new_v4())
}
