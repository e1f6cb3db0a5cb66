//! Files of whole periods: a wallet's statement, the ledger's payments and charges, and usage.
//!
//! Every role that may read statements may export them; a file has no rows of wallets that are out of reach. An
//! export is not bounded by role: it has all rows of its period, up to [`EXPORT_ROWS_MAX`], or is refused
//! before its first row. An actor has one export at once, so that a slow reader leaves a place to others.

use holdfast_domain::Timestamp;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    EXPORT_ROWS_MAX, LedgerExport, LedgerQuery, StatementExport, UsageExport, UsageQuery,
};
use holdfast_domain::admin::{UseCase, WalletRecord};
use uuid::Uuid;

use crate::{Accounts, AccountsError, Place, Principal, Reference, ResourceKind, Result};

/// Export of a wallet's statement.
#[derive(Debug)]
pub struct StatementFile {
    /// The wallet.
    pub wallet: WalletRecord,
    /// Period of the statement.
    pub period: Period,
    /// Rows of the export.
    pub export: StatementExport,
    /// Place of the export among those of its actor.
    pub place: Place,
}

/// Export of payments and charges.
#[derive(Debug)]
pub struct LedgerFile {
    /// Wallet of all rows; `None` for all wallets.
    pub wallet: Option<WalletRecord>,
    /// Period that was requested.
    pub period: Period,
    /// Rows of the export.
    pub export: LedgerExport,
    /// Place of the export among those of its actor.
    pub place: Place,
}

/// Export of usage.
#[derive(Debug)]
pub struct UsageFile {
    /// Report that was requested.
    pub query: UsageQuery,
    /// False if the principal may not see what usage cost the operator.
    pub shows_costs: bool,
    /// Rows of the export.
    pub export: UsageExport,
    /// Place of the export among those of its actor.
    pub place: Place,
}

impl Accounts {
    /// Begins an export of a wallet's statement over a period.
    pub async fn export_statement(
        &self,
        principal: &Principal,
        wallet: &Reference,
        period: Period,
    ) -> Result<StatementFile> {
        principal.authorize(UseCase::StatementRead)?;
        let wallet = self.reachable_wallet(principal, wallet).await?;
        let id = wallet.wallet.id;
        self.note_read(principal, UseCase::StatementRead, Some(id)).await?;
        let place = self.export_place(principal)?;
        let export = self.book.export_statement(id, period, EXPORT_ROWS_MAX).await?;
        Ok(StatementFile { wallet, period, export, place })
    }

    /// Begins an export of the payments and charges of a period: of a wallet, or of all within reach.
    pub async fn export_ledger(
        &self,
        principal: &Principal,
        wallet: Option<&Reference>,
        period: Period,
    ) -> Result<LedgerFile> {
        principal.authorize(UseCase::StatementRead)?;
        let own = principal.only_wallet().map(|id| Reference::Id(Uuid::from_bytes(id.to_bytes())));
        let wallet = match wallet.or(own.as_ref()) {
            Some(wallet) => Some(self.reachable_wallet(principal, wallet).await?),
            None => None,
        };
        let id = wallet.as_ref().map(|record| record.wallet.id);
        self.note_read(principal, UseCase::StatementRead, id).await?;
        let (from, to) = period.bounds();
        let [from, to] = [from, to].map(Timestamp::from_micros);
        let query = LedgerQuery { wallet: id, from, to };
        let place = self.export_place(principal)?;
        let export = self.book.export_ledger(query, EXPORT_ROWS_MAX).await?;
        Ok(LedgerFile { wallet, period, export, place })
    }

    /// Begins an export of usage that finished in a period, summed by groups.
    pub async fn export_usage(
        &self,
        principal: &Principal,
        query: UsageQuery,
    ) -> Result<UsageFile> {
        let query = Self::judged_usage(principal, query)?;
        if let Some(wallet) = query.filter.wallet {
            principal.reach(wallet, ResourceKind::Wallet)?;
        }
        self.note_read(principal, UseCase::UsageRead, query.filter.wallet).await?;
        let place = self.export_place(principal)?;
        let export = self.book.export_usage(query.clone(), EXPORT_ROWS_MAX).await?;
        Ok(UsageFile { query, shows_costs: principal.sees_costs(), export, place })
    }

    fn export_place(&self, principal: &Principal) -> Result<Place> {
        let actor = principal.actor;
        // Held by the file until its last byte or its reader is gone, and not only until the first
        // page: the slow reader is the one that must not take a second place.
        self.exports.enter(actor).ok_or(AccountsError::ExportInProgress(actor))
    }
}
