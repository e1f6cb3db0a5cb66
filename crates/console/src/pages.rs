//! The pages, one file each: what is read, and which sections it becomes.
//!
//! ```text
//! address ─▶ guard ─▶ Visit ─▶ a use case of `holdfast_accounts` ─▶ sections ─▶ Page ─▶ shell
//! ```
//!
//! A page reads its query, calls use cases and fills a view; its texts are in its template. Use cases judge roles and
//! reach themselves: a page only leaves out what its visitor may not follow. Forms of verbs follow from their table, so
//! that a new verb has its page without a line here.
//!
//! At a listener of everyone `UseCase::roles` decides what a holder may do, and `kit/shell.rs` hides the other entries
//! of the navigation. Never: a page of operators' use cases at a listener of holders alone. Such an address is not
//! found there.
//!
//! Some files keep an older name of their page: Home is `today`, Requests `operations`, Audit log `trail`, Ledger
//! checks `jobs`, Catalogue `models`.

mod account;
mod admin_keys;
mod events;
mod jobs;
mod key;
mod keys;
mod link;
mod models;
mod operation;
mod operations;
pub(crate) mod parts;
mod payments;
mod people;
mod playground;
mod postings;
mod refusals;
mod routes;
mod search;
mod sign_in;
mod today;
mod trail;
mod usage;
mod verb;
mod wallet;
mod wallets;
mod webhook;
mod webhooks;

use axum::routing::{get, post};
use axum::{Extension, Router};
use holdfast_accounts::{VERBS, Verb};
use holdfast_domain::admin::UseCase;

use self::admin_keys::forms::{IssueAdminKey, RevokeAdminKey, RotateAdminKey};
use self::jobs::forms::{CancelJob, StartJob};
use self::key::credential::{IssueKey, RotateKey};
use self::key::edit::EditKey;
use self::operation::ending::{Cancellation, Reconciliation};
use self::people::change::{EndPerson, EndRole, RenewLink};
use self::people::invite::Invite;
use self::postings::forms::{Adjust, Deposit, Refund};
use self::verb::VerbForm;
use self::wallet::close::CloseWallet;
use self::wallet::settings::{CreateWallet, EditWallet};
use self::webhook::change::{ResendDelivery, RotateWebhook, TestWebhook};
use self::webhook::settings::{CreateWebhook, EditWebhook};
use crate::audience::Audience;
use crate::kit::form::methods;
use crate::kit::shell::{Navigation, NavigationGroup, PLAYGROUND};
use crate::kit::{ConsoleOptions, ConsoleState};

/// Entries of the navigation: operators' in groups, holders' in one list.
pub(crate) const NAVIGATION: Navigation = Navigation {
    operators: &[
        NavigationGroup { title: "", entries: &[("Home", "/", UseCase::WalletRead)] },
        NavigationGroup {
            title: "Customers",
            entries: &[
                ("Wallets", "/wallets", UseCase::WalletRead),
                ("API keys", "/keys", UseCase::ApiKeyRead),
                ("Payments", "/payments", UseCase::PostingRead),
            ],
        },
        NavigationGroup {
            title: "Activity",
            entries: &[
                ("Requests", "/operations", UseCase::OperationRead),
                ("Usage", "/usage", UseCase::UsageRead),
                ("Events", "/events", UseCase::EventRead),
            ],
        },
        NavigationGroup {
            title: "Models",
            entries: &[
                ("Catalogue", "/models", UseCase::ModelRead),
                ("Routes", "/routes", UseCase::RouteRead),
                ("Playground", PLAYGROUND, UseCase::ModelRead),
            ],
        },
        NavigationGroup {
            title: "Settings",
            entries: &[
                ("People", "/people", UseCase::PersonRead),
                ("Admin keys", "/admin-keys", UseCase::AdminKeyRead),
                ("Webhooks", "/webhooks", UseCase::WebhookRead),
                ("Audit log", "/trail", UseCase::AuditRead),
                ("Ledger checks", "/jobs", UseCase::JobRead),
            ],
        },
    ],
    holders: &[NavigationGroup {
        title: "",
        entries: &[
            ("Home", "/", UseCase::WalletRead),
            ("Requests", "/operations", UseCase::OperationRead),
            ("Usage", "/usage", UseCase::UsageRead),
            ("API keys", "/keys", UseCase::ApiKeyRead),
            ("Models", "/models", UseCase::ModelRead),
            ("Payments", "/payments", UseCase::PostingRead),
            ("Playground", PLAYGROUND, UseCase::ModelRead),
            ("Team", "/people", UseCase::PersonRead),
            ("Webhooks", "/webhooks", UseCase::WebhookRead),
            ("Events", "/events", UseCase::EventRead),
        ],
    }],
};

/// The address of every page. The forms of verbs follow from their table.
pub(crate) fn routes(options: &ConsoleOptions) -> Router<ConsoleState> {
    let mut routes = Router::new()
        .merge(of_wallets())
        .merge(of_keys())
        .merge(of_people())
        .merge(of_account())
        .merge(of_activity())
        .merge(of_integrations());
    if options.audience != Audience::Holders {
        routes = routes.merge(of_operators());
    }
    // Not found rather than forbidden: a holder learns of no use case of operators.
    let is_there = |verb: &&&Verb| {
        options.audience != Audience::Holders
            || verb.use_case.roles().iter().any(|role| role.is_holder())
    };
    for verb in VERBS.iter().filter(is_there) {
        let form = methods::<VerbForm>(verb.use_case).layer(Extension(*verb));
        routes = routes.route(&verb.page(), form);
    }
    if options.playground.is_some() {
        routes = routes.merge(of_playground());
    }
    routes
}

/// Pages and forms that no holder's role has: they are not there at a listener of holders alone.
fn of_operators() -> Router<ConsoleState> {
    Router::new()
        .route("/wallets/new", methods::<CreateWallet>(UseCase::WalletCreate))
        .route("/wallets/{id}/deposit", methods::<Deposit>(UseCase::PostingDeposit))
        .route("/wallets/{id}/adjust", methods::<Adjust>(UseCase::PostingAdjust))
        .route("/wallets/{id}/edit", methods::<EditWallet>(UseCase::WalletUpdate))
        .route("/wallets/{id}/close", methods::<CloseWallet>(UseCase::WalletClose))
        .route("/operations/{id}/refund", methods::<Refund>(UseCase::PostingRefund))
        .route("/operations/{id}/cancel", methods::<Cancellation>(UseCase::OperationCancel))
        .route("/operations/{id}/reconcile", methods::<Reconciliation>(UseCase::OperationReconcile))
        .route("/routes", get(routes::list))
        .route("/routes/show", get(routes::show))
        .route("/jobs", get(jobs::list))
        .route("/jobs/new", methods::<StartJob>(UseCase::JobCreate))
        .route("/jobs/{id}", get(jobs::show))
        .route("/jobs/{id}/cancel", methods::<CancelJob>(UseCase::JobCreate))
        .route("/trail", get(trail::list))
        .route("/admin-keys", get(admin_keys::list))
        .route("/admin-keys/new", methods::<IssueAdminKey>(UseCase::AdminKeyIssue))
        .route("/admin-keys/{id}", get(admin_keys::show))
        .route("/admin-keys/{id}/rotate", methods::<RotateAdminKey>(UseCase::AdminKeyRotate))
        .route("/admin-keys/{id}/revoke", methods::<RevokeAdminKey>(UseCase::AdminKeyRevoke))
}

fn of_playground() -> Router<ConsoleState> {
    Router::new()
        .route("/playground", get(playground::show).post(playground::send))
        .route("/playground/stream", post(playground::stream))
        .route("/playground/operation", post(playground::operation))
}

fn of_wallets() -> Router<ConsoleState> {
    Router::new()
        .route("/wallets", get(wallets::list))
        .route("/wallets/{id}", get(wallet::show))
        .route("/wallets/{id}/statement", get(wallet::statement::show))
        .route("/wallets/{id}/statement.csv", get(wallet::statement::file))
        .route("/postings/{id}", get(postings::show))
        .route("/payments", get(payments::list))
        .route("/payments/ledger.csv", get(payments::file))
}

fn of_keys() -> Router<ConsoleState> {
    Router::new()
        .route("/keys", get(keys::list))
        .route("/keys/new", methods::<IssueKey>(UseCase::ApiKeyIssue))
        .route("/keys/{id}", get(key::show))
        .route("/keys/{id}/edit", methods::<EditKey>(UseCase::ApiKeyUpdate))
        .route("/keys/{id}/rotate", methods::<RotateKey>(UseCase::ApiKeyRotate))
}

fn of_people() -> Router<ConsoleState> {
    Router::new()
        .route("/people", get(people::list))
        .route("/people/new", methods::<Invite>(UseCase::PersonInvite))
        .route("/people/{id}", get(people::show))
        .route("/people/{id}/link", methods::<RenewLink>(UseCase::PersonLink))
        .route("/people/{id}/end", methods::<EndPerson>(UseCase::PersonEnd))
        .route("/people/{id}/end-role", methods::<EndRole>(UseCase::PersonEnd))
}

/// Sign-in, links, and what is the visitor's own.
fn of_account() -> Router<ConsoleState> {
    Router::new()
        .route("/sign-in", get(sign_in::show).post(sign_in::send))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/link/{token}", get(link::show).post(link::send))
        .route("/account", get(account::show))
        .route("/account/role", get(account::show_role).post(account::send_role))
        .route("/account/password", get(account::show_password).post(account::send_password))
        .route("/account/sign-out", get(account::show_sign_out).post(account::send_sign_out))
        .route("/account/sessions/{id}", get(account::show_session).post(account::send_session))
}

/// Home, search, requests, refused requests, usage and models.
fn of_activity() -> Router<ConsoleState> {
    Router::new()
        .route("/", get(today::show))
        .route("/search", get(search::show))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operation::show))
        .route("/refusals/{id}", get(refusals::show))
        .route("/usage", get(usage::show))
        .route("/usage.csv", get(usage::download))
        .route("/models", get(models::list))
}

/// Events and webhooks.
fn of_integrations() -> Router<ConsoleState> {
    Router::new()
        .route("/events", get(events::list))
        .route("/events/{id}", get(events::show))
        .route("/webhooks", get(webhooks::list))
        .route("/webhooks/new", methods::<CreateWebhook>(UseCase::WebhookCreate))
        .route("/webhooks/{id}", get(webhook::show))
        .route("/webhooks/{id}/edit", methods::<EditWebhook>(UseCase::WebhookUpdate))
        .route("/webhooks/{id}/test", methods::<TestWebhook>(UseCase::WebhookTest))
        .route("/webhooks/{id}/rotate", methods::<RotateWebhook>(UseCase::WebhookRotate))
        .route(
            "/webhooks/{id}/deliveries/{event}/resend",
            methods::<ResendDelivery>(UseCase::WebhookResend),
        )
}
