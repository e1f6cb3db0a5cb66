//! Postings, a page by their numbers: their amounts, and the wallets and operations that they name.
//! What they come to is compared with the wallets, and refunds with the charges, elsewhere.

use holdfast_domain::PostingId;
use holdfast_domain::ledger::{Posting, PostingKind};
use sea_orm::QueryResult;

use super::{PageBounds, id, number, report_gap};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{self, BadRow, Cells};
use crate::verify::{Subject, Verification};

/// Postings read at once.
const PAGE: usize = 1_000;

/// Place of the posting's id among the columns.
const ID: usize = 3;

/// A posting, and whether the rows that it names are there.
struct AuditedPosting {
    has_wallet: bool,
    has_operation: bool,
    posting: Posting,
}

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { after, until, .. }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let sql = format!(
        "SELECT t.seq, w.seq, o.seq, {} FROM postings AS t
         LEFT JOIN wallets AS w ON w.id = t.wallet_id
         LEFT JOIN operations AS o ON o.id = t.operation_id
         WHERE t.seq > $1 AND t.seq <= $2 ORDER BY t.seq LIMIT $3",
        rows::POSTING
    );
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let page = db.query(&sql, [after.into(), until.into(), limit.into()]).await?;
    let mut before = after;
    for row in &page {
        let seq = number(row)?;
        report_gap(db, found, "postings", [before, seq]);
        before = seq;
        match audited(row) {
            Ok(audited) => audited.check(found),
            Err(error) => {
                found.unreadable(Subject::Posting(id(row, ID, PostingId::from_bytes)?), &error);
            }
        }
    }
    Ok((page.len() == PAGE).then_some(before))
}

fn audited(row: &QueryResult) -> Result<AuditedPosting, BadRow> {
    let mut cells = Cells::new(row);
    cells.skip(1);
    let (has_wallet, has_operation) = (cells.opt_int()?.is_some(), cells.opt_int()?.is_some());
    Ok(AuditedPosting { has_wallet, has_operation, posting: rows::posting(&mut cells)? })
}

impl AuditedPosting {
    fn check(&self, found: &mut Verification) {
        let Posting { id, kind, amount, .. } = &self.posting;
        found.transfers += 1;
        if !self.has_wallet {
            found.report(Subject::Posting(*id), "its wallet does not exist");
        }
        if !kind.allows(*amount) {
            let sentence = format!("it is a {} of {} micros", kind.label(), amount.get());
            found.report(Subject::Posting(*id), sentence);
        }
        if let PostingKind::Refund(operation) = kind
            && !self.has_operation
        {
            found.report(Subject::Operation(*operation), "it was refunded and does not exist");
        }
    }
}
