//! The trail and the bound request keys as rows.

use std::time::Duration;

use holdfast_domain::account::{AccountCommand, CanonicalDigest, FieldChange, Thing, UseCase};
use holdfast_domain::audit::{RefusedAttempts, TrailHead, TrailRow, canonical_mac};
use holdfast_domain::secret::{ServerSecret, ServerSecretId};
use holdfast_domain::{CommandKey, Timestamp};
use sea_orm::{Statement, Value};

use crate::dialect::{Dialect, blob};
use crate::rows::{BadRow, Cells};

/// Age at which addresses and counts that stand beside the trail are deleted.
pub(crate) const BESIDE_TRAIL: Duration = Duration::from_secs(90 * 86_400);
const HOUR_MICROS: i64 = 3_600_000_000;
/// Rows of the trail that one statement inserts: 1,200 binds.
pub(crate) const ROWS_MAX: usize = 100;

/// The last row of the trail, as a head.
pub(crate) const LAST: &str = "SELECT a.seq, a.mac FROM audit AS a ORDER BY a.seq DESC LIMIT 1";

const INSERT: &str = "INSERT INTO audit (seq, created_at, actor, use_case, thing_kind, thing_id,
    request_key, digest, changes, reason, server_secret, mac)";
const INSERT_ADDRESS: &str = "INSERT INTO audit_addresses (audit_seq, address)";
const ADVANCE: &str = "UPDATE audit_head SET seq = $1, mac = $2 WHERE id = 1";
const BIND: &str = "INSERT INTO admin_requests (actor, request_key, digest, things, created_at,
    canonical_digest) VALUES ($1, $2, $3, $4, $5, $6)";

/// The columns that [`row`] reads, of `audit AS a`.
pub(crate) const ROW: &str = "a.seq, a.created_at, a.actor, a.use_case, a.thing_kind, a.thing_id, \
    a.request_key, a.digest, a.changes, a.reason, a.server_secret, a.mac";

/// Reads [`ROW`].
pub(crate) fn row(cells: &mut Cells<'_>) -> Result<TrailRow, BadRow> {
    let (seq, at) = (cells.small()?, cells.timestamp()?);
    let actor = cells.parse(|text: String| text.parse().ok())?;
    let use_case = cells.parse(|label: String| UseCase::from_label(&label))?;
    let kind = cells.text()?;
    let thing =
        cells.parse(|id: Vec<u8>| id.try_into().ok().and_then(|id| Thing::from_row(&kind, id)))?;
    let request_key = CommandKey::from_bytes(cells.bytes()?);
    let digest = cells.bytes()?;
    let changes: Vec<(String, Option<String>, Option<String>)> =
        cells.parse(|text: String| serde_json::from_str(&text).ok())?;
    let changes = changes.into_iter();
    Ok(TrailRow {
        seq,
        at,
        actor,
        use_case,
        thing,
        request_key,
        digest,
        changes: changes
            .map(|(field, before, after)| FieldChange { field, before, after })
            .collect(),
        reason: cells.opt_text()?,
        server_secret: ServerSecretId::from_bytes(cells.bytes()?),
        mac: cells.bytes()?,
    })
}

/// Reads the head's row.
pub(crate) fn head(cells: &mut Cells<'_>) -> Result<TrailHead, BadRow> {
    Ok(TrailHead { seq: cells.small()?, mac: cells.bytes()? })
}

/// Rows of the trail, at most [`ROWS_MAX`] of them, in one statement: a wallet that is closed has one
/// for each of its keys, and all others wait meanwhile.
pub(crate) fn insert(dialect: Dialect, rows: &[TrailRow]) -> Statement {
    let binds = rows.iter().flat_map(|row| {
        let changes: Vec<_> =
            row.changes.iter().map(|it| (&it.field, &it.before, &it.after)).collect();
        [
            number(row.seq).into(),
            row.at.as_micros().into(),
            row.actor.to_string().into(),
            row.use_case.label().into(),
            row.thing.kind().into(),
            blob(row.thing.id()),
            blob(row.request_key.to_bytes()),
            blob(row.digest),
            serde_json::json!(changes).to_string().into(),
            row.reason.clone().into(),
            blob(row.server_secret.to_bytes()),
            blob(row.mac),
        ]
    });
    insert_rows(dialect, INSERT, binds.collect(), rows.len())
}

/// The address of the actor for each of these rows, where there is one.
pub(crate) fn insert_addresses(
    dialect: Dialect,
    rows: &[TrailRow],
    command: &AccountCommand,
) -> Option<Statement> {
    let address = command.address.as_ref()?;
    let binds = rows.iter().flat_map(|row| [number(row.seq).into(), address.clone().into()]);
    Some(insert_rows(dialect, INSERT_ADDRESS, binds.collect(), rows.len()))
}

/// A statement that inserts so many rows, whose values follow one another.
fn insert_rows(dialect: Dialect, insert: &str, values: Vec<Value>, rows: usize) -> Statement {
    let width = values.len() / rows.max(1);
    let places = |row: usize| {
        let places: Vec<_> = (1..=width).map(|at| format!("${}", row * width + at)).collect();
        format!("({})", places.join(", "))
    };
    let places: Vec<_> = (0..rows).map(places).collect();
    let sql = format!("{insert} VALUES {}", places.join(", "));
    Statement::from_sql_and_values(dialect.backend(), sql, values)
}

pub(crate) fn advance(dialect: Dialect, head: TrailHead) -> Statement {
    dialect.statement(ADVANCE, [number(head.seq).into(), blob(head.mac)])
}

/// Adds attempts to the row of their hour, actor and use case.
pub(crate) fn count_refused(dialect: Dialect, refused: &RefusedAttempts) -> Statement {
    let clock = dialect.clock();
    let sql = format!(
        "INSERT INTO refused_attempts (hour, actor, use_case, attempts)
         VALUES ({clock} / {HOUR_MICROS} * {HOUR_MICROS}, $1, $2, $3)
         ON CONFLICT (hour, actor, use_case)
         DO UPDATE SET attempts = refused_attempts.attempts + excluded.attempts"
    );
    let RefusedAttempts { actor, use_case, attempts } = refused;
    let binds = [actor.to_string().into(), use_case.label().into(), number(*attempts).into()];
    dialect.statement(&sql, binds)
}

/// Binds the request key of a command to what was done.
pub(crate) fn bind(
    dialect: Dialect,
    command: &AccountCommand,
    things: &[Thing],
    (now, secret): (Timestamp, &ServerSecret),
) -> Statement {
    let things: Vec<_> = things.iter().map(Thing::to_string).collect();
    let canonical = command.request.canonical.map(|canonical| {
        let mac = canonical_mac(command.actor, &command.request, canonical, &secret.trail_key());
        [canonical.to_bytes().as_slice(), &mac].concat()
    });
    let binds = [
        command.actor.to_string().into(),
        blob(command.request.key.to_bytes()),
        blob(command.request.digest),
        things.join(",").into(),
        now.as_micros().into(),
        canonical.into(),
    ];
    dialect.statement(BIND, binds)
}

/// Reads the canonical digest that [`bind`] wrote, and its MAC.
pub(crate) fn canonical(
    cells: &mut Cells<'_>,
) -> Result<Option<(CanonicalDigest, [u8; 32])>, BadRow> {
    let Some(bytes) = cells.opt_bytes::<65>()? else { return Ok(None) };
    let (mut digest, mut mac) = ([0; 33], [0; 32]);
    digest.copy_from_slice(&bytes[..33]);
    mac.copy_from_slice(&bytes[33..]);
    Ok(Some((CanonicalDigest::from_bytes(digest), mac)))
}

/// Reads the things that [`bind`] wrote.
pub(crate) fn things(cells: &mut Cells<'_>) -> Result<Vec<Thing>, BadRow> {
    cells.parse(|text: String| text.split(',').map(Thing::parse).collect())
}

fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
