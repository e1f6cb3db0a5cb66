//! Checks of every request before its handler.
//!
//! ```text
//! Host (421) ─▶ admin key (401) ─▶ a place of 16 (429) ─▶ role (403) ─▶ handler
//! ```
//!
//! - The role is judged by the use case that [`INTERFACES`] has for the endpoint, before anything of the request is
//!   read: the answer to a caller without the right depends on no other part. The use cases judge it again, with
//!   the wallet.
//! - The description needs no key: it is the same text for all clients. Every other path needs one, unknown paths
//!   too.
//! - A key that was refused a moment ago is not looked up again. Of an address that has sent many such, keys that
//!   were let in or issued here are looked up, and of the others some that are drawn by lot
//!   ([`UnknownTextLimiter`]).
//! - The log has one line for each request of a valid key, and for the first of those that are refused one
//!   ([`RefusalLog`]), with the client's address; never a body, a query or a key.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRef, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_accounts::{
    Accounts, AuthenticationError, INTERFACES, InFlight, IssuedAdminKey, Place, Principal,
};
use holdfast_domain::admin::{ActorId, AdminBearer, UseCase};
use holdfast_net::{LookupRefusal, RefusalLog, UnknownTextLimiter, group};
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::description::{DESCRIPTION_PATH, PREFIX};
use crate::error::{Code, Problem};
use crate::options::AdminOptions;

/// Remedy of a caller that requests a second report.
const REPORT_RUNS: &str = "This admin key has a report on the way, and has one at once. Wait for its \
    answer, then send the same request again.";

/// Remedy of a client at whose address others send invalid keys.
const MANY_UNKNOWN: &str = "Too many requests with admin keys that are not valid come from this address, and this \
    one's was not looked up. Send the same request again in a second.";
/// Warning of refused requests that have no line.
const REFUSED: &str = "more requests had their admin keys refused than are listed";

/// State of the gate, and of every handler.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) accounts: Accounts,
    pub(crate) options: AdminOptions,
    in_flight: InFlight,
    reports: InFlight,
    unknown: Arc<UnknownTextLimiter>,
    pub(crate) refusals: Arc<RefusalLog>,
}

impl FromRef<Gate> for Accounts {
    fn from_ref(gate: &Gate) -> Self {
        gate.accounts.clone()
    }
}

/// Network address of the client, as the trusted proxies report it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// Lets a request through to its handler, or refuses it.
pub(crate) async fn pass(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    // First of all checks, the description included: a page under a rebound name learns nothing,
    // not even that an administration is served here.
    if !once(request.headers(), HOST).is_some_and(|host| gate.options.is_host(host)) {
        return Problem::new(Code::WrongHost).into_response();
    }
    // The pattern of the path and not the path itself: the log must not have ids that a stranger
    // made up, and roles are judged by endpoints.
    let endpoint = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    if endpoint.as_deref() == Some(DESCRIPTION_PATH) {
        return next.run(request).await;
    }
    let (began, method) = (Instant::now(), request.method().clone());
    let endpoint = endpoint.unwrap_or_else(|| "none".to_owned());
    // Taken out first: no future may borrow a request, whose body is not `Sync`.
    let bearer = bearer(request.headers()).unwrap_or_default().to_owned();
    let address = request.extensions().get().map(|ClientAddress(address)| *address);
    let admitted = gate.admit((&method, &endpoint), &bearer, address).await;
    let (actor, answer) = match admitted {
        Ok((principal, place)) => {
            let actor = principal.actor;
            request.extensions_mut().insert(principal);
            let answer = next.run(request).await;
            // Held while the handler runs, and given back before the log is written. The body of an
            // export holds a place of its own.
            drop(place);
            (Some(actor), answer)
        }
        Err((actor, refused)) => (actor, refused.into_response()),
    };
    // Here and not in `admit`: a handler's 403 counts too, which a use case gives for a wallet or a
    // right that the endpoint alone does not show.
    if answer.status() == StatusCode::FORBIDDEN
        && let Some((actor, use_case)) = actor.zip(use_case(&method, &endpoint))
    {
        gate.accounts.note_refused(actor, use_case);
    }
    // Only strangers are bounded: a flood of invalid keys must not fill the log, and no act of a
    // known actor may be missing in it.
    if actor.is_none() && !gate.refusals.has_line() {
        return answer;
    }
    let status = answer.status().as_u16();
    let actor = actor.map_or_else(|| "-".to_owned(), |actor| actor.to_string());
    let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        client.address = address.map(tracing::field::display),
        %method, endpoint, actor, status, latency_ms,
        "administration"
    );
    answer
}

/// Refusal of a request, and its actor, if known.
type GateRefusal = (Option<ActorId>, Problem);

impl Gate {
    /// State before the first request.
    pub(crate) fn new(accounts: Accounts, options: AdminOptions) -> Self {
        let (in_flight, reports) = (InFlight::of_requests(), InFlight::of_reports());
        let (unknown, refusals) = (Arc::default(), Arc::new(RefusalLog::new(REFUSED)));
        Self { accounts, options, in_flight, reports, unknown, refusals }
    }

    /// A place for a report, until it is dropped: few are read at once, for all keys together.
    pub(crate) fn begin_report(&self, principal: &Principal) -> Result<Place, Problem> {
        let place = self.reports.enter(principal.actor);
        place.ok_or_else(|| Problem::with_message(Code::TooManyRequests, REPORT_RUNS))
    }

    async fn admit(
        &self,
        (method, endpoint): (&Method, &str),
        bearer: &str,
        address: Option<IpAddr>,
    ) -> Result<(Principal, Place), GateRefusal> {
        let principal = self.authenticate(bearer, address).await;
        let principal = principal.map_err(|refused| (None, refused))?;
        let refuse = |refused| (Some(principal.actor), refused);
        // After the key, because places are counted by actor; before the role, so that a key cannot
        // send more requests at once by sending forbidden ones.
        let place = self.in_flight.enter(principal.actor);
        let place = place.ok_or_else(|| refuse(Problem::new(Code::TooManyRequests)))?;
        if let Some(use_case) = use_case(method, endpoint) {
            principal.authorize(use_case).map_err(|error| refuse(Problem::from(error)))?;
        }
        Ok((principal, place))
    }
}

impl Gate {
    /// Has a key that was just issued looked up always, however many forged ones come from its address.
    pub(crate) fn note_issued(&self, issued: &IssuedAdminKey) {
        if let Some(bearer) = &issued.bearer {
            self.unknown.on_found(&bearer.expose());
        }
    }

    /// The principal of a bearer, which is looked up unless the limiter refuses that.
    async fn authenticate(
        &self,
        bearer: &str,
        address: Option<IpAddr>,
    ) -> Result<Principal, Problem> {
        let invalid = || Problem::from(AuthenticationError::Invalid);
        // Before the limiter: a text that is no key costs no look-up, and so needs no entry.
        if AdminBearer::parse(bearer).is_none() {
            return Err(invalid());
        }
        // A call within the process has no address, and no stranger can make one.
        let Some(address) = address else {
            return Ok(self.accounts.authenticate(bearer, None).await?);
        };
        let peer = group(address);
        self.unknown.check(bearer, peer).map_err(|refusal| match refusal {
            LookupRefusal::Gone => invalid(),
            LookupRefusal::TooMany => Problem::with_message(Code::TooManyRequests, MANY_UNKNOWN),
        })?;
        let principal = self.accounts.authenticate(bearer, Some(address.to_string())).await;
        match &principal {
            Ok(_) => self.unknown.on_found(bearer),
            Err(AuthenticationError::Invalid) => self.unknown.on_refused(bearer, peer),
            // No verdict: noted as unknown, a valid key would be refused after the outage without a
            // look-up.
            Err(AuthenticationError::Unavailable(_)) => {}
        }
        Ok(principal?)
    }
}

/// Use case of an endpoint.
fn use_case(method: &Method, endpoint: &str) -> Option<UseCase> {
    let path = endpoint.strip_prefix(PREFIX)?;
    // axum answers HEAD with the handler of GET.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let is_it = |(known, of): &(&str, String)| *known == method.as_str() && of == path;
    let row = INTERFACES.iter().find(|row| row.endpoints.iter().any(is_it));
    row.map(|row| row.use_case)
}

/// Bearer of a request; `None` unless the request has exactly one bearer credential.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, text) = once(headers, AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(text.trim_matches(' '))
}

/// A header that is there exactly once: of several, servers on the way would choose differently.
fn once(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_first| values.next().is_none())?;
    value.to_str().ok()
}
