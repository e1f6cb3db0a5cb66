//! Deposits, refunds and adjustments as rows.

use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::{OperationId, PostingId, WalletId};

use super::{BadRow, Cells};

/// The columns that [`posting`] reads, of `postings AS t`.
pub(crate) const POSTING: &str = "t.id, t.wallet_id, t.amount, t.kind, t.operation_id, t.reason";

/// Reads [`POSTING`].
pub(crate) fn posting(cells: &mut Cells<'_>) -> Result<Posting, BadRow> {
    Ok(Posting {
        id: PostingId::from_bytes(cells.bytes()?),
        wallet: WalletId::from_bytes(cells.bytes()?),
        amount: cells.micros()?,
        kind: posting_kind(cells)?,
    })
}

/// Reads the last three of [`POSTING`].
pub(crate) fn posting_kind(cells: &mut Cells<'_>) -> Result<PostingKind, BadRow> {
    let kind = cells.text()?;
    let operation = cells.opt_bytes()?.map(OperationId::from_bytes);
    let reason = cells.opt_text()?;
    let at = cells.next;
    match (kind.as_str(), operation, reason) {
        ("deposit", None, None) => Some(PostingKind::Deposit),
        ("refund", Some(operation), None) => Some(PostingKind::Refund(operation)),
        ("adjustment", None, Some(reason)) => Some(PostingKind::Adjustment(reason)),
        // Any other combination was written by another program: the table refuses it, too.
        _ => None,
    }
    .ok_or(BadRow::Value(at))
}
