//! A shop on a file of its own, with one customer who has ten dollars and a key for thumbnails.

use std::collections::BTreeSet;
use std::future::{Ready, ready};
use std::sync::Arc;

use holdfast_domain::credential::Grant;
use holdfast_domain::model::ModelPattern;
use holdfast_domain::usage::Meters;
use holdfast_domain::{ApiKeyId, CommandKey, Currency, Micros, RequestKey, WalletId, Wallets as _};
use holdfast_embed::{
    DatabaseUrl, Holdfast, IssuedKey, NoCipher, Price, Sale, SaleKey, Seal, SellError,
    ServerSecret, Work,
};
use tempfile::TempDir;

/// Price of a thumbnail, in micros.
pub(crate) const PRICE: i64 = 2_000;

pub(crate) struct Shop {
    pub(crate) holdfast: Holdfast,
    pub(crate) api_key: ApiKeyId,
    wallet: WalletId,
    pub(crate) folder: TempDir,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::in_folder(TempDir::new().unwrap(), Arc::new(NoCipher)).await
    }

    pub(crate) async fn in_folder(folder: TempDir, seal: Arc<dyn Seal>) -> Self {
        let url = format!("sqlite://{}", folder.path().join("shop.db").display());
        let secret = ServerSecret::new(b"a secret of the tests of another service").unwrap();
        let url = DatabaseUrl::parse(&url).unwrap();
        let holdfast = Holdfast::open_sealed(&url, secret, seal).await.unwrap();
        let [make, issue, pay] = [1, 2, 3].map(CommandKey::from_u128);
        let wallet = holdfast.create_wallet(make, "acme", Currency::USD).await.unwrap();
        let api_key = holdfast.issue_key(issue, wallet, "main", grant()).await.unwrap().id;
        holdfast.deposit(pay, wallet, Micros::new(10_000_000)).await.unwrap();
        Self { holdfast, api_key, wallet, folder }
    }

    /// The same shop after a restart, which waits for what is sold.
    pub(crate) async fn again(self) -> Self {
        let Self { holdfast, folder, .. } = self;
        holdfast.close().await.unwrap();
        Self::in_folder(folder, Arc::new(NoCipher)).await
    }

    /// The command that has issued the key.
    pub(crate) async fn issue_again(&self) -> IssuedKey {
        let issue = CommandKey::from_u128(2);
        self.holdfast.issue_key(issue, self.wallet, "main", grant()).await.unwrap()
    }

    pub(crate) fn sell<W, F>(
        &self,
        key: u8,
        request: &str,
        work: W,
    ) -> impl Future<Output = Result<Sale, SellError>> + Send + use<W, F>
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = Work> + Send + 'static,
    {
        self.sell_at(key, request, (&price(), PRICE), work)
    }

    pub(crate) fn sell_at<W, F>(
        &self,
        key: u8,
        request: &str,
        (price, hold): (&Price, i64),
        work: W,
    ) -> impl Future<Output = Result<Sale, SellError>> + Send + use<W, F>
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = Work> + Send + 'static,
    {
        let request_key = RequestKey::of_random([key; 16]);
        let key = SaleKey { api_key: self.api_key, request_key };
        self.holdfast.sell(key, request.as_bytes(), price, Micros::new(hold), work)
    }

    /// Available and held amounts of the wallet.
    pub(crate) async fn balance(&self) -> (Micros, Micros) {
        let wallet = self.holdfast.store().find(self.wallet).await.unwrap().unwrap();
        (wallet.available, wallet.held)
    }

    /// The book is in order, and the shop ends.
    pub(crate) async fn end_in_order(self) {
        let audit = self.holdfast.store().verify().await.unwrap();
        assert!(audit.mismatches.is_empty(), "{:?}", audit.mismatches);
        self.holdfast.close().await.unwrap();
    }
}

fn grant() -> Grant {
    let models = BTreeSet::from([ModelPattern::try_from("shop/thumbnail").unwrap()]);
    Grant { models: Some(models), ..Grant::default() }
}

pub(crate) fn price() -> Price {
    let rate = Micros::new(PRICE);
    Price::each("shop/thumbnail", Currency::USD, "2026-11-01T00:00:00Z", rate).unwrap()
}

/// Work with this answer.
pub(crate) fn done(answer: &'static str) -> impl FnOnce() -> Ready<Work> + Send + 'static {
    move || ready(Work::Done { meters: Meters::thing(), answer: answer.into() })
}
