//! Wallets and API keys beside the trail: what was last said of a wallet's name, suspension and bounds, and of
//! a key's wallet, limits, models and ends, is what the row says. Nothing else in the book says it a second
//! time, and a limit that was lifted by hand spends money.
//!
//! Credentials of a key that administration issued are those that its issue and its rotations made, and end
//! when the trail says so: one more of them spends that key's money, and no sum would show it.
//!
//! Only what the trail tells of is compared: a wallet or key that is older than the trail has other fields.
//! The bytes of a verifier are not among them; whoever has its secret alone can judge those.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use holdfast_domain::account::UseCase;
use holdfast_domain::audit::TrailRow;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::{ApiKeyId, CredentialId, Timestamp};
use sea_orm::Value;

use crate::errand::trail::{self, ROW};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{self, API_KEY, BadRow, Cells, WALLET_RECORD};
use crate::verify::{Subject, Verification};

/// API keys whose rows of the trail are read at once.
pub(super) const KEYS: usize = 200;

/// All that the trail tells of a wallet or key.
#[derive(Default)]
struct TrailRecord {
    /// The last values of its fields, each with the number of its row.
    fields: BTreeMap<String, (Option<String>, u64)>,
    /// Moment at which administration made it, with the number of that row.
    made: Option<(Timestamp, u64)>,
    /// Rotations of a key, in their order.
    rotations: Vec<Rotation>,
}

/// A credential that a rotation made, and the end that it gave to those before.
struct Rotation {
    credential: String,
    others_end_at: Option<i64>,
}

/// Credential of a key, as its row says it.
struct CredentialRow {
    id: CredentialId,
    created_at: Timestamp,
    ends_at: Option<Timestamp>,
}

/// Compares the wallets with these numbers.
pub(super) async fn check_wallets(
    db: &ReadTransaction,
    wallets: RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let told = told(db, ("wallets", "wallet"), &wallets).await?;
    let sql = format!("SELECT {WALLET_RECORD} FROM wallets AS w WHERE w.seq >= $1 AND w.seq <= $2");
    for row in db.query(&sql, bounds(&wallets)).await? {
        // One that cannot be read is reported with its balance, or is here as if it were not there.
        let Ok(record) = rows::wallet_record(&mut Cells::new(&row)) else { continue };
        let id = record.wallet.id;
        if let Some(told) = told.get(&id.to_bytes()) {
            told.compare(Subject::Wallet(id), record.trail_fields(), found);
        }
    }
    Ok(())
}

/// Compares the API keys with these numbers.
pub(super) async fn check_api_keys(
    db: &ReadTransaction,
    keys: RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let told = told(db, ("api_keys", "api_key"), &keys).await?;
    let mut credentials = credentials(db, &keys).await?;
    let sql = format!(
        "SELECT {API_KEY}, CASE WHEN EXISTS (SELECT 1 FROM audit AS a
             WHERE a.thing_id = k.wallet_id AND a.use_case = '{}') THEN CAST(1 AS bigint) ELSE 0 END
         FROM api_keys AS k WHERE k.seq >= $1 AND k.seq <= $2 ORDER BY k.seq",
        UseCase::WalletCreate.label()
    );
    for row in db.query(&sql, bounds(&keys)).await? {
        let mut cells = Cells::new(&row);
        match rows::api_key(&mut cells) {
            Ok(key) => {
                let is_of_administration = cells.int().map_err(ReadError::Row)? == 1;
                let own = credentials.remove(&key.id.to_bytes()).unwrap_or_default();
                let told = told.get(&key.id.to_bytes());
                compare_key(&key, told, (is_of_administration, &own), found);
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
    told.compare(subject, key.trail_fields(), found);
    told.compare_credentials(subject, credentials, found);
}

fn bounds(numbers: &RangeInclusive<i64>) -> [Value; 2] {
    [(*numbers.start()).into(), (*numbers.end()).into()]
}

/// What the trail tells of the things with these numbers. CROSS JOIN: SQLite takes the tables in this order
/// then, and finds the rows of each thing together.
async fn told(
    db: &ReadTransaction,
    (table, kind): (&str, &str),
    numbers: &RangeInclusive<i64>,
) -> Result<BTreeMap<[u8; 16], TrailRecord>, ReadError> {
    let sql = format!(
        "SELECT {ROW} FROM {table} AS k CROSS JOIN audit AS a
         WHERE k.seq >= $1 AND k.seq <= $2 AND a.thing_id = k.id AND a.thing_kind = '{kind}'
         ORDER BY a.seq"
    );
    let mut told: BTreeMap<[u8; 16], TrailRecord> = BTreeMap::new();
    for row in db.query(&sql, bounds(numbers)).await? {
        // A row that cannot be read is reported with the trail.
        let Ok(row) = trail::row(&mut Cells::new(&row)) else { continue };
        told.entry(row.thing.id()).or_default().add(row);
    }
    Ok(told)
}

/// Credentials of the keys with these numbers, by their keys.
async fn credentials(
    db: &ReadTransaction,
    keys: &RangeInclusive<i64>,
) -> Result<BTreeMap<[u8; 16], Vec<CredentialRow>>, ReadError> {
    let sql = "SELECT c.api_key_id, c.id, c.created_at, c.ends_at
        FROM api_keys AS k CROSS JOIN credentials AS c
        WHERE k.seq >= $1 AND k.seq <= $2 AND c.api_key_id = k.id";
    let mut all: BTreeMap<[u8; 16], Vec<CredentialRow>> = BTreeMap::new();
    for row in db.query(sql, bounds(keys)).await? {
        let mut cells = Cells::new(&row);
        let mut read = || {
            let key: [u8; 16] = cells.bytes()?;
            let id = CredentialId::from_bytes(cells.bytes()?);
            let (created_at, ends_at) = (cells.timestamp()?, cells.opt_timestamp()?);
            Ok::<_, BadRow>((key, CredentialRow { id, created_at, ends_at }))
        };
        let (key, credential) = read().map_err(ReadError::Row)?;
        all.entry(key).or_default().push(credential);
    }
    Ok(all)
}

impl TrailRecord {
    fn add(&mut self, row: TrailRow) {
        let of = |field: &str| {
            let change = row.changes.iter().find(|change| change.field == field);
            change.and_then(|change| change.after.clone())
        };
        if [UseCase::WalletCreate, UseCase::ApiKeyIssue].contains(&row.use_case) {
            self.made = Some((row.at, row.seq));
        }
        if let Some(credential) = of("credential_id") {
            let others_end_at = of("others_end_at").and_then(|at| at.parse().ok());
            self.rotations.push(Rotation { credential, others_end_at });
            return;
        }
        for change in row.changes {
            self.fields.insert(change.field, (change.after, row.seq));
        }
    }

    fn compare(
        &self,
        subject: Subject,
        fields: Vec<(&'static str, Option<String>)>,
        found: &mut Verification,
    ) {
        for (field, value) in fields {
            // What was nothing as it was made has no field in that row.
            let nothing = self.made.map(|(_at, seq)| (None, seq));
            let Some((told, seq)) = self.fields.get(field).cloned().or(nothing) else { continue };
            if told != value {
                let [value, told] =
                    [value, told].map(|value| value.unwrap_or_else(|| "nothing".to_owned()));
                let sentence =
                    format!("its {field} is {value}, row {seq} of the trail says {told}");
                found.report(subject, sentence);
            }
        }
    }

    /// Compares the credentials of a key that administration issued.
    fn compare_credentials(
        &self,
        subject: Subject,
        credentials: &[CredentialRow],
        found: &mut Verification,
    ) {
        let Some((made_at, _seq)) = self.made else { return };
        let mut firsts = 0_usize;
        for credential in credentials {
            let id = credential.id.to_string();
            let rotation = self.rotations.iter().position(|it| it.credential == id);
            if rotation.is_none() {
                firsts += 1;
                if credential.created_at != made_at || firsts > 1 {
                    let sentence = format!("no row of the trail made its credential {id}");
                    found.report(subject, sentence);
                    continue;
                }
            }
            let said = self.end_after(rotation);
            let ends_at = credential.ends_at.map(Timestamp::as_micros);
            if said != ends_at {
                let [said, ends_at] = [said, ends_at]
                    .map(|at| at.map_or_else(|| "never".to_owned(), |at| at.to_string()));
                found.report(
                    subject,
                    format!("its credential {id} ends {ends_at}, the trail says {said}"),
                );
            }
        }
        let made = self.rotations.len().saturating_add(1);
        if credentials.len() < made {
            let sentence =
                format!("it has {} credentials, rows of the trail made {made}", credentials.len());
            found.report(subject, sentence);
        }
    }

    /// End that the trail gives to a credential: of the rotations after its own, and of its key.
    fn end_after(&self, rotation: Option<usize>) -> Option<i64> {
        let later = self.rotations.iter().skip(rotation.map_or(0, |at| at.saturating_add(1)));
        let revoked = self.fields.get("revoked_at").and_then(|(at, _seq)| at.as_deref());
        let revoked = revoked.and_then(|at| at.parse().ok());
        later.filter_map(|rotation| rotation.others_end_at).chain(revoked).min()
    }
}
