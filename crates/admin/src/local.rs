//! The endpoints for a process with direct database access: the same router without its gate.
//!
//! ```text
//! a socket ───────▶ AdminApi ─▶ gate (host, admin key, places) ─▶ handlers
//! command line ───▶ LocalApi ─▶ the principal `local` ──────────▶ handlers
//! ```
//!
//! The command line sends it the requests of the network, in its own process. So a command has the same meaning,
//! the same refusals and the same digest on either way. Its reports have no bounds
//! (`Principal::has_unbounded_reports`).
//!
//! Never: a socket that leads here. The type has no entry but a function call, and [`AdminApi`] has none to the
//! principal `local`.
//!
//! [`AdminApi`]: crate::AdminApi

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use holdfast_accounts::{Accounts, Principal};
use http::{Request, Response};

use crate::api::{AnswerBody, answered};
use crate::endpoints;
use crate::error::{Code, Problem};
use crate::gate::Gate;
use crate::options::AdminOptions;

/// The API of administration within a process, as the principal `local`.
#[derive(Debug, Clone)]
pub struct LocalApi {
    router: Router,
}

impl LocalApi {
    /// Endpoints over these use cases; of the options, only those of links are used.
    #[must_use]
    pub fn new(accounts: Accounts, options: AdminOptions) -> Self {
        let gate = Gate::new(accounts, options);
        let router = endpoints::router().fallback(async || Problem::new(Code::NotFound));
        // Without the layer of the gate: host, key and places are rules for the network. The rights
        // are judged by the use cases as for every other principal.
        let router = router.with_state(gate);
        Self { router }
    }

    /// Answers a request. If the process failed, the answer has a [`FailureCause`] among its extensions. Cancel
    /// safe, as [`AdminApi::answer`] is.
    ///
    /// [`FailureCause`]: crate::FailureCause
    /// [`AdminApi::answer`]: crate::AdminApi::answer
    pub async fn answer(&self, request: Request<Bytes>) -> Response<AnswerBody> {
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(Principal::local());
        answered(&self.router, request).await
    }
}
