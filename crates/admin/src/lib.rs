//! The API of administration: `/admin/v1` on the operator's listener, and its description at `/admin/openapi.json`.
//!
//! ```text
//! holdfast-http (socket, timeouts) ─▶ AdminApi::answer ─▶ gate ─▶ handler ─▶ holdfast-accounts
//!                                        axum router        │         │
//!                                 host, key, places, role ──┘         └── parse, call, render
//! ```
//!
//! A handler parses a request, calls one use case and renders its result; the decision is the use case's. The rights
//! of a role, the refusals and the audit log are the same on every interface.
//!
//! | file | contents |
//! |---|---|
//! | `gate` | host, admin key, concurrent requests, role, the line in the log |
//! | `local` | the endpoints without the gate, for the command line with direct database access |
//! | `request` | extractors: ids, queries, changes with their `Idempotency-Key` and body |
//! | `answer`, `page` | answers with their headers, lists with their cursors |
//! | `error` | the closed table of errors, and the error of each failure |
//! | `csv` | reports as files |
//! | `export` | files of whole periods, streamed |
//! | `wallets`, `statement`, `ledger`, `postings`, `api_keys`, `operations`, `usage` | endpoints of sales |
//! | `offers`, `jobs`, `events`, `webhooks`, `admin_keys`, `people`, `audit` | endpoints of operating |
//! | `endpoints` | the list of all endpoints |
//! | `description` | OpenAPI 3.1, generated from the endpoints when it is first read |
//! | `options` | listener and host name of administration |
//!
//! Never in here: SQL, a rule of money, a socket, a cookie, a secret in a log or an error.

#![expect(unused_qualifications, reason = "utoipa's macro writes every path in full")]

mod admin_keys;
mod answer;
mod api;
mod api_keys;
mod audit;
mod canonical;
mod csv;
mod description;
mod end;
mod endpoints;
mod error;
mod events;
mod export;
mod gate;
mod jobs;
mod ledger;
mod local;
mod off_workers;
mod offers;
mod operations;
mod options;
mod page;
mod people;
mod postings;
mod refusals;
mod request;
mod roots;
mod rotation_body;
mod routes;
mod statement;
mod usage;
mod value;
mod verbs;
mod wallets;
mod webhooks;

pub use crate::api::{AdminApi, AnswerBody, answered};
pub use crate::error::{Code, FailureCause, Problem};
pub use crate::export::{ledger_file, statement_file, usage_file};
pub use crate::local::LocalApi;
pub use crate::off_workers::off_workers;
pub use crate::options::AdminOptions;
