//! Roots as people read them, and proofs that an operation is in one.

use async_trait::async_trait;
use holdfast_domain::OperationId;
use holdfast_domain::admin::ledger_root::{InclusionProof, LedgerRoot};
use holdfast_domain::admin::listing::{Order, PAGE_MAX, Page, PageCursor, PageRequest};
use holdfast_domain::admin::ports::LedgerRoots;
use holdfast_domain::ports::Unavailable;
use holdfast_receipts::tree::{self, TreeHash};
use sea_orm::QueryResult;

use super::{LeafRows, ROOT, RootRow, first_in, leaves, one};
use crate::reading::{ReadError, ReadTransaction, from_row};
use crate::rows::{BadRow, Cells};
use crate::schema::blob;
use crate::store::Store;

/// Number of an operation, and the root that has it although its number was passed before.
const PLACE: &str =
    "SELECT o.seq, CASE WHEN l.op_seq IS NULL THEN 0 ELSE CAST(1 AS bigint) END, l.root
    FROM operations AS o LEFT JOIN ledger_passed AS l ON l.op_seq = o.seq WHERE o.id = $1";

impl From<RootRow> for LedgerRoot {
    fn from(row: RootRow) -> Self {
        Self { number: row.number, signed: row.signed }
    }
}

#[async_trait]
impl LedgerRoots for Store {
    async fn ledger_roots(&self, request: PageRequest) -> Result<Page<LedgerRoot>, Unavailable> {
        self.read_transaction(move |db| Box::pin(list(db, request))).await
    }

    async fn inclusion(
        &self,
        operation: OperationId,
    ) -> Result<Option<InclusionProof>, Unavailable> {
        self.report_transaction(move |db| Box::pin(inclusion(db, operation))).await
    }
}

async fn list(
    db: &ReadTransaction,
    PageRequest { order, after, limit }: PageRequest,
) -> Result<Page<LedgerRoot>, ReadError> {
    let limit = limit.clamp(1, PAGE_MAX);
    let (order, begin) = match order {
        Order::Newest => ("seq < $1 ORDER BY seq DESC", i64::MAX),
        Order::Oldest => ("seq > $1 ORDER BY seq", i64::MIN),
    };
    let after = after.map_or(begin, |PageCursor(number)| number);
    let sql = format!("{ROOT} WHERE {order} LIMIT $2");
    let found = db.query(&sql, [after.into(), i64::from(limit).into()]).await?;
    let rows: Vec<RootRow> =
        found.iter().map(from_row).collect::<Result<_, _>>().map_err(ReadError::Row)?;
    let places: Vec<_> = rows.iter().map(|row| PageCursor(row.number)).collect();
    // A full page may be the last one: the next is empty then.
    let is_full = u32::try_from(rows.len()).is_ok_and(|count| count == limit);
    let next = places.last().copied().filter(|_last| is_full);
    Ok(Page { rows: rows.into_iter().map(LedgerRoot::from).collect(), next, places })
}

async fn inclusion(
    db: &ReadTransaction,
    operation: OperationId,
) -> Result<Option<InclusionProof>, ReadError> {
    let rows = db.query(PLACE, [blob(operation.to_bytes())]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (number, was_passed, late) = place(row).map_err(ReadError::Row)?;
    let root = match (was_passed, late) {
        (0, _) => {
            let sql = format!("{ROOT} WHERE operations_to > $1 ORDER BY seq LIMIT 1");
            one(&db.query(&sql, [number.into()]).await?)?
        }
        (_, Some(root)) => first_in(db, root, root).await?,
        (_, None) => None,
    };
    let Some(root) = root else { return Ok(None) };
    let before = root.number.saturating_sub(1);
    let before = first_in(db, before, before).await?;
    let leaves = leaves(db, &LeafRows::of(&root, before.as_ref())).await?;
    let index = leaves.operations.iter().position(|it| *it == operation);
    let proof = index.and_then(|index| Some((index, tree::proof(&leaves.hashes, index)?)));
    Ok(proof.map(|(index, path)| InclusionProof {
        root: root.into(),
        operation,
        // No tree has more leaves than memory.
        index: u64::try_from(index).unwrap_or(u64::MAX),
        path: path.into_iter().map(TreeHash::to_bytes).collect(),
    }))
}

/// Number of an operation, 1 if it was passed, and the root that has it then.
fn place(row: &QueryResult) -> Result<(i64, i64, Option<i64>), BadRow> {
    let mut cells = Cells::new(row);
    Ok((cells.int()?, cells.int()?, cells.opt_int()?))
}
