//! Wallets and API keys beside the trail: when they were made, what was last said of a wallet's name, suspension and
//! bounds, and of a key's wallet, limits, models and ends, is what the row says. Nothing else in the book says it a
//! second time, and a limit that was lifted by hand spends money.
//!
//! Only what the trail tells of is compared: a wallet or key that is older than the trail has other fields.
//! The bytes of a verifier are not among them; whoever has its secret alone can judge those.

use std::ops::RangeInclusive;

use holdfast_domain::ApiKeyId;
use holdfast_domain::admin::TrailFields as _;
use holdfast_domain::admin::{UseCase, WalletRecord};
use holdfast_domain::credential::ApiKey;

use super::trail_record::{self, CredentialRow, TrailRecord, bounds, trail_of};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{Cells, FromCells, Row};
use crate::verify::{Subject, Verification};

/// API keys whose rows of the trail are read at once.
pub(super) const KEYS: usize = 200;

/// Compares the wallets with these numbers.
pub(super) async fn check_wallets(
    db: &ReadTransaction,
    wallets: RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let trail = trail_of(db, ("wallets", "wallet"), &wallets).await?;
    let sql = format!(
        "SELECT {} FROM wallets AS w WHERE w.seq >= $1 AND w.seq <= $2",
        WalletRecord::COLUMNS
    );
    for row in db.query(&sql, bounds(&wallets)).await? {
        // One that cannot be read is reported with its balance, or is here as if it were not there.
        let Ok(record) = WalletRecord::from_cells(&mut Cells::new(&row)) else { continue };
        let id = record.wallet.id;
        if let Some(rows) = trail.get(&id.to_bytes()) {
            let told = TrailRecord::of(rows);
            told.check_moment(Subject::Wallet(id), record.created_at, found);
            told.compare(Subject::Wallet(id), record.trail_fields(), found);
        }
    }
    Ok(())
}

/// Credentials of the API keys with these numbers.
const CREDENTIALS: &str = "SELECT c.api_key_id, c.id, c.created_at, c.ends_at
    FROM api_keys AS k CROSS JOIN credentials AS c
    WHERE k.seq >= $1 AND k.seq <= $2 AND c.api_key_id = k.id";

/// Compares the API keys with these numbers.
pub(super) async fn check_api_keys(
    db: &ReadTransaction,
    keys: RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let trail = trail_of(db, ("api_keys", "api_key"), &keys).await?;
    let mut credentials = trail_record::credentials(db, CREDENTIALS, &keys).await?;
    let create = UseCase::WalletCreate.label();
    let of_administration = super::has_row(&format!(
        "audit AS a WHERE a.thing_id = k.wallet_id AND a.use_case = '{create}'"
    ));
    let sql = format!(
        "SELECT {}, CASE WHEN {of_administration} THEN CAST(1 AS bigint) ELSE 0 END
         FROM api_keys AS k WHERE k.seq >= $1 AND k.seq <= $2 ORDER BY k.seq",
        ApiKey::COLUMNS
    );
    for row in db.query(&sql, bounds(&keys)).await? {
        let mut cells = Cells::new(&row);
        match ApiKey::from_cells(&mut cells) {
            Ok(key) => {
                let is_of_administration = cells.int().map_err(ReadError::Row)? == 1;
                let own = credentials.remove(&key.id.to_bytes()).unwrap_or_default();
                let told = trail.get(&key.id.to_bytes()).map(|rows| TrailRecord::of(rows));
                compare_key(&key, told.as_ref(), (is_of_administration, &own), found);
            }
            Err(error) => {
                let id = super::id(&row, 0, ApiKeyId::from_bytes)?;
                found.unreadable(Subject::ApiKey(id), &error);
            }
        }
    }
    Ok(())
}

fn compare_key(
    key: &ApiKey,
    told: Option<&TrailRecord>,
    (is_of_administration, credentials): (bool, &[CredentialRow]),
    found: &mut Verification,
) {
    let subject = Subject::ApiKey(key.id);
    let Some(told) = told else {
        if is_of_administration {
            let sentence = "no row of the trail issued it, and administration made its wallet";
            found.report(subject, sentence);
        }
        return;
    };
    told.check_moment(subject, key.created_at, found);
    told.compare(subject, key.trail_fields(), found);
    told.compare_credentials(subject, credentials, found);
}
