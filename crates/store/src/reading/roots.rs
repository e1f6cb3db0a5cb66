//! Roots of the ledger, and the leaves that they are of.
//!
//! ```text
//! numbers   0 ......... operations_to ......... operations_to ......... last
//!           |  root 1   |        root 2         |   not signed yet
//!           passed while it had no ending, root 1 ─▶ ledger_passed ─▶ root in which it has ended
//! ```
//!
//! A root has the operations whose numbers it covers and that had ended when it was signed, those that were passed
//! before and have ended since, and the postings whose numbers it covers. All of it follows from rows: an operation
//! that is added, missing or changed makes another root. Endings and refunds write nothing for this.
//!
//! Leaves are in the order of the numbers: late operations, operations, postings.

mod proofs;
mod signing;

use std::ops::Range;

use holdfast_domain::{OperationId, Timestamp};
use holdfast_receipts::canonical::NotCanonical;
use holdfast_receipts::charge::Charge;
use holdfast_receipts::root::posting_leaf;
use holdfast_receipts::tree::TreeHash;
use sea_orm::QueryResult;

pub(crate) use self::signing::keys;
pub use self::signing::{RootBounds, SignRootError};
use super::{ReadError, ReadTransaction, from_row};
use crate::rows::{self, BadRow, Cells, FromCells};

/// Rows that are read at once.
const PAGE: usize = 1_000;

const ROOT: &str = "SELECT seq, ends_at, operations_to, postings_to, signed FROM ledger_roots";

/// Row of a root.
#[derive(Debug, Clone)]
pub(crate) struct RootRow {
    pub(crate) number: i64,
    /// Moment before which its rows were created.
    pub(crate) ends_at: Timestamp,
    pub(crate) operations_to: i64,
    pub(crate) postings_to: i64,
    /// Signed document, as JSON.
    pub(crate) signed: String,
}

impl FromCells for RootRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self {
            number: cells.int()?,
            ends_at: cells.timestamp()?,
            operations_to: cells.int()?,
            postings_to: cells.int()?,
            signed: cells.text()?,
        })
    }
}

/// Latest root.
pub(crate) async fn last(db: &ReadTransaction) -> Result<Option<RootRow>, ReadError> {
    one(&db.query(&format!("{ROOT} ORDER BY seq DESC LIMIT 1"), []).await?)
}

/// First root of a number in this range, both ends included.
pub(crate) async fn first_in(
    db: &ReadTransaction,
    first: i64,
    last: i64,
) -> Result<Option<RootRow>, ReadError> {
    let sql = format!("{ROOT} WHERE seq >= $1 AND seq <= $2 ORDER BY seq LIMIT 1");
    one(&db.query(&sql, [first.into(), last.into()]).await?)
}

fn one(rows: &[QueryResult]) -> Result<Option<RootRow>, ReadError> {
    rows.first().map(from_row).transpose().map_err(ReadError::Row)
}

/// Rows of the leaves of a root.
#[derive(Debug, Clone)]
pub(crate) struct LeafRows {
    /// Number of the root; `None` for the next one, which is not signed yet.
    pub(crate) root: Option<i64>,
    pub(crate) operations: Range<i64>,
    pub(crate) postings: Range<i64>,
}

impl LeafRows {
    /// Rows of a root that is signed, after the one before it.
    pub(crate) fn of(root: &RootRow, before: Option<&RootRow>) -> Self {
        let [operations, postings] = starts(before);
        Self {
            root: Some(root.number),
            operations: operations..root.operations_to,
            postings: postings..root.postings_to,
        }
    }
}

/// First numbers after a root: of operations, and of postings.
pub(crate) fn starts(before: Option<&RootRow>) -> [i64; 2] {
    before.map_or([0; 2], |row| [row.operations_to, row.postings_to])
}

/// Part of the leaves, in the order of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeafPart {
    /// Operations that were passed by an earlier root, and have ended since.
    Late,
    /// Operations whose numbers the root covers.
    Operations,
    /// Postings whose numbers the root covers.
    Postings,
}

impl LeafPart {
    pub(crate) const ALL: [Self; 3] = [Self::Late, Self::Operations, Self::Postings];
}

/// Leaves of a root, as far as they were read.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    pub(crate) hashes: Vec<TreeHash>,
    /// Operations of the leaves, in the same order; postings have none.
    pub(crate) operations: Vec<OperationId>,
    /// Numbers of operations that have no final ending.
    pub(crate) open: Vec<i64>,
    /// Numbers of late operations.
    pub(crate) late: Vec<i64>,
    /// Number of rows without a leaf, and the reason of the first.
    pub(crate) unreadable: Option<(usize, NoLeaf)>,
}

/// Reads all leaves in one transaction.
pub(crate) async fn leaves(db: &ReadTransaction, rows: &LeafRows) -> Result<Leaves, ReadError> {
    let mut leaves = Leaves::default();
    for part in LeafPart::ALL {
        let mut after = Some(i64::MIN);
        while let Some(last) = after {
            after = page(db, rows, (part, last), &mut leaves).await?;
        }
    }
    Ok(leaves)
}

/// Reads a page of leaves after a number: the number of its last row, or none if it was the last page.
pub(crate) async fn page(
    db: &ReadTransaction,
    rows: &LeafRows,
    (part, after): (LeafPart, i64),
    leaves: &mut Leaves,
) -> Result<Option<i64>, ReadError> {
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let found = match (part, rows.root) {
        (LeafPart::Late, Some(root)) => {
            let filter = "JOIN ledger_passed AS l ON l.op_seq = o.seq
                WHERE l.root = $1 AND o.seq > $2 ORDER BY o.seq LIMIT $3";
            db.query(&operations(filter), [root.into(), after.into(), limit.into()]).await?
        }
        (LeafPart::Late, None) => {
            let filter = "JOIN ledger_passed AS l ON l.op_seq = o.seq
                WHERE l.root IS NULL AND o.finished_at IS NOT NULL AND o.seq > $1 ORDER BY o.seq LIMIT $2";
            db.query(&operations(filter), [after.into(), limit.into()]).await?
        }
        (LeafPart::Operations, _) => {
            let filter = "WHERE o.seq > $1 AND o.seq >= $2 AND o.seq < $3
                AND NOT EXISTS (SELECT 1 FROM ledger_passed AS l WHERE l.op_seq = o.seq)
                ORDER BY o.seq LIMIT $4";
            let Range { start, end } = rows.operations;
            let binds = [after.into(), start.into(), end.into(), limit.into()];
            db.query(&operations(filter), binds).await?
        }
        (LeafPart::Postings, _) => {
            let sql = format!(
                "SELECT t.seq, t.created_at, {} FROM postings AS t
                 WHERE t.seq > $1 AND t.seq >= $2 AND t.seq < $3 ORDER BY t.seq LIMIT $4",
                rows::POSTING
            );
            let Range { start, end } = rows.postings;
            db.query(&sql, [after.into(), start.into(), end.into(), limit.into()]).await?
        }
    };
    let mut last = None;
    for row in &found {
        let mut cells = Cells::new(row);
        let number = cells.int().map_err(ReadError::Row)?;
        last = Some(number);
        let added = match part {
            LeafPart::Late | LeafPart::Operations => leaves.add_operation(number, &mut cells, part),
            LeafPart::Postings => leaves.add_posting(&mut cells),
        };
        if let Err(no_leaf) = added {
            let (count, first) = leaves.unreadable.take().unwrap_or((0, no_leaf));
            leaves.unreadable = Some((count + 1, first));
        }
    }
    Ok(last.filter(|_| found.len() == PAGE))
}

fn operations(filter: &str) -> String {
    let prices = "LEFT JOIN prices AS p ON p.price_version = o.price_version";
    format!("SELECT o.seq, {} FROM operations AS o {prices} {filter}", rows::OPERATION)
}

/// Reason for which a row has no leaf.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLeaf {
    #[error("a row cannot be read")]
    Row(#[from] BadRow),
    #[error("a row has no canonical form")]
    Form(#[from] NotCanonical),
}

impl Leaves {
    fn add_operation(
        &mut self,
        number: i64,
        cells: &mut Cells<'_>,
        part: LeafPart,
    ) -> Result<(), NoLeaf> {
        let operation = rows::operation(cells)?;
        let Some(charge) = Charge::of(&operation) else {
            self.open.push(number);
            return Ok(());
        };
        self.hashes.push(charge.leaf()?);
        self.operations.push(operation.id);
        if part == LeafPart::Late {
            self.late.push(number);
        }
        Ok(())
    }

    fn add_posting(&mut self, cells: &mut Cells<'_>) -> Result<(), NoLeaf> {
        let created_at = cells.timestamp()?;
        let posting = rows::posting(cells)?;
        self.hashes.push(posting_leaf(&posting, created_at)?);
        Ok(())
    }
}
