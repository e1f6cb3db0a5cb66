//! Roots of the ledger, and proofs that an operation is in one. They are the operator's: a root shows the
//! number of operations that ended in its days.

use holdfast_domain::OperationId;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::ledger_root::{InclusionProof, LedgerRoot};
use holdfast_domain::admin::listing::{Page, PageRequest};

use crate::{Accounts, AccountsError, Principal, ResourceKind, Result};

impl Accounts {
    /// Roots, a page at a time.
    pub async fn ledger_roots(
        &self,
        principal: &Principal,
        page: PageRequest,
    ) -> Result<Page<LedgerRoot>> {
        principal.authorize(UseCase::RootRead)?;
        Ok(self.book.ledger_roots(page).await?)
    }

    /// Proof that an operation is in a root.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`] for an operation that no root has yet.
    pub async fn inclusion_proof(
        &self,
        principal: &Principal,
        operation: OperationId,
    ) -> Result<InclusionProof> {
        principal.authorize(UseCase::RootRead)?;
        let proof = self.book.inclusion(operation).await?;
        proof.ok_or(AccountsError::NotFound(ResourceKind::Operation))
    }
}
