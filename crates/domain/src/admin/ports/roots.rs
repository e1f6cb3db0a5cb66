//! Port of the roots of the ledger, as they were signed.

use async_trait::async_trait;

use crate::OperationId;
use crate::admin::ledger_root::{InclusionProof, LedgerRoot};
use crate::admin::listing::{Page, PageRequest};
use crate::ports::Unavailable;

/// Reads roots of the ledger.
#[async_trait]
pub trait LedgerRoots: Send + Sync {
    /// Lists roots.
    async fn ledger_roots(&self, page: PageRequest) -> Result<Page<LedgerRoot>, Unavailable>;

    /// Proves that an operation is in a root; `None` as long as it is in none. It reads all rows of that root.
    async fn inclusion(
        &self,
        operation: OperationId,
    ) -> Result<Option<InclusionProof>, Unavailable>;
}
