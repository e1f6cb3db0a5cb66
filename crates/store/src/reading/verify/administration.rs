//! Admin keys and webhooks beside the trail, a page by their numbers. Nobody but administration makes them, so each
//! has a row of the trail that says who made it and when; what was changed since stands there as well.
//!
//! A key that was given another role, a credential that nobody issued, a URL that somebody put in the place of
//! another: no sum shows them, and whoever wrote them may do and learn whatever the book knows.
//!
//! A webhook is also disabled without a person: its receiver is gone, or ten deliveries in a row were dead. The
//! trail tells what people do, so that such an end of one in force is no mismatch.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use holdfast_domain::admin::TrailFields as _;
use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::webhook::DisableReason;
use holdfast_domain::admin::{AdminKey, WebhookRecord};
use holdfast_domain::{AdminKeyId, WebhookId};
use sea_orm::QueryResult;

use super::trail_record::{self, CredentialRow, TrailRecord, trail_of};
use super::{PageBounds, id, number};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{Cells, FromCells, Row};
use crate::verify::{Subject, Verification};

/// Things read at once, with all that the trail tells of them.
const PAGE: usize = 200;

/// Fields of a webhook that change without a person, too.
const DISABLED: [&str; 2] = ["disabled_at", "disabled_reason"];

const CREDENTIALS: &str = "SELECT c.admin_key_id, c.id, c.created_at, c.ends_at
    FROM admin_keys AS k CROSS JOIN admin_credentials AS c
    WHERE k.seq >= $1 AND k.seq <= $2 AND c.admin_key_id = k.id";

/// Table of things that administration makes.
pub(super) struct ThingTable {
    pub(super) name: &'static str,
    /// Name of it that its columns begin with.
    pub(super) alias: &'static str,
    pub(super) columns: &'static str,
    /// Kind of its things in the trail.
    pub(super) kind: &'static str,
}

/// Page of such a table.
pub(super) struct ThingPage {
    /// Rows: the number, and then the columns of the table.
    pub(super) rows: Vec<QueryResult>,
    /// Numbers of the rows.
    pub(super) numbers: RangeInclusive<i64>,
    /// Rows of the trail about each of them, by their ids.
    pub(super) trail: BTreeMap<[u8; 16], Vec<TrailRow>>,
    /// Number of the last row; none where there is no other page.
    pub(super) last: Option<i64>,
}

impl ThingTable {
    pub(super) async fn page(
        &self,
        db: &ReadTransaction,
        PageBounds { after, until, .. }: PageBounds,
    ) -> Result<ThingPage, ReadError> {
        let Self { name, alias, columns, kind } = self;
        let sql = format!(
            "SELECT {alias}.seq, {columns} FROM {name} AS {alias}
             WHERE {alias}.seq > $1 AND {alias}.seq <= $2 ORDER BY {alias}.seq LIMIT $3"
        );
        let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let rows = db.query(&sql, [after.into(), until.into(), limit.into()]).await?;
        let last = rows.last().map(number).transpose()?;
        let numbers = after.saturating_add(1)..=last.unwrap_or(after);
        let trail = trail_of(db, (name, kind), &numbers).await?;
        let last = last.filter(|_| rows.len() == PAGE);
        Ok(ThingPage { rows, numbers, trail, last })
    }
}

impl ThingPage {
    /// What the trail tells of a thing.
    pub(super) fn record(&self, id: [u8; 16]) -> TrailRecord {
        TrailRecord::of(self.trail_of(id))
    }

    pub(super) fn trail_of(&self, id: [u8; 16]) -> &[TrailRow] {
        self.trail.get(&id).map_or(&[], Vec::as_slice)
    }
}

/// Counts rows that a condition finds, and reports that they are nobody's.
pub(super) async fn report_orphans(
    db: &ReadTransaction,
    (table, condition): (&str, &str),
    sentence: &str,
    found: &mut Verification,
) -> Result<(), ReadError> {
    let sql = format!("SELECT count(*) FROM {table} AS t WHERE {condition}");
    let rows = db.query(&sql, []).await?;
    let count = rows.first().map(number).transpose()?.unwrap_or(0);
    if count > 0 {
        found.report(Subject::Book, format!("{count} {sentence}"));
    }
    Ok(())
}

pub(super) async fn check_admin_keys(
    db: &ReadTransaction,
    bounds: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let table = ThingTable {
        name: "admin_keys",
        alias: "a",
        columns: AdminKey::COLUMNS,
        kind: "admin_key",
    };
    let page = table.page(db, bounds).await?;
    let mut credentials = trail_record::credentials(db, CREDENTIALS, &page.numbers).await?;
    for row in &page.rows {
        let mut cells = Cells::new(row);
        cells.skip(1);
        match AdminKey::from_cells(&mut cells) {
            Ok(key) => {
                let own = credentials.remove(&key.id.to_bytes()).unwrap_or_default();
                compare_admin_key(&key, &page.record(key.id.to_bytes()), &own, found);
            }
            Err(error) => {
                let id = id(row, 1, AdminKeyId::from_bytes)?;
                found.unreadable(Subject::AdminKey(id), &error);
            }
        }
    }
    if page.last.is_none() {
        let of_nobody = "NOT EXISTS (SELECT 1 FROM admin_keys AS k WHERE k.id = t.admin_key_id)
            OR length(t.verifier) <> 32 OR length(t.server_secret) <> 8";
        let sentence = "credentials belong to no admin key, or can be none";
        report_orphans(db, ("admin_credentials", of_nobody), sentence, found).await?;
    }
    Ok(page.last)
}

fn compare_admin_key(
    key: &AdminKey,
    told: &TrailRecord,
    credentials: &[CredentialRow],
    found: &mut Verification,
) {
    let subject = Subject::AdminKey(key.id);
    told.check_making(subject, (key.created_at, key.created_by), found);
    told.compare(subject, key.trail_fields(), found);
    told.compare_credentials(subject, credentials, found);
}

pub(super) async fn check_webhooks(
    db: &ReadTransaction,
    bounds: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let table = ThingTable {
        name: "webhooks",
        alias: "h",
        columns: WebhookRecord::COLUMNS,
        kind: "webhook",
    };
    let page = table.page(db, bounds).await?;
    for row in &page.rows {
        let mut cells = Cells::new(row);
        cells.skip(1);
        match WebhookRecord::from_cells(&mut cells) {
            Ok(record) => compare_webhook(&record, &page.record(record.id.to_bytes()), found),
            Err(error) => {
                let id = id(row, 1, WebhookId::from_bytes)?;
                found.unreadable(Subject::Webhook(id), &error);
            }
        }
    }
    Ok(page.last)
}

fn compare_webhook(record: &WebhookRecord, told: &TrailRecord, found: &mut Verification) {
    let subject = Subject::Webhook(record.id);
    told.check_making(subject, (record.created_at, record.created_by), found);
    let mut fields = record.trail_fields();
    let is_by_itself = record.disabled.is_some_and(|(_at, reason)| match reason {
        DisableReason::Gone | DisableReason::DeadInARow => true,
        DisableReason::Asked => false,
    });
    if is_by_itself && told.value("disabled_at").is_none() {
        fields.retain(|(field, _value)| !DISABLED.contains(field));
    }
    told.compare(subject, fields, found);
}
