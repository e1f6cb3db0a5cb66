//! The pages, one file each: what is read, and which sections it becomes.

mod account;
mod link;
mod people;
mod plain;
mod sign_in;
mod wallet;
mod wallets;

use axum::Router;
use axum::routing::{get, post};

use crate::console::{Desk, form};

/// The address of every page.
pub(crate) fn routes() -> Router<Desk> {
    Router::new()
        .route("/wallets", get(wallets::list))
        .route("/wallets/{id}", get(wallet::show))
        .route("/wallets/{id}/deposit", form::<wallet::deposit::Deposit>())
        .merge(people_routes())
        .merge(account_routes())
}

fn people_routes() -> Router<Desk> {
    Router::new()
        .route("/people", get(people::list))
        .route("/people/new", form::<people::invite::Invite>())
        .route("/people/{id}", get(people::show))
        .route("/people/{id}/link", form::<people::link::RenewLink>())
        .route("/people/{id}/end", form::<people::end::EndPerson>())
        .route("/people/{id}/end-role", form::<people::role::EndRole>())
}

/// Sign-in, links, and what is the visitor's own.
fn account_routes() -> Router<Desk> {
    Router::new()
        .route("/sign-in", get(sign_in::show).post(sign_in::send))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/link/{token}", get(link::show).post(link::send))
        .route("/account", get(account::show))
        .route("/account/role", get(account::show_role).post(account::send_role))
        .route("/account/password", get(account::show_password).post(account::send_password))
        .route("/account/sessions/{id}", get(account::show_session).post(account::send_session))
}
