//! A database in a folder that is deleted afterwards.

use std::path::PathBuf;

use holdfast_domain::{Journal, Keys, Nodes, Prices, Wallets};
use holdfast_store::{Options, Store, migrate};
use holdfast_testkit::laws::Stores;
use tempfile::TempDir;

/// A folder with a database that is migrated.
pub(crate) struct Scratch {
    folder: TempDir,
    pub(crate) store: Store,
}

impl Scratch {
    pub(crate) async fn open() -> Self {
        let folder = TempDir::new().unwrap();
        let options = Options::new(&url(&folder));
        migrate::up(&options.url).await.unwrap();
        let store = Store::open(options).await.unwrap();
        Self { folder, store }
    }

    pub(crate) fn url(&self) -> String {
        url(&self.folder)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("holdfast.db")
    }
}

fn url(folder: &TempDir) -> String {
    format!("sqlite://{}/holdfast.db", folder.path().display())
}

impl Stores for Scratch {
    fn journal(&self) -> &dyn Journal {
        &self.store
    }

    fn nodes(&self) -> &dyn Nodes {
        &self.store
    }

    fn keys(&self) -> &dyn Keys {
        &self.store
    }

    fn wallets(&self) -> &dyn Wallets {
        &self.store
    }

    fn prices(&self) -> &dyn Prices {
        &self.store
    }
}
