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

use crate::current::Current;
use crate::description::Description;
use crate::error::Problem;
use crate::log::RequestLog;
use crate::reply::{Answer, IDEMPOTENCY_KEY, json, not_allowed, problem, with_request_id};
use crate::route::{NoRoute, Route, route};
use crate::{chat, headers, resources};

/// What every request needs.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) current: Arc<Current>,
    pub(crate) description: Description,
}

impl Service {
    /// Answers one request. Cancel safe: a dropped future leaves operations running.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let id = Uuid::new_v4();
        let (head, body) = request.into_parts();
        let has_host = headers::has_host(&head);
        let mut answer = match route(&head.method, head.uri.path()) {
            Ok(Route::Health) if has_host => json(StatusCode::OK, r#"{"status":"ok"}"#),
            Ok(Route::Ready) if has_host => self.ready().await,
            found => {
                let label = found.as_ref().map_or("none", Route::label);
                let mut log = RequestLog::new(id, label);
                let told = AssertUnwindSafe(self.tell(found, &head, body, &mut log));
                let told = told.catch_unwind().await.unwrap_or_else(|_panic| {
                    tracing::error!(request.id = %id, "a request's handler panicked");
                    Err(Problem::new(Code::InternalError))
                });
                let answer = told.unwrap_or_else(|told| {
                    log.code = Some(told.code.label());
                    problem(&told)
                });
                log.status = Some(answer.status().as_u16());
                answer
            }
        };
        if let Some(key) = headers::echo(&head.headers) {
            answer.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        with_request_id(answer, id)
    }

    async fn tell(
        &self,
        found: Result<Route<'_>, NoRoute>,
        head: &Parts,
        body: Incoming,
        log: &mut RequestLog,
    ) -> Result<Answer, Problem> {
        // Once: all of the request is served by the same, whatever takes its place meanwhile.
        let serving = &self.current.get();
        if headers::head_bytes(&head.uri, &head.headers) > serving.options.header_bytes {
            return Err(Problem::new(Code::HeadersTooLarge));
        }
        if !headers::has_host(head) {
            return Err(headers::no_host());
        }
        let found = match found {
            Ok(found) => found,
            Err(NoRoute::NotFound) => return Err(Problem::new(Code::NotFound)),
            Err(NoRoute::Method(allowed)) => {
                log.code = Some(Code::MethodNotAllowed.label());
                return Ok(not_allowed(allowed));
            }
        };
        match found {
            Route::OpenApi => return Ok(self.description.document()),
            Route::Docs => return Ok(self.description.page()),
            Route::Completions
            | Route::Operation(_)
            | Route::Wallet
            | Route::Models
            | Route::Model(_)
            | Route::Health
            | Route::Ready => {}
        }
        let caller = self.caller(head).await?;
        log.api_key = Some(caller.api_key.id);
        let engine = &self.engine;
        match found {
            Route::Completions => {
                let request = (&head.headers, body);
                chat::complete(engine, serving, &caller, request, log).await
            }
            Route::Operation(key) => resources::operation(engine, &caller, key, log).await,
            Route::Wallet => resources::wallet(engine, &caller).await,
            Route::Models => Ok(resources::models(&serving.offer, &caller, engine.now())),
            Route::Model(id) => resources::model(&serving.offer, &caller, engine.now(), id),
            Route::Health | Route::Ready | Route::OpenApi | Route::Docs => {
                Err(Problem::new(Code::NotFound))
            }
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
