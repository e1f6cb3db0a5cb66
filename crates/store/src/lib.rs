//! Storage of operations, holds, the ledger, wallets, API keys, prices and node leases, on SQLite or PostgreSQL.
//! [`Store`] fulfils the storage ports of `holdfast-domain`; reads of the command line are methods of its own.
//!
//! The domain decides what an operation becomes. A transaction decides what only it can see (`batch::judge`): the
//! version is the one that was judged, balances and counters stay within bounds, permanent ids do not repeat. The
//! tables repeat these rules as constraints.
//!
//! | an embedder needs | from |
//! |---|---|
//! | tables, and the right to serve a file | [`migrate::up`], [`ServeLock::take`] |
//! | the store, and its end | [`Store::open`] with [`Options`], [`Store::close`] |
//! | wallets, API keys, deposits | commands of `Administration`, as `holdfast-embed` sends them |
//! | the audit | [`Store::verify`] |
//!
//! A wallet on a file, and the audit of the ledger:
//!
//! ```
//! use holdfast_domain::{Currency, Micros, Wallets as _};
//! use holdfast_store::{DatabaseUrl, Options, ServeLock, Store, migrate};
//! use holdfast_testkit::{Commands as _, sample};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let url = DatabaseUrl::parse(&format!("sqlite://{}/ledger.db", folder.path().display()))?;
//! migrate::up(&url).await?;
//! // A second process that takes the lock is refused.
//! let lock = ServeLock::take(&url)?;
//! let store = Store::open(Options::new(url)).await?;
//!
//! let id = sample::fresh();
//! store.create_wallet(id, "acme", Currency::USD).await.unwrap();
//! let wallet = store.find(id).await?.unwrap();
//! assert_eq!((wallet.available, wallet.held), (Micros::ZERO, Micros::ZERO));
//!
//! let audit = store.verify().await?;
//! assert_eq!((audit.wallets, audit.mismatches.len()), (1, 0));
//! store.close().await?;
//! drop(lock);
//! # Ok(())
//! # }
//! ```
//!
//! SQLite and PostgreSQL are the features `sqlite` and `postgres`, both on by default. A program needs at least one.
//! [`DatabaseUrl::parse`] refuses a URL of a database that is not compiled in.
//!
//! | modules | contents |
//! |---|---|
//! | `schema`, `rows` | address, dialect and migrations of a database; rows of its tables as values of the domain |
//! | `batch`, `transaction` | changes of operations, and their judgement; the texts of all other transactions |
//! | `lock`, `options`, `error` | the right to serve a file; settings; reasons why a database is not opened |
//! | `sqlite`, `postgres`, `backend` | connections and writer of each database; the choice between them |
//! | `migrate`, `store` | application of migrations; the open database |
//! | `reading`, `audit` | lists and reports; the audit with its rules |
//! | `sale`, `admin` | ports of a sale, and of administration |
//!
//! A module imports only from its own line and those above it.

#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
compile_error!(
    "holdfast-store needs a database: enable its feature `sqlite` or its feature `postgres`"
);

mod admin;
mod audit;
mod backend;
mod batch;
mod error;
#[cfg_attr(not(feature = "sqlite"), path = "lock/absent.rs")]
mod lock;
mod metrics;
pub mod migrate;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod reading;
mod rows;
mod sale;
mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod transaction;

pub use crate::audit::verify;
#[doc(hidden)]
pub use crate::batch::judge;
pub use crate::error::{ConnectError, FileLost, LockError, OpenError, SchemaError};
pub use crate::lock::ServeLock;
pub use crate::options::Options;
pub use crate::reading::roots::{RootBounds, SignRootError};
pub use crate::reading::{report, usage};
pub use crate::sale::keys::ApiKeyReading;
pub use crate::schema::url::{BadDatabaseUrl, DatabaseUrl};
#[cfg(feature = "sqlite")]
pub use crate::sqlite::backup;
pub use crate::store::Store;
pub use crate::transaction::event::SharedInterest;
