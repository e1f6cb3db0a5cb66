//! The directory: resources of a ledger and its administrators, by pages, by id and by name.
//!
//! Pages go by the number of a row, which never changes, so that a row is neither skipped nor repeated while others
//! are added. A filter that an index cannot answer reads a window of rows at a time, and a page may then be empty
//! and still lead on ([`super::page`]).
//!
//! A secret is never read here: verifiers are not columns of these entities.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use holdfast_domain::admin::Directory;
use holdfast_domain::admin::search::{IdPrefix, ResourceMatch};
use holdfast_domain::admin::{AdminKey, PersonRecord, ResourceId, WalletRecord, WalletState};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::model::{ModelPattern, PublicModelId};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::price::PriceVersion;
use holdfast_domain::text::spellings;
use holdfast_domain::{
    AdminKeyId, ApiKeyId, Currency, Micros, OperationId, PersonId, PostingId, WalletId,
};
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use super::operation::operations;
use super::outstanding::{in_force, is_in_force, refunds};
use super::page::{PageWindow, page, sparse_page};
use super::{ReadError, ReadTransaction, administration, names, person, search};
use crate::error::unavailable;
use crate::rows::Cells;
use crate::rows::entity::{admin_key, api_key, credential, node, price, wallet};
use crate::rows::late_cost::LATE_COST;
use crate::schema::{Dialect, blob};
use crate::store::Store;
use holdfast_domain::admin::listing::LiveCredential;
use holdfast_domain::admin::listing::{
    AdminKeyState, ApiKeyFilter, ApiKeyListing, ApiKeyState, NodeListing, OperationFilter,
    OperationListing, Page, PageRequest, PersonFilter, PostingFilter, PostingListing, TrailFilter,
    TrailListing, WalletFilter,
};

#[async_trait]
impl Directory for Store {
    async fn wallets(
        &self,
        filter: WalletFilter,
        request: PageRequest,
    ) -> Result<Page<WalletRecord>, Unavailable> {
        self.read_transaction(move |db| Box::pin(wallets(db, filter, request))).await
    }

    async fn held(&self) -> Result<BTreeMap<Currency, Micros>, Unavailable> {
        Ok(self.outstanding().await?.amounts)
    }

    async fn wallet_named(&self, name: &str) -> Result<Option<WalletRecord>, Unavailable> {
        let named = wallet::Entity::find().filter(wallet::Column::Name.is_in(spellings(name)));
        let found: Vec<(i64, WalletRecord)> = self.select(named.as_query()).await?;
        let mut found: Vec<_> = found.into_iter().map(|(_, wallet)| wallet).collect();
        // Rows of before may have two spellings of one name: the one that was typed is meant.
        found.sort_by_key(|record| record.wallet.name != name);
        Ok(found.into_iter().next())
    }

    async fn api_keys(
        &self,
        filter: ApiKeyFilter,
        request: PageRequest,
    ) -> Result<Page<ApiKeyListing>, Unavailable> {
        self.read_transaction(move |db| Box::pin(api_keys(db, filter, request))).await
    }

    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, Unavailable> {
        let of_id = api_key::Entity::find().filter(api_key::Column::Id.eq(id.to_bytes().to_vec()));
        let found: Vec<(i64, ApiKey)> = self.select(of_id.as_query()).await?;
        Ok(found.into_iter().next().map(|(_, api_key)| api_key))
    }

    async fn api_keys_named(
        &self,
        name: &str,
        wallet: Option<WalletId>,
    ) -> Result<Vec<ApiKey>, Unavailable> {
        let named = api_key::Entity::find()
            .filter(api_key::Column::Name.is_in(spellings(name)))
            .apply_if(wallet, |keys, wallet| {
                keys.filter(api_key::Column::WalletId.eq(wallet.to_bytes().to_vec()))
            })
            .order_by_asc(api_key::Column::Seq);
        let found: Vec<(i64, ApiKey)> = self.select(named.as_query()).await?;
        Ok(found.into_iter().map(|(_, api_key)| api_key).collect())
    }

    async fn names(
        &self,
        things: BTreeSet<ResourceId>,
        of: Option<WalletId>,
    ) -> Result<BTreeMap<ResourceId, String>, Unavailable> {
        self.read_transaction(move |db| Box::pin(names::names(db, things, of))).await
    }

    async fn resources_by_id(
        &self,
        prefix: IdPrefix,
        of: Option<WalletId>,
        limit: u64,
    ) -> Result<Vec<ResourceMatch>, Unavailable> {
        self.read_transaction(move |db| Box::pin(search::by_id(db, prefix, of, limit))).await
    }

    async fn resources_by_text(
        &self,
        text: &str,
        of: Option<WalletId>,
        limit: u64,
    ) -> Result<Vec<ResourceMatch>, Unavailable> {
        let text = text.to_owned();
        self.read_transaction(move |db| {
            Box::pin(async move { search::by_text(db, &text, of, limit).await })
        })
        .await
    }

    async fn api_key_ids(
        &self,
        of: Option<WalletId>,
        limit: u64,
    ) -> Result<Vec<ApiKeyId>, Unavailable> {
        self.read_transaction(move |db| Box::pin(search::api_key_ids(db, of, limit))).await
    }

    async fn existing_operations(
        &self,
        ids: Vec<OperationId>,
    ) -> Result<Vec<ResourceMatch>, Unavailable> {
        self.read_transaction(move |db| Box::pin(search::existing_operations(db, ids))).await
    }

    async fn operations(
        &self,
        filter: OperationFilter,
        request: PageRequest,
    ) -> Result<Page<OperationListing>, Unavailable> {
        self.read_transaction(move |db| Box::pin(operations(db, filter, request))).await
    }

    async fn postings(
        &self,
        filter: PostingFilter,
        request: PageRequest,
    ) -> Result<Page<PostingListing>, Unavailable> {
        self.read_transaction(move |db| Box::pin(administration::postings(db, filter, request)))
            .await
    }

    async fn posting_listing(&self, id: PostingId) -> Result<Option<PostingListing>, Unavailable> {
        self.read_transaction(move |db| Box::pin(administration::posting_listing(db, id))).await
    }

    async fn admin_keys(
        &self,
        state: Option<AdminKeyState>,
        request: PageRequest,
    ) -> Result<Page<AdminKey>, Unavailable> {
        self.read_transaction(move |db| Box::pin(administration::admin_keys(db, state, request)))
            .await
    }

    async fn admin_key(&self, id: AdminKeyId) -> Result<Option<AdminKey>, Unavailable> {
        let id = id.to_bytes().to_vec();
        let of_id = admin_key::Entity::find().filter(admin_key::Column::Id.eq(id));
        let found: Vec<(i64, AdminKey)> = self.select(of_id.as_query()).await?;
        Ok(found.into_iter().next().map(|(_, admin_key)| admin_key))
    }

    async fn people(
        &self,
        filter: PersonFilter,
        request: PageRequest,
    ) -> Result<Page<PersonRecord>, Unavailable> {
        self.read_transaction(move |db| Box::pin(person::people(db, filter, request))).await
    }

    async fn person(&self, id: PersonId) -> Result<Option<PersonRecord>, Unavailable> {
        self.read_transaction(move |db| Box::pin(person::person(db, id))).await
    }

    async fn trail(
        &self,
        filter: TrailFilter,
        request: PageRequest,
    ) -> Result<Page<TrailListing>, Unavailable> {
        self.read_transaction(move |db| Box::pin(administration::trail(db, filter, request))).await
    }

    async fn price_versions(&self) -> Result<Vec<PriceVersion>, Unavailable> {
        let mut prices: Vec<PriceVersion> = self.select(price::Entity::find().as_query()).await?;
        // Moments are texts of one form in these names: sorted as texts they are sorted in time.
        let place = |price: &PriceVersion| {
            let model = price.id.model().map(str::to_owned);
            (model, price.currency, Reverse(price.id.effective_from().map(str::to_owned)))
        };
        prices.sort_by_cached_key(place);
        Ok(prices)
    }

    async fn nodes(&self) -> Result<Vec<NodeListing>, Unavailable> {
        let clock = Expr::cust(self.dialect().clock());
        let replicated = Expr::cust(self.dialect().replicated());
        let nodes = node::Entity::find().expr(clock).expr(replicated);
        let nodes = nodes.order_by_asc(node::Column::Name);
        self.select(nodes.as_query()).await
    }

    async fn refunded(&self, operation: OperationId) -> Result<Micros, Unavailable> {
        let sum = Query::select().expr(refunds(operation.to_bytes().to_vec())).take();
        Ok(self.select(&sum).await?.first().copied().unwrap_or(Micros::ZERO))
    }

    async fn late_cost(&self, operation: OperationId) -> Result<Option<Micros>, Unavailable> {
        let sql = format!("SELECT {LATE_COST} FROM operations WHERE operations.id = $1");
        let rows = self.query(&sql, [blob(operation.to_bytes())]).await?;
        let cost = rows.first().map_or(Ok(None), |row| Cells::new(row).opt_int());
        Ok(cost.map_err(unavailable)?.map(Micros::new))
    }
}

async fn wallets(
    db: &ReadTransaction,
    filter: WalletFilter,
    request: PageRequest,
) -> Result<Page<WalletRecord>, ReadError> {
    use wallet::Column;
    let is_indexed =
        filter.name.is_some() || filter.external_id.is_some() || filter == WalletFilter::default();
    let WalletFilter { name, external_id, state, available_from, available_below, runs_low } =
        filter;
    let in_state = |wallets: Select<_>, state| {
        wallets.filter(match state {
            WalletState::Active => {
                Condition::all().add(Column::ClosedAt.is_null()).add(Column::SuspendedAt.is_null())
            }
            WalletState::Suspended => Condition::all()
                .add(Column::ClosedAt.is_null())
                .add(Column::SuspendedAt.is_not_null()),
            WalletState::Closed => Condition::all().add(Column::ClosedAt.is_not_null()),
        })
    };
    // As `LowBalance::is_low` judges it. No amount here is below zero, so no difference is too small.
    let low = "held < CASE WHEN low_balance > 1 THEN low_balance ELSE 1 END - available";
    let low = Condition::all()
        .add(Column::LowBalance.is_not_null())
        .add(Column::ClosedAt.is_null())
        .add(Expr::cust(low));
    let wallets = wallet::Entity::find()
        .apply_if(name, |all, name| all.filter(Column::Name.is_in(spellings(&name))))
        .apply_if(external_id, |all, id| all.filter(Column::ExternalId.is_in(spellings(&id))))
        .apply_if(state, in_state)
        .apply_if(available_from, |all, from| all.filter(Column::Available.gte(from.get())))
        .apply_if(available_below, |all, below| all.filter(Column::Available.lt(below.get())))
        .apply_if(runs_low.then_some(low), |all, low| all.filter(low));
    if is_indexed {
        return page(db, wallets, Column::Seq, request).await;
    }
    // No index over balances and states: each operation would have to move its wallet in it.
    let all = PageWindow::of_all(db, wallet::Entity::find(), Column::Seq).await?;
    sparse_page(db, wallets, all, Column::Seq, request).await
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
            ApiKeyState::Suspended => is_in_force(now).add(Column::SuspendedAt.is_not_null()),
            ApiKeyState::Ended => {
                Condition::all().add(Column::RevokedAt.is_null()).add(Column::EndsAt.lte(now))
            }
            ApiKeyState::Revoked => Condition::all().add(Column::RevokedAt.is_not_null()),
        })
    };
    // As `models_text` wrote it; entries have no commas in them, and the two that allow a model are known.
    let may_use = |keys: Select<_>, model: PublicModelId| {
        let listed = |entry: ModelPattern| {
            let found = match db.dialect() {
                Dialect::Sqlite => "instr(',' || models || ',', ?) > 0",
                Dialect::Postgres => "strpos(',' || models || ',', $1) > 0",
            };
            Expr::cust_with_values(found, [format!(",{entry},")])
        };
        let of_publisher = listed(ModelPattern::of_publisher(&model));
        let all = Condition::any().add(Column::Models.is_null());
        keys.filter(all.add(listed(model.into())).add(of_publisher))
    };
    // An index leads from a name to its keys, as it does to all of them by their numbers.
    let is_indexed = filter.name.is_some() || filter == ApiKeyFilter::default();
    let keys = api_key::Entity::find()
        .apply_if(filter.name, |keys, name| keys.filter(Column::Name.is_in(spellings(&name))))
        .apply_if(filter.wallet, of_wallet)
        .apply_if(filter.state, in_state)
        .apply_if(filter.model, may_use);
    let found: Page<ApiKey> = if is_indexed {
        page(db, keys, Column::Seq, request).await?
    } else {
        // No index leads from a wallet, a state or a model to its keys.
        let all = PageWindow::of_all(db, api_key::Entity::find(), Column::Seq).await?;
        sparse_page(db, keys, all, Column::Seq, request).await?
    };
    // In the moment of the keys: none is shown with a credential that was made after it was read.
    let ids = found.rows.iter().map(|key| key.id.to_bytes().to_vec());
    let theirs = in_force(now).filter(credential::Column::ApiKeyId.is_in(ids));
    let credentials: Vec<LiveCredential> = db.select(theirs.as_query()).await?;
    let mut credentials_of: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for credential in credentials {
        credentials_of.entry(credential.api_key).or_default().push(credential);
    }
    Ok(found.map(|api_key: ApiKey| {
        let credentials = credentials_of.remove(&api_key.id).unwrap_or_default();
        ApiKeyListing { api_key, credentials }
    }))
}
