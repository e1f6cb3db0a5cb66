//! Signing of roots: once a UTC day, by any of the nodes, over all that is older than the day and settled.
//!
//! A root covers a bounded count of operations, so that neither its signing nor a proof has more than their hashes in
//! memory. A longer day, or the history of a ledger that had no roots, has several.
//!
//! Rows are read page by page, each page in a transaction of its own: an ended operation never changes, so a page is
//! true whenever it is read. One transaction writes the root and notes the operations that it passed; it has no effect
//! if another node has signed that root meanwhile.

use std::error::Error;

use holdfast_domain::Timestamp;
use holdfast_domain::ports::Unavailable;
use holdfast_receipts::DocumentKind;
use holdfast_receipts::canonical::NotCanonical;
use holdfast_receipts::key::{PublicKey, SignError, Signer};
use holdfast_receipts::root::{self, RootPlace};
use sea_orm::{QueryResult, Statement};
use serde_json::Value;

use super::{LeafPart, LeafRows, Leaves, RootRow, last, page, starts};
use crate::error::unavailable;
use crate::reading::page::{first_at, numbers};
use crate::reading::usage::SETTLED;
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::entity::{operation, posting};
use crate::rows::{BadRow, Cells};
use crate::schema::{Dialect, blob};
use crate::store::Store;
use crate::transaction::exchange::Exchange;

const DAY: i64 = 86_400_000_000;
/// Most operations that a root covers: 48 MB of hashes and ids.
const OPERATIONS_MAX: i64 = 1_000_000;
/// Lock of a signature: a second node that signs at once reads the root of the first.
const ALONE: &str = "LOCK TABLE ledger_roots IN SHARE ROW EXCLUSIVE MODE";
const COUNT: &str = "SELECT coalesce(max(seq), 0) FROM ledger_roots";
const SIGN: &str = "INSERT INTO ledger_roots (seq, ends_at, operations_to, postings_to, signed)
    VALUES ($1, $2, $3, $4, $5)";
/// `{rows}` stands for at most [`ROWS_AT_ONCE`] places: an outage leaves many operations without an end.
const PASS: &str = "INSERT INTO ledger_passed (op_seq) VALUES {rows} ON CONFLICT DO NOTHING";
const INCLUDE: &str =
    "UPDATE ledger_passed SET root = $1 WHERE root IS NULL AND op_seq IN ({rows})";
const ROWS_AT_ONCE: usize = 500;
const CREATED_AT: &str = "SELECT created_at FROM operations WHERE seq >= $1 ORDER BY seq LIMIT 1";
const KEY: &str = "INSERT INTO receipt_keys (public_key, created_at) VALUES ($1, $2)
    ON CONFLICT DO NOTHING";
const KEYS: &str = "SELECT public_key FROM receipt_keys ORDER BY seq DESC";

/// A root that was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignRootError {
    /// The database cannot be read or written.
    #[error("the rows of the root were not read or written")]
    Unavailable(#[source] Unavailable),
    /// Rows have no leaf, so many and the first of them: the audit of the ledger names them.
    #[error("{0} rows cannot be read, and no root is signed over them")]
    Unreadable(usize, #[source] Box<dyn Error + Send + Sync>),
    /// The root before it is no document: the audit of the ledger reports it.
    #[error("the root before it cannot be read")]
    Previous(#[source] serde_json::Error),
    /// The root before it has no canonical form.
    #[error("the root before it has no canonical form")]
    Form(#[source] NotCanonical),
    /// The signature was not made.
    #[error("the root was not signed")]
    Sign(#[source] SignError),
}

/// Bounds of the next root.
#[derive(Debug, Clone, Copy)]
pub struct RootBounds {
    /// Moment before which its rows were created; `None` for the beginning of today.
    pub until: Option<Timestamp>,
    /// Most operations that it covers.
    pub operations: i64,
}

impl RootBounds {
    /// All days before today.
    const DAYS: Self = Self { until: None, operations: OPERATIONS_MAX };
}

/// Root that is about to be signed.
#[derive(Debug)]
struct RootDraft {
    before: Option<RootRow>,
    rows: LeafRows,
    ends_at: Timestamp,
    now: Timestamp,
}

impl Store {
    /// Signs the next root of the days before today, unless all are signed or it is too early. Any number of nodes may
    /// do so at once. True if it was signed here: another one may follow.
    ///
    /// # Errors
    ///
    /// [`SignRootError::Unavailable`] if the database does not work, [`SignRootError::Unreadable`] and
    /// [`SignRootError::Previous`] for a damaged row or root, [`SignRootError::Form`] and [`SignRootError::Sign`] if a
    /// document cannot be signed. No root is written; the next call tries again.
    pub async fn sign_root(&self, signer: &Signer) -> Result<bool, SignRootError> {
        self.sign_root_within(signer, RootBounds::DAYS).await
    }

    /// The same within other bounds. For tests, which have no day to wait.
    ///
    /// # Errors
    ///
    /// As [`Self::sign_root`].
    #[doc(hidden)]
    pub async fn sign_root_within(
        &self,
        signer: &Signer,
        bounds: RootBounds,
    ) -> Result<bool, SignRootError> {
        let failed = SignRootError::Unavailable;
        // A transaction that is open for minutes may yet add a row below the numbers.
        if self.dialect() == Dialect::Postgres && self.has_long_writes().await.map_err(failed)? {
            tracing::warn!(
                "no root is signed while a transaction with writes stays open in the database"
            );
            return Ok(false);
        }
        let draft = self.summing_transaction(move |db| Box::pin(draft(db, bounds))).await;
        let Some(draft) = draft.map_err(failed)? else { return Ok(false) };
        let leaves = self.leaves_of(&draft.rows).await.map_err(failed)?;
        if let Some((count, first)) = leaves.unreadable {
            return Err(SignRootError::Unreadable(count, first.into()));
        }
        let number = draft.before.as_ref().map_or(1, |row| row.number.saturating_add(1));
        let place = RootPlace {
            number,
            from: draft.before.as_ref().map(|row| row.ends_at),
            to: draft.ends_at,
            previous: draft.before.as_ref().map(previous).transpose()?,
            signed_at: draft.now,
        };
        let document = place.document(&leaves.hashes);
        let hash = root::hash(&document).map_err(SignRootError::Form)?;
        let signed = signer.sign(DocumentKind::Root, document);
        let signed = signed.map_err(SignRootError::Sign)?.to_string();
        let is_written = self.write_root(number, draft, (leaves, signed)).await.map_err(failed)?;
        if is_written {
            // Evidence outside of the database: rows that are changed and signed again have another hash.
            tracing::info!(root.number = number, root.hash = %hash, "a root of the ledger was signed");
        }
        Ok(is_written)
    }

    async fn leaves_of(&self, rows: &LeafRows) -> Result<Leaves, Unavailable> {
        let mut leaves = Leaves::default();
        for part in LeafPart::ALL {
            let mut after = Some(i64::MIN);
            while let Some(last) = after {
                let rows = rows.clone();
                let read = self.summing_transaction(move |db| {
                    Box::pin(async move {
                        let after = page(db, &rows, (part, last), &mut leaves).await?;
                        Ok((after, leaves))
                    })
                });
                (after, leaves) = read.await?;
            }
        }
        Ok(leaves)
    }

    async fn write_root(
        &self,
        number: i64,
        draft: RootDraft,
        (leaves, signed): (Leaves, String),
    ) -> Result<bool, Unavailable> {
        let dialect = self.dialect();
        let lock = match dialect {
            // A transaction that writes has the whole file.
            Dialect::Sqlite => None,
            Dialect::Postgres => Some(dialect.statement(ALONE, [])),
        };
        let judge = move |last: Vec<i64>, _now| {
            if last != [number.saturating_sub(1)] {
                return (Vec::new(), false);
            }
            let RootDraft { rows, ends_at, .. } = draft;
            let binds = [
                number.into(),
                ends_at.as_micros().into(),
                rows.operations.end.into(),
                rows.postings.end.into(),
                signed.into(),
            ];
            let pass = leaves.open.chunks(ROWS_AT_ONCE).map(|rows| {
                let places: Vec<String> = (1..=rows.len()).map(|it| format!("(${it})")).collect();
                let sql = PASS.replace("{rows}", &places.join(", "));
                let rows = rows.iter().map(|it| (*it).into());
                Statement::from_sql_and_values(dialect.backend(), sql, rows)
            });
            let include = leaves.late.chunks(ROWS_AT_ONCE).map(|rows| {
                let places: Vec<String> =
                    rows.iter().zip(2..).map(|(_, it)| format!("${it}")).collect();
                let sql = INCLUDE.replace("{rows}", &places.join(", "));
                let binds =
                    std::iter::once(number.into()).chain(rows.iter().map(|it| (*it).into()));
                Statement::from_sql_and_values(dialect.backend(), sql, binds)
            });
            let sign = std::iter::once(dialect.statement(SIGN, binds));
            (sign.chain(pass).chain(include).collect(), true)
        };
        let exchange =
            Exchange::new(move |_now| dialect.statement(COUNT, []), |cells| cells.int(), judge);
        self.exchange(exchange.locked(lock)).await
    }

    /// Keeps the public keys of receipts, and returns all that were ever kept, the latest first.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read or written.
    pub async fn keep_receipt_keys(
        &self,
        keys: Vec<PublicKey>,
    ) -> Result<Vec<PublicKey>, Unavailable> {
        let dialect = self.dialect();
        self.run(move |now| {
            let key = |key: PublicKey| {
                dialect.statement(KEY, [blob(key.to_bytes()), now.as_micros().into()])
            };
            keys.into_iter().map(key).collect::<Vec<Statement>>()
        })
        .await?;
        kept(&self.query(KEYS, []).await?).map_err(unavailable)
    }
}

/// Public keys that are kept.
pub(crate) async fn keys(db: &ReadTransaction) -> Result<Vec<PublicKey>, ReadError> {
    kept(&db.query(KEYS, []).await?).map_err(ReadError::Row)
}

fn kept(rows: &[QueryResult]) -> Result<Vec<PublicKey>, BadRow> {
    rows.iter().map(|row| Cells::new(row).bytes().map(PublicKey::from_bytes)).collect()
}

fn previous(row: &RootRow) -> Result<holdfast_receipts::tree::TreeHash, SignRootError> {
    let signed: Value = serde_json::from_str(&row.signed).map_err(SignRootError::Previous)?;
    root::hash(signed.get(DocumentKind::Root.member()).unwrap_or(&Value::Null))
        .map_err(SignRootError::Form)
}

/// The next root; `None` if it is signed, or too early.
async fn draft(db: &ReadTransaction, bounds: RootBounds) -> Result<Option<RootDraft>, ReadError> {
    let (before, now) = (last(db).await?, db.now().await?);
    let Some(ends_at) = bounds.until.or_else(|| end_of_yesterday(now)) else { return Ok(None) };
    if before.as_ref().is_some_and(|row| row.ends_at >= ends_at) {
        return Ok(None);
    }
    let [operations, postings] = starts(before.as_ref());
    let all = numbers::<operation::Entity>(db, operation::Column::Seq).await?;
    let columns = [operation::Column::Seq, operation::Column::CreatedAt];
    let range = operations..all.end;
    let operations_to =
        first_at::<operation::Entity>(db, columns, ends_at.as_micros(), range).await?;
    let bound = operations.saturating_add(bounds.operations);
    let (operations_to, ends_at) = match operations_to <= bound {
        true => (operations_to, ends_at),
        false => (bound, created_at(db, bound).await?.unwrap_or(ends_at).min(ends_at)),
    };
    let moment = ends_at.as_micros();
    let all = numbers::<posting::Entity>(db, posting::Column::Seq).await?;
    let columns = [posting::Column::Seq, posting::Column::CreatedAt];
    let postings_to = first_at::<posting::Entity>(db, columns, moment, postings..all.end).await?;
    let rows = LeafRows {
        root: None,
        operations: operations..operations_to,
        postings: postings..postings_to,
    };
    Ok(Some(RootDraft { before, rows, ends_at, now }))
}

/// Moment at which the first operation from this number on was created.
async fn created_at(db: &ReadTransaction, number: i64) -> Result<Option<Timestamp>, ReadError> {
    let rows = db.query(CREATED_AT, [number.into()]).await?;
    let moment = rows.first().map(|row| Cells::new(row).timestamp());
    moment.transpose().map_err(ReadError::Row)
}

/// Beginning of the day, once every row from before it is committed.
fn end_of_yesterday(now: Timestamp) -> Option<Timestamp> {
    let today = now.as_micros().div_euclid(DAY).saturating_mul(DAY);
    let settled = i64::try_from(SETTLED.as_micros()).unwrap_or(i64::MAX);
    (now.as_micros().saturating_sub(today) >= settled).then(|| Timestamp::from_micros(today))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_once_its_rows_are_committed() {
        let at = |micros: i64| end_of_yesterday(Timestamp::from_micros(20_000 * DAY + micros));
        assert_eq!(at(0), None);
        assert_eq!(at(599_999_999), None);
        assert_eq!(at(600_000_000), Some(Timestamp::from_micros(20_000 * DAY)));
        assert_eq!(at(DAY - 1), Some(Timestamp::from_micros(20_000 * DAY)));
    }
}
