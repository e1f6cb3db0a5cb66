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
use holdfast_accounts::{Accounts, VERBS};
use holdfast_domain::debug_as;
use holdfast_net::RefusalLog;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::description::{self, DESCRIPTION_PATH, PREFIX};
use crate::error::{Code, Problem};
use crate::gate::{self, ClientAddress, Gate};
use crate::options::AdminOptions;
use crate::{
    admin_keys, api_keys, audit, events, jobs, ledger, offers, operations, people, postings,
    refusals, routes, statement, usage, verbs, wallets, webhooks,
};

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
        let (router, document) = endpoints().split_for_parts();
        let document = description::render(document);
        let router = router
            .route(DESCRIPTION_PATH, axum::routing::get(async || description::answer(document)))
            .fallback(async || Problem::new(Code::NotFound))
            .method_not_allowed_fallback(async || Problem::new(Code::MethodNotAllowed))
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

/// All endpoints, with their description.
pub(crate) fn endpoints() -> OpenApiRouter<Gate> {
    let api = OpenApiRouter::default()
        .routes(routes!(wallets::create, wallets::list))
        .routes(routes!(wallets::show, wallets::update))
        .routes(routes!(wallets::close))
        .routes(routes!(statement::show))
        .routes(routes!(ledger::export))
        .routes(routes!(usage::usage))
        .routes(routes!(postings::deposit, postings::list_deposits))
        .routes(routes!(postings::show_deposit))
        .routes(routes!(postings::adjust, postings::list_adjustments))
        .routes(routes!(postings::show_adjustment))
        .routes(routes!(postings::refund, postings::list_refunds))
        .routes(routes!(postings::show_refund))
        .routes(routes!(api_keys::issue, api_keys::list))
        .routes(routes!(api_keys::issue_bulk))
        .routes(routes!(api_keys::show, api_keys::update))
        .routes(routes!(api_keys::rotate))
        .routes(routes!(operations::list))
        .routes(routes!(operations::show))
        .routes(routes!(operations::cancel))
        .routes(routes!(operations::reconcile))
        .routes(routes!(operations::held))
        .routes(routes!(refusals::list))
        .routes(routes!(refusals::hours))
        .routes(routes!(events::list))
        .routes(routes!(events::show))
        .routes(routes!(offers::models))
        .routes(routes!(offers::prices))
        .routes(routes!(offers::nodes))
        .routes(routes!(routes::list))
        .routes(routes!(routes::history))
        .routes(routes!(jobs::start, jobs::list))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::cancel))
        .routes(routes!(audit::list))
        .routes(routes!(admin_keys::issue, admin_keys::list))
        .routes(routes!(admin_keys::show))
        .routes(routes!(admin_keys::rotate))
        .routes(routes!(admin_keys::revoke))
        .routes(routes!(people::invite, people::list))
        .routes(routes!(people::show))
        .routes(routes!(people::renew_link))
        .routes(routes!(people::end))
        .routes(routes!(people::end_grant))
        .routes(routes!(webhooks::create, webhooks::list))
        .routes(routes!(webhooks::show, webhooks::update))
        .routes(routes!(webhooks::rotate))
        .routes(routes!(webhooks::test))
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::resend));
    let api = VERBS.iter().fold(api, |api, verb| api.routes(verbs::route(verb)));
    OpenApiRouter::with_openapi(description::frame()).nest(PREFIX, api)
}
