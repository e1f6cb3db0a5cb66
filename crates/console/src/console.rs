//! The console as one service: the router of its pages, the guard before them, and the seam to whatever has
//! the socket.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use bytes::Bytes;
use holdfast_accounts::Accounts;
use holdfast_admin::{AnswerBody, answered};
use holdfast_net::RefusalLog;
use http::{Request, Response};

use crate::door::ClientAddress;
use crate::failure::Failure;
use crate::guard::{self, AnonymousLogs, Guard};
use crate::kit::desk::{ConsoleOptions, Desk};
use crate::kit::shell::ShellState;
use crate::kit::{asset, flash, shell};
use crate::pages;

/// The console.
#[derive(Debug, Clone)]
pub struct Console {
    router: Router,
    logs: AnonymousLogs,
}

impl Console {
    /// The console over these use cases.
    #[must_use]
    pub fn new(accounts: Accounts, options: ConsoleOptions) -> Self {
        let desk = Desk::new(accounts, options);
        let frame = ShellState::new(&desk, pages::NAVIGATION);
        let guard = Guard::new(&desk);
        let logs = guard.logs.clone();
        let router = pages(desk)
            .layer(from_fn_with_state(guard, guard::pass))
            // Once more, for what the guard refuses.
            .layer(from_fn_with_state(frame, shell::render));
        Self { router, logs }
    }

    /// Logs of its requests without a session, whose listener reports old windows.
    #[must_use]
    pub fn refusals(&self) -> Vec<Arc<RefusalLog>> {
        self.logs.all()
    }

    /// Answers a request of this client. Cancel safe: a change that was begun is made or not made,
    /// and its form's request key finds out which.
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

/// The pages of a signed-in visitor, who is beside each request already.
pub(crate) fn pages(desk: Desk) -> Router {
    let frame = ShellState::new(&desk, pages::NAVIGATION);
    pages::routes(&desk.options)
        .route("/assets/style.css", get(asset::style))
        .route("/assets/script.js", get(asset::script))
        .route("/assets/logo", get(asset::logo))
        .fallback(async || Failure::not_found())
        .layer(from_fn_with_state(desk.clone(), flash::show))
        .layer(from_fn_with_state(frame, shell::render))
        .with_state(desk)
}
