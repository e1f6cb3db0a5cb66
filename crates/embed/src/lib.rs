//! Sale of work in a process of another service: one key, one run, at most one charge.
//!
//! ```text
//! open ─▶ create_wallet ─▶ issue_key ─▶ deposit        commands of administration, actor `local`
//! sell(key, request, price, hold, work) ─▶ hold ─▶ work, at most once ─▶ charge and answer, one commit
//!        └ the same key again ─▶ the same answer; another request under the key ─▶ a conflict
//! ```
//!
//! [`Holdfast`] has all that runs beside a sale: the lease of this process, its heartbeat, and the reconciler that
//! gives up what a dead process left and deletes old answers. Each future of it may be dropped at any await and may
//! move to another thread.
//!
//! | an embedder | by |
//! |---|---|
//! | opens a database, on a file or a server | [`Holdfast::open`] |
//! | makes wallets, keys and deposits, each once for its request key | [`Holdfast::create_wallet`], [`Holdfast::issue_key`], [`Holdfast::deposit`] |
//! | prices what is sold: per unit, or per million units | [`Price`] |
//! | sells, and reads what became of a sale | [`Holdfast::sell`], [`Work`], [`Sale`] |
//! | seals answers, and keeps them for a time | [`Holdfast::open_with`], [`Options`], [`Seal`] |
//! | reads and audits the ledger | [`Holdfast::store`] |
//! | ends, once every sale has ended | [`Holdfast::close`] |
//!
//! `tests/examples/thumbnails` is a whole service. Not in here: HTTP, callers' secrets, retries of the work.
//!
//! ```
//! use holdfast_domain::usage::Meters;
//! use holdfast_domain::{CommandKey, Currency, Micros, RequestKey};
//! use holdfast_embed::{DatabaseUrl, Holdfast, Price, Sale, SaleKey, ServerSecret, Work};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let url = DatabaseUrl::parse(&format!("sqlite://{}/shop.db", folder.path().display()))?;
//! let shop = Holdfast::open(&url, ServerSecret::new(b"at least sixteen bytes")?).await?;
//! let wallet = shop.create_wallet(CommandKey::from_u128(1), "acme", Currency::USD).await?;
//! let api_key = shop.issue_key(CommandKey::from_u128(2), wallet, "app", Default::default()).await?.id;
//! shop.deposit(CommandKey::from_u128(3), wallet, "10.00".parse()?).await?;
//!
//! let price = Price::each("shop/thumbnail", Currency::USD, "2026-11-01", "0.002".parse()?)?;
//! let request_key = "5d0f3a52-8a8e-4a0a-9d56-0c5b1f1d2a11".parse::<RequestKey>()?;
//! let key = SaleKey { api_key, request_key };
//! let work = || async { Work::Done { meters: Meters::thing(), answer: b"a cat".to_vec() } };
//! // The same request twice: the work runs once, and is charged once.
//! for is_new in [true, false] {
//!     let sale = shop.sell(key, b"cat.png", &price, Micros::new(2_000), work).await?;
//!     let (answer, charge) = (Some(b"a cat".to_vec()), Micros::new(2_000));
//!     assert_eq!(sale, Sale::Sold { answer, charge, is_new });
//! }
//! shop.close().await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod accounts;
mod membership;
mod price;
mod sale;
mod seal;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::NodeName;
use holdfast_domain::debug_as;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{LeaseMode, Nodes as _, Unavailable};
pub use holdfast_domain::secret::ServerSecret;
pub use holdfast_store::DatabaseUrl;
use holdfast_store::{LockError, OpenError, SchemaError, ServeLock, Store, migrate};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use crate::accounts::{AccountError, IssuedKey};
use crate::membership::Membership;
pub use crate::price::{BadPrice, Price};
pub use crate::sale::{Sale, SaleKey, SellError, Work};
pub use crate::seal::{NoCipher, Seal};

/// A database that this process sells through. Clones share it.
#[derive(Clone)]
pub struct Holdfast {
    inner: Arc<Inner>,
    /// True if its commands are done although a restored ledger does not know their request keys.
    is_after_restore: bool,
}

struct Inner {
    membership: Arc<Membership>,
    secret: ServerSecret,
    seal: Arc<dyn Seal>,
    /// Sales and background tasks: waited for at the end.
    tasks: TaskTracker,
    /// End of the background tasks, at the latest with the last clone.
    background: DropGuard,
}

/// Options of an opened database.
#[derive(Clone)]
pub struct Options {
    /// Cipher of answers.
    pub seal: Arc<dyn Seal>,
    /// Time after its sale at which an answer is deleted, of each process on the database; `None`: no answer is. The
    /// sale itself is kept for ever, and is not sold again.
    pub retention: Option<Duration>,
}

impl Default for Options {
    /// No cipher, and no answer is deleted.
    fn default() -> Self {
        Self { seal: Arc::new(NoCipher), retention: None }
    }
}

debug_as!(Options as it: "Options({:?})", it.retention);

/// Reason why a database was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The schema is of another program, or cannot be written.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Another process serves the file.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store does not work.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// Another process has the name of this one.
    #[error("another process has the name {0}")]
    NameTaken(NodeName),
}

impl Holdfast {
    /// Opens a database, creates its tables first, and takes a lease for this process. The holder of the secret
    /// can confirm requests: the secret is the same at every start, and not in the database. Answers are kept
    /// as in the default [`Options`].
    ///
    /// # Errors
    ///
    /// [`StartError::Lock`] if another process serves the file, [`StartError::Schema`] for a database of another program
    /// or release, [`StartError::Open`] and [`StartError::Unavailable`] if it does not work, and
    /// [`StartError::NameTaken`] if another process has the name of this one.
    pub async fn open(url: &DatabaseUrl, secret: ServerSecret) -> Result<Self, StartError> {
        Self::open_with(url, secret, Options::default()).await
    }

    /// Opens a database as [`Self::open`] does, with other options.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub async fn open_with(
        url: &DatabaseUrl,
        secret: ServerSecret,
        Options { seal, retention }: Options,
    ) -> Result<Self, StartError> {
        // First: a file that another process serves is not migrated under it.
        let lock = Some(Arc::new(ServeLock::take(url)?));
        migrate::up(url).await?;
        let store = Store::open(holdfast_store::Options {
            lock,
            ..holdfast_store::Options::new(url.clone())
        })
        .await?;
        // The lock of a file proves that nobody else has the name; beside a server each start has a name of its own.
        let (name, mode) = match url.file() {
            Some(_) => ("embedded".to_owned(), LeaseMode::Take),
            None => (format!("embedded-{}", Uuid::new_v4().as_simple()), LeaseMode::TakeExpired),
        };
        let name = NodeName::try_from(name.as_str()).map_err(|bad| Unavailable(Box::new(bad)))?;
        let node = Node { name: name.clone(), incarnation: Uuid::new_v4().into() };
        let entered = Membership::enter(store, node, mode).await?;
        let membership = Arc::new(entered.ok_or(StartError::NameTaken(name))?);
        let (tasks, ends) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(Arc::clone(&membership).beat(ends.clone()));
        tasks.spawn(Arc::clone(&membership).reconcile(retention, ends.clone()));
        let background = ends.drop_guard();
        let inner = Arc::new(Inner { membership, secret, seal, tasks, background });
        Ok(Self { inner, is_after_restore: false })
    }

    /// The same database, for deposits and API keys within the window of a restore, which are refused otherwise: the
    /// restored ledger does not know which of them were made since its copy. One that was made is made once more.
    #[must_use]
    pub fn after_restore(&self) -> Self {
        Self { is_after_restore: true, ..self.clone() }
    }

    /// The store, for reads and the audit.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.membership.store
    }

    /// Waits for the sales that run, gives the lease back and closes the database. A clone sells no more.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be closed. No data is lost by that.
    pub async fn close(self) -> Result<(), Unavailable> {
        self.inner.membership.end();
        let Inner { tasks, membership, background, .. } = &*self.inner;
        // Sales first, while the heartbeat holds the lease of their operations.
        membership.sales.close();
        membership.sales.wait().await;
        background.token().cancel();
        tasks.close();
        tasks.wait().await;
        // After the tasks: without the lease another process may reap a sale that still runs.
        let left = membership.store.leave(&membership.node).await;
        membership.store.clone().close().await.and(left)
    }
}

debug_as!(Holdfast as it: "Holdfast({})", it.inner.membership.node.name);
