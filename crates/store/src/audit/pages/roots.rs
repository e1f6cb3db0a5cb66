//! Roots of the ledger, one a page: each is computed once more from the rows, and compared with the signed one.
//!
//! A row that was changed, is missing, or was added among the rows of a root makes another root. A root that is taken
//! out is missing in the numbers, and by the hash in the next one; the latest ones can be taken out unnoticed,
//! unless they were kept elsewhere. All leaves of a root are read in one transaction.

use holdfast_domain::secret::ServerSecret;
use holdfast_receipts::DocumentKind;
use holdfast_receipts::key::Signer;
use holdfast_receipts::root;
use holdfast_receipts::tree;
use holdfast_receipts::verification::TrustedKeys;
use serde_json::Value;

use super::PageBounds;
use crate::audit::verify::{AuditOptions, Subject, Verification};
use crate::reading::roots::{LeafRows, RootRow, first_in, keys, leaves};
use crate::reading::{ReadError, ReadTransaction, read};

pub(super) async fn check(
    db: &ReadTransaction,
    PageBounds { options, after, until }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let first = after.max(0).saturating_add(1);
    let Some(row) = first_in(db, first, until).await? else { return Ok(None) };
    if row.number > first {
        found.missing("roots", first, row.number.saturating_sub(1));
    }
    let before = first_in(db, row.number.saturating_sub(1), row.number.saturating_sub(1)).await?;
    let leaves = leaves(db, &LeafRows::of(&row, before.as_ref())).await?;
    let day = root::day(row.ends_at);
    let mut report = |sentence: String| {
        found.report(Subject::Ledger, format!("its root {} of {day} {sentence}", row.number));
    };
    match signed(db, &row, &options).await? {
        Err(sentence) => report(sentence),
        Ok(document) => {
            let member = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or("");
            let made = tree::root(&leaves.hashes).to_string();
            let count = leaves.hashes.len();
            if member("root") != made || member("leaves") != count.to_string() {
                report(format!(
                    "does not fit: {count} rows make {made}, and {} rows with {} were signed",
                    member("leaves"),
                    member("root")
                ));
            }
            if member("number") != row.number.to_string() {
                report(format!("was signed as root {}", member("number")));
            }
            let previous = before.as_ref().and_then(|row| document_of(row).ok());
            let previous = previous.and_then(|document| root::hash(&document).ok());
            if member("previous") != previous.map_or(String::new(), |hash| hash.to_string()) {
                report("does not follow the root before it".to_owned());
            }
        }
    }
    Ok((row.number < until).then_some(row.number))
}

/// Document of a root, if its signature is that of a known key; else a sentence about it.
async fn signed(
    db: &ReadTransaction,
    row: &RootRow,
    options: &AuditOptions,
) -> Result<Result<Value, String>, ReadError> {
    let kept = keys(db).await?;
    // With the secrets at hand, only their keys and those that are kept are trusted.
    let own: Vec<_> = options.secrets.iter().map(ServerSecret::receipt_key).collect();
    let trusted = match own.split_first() {
        Some((first, others)) => {
            let signer = Signer::new(first, others, &kept).map_err(read)?;
            TrustedKeys::of(signer.keys())
        }
        None => TrustedKeys::of(&kept),
    };
    let file: Value = match serde_json::from_str(&row.signed) {
        Ok(file) => file,
        Err(error) => return Ok(Err(format!("cannot be read: {error}"))),
    };
    Ok(trusted
        .verify(DocumentKind::Root, &file)
        .cloned()
        .map_err(|error| format!("is not genuine: {error}")))
}

fn document_of(row: &RootRow) -> Result<Value, serde_json::Error> {
    let mut file: Value = serde_json::from_str(&row.signed)?;
    Ok(file.get_mut(DocumentKind::Root.member()).map_or(Value::Null, Value::take))
}
