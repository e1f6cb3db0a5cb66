//! The console as one service: the router of its pages, the guard before them, and the link to the process that has
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

use crate::failure::Failure;
use crate::guard::{self, AnonymousLogs, Guard};
use crate::kit::shell::ShellState;
use crate::kit::{ConsoleOptions, ConsoleState};
use crate::kit::{asset, flash, shell};
use crate::pages;
use crate::request_origin::ClientAddress;

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
        let shared = ConsoleState::new(accounts, options);
        let frame = ShellState::new(&shared, pages::NAVIGATION);
        let guard = Guard::new(&shared);
        let logs = guard.logs.clone();
        let router = pages(shared)
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
pub(crate) fn pages(shared: ConsoleState) -> Router {
    let frame = ShellState::new(&shared, pages::NAVIGATION);
    pages::routes(&shared.options)
        .route("/assets/style.css", get(asset::style))
        .route("/assets/script.js", get(asset::script))
        .route("/assets/logo", get(asset::logo))
        // Within the guard: without a session every unknown address leads to the sign-in, as a
        // known one does, so that none can be probed.
        .fallback(async || Failure::not_found())
        // Within the shell: the flash is put into the page, which the shell then takes and
        // renders.
        .layer(from_fn_with_state(shared.clone(), flash::show))
        .layer(from_fn_with_state(frame, shell::render))
        .with_state(shared)
}
