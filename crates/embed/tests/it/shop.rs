//! A shop on a database of its own, with one customer who has ten dollars and a key for thumbnails.

use std::collections::BTreeSet;
use std::future::{Ready, ready};
use std::sync::Arc;

use holdfast_domain::credential::Grant;
use holdfast_domain::model::ModelPattern;
use holdfast_domain::usage::Meters;
use holdfast_domain::{ApiKeyId, CommandKey, Currency, Micros, RequestKey, WalletId, Wallets as _};
use holdfast_embed::{
    Holdfast, IssuedKey, Options, Price, Sale, SaleKey, Seal, SellError, ServerSecret, Work,
};

use crate::home::Home;

/// Secret of the service, the same at every start.
pub(crate) const SECRET: &[u8] = b"a secret of the tests of another service";
/// Price of a thumbnail, in micros.
pub(crate) const PRICE: i64 = 2_000;

pub(crate) struct Shop {
    pub(crate) holdfast: Holdfast,
    pub(crate) api_key: ApiKeyId,
    pub(crate) wallet: WalletId,
    pub(crate) home: Home,
}

impl Shop {
    pub(crate) async fn open(home: Home) -> Self {
        Self::open_with(home, Options::default()).await
    }

    pub(crate) async fn sealed(home: Home, seal: impl Seal + 'static) -> Self {
        Self::open_with(home, Options { seal: Arc::new(seal), ..Options::default() }).await
    }

    pub(crate) async fn open_with(home: Home, options: Options) -> Self {
        let secret = ServerSecret::new(SECRET).unwrap();
        let holdfast = Holdfast::open_with(&home.url(), secret, options).await.unwrap();
        let [make, issue, pay] = [1, 2, 3].map(CommandKey::from_u128);
        let wallet = holdfast.create_wallet(make, "acme", Currency::USD).await.unwrap();
        let api_key = holdfast.issue_key(issue, wallet, "main", grant()).await.unwrap().id;
        holdfast.deposit(pay, wallet, Micros::new(10_000_000)).await.unwrap();
        Self { holdfast, api_key, wallet, home }
    }

    /// The same shop after a restart, which waits for what is sold.
    pub(crate) async fn again(self) -> Self {
        self.again_with(Options::default()).await
    }

    pub(crate) async fn again_with(self, options: Options) -> Self {
        let Self { holdfast, home, .. } = self;
        holdfast.close().await.unwrap();
        Self::open_with(home, options).await
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

pub(crate) fn grant() -> Grant {
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
