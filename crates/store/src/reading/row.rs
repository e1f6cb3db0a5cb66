//! Rows of a query as the domain's values, by the readers in [`crate::rows`], which the writers
//! have too. Columns are read by place, never by name: two tables of one query may share names.

use std::sync::Arc;

use holdfast_domain::admin::event::EventRecord;
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{ApiKeyId, CredentialId, Micros};
use sea_orm::{DbErr, FromQueryResult, QueryResult};

use crate::rows::{BadRow, Cells, FromCells};
use crate::transaction::event;
use holdfast_domain::admin::listing::LiveCredential;

/// A row for SeaORM's cursor.
pub(super) struct Row<T>(pub(super) T);

impl<T: FromCells> FromQueryResult for Row<T> {
    fn from_query_result(row: &QueryResult, _prefix: &str) -> Result<Self, DbErr> {
        let value = T::from_cells(&mut Cells::new(row));
        value.map(Self).map_err(|bad| DbErr::TryIntoErr {
            from: "row",
            into: std::any::type_name::<T>(),
            source: Arc::new(bad),
        })
    }
}

/// A row behind its number.
impl<T: FromCells> FromCells for (i64, T) {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok((cells.int()?, T::from_cells(cells)?))
    }
}

/// An id and a name.
impl FromCells for ([u8; 16], String) {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok((cells.bytes()?, cells.text()?))
    }
}

impl FromCells for i64 {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        cells.int()
    }
}

impl FromCells for Micros {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        cells.micros()
    }
}

impl FromCells for EventRecord {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        event::record(cells)
    }
}

impl FromCells for LiveCredential {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self {
            id: CredentialId::from_bytes(cells.bytes()?),
            api_key: ApiKeyId::from_bytes(cells.bytes()?),
            server_secret: ServerSecretId::from_bytes(cells.bytes()?),
            created_at: cells.timestamp()?,
            ends_at: cells.opt_timestamp()?,
        })
    }
}
