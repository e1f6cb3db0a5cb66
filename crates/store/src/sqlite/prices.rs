//! Price versions, kept for ever.

use holdfast_domain::ports::PinError;
use holdfast_domain::price::PriceVersion;
use rusqlite::Transaction;

use super::Sqlite;
use super::errand::WriteError;
use super::statements::{KEEP_PRICE, PRICE, find_price, keep_price};

impl Sqlite {
    pub(crate) async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        let versions = versions.to_vec();
        match self.write(move |transaction, _now| pin(transaction, versions)).await {
            Ok(None) => Ok(()),
            Ok(Some(other)) => Err(PinError::Conflict(other.id)),
            Err(error) => Err(PinError::Unavailable(Box::new(error))),
        }
    }
}

/// The known version that one of these contradicts, if there is one; else all are known.
fn pin(
    transaction: &Transaction<'_>,
    versions: Vec<PriceVersion>,
) -> Result<Option<PriceVersion>, WriteError> {
    let mut find = transaction.prepare(PRICE)?;
    let mut unknown: Vec<PriceVersion> = Vec::new();
    for version in versions {
        let stored = find_price(&mut find, &version.id)?;
        let named = unknown.iter().find(|other| other.id == version.id);
        match stored.as_ref().or(named) {
            Some(known) if *known == version => {}
            Some(_) => return Ok(Some(version)),
            None => unknown.push(version),
        }
    }
    let mut keep = transaction.prepare(KEEP_PRICE)?;
    for version in unknown {
        keep_price(&mut keep, &version)?;
    }
    Ok(None)
}
