//! The API of administration as one service: the router, and the interface to the listener that owns the socket.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::{BoxError, Router};
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use holdfast_accounts::Accounts;
use holdfast_domain::debug_as;
use holdfast_net::RefusalLog;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::description::{self, DESCRIPTION_PATH};
use crate::endpoints;
use crate::error::{Code, Problem};
use crate::gate::{self, ClientAddress, Gate};
use crate::options::AdminOptions;

/// The API of administration.
#[derive(Debug, Clone)]
pub struct AdminApi {
    router: Router,
    refusals: Arc<RefusalLog>,
}

impl AdminApi {
    /// The API over these use cases.
    #[must_use]
    pub fn new(accounts: Accounts, options: AdminOptions) -> Self {
        let gate = Gate::new(accounts, options);
        let refusals = Arc::clone(&gate.refusals);
        let router = endpoints::router()
            .route(
                DESCRIPTION_PATH,
                axum::routing::get(async || description::answer(endpoints::DOCUMENT.clone())),
            )
            .fallback(async || Problem::new(Code::NotFound))
            .method_not_allowed_fallback(async || Problem::new(Code::MethodNotAllowed))
            // After the fallbacks, which it covers too: an unknown path without a key is 401 as a
            // known one is, so that no stranger can list the endpoints.
            .layer(from_fn_with_state(gate.clone(), gate::pass))
            .with_state(gate);
        Self { router, refusals }
    }

    /// Log of its refused requests, whose listener reports old windows.
    #[must_use]
    pub fn refusals(&self) -> Arc<RefusalLog> {
        Arc::clone(&self.refusals)
    }

    /// Answers a request of this client. Cancel safe: a change that was begun is made or not made,
    /// and its request key finds out which.
    pub async fn answer<B>(&self, request: Request<B>, client: IpAddr) -> Response<AnswerBody>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ClientAddress(client));
        answered(&self.router, request).await
    }
}

/// Body of an answer.
pub enum AnswerBody {
    /// All of it.
    Whole(Bytes),
    /// Bytes that are still to come: an export, or an answer of the public API. An error interrupts it: its connection
    /// ends without the end of the body.
    Streamed(BoxStream<'static, Result<Bytes, BoxError>>),
}

debug_as!(AnswerBody: "AnswerBody");

impl AnswerBody {
    /// All of it, once it has come.
    ///
    /// # Errors
    ///
    /// The cause of an interruption.
    pub async fn collected(self) -> Result<Bytes, BoxError> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::Streamed(parts) => {
                let parts: Vec<Bytes> = parts.try_collect().await?;
                Ok(parts.concat().into())
            }
        }
    }
}

/// The answer of a router. A body of known length is collected.
pub async fn answered(router: &Router, request: Request<Body>) -> Response<AnswerBody> {
    let answered = router.clone().oneshot(request).await;
    let answer = answered.unwrap_or_else(|never: Infallible| match never {});
    let (head, body) = answer.into_parts();
    // A stream has no length. All other answers are collected here, so that the listener can send a
    // `content-length`, and a failure is a 500 before its head is sent.
    if body.size_hint().exact().is_none() {
        let parts = TryStreamExt::map_err(body.into_data_stream(), BoxError::from).boxed();
        return Response::from_parts(head, AnswerBody::Streamed(parts));
    }
    match body.collect().await {
        Ok(body) => Response::from_parts(head, AnswerBody::Whole(body.to_bytes())),
        // All of these are whole before they are sent.
        Err(error) => {
            tracing::error!(%error, "an answer was not collected");
            let (head, _body) = Problem::new(Code::InternalError).into_response().into_parts();
            Response::from_parts(head, AnswerBody::Whole(Bytes::new()))
        }
    }
}
