//! The console as one service: the router of its pages, and what every handler has at hand.

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{MethodRouter, get};
use holdfast_accounts::Accounts;

use crate::failure::Failure;
use crate::form::{FormPage, send, show};
use crate::{asset, pages, shell};

/// What every handler has at hand.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) accounts: Accounts,
}

/// The pages of a signed-in visitor, who is beside each request already.
pub(crate) fn pages(desk: Desk) -> Router {
    pages::routes()
        .route("/assets/style.css", get(asset::style))
        .route("/assets/script.js", get(asset::script))
        .fallback(async || Failure::not_found())
        .layer(from_fn(shell::render))
        .with_state(desk)
}

/// Both methods of a form.
pub(crate) fn form<F: FormPage>() -> MethodRouter<Desk> {
    get(show::<F>).post(send::<F>)
}
