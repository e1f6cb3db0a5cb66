//! The pages, one file each: what is read, and which sections it becomes.

mod wallet;
mod wallets;

use axum::Router;
use axum::routing::get;

use crate::console::{Desk, form};

/// The address of every page.
pub(crate) fn routes() -> Router<Desk> {
    Router::new()
        .route("/wallets", get(wallets::list))
        .route("/wallets/{id}", get(wallet::show))
        .route("/wallets/{id}/deposit", form::<wallet::deposit::Deposit>())
}
