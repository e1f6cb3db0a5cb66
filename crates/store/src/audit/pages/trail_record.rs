//! State of one resource by the audit log: the last values of its fields, its creator and moment, the credentials
//! of its rotations. The audit of a table compares each row with its record.
//!
//! Credentials of a key are those that its issue and its rotations made, and end when the audit log has it: an
//! additional one is one more bearer, and no sum would show it.
//!
//! A field that the audit log does not have is not compared. A row of the log that cannot be read is reported with
//! the log, and here it is passed over, so that one damaged row is one finding.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::{ActorId, UseCase};
use holdfast_domain::{CredentialId, Timestamp};
use sea_orm::Value;

use crate::audit::verify::{Subject, Verification};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{BadRow, Cells, FromCells, Row};

/// Use cases that create a resource.
const MAKERS: [UseCase; 5] = [
    UseCase::WalletCreate,
    UseCase::ApiKeyIssue,
    UseCase::AdminKeyIssue,
    UseCase::PersonInvite,
    UseCase::WebhookCreate,
];

/// State of a resource by the audit log.
#[derive(Default)]
pub(super) struct TrailRecord {
    /// The last values of its fields, each with the number of its row.
    fields: BTreeMap<String, (Option<String>, u64)>,
    /// The row with which administration made it.
    made: Option<Making>,
    /// Rotations of a key, in their order.
    rotations: Vec<Rotation>,
}

/// Row of the audit log about the creation of a resource.
struct Making {
    at: Timestamp,
    by: ActorId,
    seq: u64,
}

/// A credential that a rotation made at a moment, and the end that it gave to those before.
struct Rotation {
    at: Timestamp,
    credential: String,
    others_end_at: Option<i64>,
}

/// Credential of a key, by its row.
pub(super) struct CredentialRow {
    id: CredentialId,
    created_at: Timestamp,
    ends_at: Option<Timestamp>,
}

/// Binds of a statement over the rows with these numbers.
pub(super) fn bounds(numbers: &RangeInclusive<i64>) -> [Value; 2] {
    [(*numbers.start()).into(), (*numbers.end()).into()]
}

/// Rows of the audit log about the resources with these numbers, by resource, each in their order. CROSS JOIN:
/// SQLite takes the tables in this order then, and finds the rows of each resource together.
pub(super) async fn trail_of(
    db: &ReadTransaction,
    (table, kind): (&str, &str),
    numbers: &RangeInclusive<i64>,
) -> Result<BTreeMap<[u8; 16], Vec<TrailRow>>, ReadError> {
    let sql = format!(
        "SELECT {} FROM {table} AS k CROSS JOIN audit AS a
         WHERE k.seq >= $1 AND k.seq <= $2 AND a.thing_id = k.id AND a.thing_kind = '{kind}'
         ORDER BY a.seq",
        TrailRow::COLUMNS
    );
    let mut logged: BTreeMap<[u8; 16], Vec<TrailRow>> = BTreeMap::new();
    for row in db.query(&sql, bounds(numbers)).await? {
        // A row that cannot be read is reported with the audit log.
        let Ok(row) = TrailRow::from_cells(&mut Cells::new(&row)) else { continue };
        logged.entry(row.thing.id()).or_default().push(row);
    }
    Ok(logged)
}

/// Credentials of the keys of a table with these numbers, by their keys. Theirs is a table with the column of the key.
pub(super) async fn credentials(
    db: &ReadTransaction,
    keys: &str,
    [table, column]: [&str; 2],
    numbers: &RangeInclusive<i64>,
) -> Result<BTreeMap<[u8; 16], Vec<CredentialRow>>, ReadError> {
    let sql = format!(
        "SELECT c.{column}, c.id, c.created_at, c.ends_at FROM {keys} AS k CROSS JOIN {table} AS c
         WHERE k.seq >= $1 AND k.seq <= $2 AND c.{column} = k.id"
    );
    let mut all: BTreeMap<[u8; 16], Vec<CredentialRow>> = BTreeMap::new();
    for row in db.query(&sql, bounds(numbers)).await? {
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
    /// Record of a resource with these rows, the oldest first.
    pub(super) fn of(rows: &[TrailRow]) -> Self {
        let mut record = Self::default();
        rows.iter().for_each(|row| record.add(row));
        record
    }

    fn add(&mut self, row: &TrailRow) {
        let of = |field: &str| {
            let change = row.changes.iter().find(|change| change.field == field);
            change.and_then(|change| change.after.clone())
        };
        // A name that is issued anew revokes its last holder, by a row of the same use case.
        if self.made.is_none() && MAKERS.contains(&row.use_case) {
            self.made = Some(Making { at: row.at, by: row.actor, seq: row.seq });
        }
        if let Some(credential) = of("credential_id") {
            let others_end_at = of("others_end_at").and_then(|at| at.parse().ok());
            self.rotations.push(Rotation { at: row.at, credential, others_end_at });
            return;
        }
        for change in &row.changes {
            self.fields.insert(change.field.clone(), (change.after.clone(), row.seq));
        }
    }

    /// Last value of a field in the audit log.
    pub(super) fn value(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(|(value, _seq)| value.as_deref())
    }

    /// Compares the creation of a resource that only administration creates.
    pub(super) fn check_making(
        &self,
        subject: Subject,
        (at, by): (Timestamp, ActorId),
        found: &mut Verification,
    ) {
        match &self.made {
            None => found.report(subject, "no row of the audit log made it"),
            Some(made) if (made.at, made.by) != (at, by) => {
                let (at, logged) = (at.as_micros(), made.at.as_micros());
                let sentence = format!(
                    "it was made at {at} by {by}, row {} of the audit log has at {logged} by {}",
                    made.seq, made.by
                );
                found.report(subject, sentence);
            }
            Some(_same) => {}
        }
    }

    /// Compares the moment of a resource that other services create as well, if administration created it.
    pub(super) fn check_moment(&self, subject: Subject, at: Timestamp, found: &mut Verification) {
        let Some(made) = self.made.as_ref().filter(|made| made.at != at) else { return };
        let (at, logged) = (at.as_micros(), made.at.as_micros());
        let sentence =
            format!("it was made at {at}, row {} of the audit log has at {logged}", made.seq);
        found.report(subject, sentence);
    }

    pub(super) fn compare(
        &self,
        subject: Subject,
        fields: Vec<(&'static str, Option<String>)>,
        found: &mut Verification,
    ) {
        for (field, value) in fields {
            // A field that was empty at the creation is not in that row.
            let nothing = self.made.as_ref().map(|made| (None, made.seq));
            let Some((logged, seq)) = self.fields.get(field).cloned().or(nothing) else { continue };
            if logged != value {
                let [value, logged] =
                    [value, logged].map(|value| value.unwrap_or_else(|| "none".to_owned()));
                let sentence =
                    format!("its {field} is {value}, row {seq} of the audit log has {logged}");
                found.report(subject, sentence);
            }
        }
    }

    /// Compares the credentials of a key that administration issued.
    pub(super) fn compare_credentials(
        &self,
        subject: Subject,
        credentials: &[CredentialRow],
        found: &mut Verification,
    ) {
        let Some(made) = &self.made else { return };
        let mut firsts = 0_usize;
        for credential in credentials {
            let id = credential.id.to_string();
            let rotation = self.rotations.iter().position(|it| it.credential == id);
            let maker = rotation.and_then(|at| self.rotations.get(at));
            firsts += usize::from(maker.is_none());
            let made_at = maker.map_or(made.at, |maker| maker.at);
            if credential.created_at != made_at || (maker.is_none() && firsts > 1) {
                let sentence = format!("no row of the audit log made its credential {id}");
                found.report(subject, sentence);
                continue;
            }
            let logged_end = self.end_after(rotation);
            let ends_at = credential.ends_at.map(Timestamp::as_micros);
            if logged_end != ends_at {
                let [logged_end, ends_at] = [logged_end, ends_at]
                    .map(|at| at.map_or_else(|| "never".to_owned(), |at| at.to_string()));
                found.report(
                    subject,
                    format!("its credential {id} ends {ends_at}, the audit log has {logged_end}"),
                );
            }
        }
        let made = self.rotations.len().saturating_add(1);
        if credentials.len() < made {
            let sentence = format!(
                "it has {} credentials, rows of the audit log made {made}",
                credentials.len()
            );
            found.report(subject, sentence);
        }
    }

    /// End that the audit log gives to a credential: of the rotations after its own, and of its key.
    fn end_after(&self, rotation: Option<usize>) -> Option<i64> {
        let later = self.rotations.iter().skip(rotation.map_or(0, |at| at.saturating_add(1)));
        let revoked = self.value("revoked_at").and_then(|at| at.parse().ok());
        later.filter_map(|rotation| rotation.others_end_at).chain(revoked).min()
    }
}
