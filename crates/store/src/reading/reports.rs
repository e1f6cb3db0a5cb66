//! The port of reports: sums of usage, and statements of wallets, each of one moment.

use async_trait::async_trait;
use holdfast_domain::WalletId;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    DailyStatement, EntryPlace, ExportError, LedgerExport, LedgerQuery, Reports, Statement,
    StatementExport, UsageError, UsageExport, UsageQuery, UsageRow,
};
use holdfast_domain::ports::Unavailable;

use super::export::{LedgerPages, StatementPages, UsagePages};
use super::statement::{self, StatementSpan};
use super::usage;
use crate::store::Store;

#[async_trait]
impl Reports for Store {
    async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>, UsageError> {
        let rows_max = query.rows_max.unwrap_or(u32::MAX);
        let rows =
            self.report_transaction(move |db| Box::pin(usage::report(db, query, None))).await?;
        rows.ok_or(UsageError::TooManyRows(rows_max))
    }

    async fn statement(
        &self,
        wallet: WalletId,
        period: Period,
        limit: u32,
    ) -> Result<Statement, Unavailable> {
        let span = StatementSpan { period, before: None };
        self.report_transaction(move |db| Box::pin(statement::read(db, wallet, span, limit))).await
    }

    async fn statement_before(
        &self,
        wallet: WalletId,
        period: Period,
        before: EntryPlace,
        limit: u32,
    ) -> Result<Statement, Unavailable> {
        let span = StatementSpan { period, before: Some(before) };
        self.report_transaction(move |db| Box::pin(statement::read(db, wallet, span, limit))).await
    }

    async fn daily_statement(
        &self,
        wallet: WalletId,
        period: Period,
        movements_max: u32,
    ) -> Result<DailyStatement, Unavailable> {
        self.report_transaction(move |db| {
            Box::pin(statement::days(db, wallet, period, movements_max))
        })
        .await
    }

    async fn export_statement(
        &self,
        wallet: WalletId,
        period: Period,
        rows_max: u64,
    ) -> Result<StatementExport, ExportError> {
        StatementPages::begin(self.export_reader()?, wallet, period, rows_max).await
    }

    async fn export_usage(
        &self,
        query: UsageQuery,
        rows_max: u64,
    ) -> Result<UsageExport, ExportError> {
        UsagePages::begin(self.export_reader()?, query, rows_max).await
    }

    async fn export_ledger(
        &self,
        query: LedgerQuery,
        rows_max: u64,
    ) -> Result<LedgerExport, ExportError> {
        LedgerPages::begin(self.export_reader()?, query, rows_max).await
    }
}
