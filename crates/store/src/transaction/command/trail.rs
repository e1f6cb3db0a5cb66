//! The audit log and the bound request keys as rows.

use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::audit::{RefusedAttempts, TrailHead, TrailRow, canonical_mac};
use holdfast_domain::admin::{AccountCommand, CanonicalDigest, ResourceId};
use holdfast_domain::secret::ServerSecret;
use sea_orm::{Statement, Value};

use crate::rows::{BadRow, Cells};
use crate::schema::{Dialect, blob};

/// Age at which addresses and counts that are kept with the audit log are deleted.
pub(crate) const BESIDE_TRAIL: Duration = Duration::from_secs(90 * 86_400);
const HOUR_MICROS: i64 = 3_600_000_000;
/// Rows of the audit log that one statement inserts: 1,200 binds. A wallet that is closed has one for each of its keys, and
/// all others wait meanwhile.
pub(crate) const ROWS_MAX: usize = 100;

/// The last row of the audit log, as a head.
pub(crate) const LAST: &str = "SELECT a.seq, a.mac FROM audit AS a ORDER BY a.seq DESC LIMIT 1";

const INSERT_ADDRESS: &str = "INSERT INTO audit_addresses (audit_seq, address)";
const ADVANCE: &str = "UPDATE audit_head SET seq = $1, mac = $2 WHERE id = 1";
const BIND: &str = "INSERT INTO admin_requests (actor, request_key, digest, things, created_at,
    canonical_digest) VALUES ($1, $2, $3, $4, $5, $6)";

/// Reads the head's row.
pub(crate) fn head(cells: &mut Cells<'_>) -> Result<TrailHead, BadRow> {
    Ok(TrailHead { seq: cells.small()?, mac: cells.bytes()? })
}

/// The address of the actor for each of these rows, if there is one.
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
    things: &[ResourceId],
    (now, secret): (Timestamp, &ServerSecret),
) -> Statement {
    let things: Vec<_> = things.iter().map(ResourceId::to_string).collect();
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

/// Reads the resources that [`bind`] wrote.
pub(crate) fn things(cells: &mut Cells<'_>) -> Result<Vec<ResourceId>, BadRow> {
    cells.parse(|text: String| text.split(',').map(ResourceId::parse).collect())
}

fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
