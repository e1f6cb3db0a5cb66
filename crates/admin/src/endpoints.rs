//! Every endpoint of the administration, in one list that is read twice: as routes, and as their description.
//!
//! ```text
//! the list ─▶ router()      path, method, handler     each AdminApi and LocalApi
//!          └▶ description() schemas, parameters, texts  the first reader of /admin/openapi.json
//! ```
//!
//! The description costs ten times what the routes do, and a process that answers one command of the command line has
//! no reader of it. So `utoipa_axum::routes!`, which makes both at once, is used for the description only.
//!
//! Never: an endpoint outside the list. It would be served without a description, or described without being served.

use std::sync::LazyLock;

use axum::Router;
use axum::handler::Handler;
use axum::routing::MethodRouter;
use bytes::Bytes;
use holdfast_accounts::VERBS;
use utoipa::Path;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::{PathItemExt, paste, routes};

use crate::description::{self, PREFIX};
use crate::gate::Gate;
use crate::{
    admin_keys, api_keys, audit, events, jobs, ledger, offers, operations, people, postings,
    refusals, roots, routes, statement, usage, verbs, wallets, webhooks,
};

/// Description of all endpoints as JSON, the same for every listener of the process. Most processes never serve it.
pub(crate) static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| description::render(&description()));

macro_rules! endpoints {
    ($($module:ident { $($handler:ident),+ })+) => {
        /// Routes of all endpoints.
        pub(crate) fn router() -> Router<Gate> {
            let api = Router::new();
            $($(let api = paste! {
                add::<$module::[<__path_ $handler>], _, _>(api, $module::$handler)
            };)+)+
            let api = VERBS.iter().fold(api, |api, verb| api.route(&verb.endpoint(), verbs::handler(verb)));
            Router::new().nest(PREFIX, api)
        }

        /// Description of all endpoints.
        fn description() -> OpenApi {
            let api = OpenApiRouter::<Gate>::default();
            $($(let api = api.routes(routes!($module::$handler));)+)+
            let api = VERBS.iter().fold(api, |api, verb| api.routes(verbs::described(verb)));
            OpenApiRouter::with_openapi(description::frame()).nest(PREFIX, api).into_openapi()
        }
    };
}

endpoints! {
    wallets { create, list, show, update, close }
    statement { show }
    ledger { export }
    usage { usage }
    postings {
        deposit, list_deposits, show_deposit, adjust, list_adjustments, show_adjustment, refund, list_refunds,
        show_refund
    }
    api_keys { issue, list, issue_bulk, show, update, rotate }
    operations { list, show, cancel, reconcile, held }
    refusals { list, hours }
    events { list, show }
    offers { models, prices, nodes }
    roots { list, prove }
    routes { list, history }
    jobs { start, list, show, cancel }
    audit { list }
    admin_keys { issue, list, show, rotate, revoke }
    people { invite, list, show, renew_link, end, end_grant }
    webhooks { create, list, show, update, rotate, test, deliveries, resend }
}

/// Adds a handler under path and methods of its description `P`, which is not made for that.
fn add<P, H, T>(api: Router<Gate>, handler: H) -> Router<Gate>
where
    P: Path,
    H: Handler<T, Gate>,
    T: 'static,
{
    let methods = P::methods();
    let methods = methods.iter().map(PathItemExt::to_method_filter);
    let add = |router: MethodRouter<Gate>, method| router.on(method, handler.clone());
    api.route(&P::path(), methods.fold(MethodRouter::new(), add))
}
