//! The port of lists: what people look for.

use async_trait::async_trait;

use super::Unavailable;
use crate::account::WalletRecord;
use crate::credential::ApiKey;
use crate::listing::{
    ApiKeyFilter, ApiKeyListing, OperationFilter, OperationListing, Page, PageRequest,
};
use crate::{ApiKeyId, Micros, OperationId, WalletId};

/// Finds and lists wallets, API keys and operations. Each page is read at its own moment.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Lists wallets.
    async fn wallets(&self, page: PageRequest) -> Result<Page<WalletRecord>, Unavailable>;

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

    /// Lists operations.
    async fn operations(
        &self,
        filter: OperationFilter,
        page: PageRequest,
    ) -> Result<Page<OperationListing>, Unavailable>;

    /// Sums the refunds of an operation's charge.
    async fn refunded(&self, operation: OperationId) -> Result<Micros, Unavailable>;
}
