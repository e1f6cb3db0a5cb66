//! The port of lists: what people look for.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::admin::listing::{
    AdminKeyState, ApiKeyFilter, ApiKeyListing, NodeListing, OperationFilter, OperationListing,
    Page, PageRequest, PersonFilter, PostingFilter, PostingListing, TrailFilter, TrailListing,
    WalletFilter,
};
use crate::admin::search::{IdPrefix, ResourceMatch};
use crate::admin::{AdminKey, PersonRecord, ResourceId, WalletRecord};
use crate::credential::ApiKey;
use crate::ports::Unavailable;
use crate::price::PriceVersion;
use crate::{AdminKeyId, ApiKeyId, Currency, Micros, OperationId, PersonId, PostingId, WalletId};

/// Finds and lists what a book has, and who administers it. Each page is read at its own moment.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Lists wallets.
    async fn wallets(
        &self,
        filter: WalletFilter,
        page: PageRequest,
    ) -> Result<Page<WalletRecord>, Unavailable>;

    /// Sums what running operations hold, by currency; only currencies that anything is held of.
    async fn held(&self) -> Result<BTreeMap<Currency, Micros>, Unavailable>;

    /// Finds the wallet of this name.
    async fn wallet_named(&self, name: &str) -> Result<Option<WalletRecord>, Unavailable>;

    /// Lists API keys with their credentials in force.
    async fn api_keys(
        &self,
        filter: ApiKeyFilter,
        page: PageRequest,
    ) -> Result<Page<ApiKeyListing>, Unavailable>;

    /// Finds the API key of this id.
    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, Unavailable>;

    /// Finds the API keys of this name: names are unique within a wallet.
    async fn api_keys_named(
        &self,
        name: &str,
        wallet: Option<WalletId>,
    ) -> Result<Vec<ApiKey>, Unavailable>;

    /// Names of wallets, API keys and admin keys, and e-mail addresses of people. A resource without a name is
    /// missing. With a wallet, so is every resource but that wallet and its API keys.
    async fn names(
        &self,
        things: BTreeSet<ResourceId>,
        of: Option<WalletId>,
    ) -> Result<BTreeMap<ResourceId, String>, Unavailable>;

    /// Finds resources whose ids begin alike, at most `limit` of each kind. With a wallet, only that wallet and its
    /// own resources.
    async fn resources_by_id(
        &self,
        prefix: IdPrefix,
        of: Option<WalletId>,
        limit: u64,
    ) -> Result<Vec<ResourceMatch>, Unavailable>;

    /// Finds wallets and API keys by a part of their name or external id, and people by a part of their e-mail
    /// address, at most `limit` of each kind, newest first. Case is ignored at least for ASCII. With a wallet, only
    /// that wallet and its API keys.
    async fn resources_by_text(
        &self,
        text: &str,
        of: Option<WalletId>,
        limit: u64,
    ) -> Result<Vec<ResourceMatch>, Unavailable>;

    /// Lists the ids of API keys, at most `limit`, of all or of one wallet.
    async fn api_key_ids(
        &self,
        of: Option<WalletId>,
        limit: u64,
    ) -> Result<Vec<ApiKeyId>, Unavailable>;

    /// Finds which of these operations exist.
    async fn existing_operations(
        &self,
        ids: Vec<OperationId>,
    ) -> Result<Vec<ResourceMatch>, Unavailable>;

    /// Lists operations.
    async fn operations(
        &self,
        filter: OperationFilter,
        page: PageRequest,
    ) -> Result<Page<OperationListing>, Unavailable>;

    /// Lists postings.
    async fn postings(
        &self,
        filter: PostingFilter,
        page: PageRequest,
    ) -> Result<Page<PostingListing>, Unavailable>;

    /// Finds the posting of this id, with the details beyond its money.
    async fn posting_listing(&self, id: PostingId) -> Result<Option<PostingListing>, Unavailable>;

    /// Lists admin keys, in one state or in all.
    async fn admin_keys(
        &self,
        state: Option<AdminKeyState>,
        page: PageRequest,
    ) -> Result<Page<AdminKey>, Unavailable>;

    /// Finds the admin key of this id.
    async fn admin_key(&self, id: AdminKeyId) -> Result<Option<AdminKey>, Unavailable>;

    /// Lists people with all that they have.
    async fn people(
        &self,
        filter: PersonFilter,
        page: PageRequest,
    ) -> Result<Page<PersonRecord>, Unavailable>;

    /// Finds the person of this id.
    async fn person(&self, id: PersonId) -> Result<Option<PersonRecord>, Unavailable>;

    /// Lists rows of the trail.
    async fn trail(
        &self,
        filter: TrailFilter,
        page: PageRequest,
    ) -> Result<Page<TrailListing>, Unavailable>;

    /// Lists all price versions, by model and currency, of each the latest first.
    async fn price_versions(&self) -> Result<Vec<PriceVersion>, Unavailable>;

    /// Lists the names of nodes, sorted.
    async fn nodes(&self) -> Result<Vec<NodeListing>, Unavailable>;

    /// Sums the refunds of an operation's charge.
    async fn refunded(&self, operation: OperationId) -> Result<Micros, Unavailable>;

    /// Cost of an operation's run that came after its ending.
    async fn late_cost(&self, operation: OperationId) -> Result<Option<Micros>, Unavailable>;
}
