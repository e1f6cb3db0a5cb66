//! The pages, one file each: what is read, and which sections it becomes.

mod admin_keys;
mod events;
mod jobs;
mod models;
mod operation;
mod operations;
pub(crate) mod reference;
mod today;
mod trail;
mod usage;
mod wallet;
mod wallets;
mod webhook;
mod webhooks;

use axum::Router;
use axum::routing::get;

use self::operation::ending::{Cancellation, Reconciliation};
use self::webhook::change::{ChangeForm, Disabling, Enabling, Rotation, Test};
use crate::console::{Desk, form};

/// The address of every page.
pub(crate) fn routes() -> Router<Desk> {
    Router::new()
        .route("/wallets", get(wallets::list))
        .route("/wallets/{id}", get(wallet::show))
        .route("/wallets/{id}/deposit", form::<wallet::deposit::Deposit>())
        .merge(what_runs())
        .merge(who_is_told())
}

/// What runs, and what came of it.
fn what_runs() -> Router<Desk> {
    Router::new()
        .route("/", get(today::show))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operation::show))
        .route("/operations/{id}/cancel", form::<Cancellation>())
        .route("/operations/{id}/reconcile", form::<Reconciliation>())
        .route("/usage", get(usage::show))
        .route("/usage.csv", get(usage::download))
        .route("/models", get(models::list))
        .route("/jobs", get(jobs::list))
        .route("/jobs/new", form::<jobs::start::Start>())
        .route("/jobs/{id}", get(jobs::show))
}

/// Who is told what happened, and who may administer.
fn who_is_told() -> Router<Desk> {
    Router::new()
        .route("/events", get(events::list))
        .route("/events/{id}", get(events::show))
        .route("/webhooks", get(webhooks::list))
        .route("/webhooks/new", form::<webhook::create::Creation>())
        .route("/webhooks/{id}", get(webhook::show))
        .route("/webhooks/{id}/test", form::<ChangeForm<Test>>())
        .route("/webhooks/{id}/rotate", form::<ChangeForm<Rotation>>())
        .route("/webhooks/{id}/disable", form::<ChangeForm<Disabling>>())
        .route("/webhooks/{id}/enable", form::<ChangeForm<Enabling>>())
        .route("/webhooks/{id}/deliveries/{event}/resend", form::<webhook::resend::Resend>())
        .route("/trail", get(trail::list))
        .route("/admin-keys", get(admin_keys::list))
        .route("/admin-keys/new", form::<admin_keys::issue::Issue>())
        .route("/admin-keys/{id}", get(admin_keys::show))
        .route("/admin-keys/{id}/rotate", form::<admin_keys::change::Rotation>())
        .route("/admin-keys/{id}/revoke", form::<admin_keys::change::Revocation>())
}
