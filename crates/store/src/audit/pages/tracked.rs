//! Resources compared with the audit log, a page by their numbers: each row equals the latest entry of the audit
//! log about it. The ledger has no third copy.
//!
//! | resource | made by | compared |
//! |---|---|---|
//! | wallet, API key | administration, and others | moment of making, fields, credentials |
//! | admin key, person, webhook | administration alone | moment and maker, fields, credentials |
//!
//! A limit that was lifted by hand spends money. A key that was given another role, a credential that was never
//! issued, the URL of a stranger: no sum shows them, and their author has every right and secret of the ledger. The
//! bytes of a verifier are not compared; only the holder of its secret can judge those.
//!
//! Only values that the audit log has are compared: a wallet or key that is older than the audit log has other
//! fields.
//!
//! A webhook is also disabled without a person: its receiver is gone, or ten deliveries in a row failed. The audit
//! log records acts of people, so such an end of one in force is not a mismatch.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::webhook::DisableReason;
use holdfast_domain::admin::{
    ActorId, AdminKey, Fields, ResourceId, TrailFields, UseCase, WalletRecord, WebhookRecord,
};
use holdfast_domain::credential::ApiKey;

use super::trail::subject_of;
use super::trail_record::{TrailRecord, credentials, trail_of};
use super::{PageBounds, has_row, id, number};
use crate::audit::verify::{Subject, Verification};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::{Cells, Row};

/// Resources read at once, with all their rows of the audit log.
pub(super) const PAGE: usize = 200;

/// Fields of a webhook that change without a person, too.
const DISABLED: [&str; 2] = ["disabled_at", "disabled_reason"];

/// Resources of a table, as they are compared.
pub(super) struct TrackedResource<R> {
    /// Kind in the audit log.
    pub(super) kind: &'static str,
    /// Alias of the table in the columns of the row.
    pub(super) alias: &'static str,
    /// Table of its credentials, and the column of their key.
    pub(super) credentials: Option<[&'static str; 2]>,
    /// Moment of its creation; with its creator, if only administration creates it.
    pub(super) made: fn(&R) -> (Timestamp, Option<ActorId>),
    /// Fields that are compared.
    pub(super) fields: fn(&R, &TrailRecord) -> Fields,
    /// Report for a row that cannot be read; false if another part reports it.
    pub(super) reports_unreadable: bool,
    /// Rows that administration has made for certain, if others make such resources as well.
    pub(super) certain: Option<CertainOrigin>,
}

/// Rows that administration has made for certain.
#[derive(Clone, Copy)]
pub(super) struct CertainOrigin {
    condition: fn() -> String,
    /// Report of a row that the audit log does not have.
    missing: &'static str,
}

const WALLETS: TrackedResource<WalletRecord> = TrackedResource {
    kind: "wallet",
    alias: "w",
    credentials: None,
    made: |wallet| (wallet.created_at, None),
    fields: |wallet, _told| wallet.trail_fields(),
    reports_unreadable: false,
    certain: None,
};

const API_KEYS: TrackedResource<ApiKey> = TrackedResource {
    kind: "api_key",
    alias: "k",
    credentials: Some(["credentials", "api_key_id"]),
    made: |key| (key.created_at, None),
    fields: |key, _told| key.trail_fields(),
    reports_unreadable: true,
    certain: Some(CertainOrigin {
        condition: || {
            let create = UseCase::WalletCreate.label();
            has_row(&format!(
                "audit AS a WHERE a.thing_id = k.wallet_id AND a.use_case = '{create}'"
            ))
        },
        missing: "no row of the audit log issued it, and administration made its wallet",
    }),
};

const ADMIN_KEYS: TrackedResource<AdminKey> = TrackedResource {
    kind: "admin_key",
    alias: "a",
    credentials: Some(["admin_credentials", "admin_key_id"]),
    made: |key| (key.created_at, Some(key.created_by)),
    fields: |key, _told| key.trail_fields(),
    reports_unreadable: true,
    certain: None,
};

const WEBHOOKS: TrackedResource<WebhookRecord> = TrackedResource {
    kind: "webhook",
    alias: "h",
    credentials: None,
    made: |webhook| (webhook.created_at, Some(webhook.created_by)),
    fields: webhook_fields,
    reports_unreadable: true,
    certain: None,
};

fn webhook_fields(webhook: &WebhookRecord, logged: &TrailRecord) -> Fields {
    let mut fields = webhook.trail_fields();
    let is_by_itself = webhook.disabled.is_some_and(|(_at, reason)| match reason {
        DisableReason::Gone | DisableReason::DeadInARow => true,
        DisableReason::Asked => false,
    });
    if is_by_itself && logged.value("disabled_at").is_none() {
        fields.retain(|(field, _value)| !DISABLED.contains(field));
    }
    fields
}

/// Page of a table, compared.
pub(super) struct ComparedPage<R> {
    /// The resources, each with the rows of the audit log about it.
    pub(super) records: Vec<(R, Vec<TrailRow>)>,
    /// Numbers of the rows.
    pub(super) numbers: RangeInclusive<i64>,
    /// Number of the last row; none if there is no other page.
    pub(super) last: Option<i64>,
}

impl<R: Row + TrailFields> TrackedResource<R> {
    /// Compares the resources after one number up to another, at most so many.
    pub(super) async fn compare(
        &self,
        db: &ReadTransaction,
        [after, until]: [i64; 2],
        most: usize,
        found: &mut Verification,
    ) -> Result<ComparedPage<R>, ReadError> {
        let Self { kind, alias, .. } = self;
        let certain = self.certain.map_or_else(|| "1 = 0".to_owned(), |it| (it.condition)());
        let sql = format!(
            "SELECT {alias}.seq, {}, CASE WHEN {certain} THEN CAST(1 AS bigint) ELSE 0 END
             FROM {} AS {alias}
             WHERE {alias}.seq > $1 AND {alias}.seq <= $2 ORDER BY {alias}.seq LIMIT $3",
            R::COLUMNS,
            R::TABLE
        );
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = db.query(&sql, [after.into(), until.into(), limit.into()]).await?;
        let last = rows.last().map(number).transpose()?;
        let numbers = after.saturating_add(1)..=last.unwrap_or(after);
        let mut trail = trail_of(db, (R::TABLE, kind), &numbers).await?;
        let mut credentials = match self.credentials {
            Some(table) => credentials(db, R::TABLE, table, &numbers).await?,
            None => BTreeMap::new(),
        };
        let mut records = Vec::new();
        for row in &rows {
            let mut cells = Cells::new(row);
            cells.skip(1);
            let record = match R::from_cells(&mut cells) {
                Ok(record) => record,
                Err(error) => {
                    let thing = ResourceId::from_row(kind, id(row, 1, |id| id)?);
                    if let Some(subject) =
                        thing.and_then(subject_of).filter(|_| self.reports_unreadable)
                    {
                        found.unreadable(subject, &error);
                    }
                    continue;
                }
            };
            let is_certain = cells.int().map_err(ReadError::Row)? == 1;
            let id = record.thing().id();
            let rows = trail.remove(&id).unwrap_or_default();
            if let Some(subject) = subject_of(record.thing()) {
                let unmade = self.certain.filter(|_| is_certain && rows.is_empty());
                unmade.into_iter().for_each(|origin| found.report(subject, origin.missing));
                let logged = TrailRecord::of(&rows);
                match (self.made)(&record) {
                    (at, Some(by)) => logged.check_making(subject, (at, by), found),
                    (at, None) => logged.check_moment(subject, at, found),
                }
                logged.compare(subject, (self.fields)(&record, &logged), found);
                if self.credentials.is_some() {
                    let own = credentials.remove(&id).unwrap_or_default();
                    logged.compare_credentials(subject, &own, found);
                }
            }
            records.push((record, rows));
        }
        let last = last.filter(|_| rows.len() == most);
        Ok(ComparedPage { records, numbers, last })
    }
}

/// Compares the wallets after one number up to another.
pub(super) async fn check_wallets(
    db: &ReadTransaction,
    wallets: [i64; 2],
    found: &mut Verification,
) -> Result<(), ReadError> {
    WALLETS.compare(db, wallets, usize::MAX, found).await.map(drop)
}

/// Compares the API keys after one number up to another.
pub(super) async fn check_api_keys(
    db: &ReadTransaction,
    keys: [i64; 2],
    found: &mut Verification,
) -> Result<(), ReadError> {
    API_KEYS.compare(db, keys, usize::MAX, found).await.map(drop)
}

pub(super) async fn check_admin_keys(
    db: &ReadTransaction,
    PageBounds { after, until, .. }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let page = ADMIN_KEYS.compare(db, [after, until], PAGE, found).await?;
    // Once, with the last page: this counts over the whole table.
    if page.last.is_none() {
        let of_nobody = "NOT EXISTS (SELECT 1 FROM admin_keys AS k WHERE k.id = t.admin_key_id)
            OR length(t.verifier) <> 32 OR length(t.server_secret) <> 8";
        let sentence = "credentials belong to no admin key, or can be none";
        report_orphans(db, ("admin_credentials", of_nobody), sentence, found).await?;
    }
    Ok(page.last)
}

pub(super) async fn check_webhooks(
    db: &ReadTransaction,
    PageBounds { after, until, .. }: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    Ok(WEBHOOKS.compare(db, [after, until], PAGE, found).await?.last)
}

/// Counts rows that a condition finds, and reports that they have no owner.
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
        found.report(Subject::Ledger, format!("{count} {sentence}"));
    }
    Ok(())
}
