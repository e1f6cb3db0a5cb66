//! The audit log of administration, a page by its numbers: no row is missing, each follows the one before, and the
//! latest checksum is that of the last row.
//!
//! A MAC is checked if the server secret that made it is known. A thief of that secret can write another log: only
//! a checksum that was printed before distinguishes the two, and people compare it.
//!
//! Each resource of the audit log exists. Each posting is as it was made, with its details: a balance that was
//! changed along with its posting adds up, and is found here. The audit log and the posting are written in one
//! transaction.
//!
//! The request key of each row is bound to its request, for ever: otherwise a repetition of the request would run
//! once more. A key that is bound to a request without a change has no row, and cannot be judged.

use std::collections::BTreeMap;

use holdfast_domain::admin::audit::{TrailHead, TrailRow, canonical_mac};
use holdfast_domain::admin::{
    CanonicalDigest, PostingDetails, RequestBinding, RequestRecord, ResourceId, UseCase,
};
use holdfast_domain::ledger::Posting;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{PostingId, Timestamp};
use sea_orm::{QueryResult, Value};

use super::{PageBounds, has_row, number};
use crate::audit::verify::{Subject, Verification};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::entity::posting_details::{self, DetailsRow};
use crate::rows::{self, BadRow, Cells, FromCells, POSTING, Row};
use crate::transaction::command::reads::HEAD;
use crate::transaction::command::trail::{self, LAST};

/// Rows read at once.
const PAGE: usize = 1_000;

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { options, after, until }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let mut head = head_at(db, after).await?;
    let sql = format!(
        "SELECT {}, {} FROM audit AS a WHERE a.seq > $1 AND a.seq <= $2 ORDER BY a.seq LIMIT $3",
        TrailRow::COLUMNS,
        bound_request()
    );
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let page = db.query(&sql, [after.into(), until.into(), limit.into()]).await?;
    let postings = postings(db, after, page.last()).await?;
    report_missing(db, after, page.last(), found).await?;
    for row in &page {
        let mut cells = Cells::new(row);
        let row = match TrailRow::from_cells(&mut cells) {
            Ok(row) => row,
            Err(error) => {
                found.unreadable(Subject::Ledger, &error);
                // The rows after it cannot be compared with what cannot be read: numbers go on.
                head = head_of(&mut Cells::new(row)).map_err(ReadError::Row)?;
                continue;
            }
        };
        let next = head.seq.saturating_add(1);
        if row.seq != next {
            found.missing("rows of the audit log", signed(next), signed(row.seq).saturating_sub(1));
        } else if !options.secrets.is_empty() {
            match options.secrets.iter().find(|secret| secret.id() == row.server_secret) {
                Some(secret) if row.follows(head, &secret.trail_key()) => {}
                Some(_) => found.report(
                    Subject::Ledger,
                    format!("row {} of its audit log was not written by a gateway", row.seq),
                ),
                None => found.report(
                    Subject::Ledger,
                    format!(
                        "row {} of its audit log was written with the server secret {}, which is not \
                         configured",
                        row.seq, row.server_secret
                    ),
                ),
            }
        }
        head = row.head();
        check_posting(&row, &postings, found);
        check_request(&row, &request(&mut cells), &options.secrets, found);
        if options.since.is_some_and(|since| since.seq == head.seq && since != head) {
            let sentence = format!("row {} of its audit log is another one than it was", head.seq);
            found.report(Subject::Ledger, sentence);
        }
    }
    if page.len() == PAGE {
        return Ok(Some(signed(head.seq)));
    }
    if let Some(since) = options.since.filter(|since| since.seq > head.seq) {
        let sentence = format!("its audit log ends at row {}, before row {}", head.seq, since.seq);
        found.report(Subject::Ledger, sentence);
    }
    check_head(db, found).await?;
    Ok(None)
}

/// A posting with all details of its row of the audit log.
struct MadePosting {
    posting: Posting,
    details: PostingDetails,
    created_at: Timestamp,
}

/// The postings that rows of a page are about, those that can be read.
async fn postings(
    db: &ReadTransaction,
    after: i64,
    last: Option<&QueryResult>,
) -> Result<BTreeMap<PostingId, MadePosting>, ReadError> {
    let Some(last) = last else { return Ok(BTreeMap::new()) };
    let sql = format!(
        "SELECT {POSTING}, {}, t.created_at
         FROM audit AS a JOIN postings AS t ON t.id = a.thing_id
         LEFT JOIN posting_details AS d ON d.posting_id = t.id
         WHERE a.seq > $1 AND a.seq <= $2 AND a.thing_kind = 'posting'",
        DetailsRow::COLUMNS
    );
    let rows = db.query(&sql, [after.into(), number(last)?.into()]).await?;
    // One that cannot be read is a mismatch of the postings, and here as if it were not there.
    let readable = rows.iter().filter_map(|row| made_posting(&mut Cells::new(row)).ok());
    Ok(readable.map(|made| (made.posting.id, made)).collect())
}

fn made_posting(cells: &mut Cells<'_>) -> Result<MadePosting, BadRow> {
    let posting = rows::posting(cells)?;
    // A row that is gone had no details, or the audit log still has them.
    let details = posting_details::joined(cells)?.unwrap_or_default();
    Ok(MadePosting { posting, details, created_at: cells.timestamp()? })
}

/// Tables of resources that are never deleted, by their kinds in the audit log.
const THINGS: [(&str, &str); 6] = [
    ("wallet", "wallets"),
    ("api_key", "api_keys"),
    ("operation", "operations"),
    ("admin_key", "admin_keys"),
    ("person", "people"),
    ("webhook", "webhooks"),
];

/// Reports resources that rows of a page name, and that do not exist.
async fn report_missing(
    db: &ReadTransaction,
    after: i64,
    last: Option<&QueryResult>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let Some(last) = last else { return Ok(()) };
    let is_missing = THINGS.map(|(kind, table)| {
        let is_there = has_row(&format!("{table} AS t WHERE t.id = a.thing_id"));
        format!("WHEN '{kind}' THEN NOT ({is_there})")
    });
    let sql = format!(
        "SELECT min(a.seq), a.thing_kind, a.thing_id FROM audit AS a
         WHERE a.seq > $1 AND a.seq <= $2 AND CASE a.thing_kind {} ELSE 1 = 0 END
         GROUP BY a.thing_kind, a.thing_id",
        is_missing.join(" ")
    );
    for row in db.query(&sql, [after.into(), number(last)?.into()]).await? {
        let mut cells = Cells::new(&row);
        let mut read = || Ok::<_, BadRow>((cells.int()?, cells.text()?, cells.bytes()?));
        let (seq, kind, id) = read().map_err(ReadError::Row)?;
        if let Some(subject) = ResourceId::from_row(&kind, id).and_then(subject_of) {
            let sentence = format!("row {seq} of the audit log names it, and it does not exist");
            found.report(subject, sentence);
        }
    }
    Ok(())
}

pub(super) const fn subject_of(thing: ResourceId) -> Option<Subject> {
    match thing {
        ResourceId::Wallet(id) => Some(Subject::Wallet(id)),
        ResourceId::ApiKey(id) => Some(Subject::ApiKey(id)),
        ResourceId::Operation(id) => Some(Subject::Operation(id)),
        ResourceId::AdminKey(id) => Some(Subject::AdminKey(id)),
        ResourceId::Person(id) => Some(Subject::Person(id)),
        ResourceId::Webhook(id) => Some(Subject::Webhook(id)),
        // Postings have a rule of their own, and jobs go when they are old.
        ResourceId::Posting(_) | ResourceId::Job(_) | ResourceId::Unknown => None,
    }
}

/// Compares a posting with the row of the audit log about its making.
fn check_posting(
    row: &TrailRow,
    postings: &BTreeMap<PostingId, MadePosting>,
    found: &mut Verification,
) {
    let ResourceId::Posting(id) = row.thing else { return };
    // A row without it records a request for a posting that existed already.
    let is_new = row.changes.iter().any(|change| change.field == "amount_micros");
    if !is_new {
        return;
    }
    let subject = Subject::Posting(id);
    let Some(MadePosting { posting, details, created_at }) = postings.get(&id) else {
        let sentence = format!("row {} of the audit log made it, and it does not exist", row.seq);
        return found.report(subject, sentence);
    };
    if *created_at != row.at {
        let (at, logged) = (created_at.as_micros(), row.at.as_micros());
        let sentence =
            format!("it was made at {at}, row {} of the audit log has at {logged}", row.seq);
        found.report(subject, sentence);
    }
    for (field, value) in posting.trail_fields().into_iter().chain(details.trail_fields(posting)) {
        let change = row.changes.iter().find(|change| change.field == field);
        let logged = change.and_then(|change| change.after.as_deref());
        if logged != value.as_deref() {
            let [value, logged] = [value.as_deref(), logged].map(|it| it.unwrap_or("none"));
            let seq = row.seq;
            let sentence = format!(
                "its {field} is {value}, it was made with {logged} by row {seq} of the audit log"
            );
            found.report(subject, sentence);
        }
    }
}

/// Columns of the request that the key of a row is bound to. Scalar sub-queries, as in [`has_row`]: each row is
/// looked up, whatever the server estimates of a join.
fn bound_request() -> String {
    ["digest", "things", "created_at", "canonical_digest"]
        .map(|column| {
            format!(
                "(SELECT r.{column} FROM admin_requests AS r
                  WHERE r.actor = a.actor AND r.request_key = a.request_key)"
            )
        })
        .join(", ")
}

/// Request that a key is bound to, and the MAC of its canonical digest, if it has one.
type BoundRequest = (RequestRecord, Option<[u8; 32]>);

/// Reads a [`bound_request`]; none if the key is bound to none.
fn request(cells: &mut Cells<'_>) -> Result<Option<BoundRequest>, BadRow> {
    let Some(digest) = cells.opt_bytes()? else { return Ok(None) };
    let (things, at) = (trail::things(cells)?, cells.timestamp()?);
    let (canonical, mac) = trail::canonical(cells)?.unzip();
    Ok(Some((RequestRecord { digest, canonical, things, at }, mac)))
}

/// Compares a row with the request that its key is bound to.
fn check_request(
    row: &TrailRow,
    bound: &Result<Option<BoundRequest>, BadRow>,
    secrets: &[ServerSecret],
    found: &mut Verification,
) {
    let is_of = |bound: &RequestRecord| {
        (bound.digest, bound.at) == (row.digest, row.at) && is_answered_with(row, &bound.things)
    };
    let wrong = match bound {
        Ok(Some((bound, mac))) if is_of(bound) => {
            if is_written(row, bound.canonical.zip(*mac), secrets) {
                return;
            }
            "has a canonical digest that was not written by a gateway".to_owned()
        }
        Ok(Some(_other)) => "is bound to another request".to_owned(),
        Ok(None) => "is bound no more".to_owned(),
        Err(error) => format!("is bound to what cannot be read: {error}"),
    };
    found.report(
        Subject::Ledger,
        format!("the request key of row {} of its audit log {wrong}", row.seq),
    );
}

/// True unless the canonical digest of a row's request has another MAC than the row's server secret makes.
fn is_written(
    row: &TrailRow,
    canonical: Option<(CanonicalDigest, [u8; 32])>,
    secrets: &[ServerSecret],
) -> bool {
    let Some((canonical, mac)) = canonical else { return true };
    // A secret that is not known here is reported with the row.
    let Some(secret) = secrets.iter().find(|secret| secret.id() == row.server_secret) else {
        return true;
    };
    let (key, digest) = (row.request_key, row.digest);
    let request = RequestBinding { key, digest, canonical: Some(canonical) };
    canonical_mac(row.actor, &request, canonical, &secret.trail_key()) == mac
}

/// True if these resources answer the request of a row: the resource of the row, also among those that were made
/// with it. Further changes of a request are in no answer: the keys of a wallet that is closed, and the last holder
/// of an admin key's name.
fn is_answered_with(row: &TrailRow, things: &[ResourceId]) -> bool {
    match (row.use_case, row.thing) {
        (UseCase::ApiKeyIssue, _) => things.contains(&row.thing),
        (UseCase::WalletClose, ResourceId::ApiKey(_)) => true,
        (UseCase::AdminKeyIssue, _) if row.changes.iter().all(|it| it.field != "name") => true,
        (_, _) => things == [row.thing],
    }
}

/// The row before a page, as its head.
async fn head_at(db: &ReadTransaction, after: i64) -> Result<TrailHead, ReadError> {
    let sql = "SELECT a.seq, a.mac FROM audit AS a WHERE a.seq = $1";
    Ok(first(db, sql, [after.into()]).await?.unwrap_or(TrailHead::EMPTY))
}

/// The head that a statement reads, if there is one.
async fn first<const N: usize>(
    db: &ReadTransaction,
    sql: &str,
    binds: [Value; N],
) -> Result<Option<TrailHead>, ReadError> {
    let rows = db.query(sql, binds).await?;
    let head = rows.first().map(|row| trail::head(&mut Cells::new(row)));
    head.transpose().map_err(ReadError::Row)
}

/// Compares the head with the last row, in one snapshot.
async fn check_head(db: &ReadTransaction, found: &mut Verification) -> Result<(), ReadError> {
    let head = first(db, HEAD, []).await?;
    let last = first(db, LAST, []).await?.unwrap_or(TrailHead::EMPTY);
    if head != Some(last) {
        let head = head.map_or_else(|| "missing".to_owned(), |head| head.to_string());
        found.report(
            Subject::Ledger,
            format!("the latest checksum of its audit log is {head}, its last row {last}"),
        );
    }
    Ok(())
}

/// Number and MAC of a row that cannot be read otherwise.
fn head_of(cells: &mut Cells<'_>) -> Result<TrailHead, BadRow> {
    let seq = cells.small()?;
    cells.skip(10);
    Ok(TrailHead { seq, mac: cells.bytes()? })
}

fn signed(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
