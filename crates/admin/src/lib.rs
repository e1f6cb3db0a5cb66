//! The API of administration: `/admin/v1` on the operator's listener, and its description at
//! `/admin/openapi.json`.
//!
//! ```text
//! holdfast-http (socket, time-outs) ─▶ AdminApi::answer ─▶ gate ─▶ handler ─▶ holdfast-accounts
//!                                        axum router        │         │
//!                                 host, key, places, role ──┘         └── parse, call, render
//! ```
//!
//! A handler parses a request, calls one use case and renders what comes back; it decides nothing.
//! What a role may do, what is refused and what the trail says are the same through every door.
//!
//! | file | what it has |
//! |---|---|
//! | `gate` | host, admin key, requests at once, role, the line in the log |
//! | `local` | the endpoints without the gate, for the command line beside the database |
//! | `request` | extractors: ids, queries, changes with their `Idempotency-Key` and body |
//! | `answer`, `page` | answers with their headers, lists with their cursors |
//! | `error` | the closed table of errors, and which failure is which error |
//! | `csv` | reports as files |
//! | `export` | files of whole periods, streamed |
//! | `wallets`, `statement`, `ledger`, `postings`, `api_keys`, `operations`, `usage` | endpoints of what is sold |
//! | `offers`, `jobs`, `events`, `webhooks`, `admin_keys`, `people`, `audit` | endpoints of who runs it, and is told |
//! | `description` | OpenAPI 3.1, made from the endpoints |
//! | `options` | where administration is served, and under which name |
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
