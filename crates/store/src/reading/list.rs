//! The queries behind [`crate::list`]: API keys and wallets, by pages, by id and by name.

use holdfast_domain::credential::ApiKey;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, WalletId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryTrait, Select};

use super::page::{numbers, page, sparse_page};
use super::report::{in_force, is_in_force};
use super::{ReadError, ReadTransaction};
use crate::Store;
use crate::entity::{api_key, credential, wallet};
use crate::list::{ApiKeyFilter, ApiKeyListing, ApiKeyState, Page, PageRequest};
use crate::report::LiveCredential;

impl Store {
    /// Wallets.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn wallets(&self, request: PageRequest) -> Result<Page<Wallet>, Unavailable> {
        self.read_transaction(move |db| {
            Box::pin(page(db, wallet::Entity::find(), wallet::Column::Seq, request))
        })
        .await
    }

    /// The wallet of this name.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn wallet_named(&self, name: &str) -> Result<Option<Wallet>, Unavailable> {
        let named = wallet::Entity::find().filter(wallet::Column::Name.eq(name));
        let found: Vec<(i64, Wallet)> = self.select(named.as_query()).await?;
        Ok(found.into_iter().next().map(|(_, wallet)| wallet))
    }

    /// API keys with their credentials in force.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn api_keys(
        &self,
        filter: ApiKeyFilter,
        request: PageRequest,
    ) -> Result<Page<ApiKeyListing>, Unavailable> {
        self.read_transaction(move |db| Box::pin(api_keys(db, filter, request))).await
    }

    /// The API key of this id.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, Unavailable> {
        self.one_api_key(api_key::Column::Id.eq(id.to_bytes().to_vec())).await
    }

    /// The API key of this name.
    ///
    /// # Errors
    ///
    /// Where the database cannot be read.
    pub async fn api_key_named(&self, name: &str) -> Result<Option<ApiKey>, Unavailable> {
        self.one_api_key(api_key::Column::Name.eq(name)).await
    }

    async fn one_api_key(&self, which: Expr) -> Result<Option<ApiKey>, Unavailable> {
        let which = api_key::Entity::find().filter(which);
        let found: Vec<(i64, ApiKey)> = self.select(which.as_query()).await?;
        Ok(found.into_iter().next().map(|(_, api_key)| api_key))
    }
}

async fn api_keys(
    db: &ReadTransaction,
    filter: ApiKeyFilter,
    request: PageRequest,
) -> Result<Page<ApiKeyListing>, ReadError> {
    use api_key::Column;
    let now = db.now().await?.as_micros();
    let of_wallet = |keys: Select<_>, wallet: WalletId| {
        keys.filter(Column::WalletId.eq(wallet.to_bytes().to_vec()))
    };
    let in_state = |keys: Select<_>, state| {
        keys.filter(match state {
            ApiKeyState::InForce => is_in_force(now),
            ApiKeyState::Ended => {
                Condition::all().add(Column::RevokedAt.is_null()).add(Column::EndsAt.lte(now))
            }
            ApiKeyState::Revoked => Condition::all().add(Column::RevokedAt.is_not_null()),
        })
    };
    let keys =
        api_key::Entity::find().apply_if(filter.wallet, of_wallet).apply_if(filter.state, in_state);
    let found: Page<ApiKey> = if filter == ApiKeyFilter::default() {
        page(db, keys, Column::Seq, request).await?
    } else {
        // No index leads from a wallet or a state to its keys.
        let all = numbers::<api_key::Entity>(db, Column::Seq).await?;
        sparse_page(db, keys, Column::Seq, all, request).await?
    };
    // In the moment of the keys: none is shown with a credential that was made after it was read.
    let ids = found.rows.iter().map(|key| key.id.to_bytes().to_vec());
    let theirs = in_force(now).filter(credential::Column::ApiKeyId.is_in(ids));
    let credentials: Vec<LiveCredential> = db.select(theirs.as_query()).await?;
    let listing = |api_key: ApiKey| {
        let own = credentials.iter().filter(|it| it.api_key == api_key.id).copied().collect();
        ApiKeyListing { api_key, credentials: own }
    };
    Ok(Page { rows: found.rows.into_iter().map(listing).collect(), next: found.next })
}
