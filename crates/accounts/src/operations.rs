//! Operations: found, listed, cancelled, reconciled.
//!
//! A cancellation and a reconciliation are transitions of the operation, judged by its own rules. The audit
//! log's row is committed first, and records the request: the operation records its outcome.

use std::collections::BTreeMap;

use holdfast_domain::admin::listing::{OperationFilter, OperationListing, Page, PageRequest};
use holdfast_domain::admin::{AccountAction, Note, Reach, UseCase};
use holdfast_domain::conduct::Conduct;
use holdfast_domain::operation::{Operation, Situation, situation};
use holdfast_domain::{Currency, Micros, OperationId, RequestKey, Snapshot, WalletId};

use crate::{
    Accounts, AccountsError, Outcome, Principal, Reference, Request, ResourceKind, Result,
};

/// An operation with what its situation depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// The operation.
    pub operation: Operation,
    /// Situation of the operation by the database's clock.
    pub situation: Situation,
    /// Sum of the refunds of its charge.
    pub refunded: Micros,
    /// Cost of its run that came after its ending.
    pub late_cost: Option<Micros>,
}

impl OperationRecord {
    /// Cost of its run, of its row or come after its ending.
    #[must_use]
    pub fn provider_cost(&self) -> Option<Micros> {
        let usage = self.operation.phase.usage();
        usage.and_then(|usage| usage.metered.provider_cost).or(self.late_cost)
    }
}

/// End that a principal requests of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskedEnd {
    Cancel,
    Reconcile,
}

impl Accounts {
    /// The operation of this id.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one of a wallet that is out of reach too.
    pub async fn operation(
        &self,
        principal: &Principal,
        id: OperationId,
    ) -> Result<OperationRecord> {
        principal.authorize(UseCase::OperationRead)?;
        self.reachable_operation(principal, id).await
    }

    /// Id of what an API key and a request key stand for, whether or not it is there.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`] for an API key that is not there, or out of reach.
    pub async fn operation_id(
        &self,
        principal: &Principal,
        api_key: &Reference,
        wallet: Option<WalletId>,
        request_key: RequestKey,
    ) -> Result<OperationId> {
        principal.authorize(UseCase::OperationRead)?;
        let api_key = self.reachable_api_key(principal, api_key, wallet).await?;
        Ok(OperationId::of(api_key.id, request_key))
    }

    /// Sums of what running operations hold, by currency, as far as the principal sees their wallets.
    pub async fn held(&self, principal: &Principal) -> Result<BTreeMap<Currency, Micros>> {
        principal.authorize(UseCase::OperationRead)?;
        match principal.reach {
            Reach::All => Ok(self.book.held().await?),
            Reach::Wallet(own) => {
                let own = self.book.wallet_record(own).await?.map(|record| record.wallet);
                let own = own.filter(|wallet| wallet.held > Micros::ZERO);
                Ok(own.map(|wallet| (wallet.currency, wallet.held)).into_iter().collect())
            }
        }
    }

    /// Operations, a page at a time.
    pub async fn operations(
        &self,
        principal: &Principal,
        filter: OperationFilter,
        page: PageRequest,
    ) -> Result<Page<OperationListing>> {
        principal.authorize(UseCase::OperationRead)?;
        let wallet = match (principal.only_wallet(), filter.wallet) {
            (Some(own), Some(requested)) if own != requested => {
                return Ok(Page::empty());
            }
            (own, requested) => own.or(requested),
        };
        Ok(self.book.operations(OperationFilter { wallet, ..filter }, page).await?)
    }

    /// Requests the end of a running operation; a reason is required. One that has ended stays as it is.
    pub async fn cancel_operation(
        &self,
        principal: &Principal,
        request: &Request,
        id: OperationId,
    ) -> Result<Outcome<OperationRecord>> {
        principal.authorize(UseCase::OperationCancel)?;
        Self::want_reason(UseCase::OperationCancel, request)?;
        self.end_operation(principal, request, id, AskedEnd::Cancel).await
    }

    /// Ends an operation whose owner is gone, or settles a recorded one. Any other stays as it is.
    pub async fn reconcile_operation(
        &self,
        principal: &Principal,
        request: &Request,
        id: OperationId,
    ) -> Result<Outcome<OperationRecord>> {
        principal.authorize(UseCase::OperationReconcile)?;
        self.end_operation(principal, request, id, AskedEnd::Reconcile).await
    }

    /// Notes in the audit log that the costs of operations are taken out of the sums of usage, the first of
    /// which is this one. The caller takes them out then.
    pub async fn note_excluded_costs(
        &self,
        principal: &Principal,
        request: &Request,
        first: OperationId,
        operations: u64,
    ) -> Result<()> {
        principal.authorize(UseCase::UsageExcludeCosts)?;
        let action = AccountAction::Note(Note::excluded_costs(first, operations));
        self.change(principal, request, action).await.map(drop)
    }

    async fn end_operation(
        &self,
        principal: &Principal,
        request: &Request,
        id: OperationId,
        end: AskedEnd,
    ) -> Result<Outcome<OperationRecord>> {
        // Reach before the row of the audit log: else a holder could leave rows about others'
        // operations.
        let found = self.reachable_operation(principal, id).await?;
        let use_case = match end {
            AskedEnd::Cancel => UseCase::OperationCancel,
            AskedEnd::Reconcile => UseCase::OperationReconcile,
        };
        let action = AccountAction::Note(Note::requested_end(id, use_case));
        let requested = self.change(principal, request, action).await?;
        if request.dry_run {
            return Ok(Outcome { thing: found, replayed: requested.replayed });
        }
        let conduct = Conduct { journal: &*self.book, pause: &*self.pause, orphan_grace: None };
        // Also if the request was known: its first sender may have died between the two.
        match end {
            AskedEnd::Cancel => conduct.cancel(id).await?,
            AskedEnd::Reconcile => conduct.reconcile(id).await?,
        };
        let thing = self.reachable_operation(principal, id).await?;
        Ok(Outcome { thing, replayed: requested.replayed })
    }

    async fn reachable_operation(
        &self,
        principal: &Principal,
        id: OperationId,
    ) -> Result<OperationRecord> {
        let missing = || AccountsError::NotFound(ResourceKind::Operation);
        let Snapshot { operation, lease, now, .. } = self.book.load(id).await?;
        let operation = operation.ok_or_else(missing)?;
        principal.reach(operation.wallet, ResourceKind::Operation)?;
        let situation = situation(&operation, lease.as_ref(), now);
        let refunded = self.book.refunded(id).await?;
        let late_cost = self.book.late_cost(id).await?;
        Ok(OperationRecord { operation, situation, refunded, late_cost })
    }
}
