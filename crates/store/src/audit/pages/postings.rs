//! Postings, a page by their numbers: their amounts, and the wallets and operations that they name. Their sums are
//! compared with the wallets, and refunds with the charges, in other parts.
//!
//! A posting that came from administration has a row of the audit log. It came from there if it has details, which
//! no other writer records, or if administration created its wallet: a service of its own that posts through the
//! ports of the domain has wallets of its own, too.
//!
//! Earlier versions booked one payment more than once, under spellings of its source or its id. Such deposits stay,
//! and are noted: only people can decide which of them is wrong.

use holdfast_domain::PostingId;
use holdfast_domain::admin::{DepositReference, UseCase};
use holdfast_domain::ledger::{Posting, PostingKind};
use sea_orm::QueryResult;

use super::{PageBounds, has_row, id, number, report_gap};
use crate::audit::verify::{Subject, Verification};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::entity::posting_details::DetailsRow;
use crate::rows::{self, BadRow, Cells, FromCells, Row};
use crate::schema::blob;

/// Postings read at once.
const PAGE: usize = 1_000;

/// Place of the posting's id among the columns.
const ID: usize = 3;

/// A posting, and whether the rows that it names are there.
struct AuditedPosting {
    has_wallet: bool,
    has_operation: bool,
    unlogged: Option<PostingOrigin>,
    posting: Posting,
    reference: Option<DepositReference>,
    /// The first deposit before it whose reference differs in the case of its source.
    respelled: Option<PostingId>,
}

/// Sign that a posting came from administration.
#[derive(Debug, Clone, Copy)]
enum PostingOrigin {
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
    // Looked up by the index of external references, a posting at a time.
    let lower = |column: &str| db.dialect().ascii_lower(column);
    let respelled = format!(
        "CASE WHEN d.external_reference IS NOT NULL THEN
             (SELECT e.id FROM posting_details AS f JOIN postings AS e ON e.id = f.posting_id
              WHERE f.external_reference = d.external_reference AND {} = {} AND e.seq < t.seq
              ORDER BY e.seq LIMIT 1) END",
        lower("f.source"),
        lower("d.source"),
    );
    let sql = format!(
        "SELECT t.seq, w.seq, o.seq, {}, CASE WHEN {made} THEN 0
             WHEN d.posting_id IS NOT NULL THEN CAST(1 AS bigint)
             WHEN {of_administration} THEN 2 ELSE 0 END,
             d.source, d.external_reference, {respelled}
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
            Ok(audited) => {
                audited.check(found);
                let booked = match audited.respelled {
                    Some(first) => Some(first),
                    None => look_alike(db, &audited).await?,
                };
                if let Some(booked) = booked {
                    let sentence = format!("its payment is booked as posting {booked} as well");
                    found.note(Subject::Posting(audited.posting.id), sentence);
                }
            }
            Err(error) => {
                found.unreadable(Subject::Posting(id(row, ID, PostingId::from_bytes)?), &error);
            }
        }
    }
    Ok((page.len() == PAGE).then_some(before))
}

/// Another deposit with the same reference in Unicode's normal form, of a posting whose own reference is not ASCII.
async fn look_alike(
    db: &ReadTransaction,
    AuditedPosting { posting, reference, .. }: &AuditedPosting,
) -> Result<Option<PostingId>, ReadError> {
    let Some(reference) = reference.as_ref().filter(|reference| !reference.is_ascii()) else {
        return Ok(None);
    };
    let [_sources, references] = reference.spellings();
    for spelling in references {
        let sql = format!(
            "SELECT {} FROM posting_details AS d
             WHERE d.external_reference = $1 AND d.posting_id <> $2",
            DetailsRow::COLUMNS
        );
        let binds = [spelling.into(), blob(posting.id.to_bytes())];
        for row in db.query(&sql, binds).await? {
            // One that cannot be read is a mismatch of its own page.
            let Ok((id, details)) = DetailsRow::from_cells(&mut Cells::new(&row)) else { continue };
            if details.reference.as_ref() == Some(reference) {
                return Ok(Some(id));
            }
        }
    }
    Ok(None)
}

fn audited(row: &QueryResult) -> Result<AuditedPosting, BadRow> {
    let mut cells = Cells::new(row);
    cells.skip(1);
    let (has_wallet, has_operation) = (cells.opt_int()?.is_some(), cells.opt_int()?.is_some());
    let posting = rows::posting(&mut cells)?;
    let unlogged = match cells.int()? {
        1 => Some(PostingOrigin::Details),
        2 => Some(PostingOrigin::Wallet),
        _ => None,
    };
    let (source, id) = (cells.opt_text()?, cells.opt_text()?);
    let reference = source.zip(id).map(|(source, id)| DepositReference::booked(source, id));
    let respelled = cells.opt_bytes()?.map(PostingId::from_bytes);
    Ok(AuditedPosting { has_wallet, has_operation, unlogged, posting, reference, respelled })
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
        if let Some(origin) = self.unlogged {
            let sign = match origin {
                PostingOrigin::Details => "it has details as administration writes them",
                PostingOrigin::Wallet => "administration made its wallet",
            };
            let sentence = format!("no row of the audit log made it, and {sign}");
            found.report(Subject::Posting(*id), sentence);
        }
        if let PostingKind::Refund(operation) = kind
            && !self.has_operation
        {
            found.report(Subject::Operation(*operation), "it was refunded and does not exist");
        }
    }
}
