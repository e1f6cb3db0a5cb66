//! A database in a folder that is deleted afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_domain::admin::RefusedRequests;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeys, Journal, Nodes, Prices, Restores, Statistics, Wallets};
use holdfast_store::{DatabaseUrl, OpenError, Options, ServeLock, Store, migrate};
use holdfast_testkit::laws::{Commands, Lists, Stores};
use tempfile::TempDir;

use crate::list;
use crate::raw::Raw;

/// The URL of a file.
pub(crate) fn url(file: &Path) -> DatabaseUrl {
    DatabaseUrl::parse(&format!("sqlite://{}", file.display())).unwrap()
}

/// A folder with a database that is migrated and open.
pub(crate) struct Scratch {
    pub(crate) folder: Folder,
    pub(crate) store: Store,
}

/// A folder for a database.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        url(&self.file())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("holdfast.db")
    }

    pub(crate) async fn open(&self) -> Result<Store, OpenError> {
        Store::open(Options::new(self.url())).await
    }
}

/// A database that this process serves.
pub(crate) async fn served() -> (Scratch, Arc<ServeLock>) {
    let folder = Folder::new();
    migrate::up(&folder.url()).await.unwrap();
    let lock = Arc::new(ServeLock::take(&folder.url()).unwrap());
    let options = Options { lock: Some(Arc::clone(&lock)), ..Options::new(folder.url()) };
    let store = Store::open(options).await.unwrap();
    (Scratch { folder, store }, lock)
}

impl Scratch {
    pub(crate) async fn open() -> Self {
        Self::with(|_options| {}).await
    }

    pub(crate) async fn with(set: impl FnOnce(&mut Options)) -> Self {
        let folder = Folder::new();
        let mut options = Options::new(folder.url());
        set(&mut options);
        migrate::up(&options.url).await.unwrap();
        let store = Store::open(options).await.unwrap();
        Self { folder, store }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.file()
    }
}

/// A store of its own, whatever keeps it, with what only the store itself can do.
pub(crate) trait Home: Stores + Sized {
    /// Another one, with nothing in it.
    fn make() -> impl Future<Output = Self>;
    fn store(&self) -> &Store;
    /// One more store on the same database, as after a restart.
    fn again(&self) -> impl Future<Output = Store>;
    fn raw(&self) -> impl Future<Output = Raw>;
}

impl Home for Scratch {
    fn make() -> impl Future<Output = Self> {
        Self::open()
    }

    fn store(&self) -> &Store {
        &self.store
    }

    async fn again(&self) -> Store {
        self.folder.open().await.unwrap()
    }

    fn raw(&self) -> impl Future<Output = Raw> {
        Raw::of_file(self)
    }
}

/// Runs each of these checks on a file and on a server.
macro_rules! on_every_store {
    ($($check:ident,)+) => {
        mod on_a_file {
            $(#[tokio::test]
            async fn $check() {
                super::$check(&crate::scratch::Scratch::open().await).await;
            })+
        }

        mod postgres_on_a_server {
            $(#[tokio::test]
            async fn $check() {
                super::$check(&crate::server::Server::open().await).await;
            })+
        }
    };
}

pub(crate) use on_every_store;

impl Stores for Scratch {
    fn journal(&self) -> &dyn Journal {
        &self.store
    }

    fn nodes(&self) -> &dyn Nodes {
        &self.store
    }

    fn wallets(&self) -> &dyn Wallets {
        &self.store
    }

    fn keys(&self) -> Option<&dyn ApiKeys> {
        Some(&self.store)
    }

    fn prices(&self) -> Option<&dyn Prices> {
        Some(&self.store)
    }

    fn lists(&self) -> Option<&dyn Lists> {
        Some(self)
    }

    fn statistics(&self) -> Option<&dyn Statistics> {
        Some(&self.store)
    }

    fn refused_requests(&self) -> Option<&dyn RefusedRequests> {
        Some(&self.store)
    }

    fn restores(&self) -> Option<&dyn Restores> {
        Some(&self.store)
    }

    fn commands(&self) -> &dyn Commands {
        &self.store
    }
}

#[async_trait]
impl Lists for Scratch {
    async fn all_api_keys(&self) -> Vec<ApiKey> {
        list::all_api_keys(&self.store).await
    }

    async fn all_wallets(&self) -> Vec<Wallet> {
        list::all_wallets(&self.store).await
    }
}
