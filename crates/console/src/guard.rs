//! The guard: what every request passes before its page.
//!
//! ```text
//! Host (421) ─▶ origin of unsafe requests (403) ─▶ session (303 to /sign-in) ─▶ a place of 16 (429)
//!   ─▶ for people, admin keys and webhooks a fresh sign-in (303 to /sign-in) ─▶ page
//! ```
//!
//! - No part of a body is read before all of that is known.
//! - The stylesheet, the script, the sign-in and the page of a link need no session. A session that has a role
//!   which may not be used at this listener is none.
//! - An ended session is not looked up twice within a short time. From an address that has sent many such, known
//!   sessions are still looked up, and of the others a random sample ([`UnknownTextLimiter`]). The rest is refused
//!   (429). On the sign-in and on a link's page it counts as none, so that a flood does not prevent sign-ins. A
//!   sign-out is refused, because its session would stay.
//! - One line in the log for each request of a session, and for the first without one ([`AnonymousLogs`]), with the
//!   client's address, with the route and never its path: a link's path is a secret. A request that is refused beside
//!   too many others of its session keeps the session's actor.
//!
//! Never in here: a query, a cookie, a token or a body in the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::{Accounts, InFlight, Place, SessionError, SignedIn};
use holdfast_domain::admin::{ActorId, EmailAddress};
use holdfast_domain::secret::SessionToken;
use holdfast_net::{LookupRefusal, RefusalLog, UnknownTextLimiter, group};
use http::header::HOST;
use http::request::Parts;
use http::{Method, StatusCode};

use crate::cookie;
use crate::failure::Failure;
use crate::kit::form::KEY;
use crate::kit::{
    ConsoleOptions, ConsoleState, CurrentSession, RefusedUseCase, SentFields, Visitor, with_query,
};
use crate::request_origin::{ClientAddress, RequestOrigin, once};

/// Paths that are open without a session, and the paths below them if they end with a slash.
const OPEN: &[&str] = &["/sign-in", SIGN_OUT, "/link/"];
const SIGN_OUT: &str = "/sign-out";
const ASSETS: &str = "/assets/";
/// First parts of the paths whose forms require a fresh sign-in: who takes over a session for a moment must not
/// make a way in that stays.
const SENSITIVE: &[&str] = &["people", "admin-keys", "webhooks"];

/// State of the guard.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    accounts: Accounts,
    options: Arc<ConsoleOptions>,
    in_flight: InFlight,
    sessions: Arc<UnknownTextLimiter>,
    pub(crate) logs: AnonymousLogs,
}

/// Logs of requests without a session, a sample of each kind, so that requests of one kind never hide another's.
#[derive(Debug, Clone)]
pub(crate) struct AnonymousLogs {
    /// Passwords that were wrong or not judged, of a sign-in or a link.
    failed: Arc<RefusalLog>,
    /// Open pages, and sign-ins that succeeded.
    open: Arc<RefusalLog>,
    /// All else.
    refused: Arc<RefusalLog>,
}

/// Kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    Asset,
    Open,
    Closed,
}

impl PathKind {
    fn of(path: &str) -> Self {
        if path.starts_with(ASSETS) {
            Self::Asset
        } else if is_open(path) {
            Self::Open
        } else {
            Self::Closed
        }
    }
}

impl AnonymousLogs {
    fn new() -> Self {
        let log = |warning| Arc::new(RefusalLog::new(warning));
        Self {
            failed: log("more sign-ins failed than are listed"),
            open: log("more open pages were answered than are listed"),
            refused: log("more requests had no session than are listed"),
        }
    }

    /// The three logs: the listener reports their closed windows.
    pub(crate) fn all(&self) -> Vec<Arc<RefusalLog>> {
        [&self.failed, &self.open, &self.refused].map(Arc::clone).to_vec()
    }

    /// Counts an answer; true if it has a line of its own. An asset that was sent has none.
    fn has_line(&self, method: &Method, path: PathKind, status: StatusCode) -> bool {
        let is_sent = !status.is_client_error() && !status.is_server_error();
        let is_unproven = [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS];
        match path {
            // Every page loads them: their lines would take the places of others.
            PathKind::Asset if is_sent => false,
            // A sample of their own: other requests, sent on purpose, could hide failed sign-ins.
            PathKind::Open if method == Method::POST && is_unproven.contains(&status) => {
                self.failed.has_line()
            }
            PathKind::Open if is_sent => self.open.has_line(),
            PathKind::Asset | PathKind::Open | PathKind::Closed => self.refused.has_line(),
        }
    }
}

/// Refusal of a request, and whose it is, if that is known.
type RefusedRequest = (Option<ActorId>, GuardRefusal);

/// Refusal of a request.
#[derive(Debug)]
enum GuardRefusal {
    WrongHost,
    OtherOrigin,
    /// To be signed in for this address.
    SignIn(String),
    TooMany,
    TooManyUnknown,
    Unavailable,
}

impl IntoResponse for GuardRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::WrongHost => Failure::new(
                StatusCode::MISDIRECTED_REQUEST,
                "The console is not served under this name. Use the address that `admin.url` or `console.url` \
                 has, or on this machine http://localhost with the listener's port.",
            )
            .into_response(),
            Self::OtherOrigin => Failure::new(
                StatusCode::FORBIDDEN,
                "This request was not sent by a page of the console, and had no effect. Open the \
                page here, and \
                 send it again.",
            )
            .into_response(),
            Self::SignIn(next) => sign_in(&next),
            Self::TooMany => too_many("You have 16 requests on the way. Wait for their answers."),
            Self::TooManyUnknown => too_many(
                "Too many requests with sessions that have ended come from your network address. Try again in a \
                 second.",
            ),
            Self::Unavailable => Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The database does not answer, so no sign-in is possible. Try again.",
            )
            .into_response(),
        }
    }
}

fn too_many(message: &'static str) -> Response {
    let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, message);
    failure.after(Duration::from_secs(1)).into_response()
}

fn sign_in(next: &str) -> Response {
    let next = Some(next).filter(|next| *next != "/");
    Redirect::to(&with_query("/sign-in", &[("next", next)])).into_response()
}

/// Lets a request through to its page, or refuses it.
pub(crate) async fn pass(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), request.method().clone());
    let path = PathKind::of(request.uri().path());
    // The route, because the path of a link contains its token, which must not reach the log.
    let endpoint = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let endpoint = endpoint.unwrap_or_else(|| "none".to_owned());
    let address = request.extensions().get().map(|ClientAddress(address)| *address);
    // Apart: no future may borrow a request, whose body is not `Sync`.
    let (mut parts, body) = request.into_parts();
    let (actor, answer) = match guard.admit(&mut parts).await {
        Ok(admitted) => {
            let actor = admitted.as_ref().map(|(actor, _place)| *actor);
            let answer = next.run(Request::from_parts(parts, body)).await;
            // Not before: the bound of 16 is on requests that a person has in the making, and not
            // on heads that are judged.
            drop(admitted);
            (actor, answer)
        }
        Err((actor, refused)) => (actor, refused.into_response()),
    };
    if let Some((actor, RefusedUseCase(use_case))) = actor.zip(answer.extensions().get().copied()) {
        guard.accounts.note_refused(actor, use_case);
    }
    // A session's requests all have a line. Any client can send others by the thousand, so these
    // are sampled, or a flood would fill the log.
    if actor.is_none() && !guard.logs.has_line(&method, path, answer.status()) {
        return answer;
    }
    let status = answer.status().as_u16();
    let actor = actor.map_or_else(|| "-".to_owned(), |actor| actor.to_string());
    let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        client.address = address.map(tracing::field::display),
        %method, endpoint, actor, status, latency_ms,
        "console"
    );
    answer
}

impl Guard {
    /// A guard before its first request.
    pub(crate) fn new(shared: &ConsoleState) -> Self {
        let (accounts, options) = (shared.accounts.clone(), Arc::clone(&shared.options));
        let sessions = Arc::clone(&shared.sessions);
        let logs = AnonymousLogs::new();
        Self { accounts, options, in_flight: InFlight::of_requests(), sessions, logs }
    }

    /// Judges a request by its head, and adds its origin and its user.
    async fn admit(&self, parts: &mut Parts) -> Result<Option<(ActorId, Place)>, RefusedRequest> {
        let of_stranger = |refusal| (None, refusal);
        // The host first: under a foreign name that resolves to this address (DNS rebinding) a
        // page of another site would be of the same origin.
        let request_origin =
            self.request_origin(parts).ok_or_else(|| of_stranger(GuardRefusal::WrongHost))?;
        // The handlers of GET answer HEAD, too. Any site may link to either, so neither makes a
        // change.
        let is_safe = matches!(parts.method, Method::GET | Method::HEAD);
        // `SameSite=Lax` is not enough: another port of this host is the same site, and a form of
        // another program there would carry the cookie.
        if !is_safe && !request_origin.is_same_origin(&parts.headers) {
            return Err(of_stranger(GuardRefusal::OtherOrigin));
        }
        let path = PathKind::of(parts.uri.path());
        // Before the session: the sign-in loads them without one, and they cost no look-up.
        if path == PathKind::Asset {
            return Ok(None);
        }
        let session = self.session_or_none(parts, &request_origin).await;
        let Some(signed_in) = session.map_err(of_stranger)? else {
            parts.extensions.insert(request_origin);
            return if path == PathKind::Open {
                Ok(None)
            } else {
                Err(of_stranger(GuardRefusal::SignIn(back(parts, is_safe))))
            };
        };
        let actor = signed_in.principal.actor;
        let of_actor = |refusal| (Some(actor), refusal);
        let place = self.in_flight.enter(actor).ok_or_else(|| of_actor(GuardRefusal::TooMany))?;
        if requires_fresh_sign_in(parts, is_safe) && !signed_in.is_fresh(signed_in.now) {
            return Err(of_actor(GuardRefusal::SignIn(back(parts, is_safe))));
        }
        let email = signed_in.person.email.as_ref().map_or("", EmailAddress::as_str).to_owned();
        let principal = signed_in.principal.clone();
        parts.extensions.insert(request_origin);
        parts.extensions.insert(Visitor { principal, email });
        parts.extensions.insert(CurrentSession(signed_in));
        Ok(Some((actor, place)))
    }

    /// The origin, if the host is one of the console's names.
    fn request_origin(&self, parts: &Parts) -> Option<RequestOrigin> {
        let ConsoleOptions { address, audience, .. } = &*self.options;
        let host = once(&parts.headers, &HOST).filter(|host| address.is_host(host))?;
        let is_https = address.is_https();
        let scheme = if is_https { "https" } else { "http" };
        let ClientAddress(client) = *parts.extensions.get()?;
        Some(RequestOrigin {
            origin: format!("{scheme}://{host}"),
            is_https,
            audience: *audience,
            client,
        })
    }

    /// The session, if there is one. On an open page a session that was not looked up is none.
    async fn session_or_none(
        &self,
        parts: &Parts,
        request_origin: &RequestOrigin,
    ) -> Result<Option<SignedIn>, GuardRefusal> {
        let path = parts.uri.path();
        match self.session(parts, request_origin).await {
            // Not for a sign-out: without its session it would succeed, and the session would
            // live on.
            Err(GuardRefusal::TooManyUnknown) if is_open(path) && path != SIGN_OUT => Ok(None),
            session => session,
        }
    }

    async fn session(
        &self,
        parts: &Parts,
        request_origin: &RequestOrigin,
    ) -> Result<Option<SignedIn>, GuardRefusal> {
        let Some(token) = cookie::session(&parts.headers, request_origin.jar()) else {
            return Ok(None);
        };
        match self.look_up(&token, request_origin).await? {
            Ok(signed_in) => {
                let is_admitted = request_origin.audience.admits(signed_in.principal.role);
                // Signed out rather than forbidden: a sign-in here chooses a role that may be
                // used here.
                Ok(Some(signed_in).filter(|_signed_in| is_admitted))
            }
            Err(SessionError::Ended) => Ok(None),
            Err(SessionError::Unavailable(error)) => {
                tracing::warn!(%error, "a session was not looked up");
                Err(GuardRefusal::Unavailable)
            }
        }
    }
}

impl Guard {
    /// The session of a token, which is looked up unless the limiter refuses that.
    async fn look_up(
        &self,
        token: &SessionToken,
        request_origin: &RequestOrigin,
    ) -> Result<Result<SignedIn, SessionError>, GuardRefusal> {
        let (text, peer) = (token.expose(), group(request_origin.client));
        match self.sessions.check(&text, peer) {
            Ok(()) => {}
            // A browser repeats an ended cookie at each request: that costs no read of the
            // database.
            Err(LookupRefusal::Gone) => return Ok(Err(SessionError::Ended)),
            Err(LookupRefusal::TooMany) => return Err(GuardRefusal::TooManyUnknown),
        }
        let found = self.accounts.session(token, request_origin.client).await;
        match &found {
            Ok(_) => self.sessions.on_found(&text),
            Err(SessionError::Ended) => self.sessions.on_refused(&text, peer),
            // No verdict: a session that is noted as ended would be refused although it is valid.
            Err(SessionError::Unavailable(_)) => {}
        }
        Ok(found)
    }
}

fn is_open(path: &str) -> bool {
    let is_it = |open: &&str| path == *open || (open.ends_with('/') && path.starts_with(*open));
    OPEN.iter().any(is_it)
}

/// True for a form of people, admin keys or webhooks: what changes them, and the address that shows it.
fn requires_fresh_sign_in(parts: &Parts, is_safe: bool) -> bool {
    let first = parts.uri.path().split('/').nth(1).unwrap_or_default();
    // When the form is opened, too: a sign-in that came only after the sending would lose its
    // fields.
    SENSITIVE.contains(&first) && (!is_safe || is_form(parts))
}

/// True for the address of a form, which has its request key.
fn is_form(parts: &Parts) -> bool {
    let query = SentFields::parse(parts.uri.query().unwrap_or_default().as_bytes());
    query.get(KEY).is_some()
}

/// Address after a sign-in: the requested one, if a browser can request it by GET.
fn back(parts: &Parts, is_safe: bool) -> String {
    // The address of a form shows the form. Any other POST may have no page at its path.
    if is_safe || is_form(parts) {
        parts.uri.path_and_query().map_or("/", |address| address.as_str()).to_owned()
    } else {
        "/".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_requests_of_one_kind_hide_none_of_another() {
        let (logs, ok, moved) = (AnonymousLogs::new(), StatusCode::OK, StatusCode::SEE_OTHER);
        let (failed, slow) = (StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS);
        let lines = |method: &Method, path: &str, status| {
            let path = PathKind::of(path);
            (0..100).filter(|_| logs.has_line(method, path, status)).count()
        };
        assert_eq!(lines(&Method::GET, "/assets/style.css", ok), 0);
        assert_eq!(lines(&Method::GET, "/sign-in", ok), 20);
        assert_eq!(
            lines(&Method::POST, "/sign-in", moved),
            0,
            "they share the lines of open pages"
        );
        assert_eq!(lines(&Method::GET, "/wallets", moved), 20);
        assert_eq!(lines(&Method::GET, "/assets/style.css", StatusCode::MISDIRECTED_REQUEST), 0);
        assert_eq!(lines(&Method::POST, "/sign-in", failed), 20);
        assert_eq!(lines(&Method::POST, "/link/x", slow), 0, "they share the lines of failures");
    }
}
