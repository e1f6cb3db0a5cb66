//! Storage of operations, holds, the book, wallets, API keys, prices and node leases, on SQLite or
//! PostgreSQL. [`Store`] fulfils the storage ports of `holdfast-domain`; what only the command line
//! reads are methods of its own.
//!
//! It decides nothing about operations. It enforces three things over what a transaction has read:
//! the version is the one that was judged, balances and counters stay within bounds, permanent ids
//! do not repeat. The tables repeat that as constraints.
//!
//! | an embedder needs | from |
//! |---|---|
//! | tables, and the right to serve a file | [`migrate::up`], [`ServeLock::take`] |
//! | the store, and its end | [`Store::open`] with [`Options`], [`Store::close`] |
//! | wallets, API keys, deposits | commands of `Administration`, as `holdfast-embed` sends them |
//! | the audit | [`Store::verify`] |
//!
//! What writes is a database's own, and so are its connections (`sqlite`, `postgres`); judging, the
//! mapping of rows and what reads them are the same for all.
//!
//! ```text
//! sale  admin  audit ─▶ reading ─▶ store ─▶ migrate ─▶ backend ─▶ sqlite, postgres     a room needs those right
//!                  batch, transaction, lock ◀────────────────────┘                     of it and below it alone
//!                        rows ─▶ schema
//! ```

mod admin;
mod audit;
mod backend;
mod batch;
mod error;
mod lock;
mod metrics;
pub mod migrate;
mod options;
mod postgres;
mod reading;
mod rows;
mod sale;
mod schema;
mod sqlite;
mod store;
mod transaction;

pub use crate::audit::verify;
#[doc(hidden)]
pub use crate::batch::judge;
pub use crate::error::{ConnectError, FileLost, LockError, OpenError, SchemaError};
pub use crate::lock::ServeLock;
pub use crate::options::Options;
pub use crate::reading::{report, usage};
pub use crate::schema::url::{BadDatabaseUrl, DatabaseUrl};
pub use crate::sqlite::backup;
pub use crate::store::Store;
pub use crate::transaction::event::SharedInterest;
