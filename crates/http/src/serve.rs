//! The public listener: serves connections up to its limit, and refuses those beyond it.
//!
//! - Within the limits, of all connections and of one address, a connection is served.
//! - Beyond them, one on a spare place ([`ConnectionLimiter`]) is answered `overloaded` and closed. Probes
//!   are answered there as usual, so that a full process does not look dead to its balancer.
//! - Any more are closed without an answer.
//!
//! At its end ([`departure`](crate::departure)) answers close their connections, idle ones are closed, and then
//! the listener is dropped; those that there are finish ([`connection`]). Operations do not end
//! with their connections: the engine owns them.
//!
//! [`PublicApi::answer`] answers within the process as the listener answers to a socket: the same
//! service, with the same keys, limits and line in the log. The connection is a pipe in memory, and not
//! counted.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::admin::report::HolderReports;
use holdfast_engine::Engine;
use holdfast_net::{
    Admission, ConnectionLimiter, Listener, RefusalLog, SpareAnswer, accept, connection, finish,
    spare_connection,
};
use holdfast_receipts::key::Signer;
use holdfast_telemetry::traces::Tracer;
use holdfast_wire::error::Code;
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::body::BodyBudget;
use crate::cors::Cors;
use crate::departure::Departure;
use crate::live_options::LiveOptions;
use crate::local::{self, LocalBody};
use crate::probe::{answer_length, answer_probe};
use crate::problem::Problem;
use crate::reply::{HttpResponse, problem, with_request_id};
use crate::route::route;
use crate::service::Service;

/// Parts of a process that the public API uses.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Completions, operations and accounts.
    pub engine: Arc<Engine>,
    /// Usage.
    pub reports: Arc<dyn HolderReports>,
    /// Signer of receipts.
    pub signer: Arc<Signer>,
    /// Traces of requests; `None` if they are off.
    pub tracer: Option<Arc<Tracer>>,
}

/// The public API of this process: for its listener, and for callers within the process.
#[derive(Debug, Clone)]
pub struct PublicApi(Arc<Service>);

impl PublicApi {
    /// The API over these parts, under these options, until this departure is over.
    #[must_use]
    pub fn new(
        Ports { engine, reports, signer, tracer }: Ports,
        live: Arc<LiveOptions>,
        departure: Departure,
    ) -> Self {
        Self(Arc::new(Service {
            engine,
            reports,
            signer,
            live,
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
    /// A `hyper::Error` if the answer broke off before its head.
    pub async fn answer(
        &self,
        request: http::Request<Bytes>,
        client: IpAddr,
    ) -> Result<http::Response<LocalBody>, hyper::Error> {
        local::answer(&self.0, request, client).await
    }
}

/// Serves the public API until its departure is over, then lets connections finish for a short while.
pub async fn serve(listener: Listener, PublicApi(service): PublicApi) {
    let places = ConnectionLimiter::default();
    let live = Arc::clone(&service.live);
    let departure = service.departure.clone();
    let connections = TaskTracker::new();
    let mut tick = tokio::time::interval(RefusalLog::TICK);
    loop {
        // A tick that drops `accept` loses no connection: those that it did not return are still in the
        // backlog.
        let accepted = tokio::select! {
            accepted = accept(&listener, departure.over()) => accepted,
            _ = tick.tick() => {
                service.counts.refusals.report_old();
                continue;
            }
        };
        let Some(accepted) = accepted else { break };
        let (shutdown, service) = (departure.of_connection(), Arc::clone(&service));
        let address = accepted.1.ip();
        let (options, place) = live.read(|config| {
            let place = places.admit(address, config.options.of_listener(), &config.trusted);
            (config.options.of_connection(), place)
        });
        match place {
            Some(Admission::Served(place)) => drop(connections.spawn(async move {
                let answer = |request, client| Arc::clone(&service).answer(request, client);
                connection(accepted, &options, &shutdown, answer).await;
                drop(place);
            })),
            Some(Admission::Spare(place)) => drop(connections.spawn(async move {
                let answer =
                    |request, _client, decision| answer_beyond_limit(&service, request, decision);
                let place = (&place, answer_length);
                spare_connection(accepted, &options, &shutdown, place, answer).await;
            })),
            None => {}
        }
    }
    drop(listener);
    finish(&connections).await;
}

/// The answer on a connection beyond the limit: probes are still answered.
async fn answer_beyond_limit(
    service: &Service,
    request: http::Request<Incoming>,
    decision: SpareAnswer,
) -> HttpResponse {
    let (head, _body) = request.into_parts();
    let cors = service.live.read(|config| Cors::of(&config.origins, &head.headers));
    let answer = match (cors.preflight(&head), route(&head.method, head.uri.path())) {
        (Some(answer), _) => answer,
        (None, route) => {
            let probe = match (route, decision) {
                (Ok(route), SpareAnswer::Given) => answer_probe(&service.engine, route).await,
                (Ok(_) | Err(_), SpareAnswer::Given | SpareAnswer::Refused) => None,
            };
            cors.put(probe.unwrap_or_else(|| problem(&Problem::new(Code::Overloaded))))
        }
    };
    with_request_id(answer, Uuid::new_v4())
}
