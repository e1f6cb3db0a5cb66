//! Query plans of lists: a page is found through an index and in its order, on SQLite, which has no
//! statistics here. The planner of a server has some, and is not held to a plan.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use holdfast_domain::{ApiKeyId, Timestamp, WalletId};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement};

use super::operation::{OperationRow, select, window};
use super::page::{page, sparse_page};
use crate::rows::entity::operation::Column;
use crate::schema::Dialect;
use crate::sqlite::plans::{ledger, plan};
use holdfast_domain::admin::listing::{
    OperationFilter, Order, Page, PageCursor, PageRequest, Scope,
};
use holdfast_domain::operation::OperationStatus;

/// A connection that returns no rows, and records the statements.
struct Recorder(Mutex<Vec<String>>);

#[async_trait]
impl ConnectionTrait for Recorder {
    fn get_database_backend(&self) -> DbBackend {
        DbBackend::Sqlite
    }

    async fn execute_raw(&self, _statement: Statement) -> Result<ExecResult, DbErr> {
        Err(DbErr::RecordNotInserted)
    }

    async fn execute_unprepared(&self, _sql: &str) -> Result<ExecResult, DbErr> {
        Err(DbErr::RecordNotInserted)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(statement.sql);
        Ok(Vec::new())
    }
}

/// The plan of a page of operations.
async fn plan_of(filter: &OperationFilter, order: Order) -> Vec<String> {
    let recorder = Recorder(Mutex::default());
    let select = select(Dialect::Sqlite, filter, Timestamp::from_micros(0));
    let request = PageRequest { order, after: Some(PageCursor(9)), limit: 9 };
    let found: Page<OperationRow> = if filter.is_sparse() {
        sparse_page(&recorder, select, window(filter, 0..99), Column::Seq, request).await.unwrap()
    } else {
        page(&recorder, select, Column::Seq, request).await.unwrap()
    };
    assert_eq!(found.rows.len(), 0);
    let statements = recorder.0.into_inner().unwrap();
    assert_eq!(statements.len(), if filter.is_sparse() { 2 } else { 1 }, "{statements:#?}");
    statements.iter().flat_map(|sql| plan(&ledger(), sql)).collect()
}

#[tokio::test]
async fn a_page_of_operations_is_found_in_its_order_and_sorts_nothing() {
    let wallet = Some(WalletId::from_u128(1));
    let api_key = Some(ApiKeyId::from_u128(1));
    let status = Some(OperationStatus::Refused);
    let all = OperationFilter::default();
    let by_number = "SEARCH operations USING INTEGER PRIMARY KEY (rowid";
    let by_wallet = "operations_of_wallet (wallet_id=? AND rowid";
    let by_key = "operations_of_api_key (api_key_id=? AND rowid";
    let running = "operations USING INDEX operations_active";
    let cases = [
        (all.clone(), by_number),
        (OperationFilter { api_key, ..all.clone() }, by_key),
        (OperationFilter { wallet, ..all.clone() }, by_wallet),
        (OperationFilter { wallet, api_key, ..all.clone() }, by_key),
        (OperationFilter { status, ..all.clone() }, by_number),
        (OperationFilter { wallet, status, ..all.clone() }, by_wallet),
        (OperationFilter { wallet, api_key, status, ..all.clone() }, by_key),
        (OperationFilter { scope: Scope::Running, ..all.clone() }, running),
        (OperationFilter { scope: Scope::Running, api_key, ..all.clone() }, running),
        (OperationFilter { scope: Scope::Stale, ..all.clone() }, running),
        (OperationFilter { scope: Scope::Stale, wallet, ..all.clone() }, running),
    ];
    for (filter, expected) in cases {
        for order in [Order::Newest, Order::Oldest] {
            let plan = plan_of(&filter, order).await;
            let leads = plan.iter().filter(|line| line.contains(expected)).count();
            assert_eq!(leads, if filter.is_sparse() { 2 } else { 1 }, "{filter:?} {plan:#?}");
            assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{filter:?} {plan:#?}");
        }
    }
}
