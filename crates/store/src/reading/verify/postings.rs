//! Postings, a page by their numbers: their amounts, and the wallets and operations that they name.
//! What they come to is compared with the wallets, and refunds with the charges, elsewhere.
//!
//! A posting that came from administration has a row of the trail. It did so where it has details, which
//! nobody else writes, and where administration made its wallet: a service of its own that posts through
//! the ports of the domain has wallets of its own, too.

use holdfast_domain::PostingId;
use holdfast_domain::account::UseCase;
use holdfast_domain::ledger::{Posting, PostingKind};
use sea_orm::QueryResult;

use super::{PageBounds, has_row, id, number, report_gap};
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
    untold: Option<Origin>,
    posting: Posting,
}

/// Sign that a posting came from administration.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Details,
    Wallet,
}

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { after, until, .. }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let made = has_row(
        "audit AS a WHERE a.thing_id = t.id AND a.thing_kind = 'posting'
         AND a.changes LIKE '%\"amount_micros\"%'",
    );
    let create = UseCase::WalletCreate.label();
    let of_administration =
        has_row(&format!("audit AS a WHERE a.thing_id = t.wallet_id AND a.use_case = '{create}'"));
    let sql = format!(
        "SELECT t.seq, w.seq, o.seq, {}, CASE WHEN {made} THEN 0
             WHEN d.posting_id IS NOT NULL THEN CAST(1 AS bigint)
             WHEN {of_administration} THEN 2 ELSE 0 END
         FROM postings AS t
         LEFT JOIN wallets AS w ON w.id = t.wallet_id
         LEFT JOIN operations AS o ON o.id = t.operation_id
         LEFT JOIN posting_details AS d ON d.posting_id = t.id
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
    let posting = rows::posting(&mut cells)?;
    let untold = match cells.int()? {
        1 => Some(Origin::Details),
        2 => Some(Origin::Wallet),
        _ => None,
    };
    Ok(AuditedPosting { has_wallet, has_operation, untold, posting })
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
        if let Some(origin) = self.untold {
            let sign = match origin {
                Origin::Details => "it has details as administration writes them",
                Origin::Wallet => "administration made its wallet",
            };
            let sentence = format!("no row of the trail made it, and {sign}");
            found.report(Subject::Posting(*id), sentence);
        }
        if let PostingKind::Refund(operation) = kind
            && !self.has_operation
        {
            found.report(Subject::Operation(*operation), "it was refunded and does not exist");
        }
    }
}
