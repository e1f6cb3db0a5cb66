//! One request: its route, its caller, its answer, its line in the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_engine::{AuthError, Caller, Engine, Readiness};
use holdfast_wire::error::Code;
use http::request::Parts;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use uuid::Uuid;

use crate::counts::Counts;
use crate::current::Current;
use crate::description::Description;
use crate::error::Problem;
use crate::log::RequestLog;
use crate::reply::{Answer, IDEMPOTENCY_KEY, json, not_allowed, problem, with_request_id};
use crate::route::{Asked, Found, NoRoute, Page, Probe, Route, route};
use crate::streamed::{Body, Cut};
use crate::{chat, headers, resources};

/// What every request needs.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) current: Arc<Current>,
    pub(crate) description: Description,
    pub(crate) counts: Arc<Counts>,
}

impl Service {
    /// Answers one request. Cancel safe: a dropped future leaves operations running.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Cut,
    ) -> Answer {
        let id = Uuid::new_v4();
        let (head, body) = request.into_parts();
        let found = if headers::has_host(&head) {
            route(&head.method, head.uri.path())
        } else {
            Err(NoRoute::Host)
        };
        let mut answer = match found {
            Ok(Found::Probe(Probe::Health)) => json(StatusCode::OK, r#"{"status":"ok"}"#),
            Ok(Found::Probe(Probe::Ready)) => self.ready().await,
            Ok(Found::Asked(found)) => self.logged((id, connection), Ok(found), &head, body).await,
            Err(nothing) => self.logged((id, connection), Err(nothing), &head, body).await,
        };
        if let Some(key) = headers::echo(&head.headers) {
            answer.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        with_request_id(answer, id)
    }

    /// Answers one request with a line in the log, whatever becomes of it.
    async fn logged(
        &self,
        (id, connection): (Uuid, Cut),
        found: Result<Asked<'_>, NoRoute>,
        head: &Parts,
        body: Incoming,
    ) -> Answer {
        let label = found.as_ref().map_or("none", Asked::label);
        let mut log = RequestLog::new(id, label, Arc::clone(&self.counts));
        let told = AssertUnwindSafe(self.tell(found, head, body, &mut log)).catch_unwind().await;
        let told = told.unwrap_or_else(|_panic| {
            tracing::error!(request.id = %id, "a request's handler panicked");
            Err(Problem::new(Code::InternalError))
        });
        let mut answer = told.unwrap_or_else(|told| {
            log.code = Some(told.code.label());
            problem(&told)
        });
        log.status = Some(answer.status().as_u16());
        if let Body::Streamed(stream) = answer.body_mut() {
            stream.begin(connection, log);
        }
        answer
    }

    async fn tell(
        &self,
        found: Result<Asked<'_>, NoRoute>,
        head: &Parts,
        body: Incoming,
        log: &mut RequestLog,
    ) -> Result<Answer, Problem> {
        // Once: all of the request is served by the same, whatever takes its place meanwhile.
        let serving = &self.current.get();
        if headers::head_bytes(&head.uri, &head.headers) > serving.options.header_bytes {
            return Err(Problem::new(Code::HeadersTooLarge));
        }
        let found = match found {
            Ok(found) => found,
            Err(NoRoute::Host) => return Err(headers::no_host()),
            Err(NoRoute::NotFound) => return Err(Problem::new(Code::NotFound)),
            Err(NoRoute::Misspelled(right)) => return Err(misspelled(right)),
            Err(NoRoute::Method(allowed)) => {
                log.code = Some(Code::MethodNotAllowed.label());
                return Ok(not_allowed(allowed));
            }
        };
        let found = match found {
            Asked::Page(Page::OpenApi) => return Ok(self.description.document()),
            Asked::Page(Page::Docs) => return Ok(self.description.page()),
            Asked::Route(found) => found,
        };
        let caller = self.caller(head).await?;
        log.api_key = Some(caller.api_key.id);
        let engine = &self.engine;
        match found {
            Route::Completions => {
                let request = (&head.headers, body);
                chat::complete(engine, serving, &caller, request, log).await
            }
            // In boxes: a completion, which comes most, would be moved about with room for them.
            Route::Operation(key) => {
                Box::pin(resources::operation(engine, &caller, key, log)).await
            }
            Route::Cancel(key) => Box::pin(resources::cancel(engine, &caller, key, log)).await,
            Route::Wallet => Box::pin(resources::wallet(engine, &caller)).await,
            Route::Models => Ok(resources::models(&serving.offer, &caller, engine.now())),
            Route::Model(id) => resources::model(&serving.offer, &caller, engine.now(), id),
        }
    }

    async fn caller(&self, head: &Parts) -> Result<Arc<Caller>, Problem> {
        let invalid = || Problem::new(Code::InvalidApiKey);
        let bearer = headers::bearer(&head.headers).ok_or_else(invalid)?;
        self.engine.authenticate(bearer).await.map_err(|error| match error {
            AuthError::Invalid => invalid(),
            AuthError::Unavailable(cause) => resources::unavailable(&cause),
        })
    }

    async fn ready(&self) -> Answer {
        match self.engine.readiness().await {
            Readiness::Ready => json(StatusCode::OK, r#"{"status":"ready"}"#),
            Readiness::Draining => {
                json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#)
            }
            Readiness::Storage => {
                json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"storage_unavailable"}"#)
            }
        }
    }
}

/// The commonest mistake of a client that is set up by hand.
fn misspelled(right: &str) -> Problem {
    let message = format!(
        "There is nothing at this path: send the request to {right}. The base URL of an OpenAI client \
         ends with /v1, once, and no path here ends with a slash."
    );
    Problem { message: message.into(), ..Problem::new(Code::NotFound) }
}
