//! How the transaction of a batch begins: it, the locks of its wallets, and the clock where nothing else is to
//! be read, in one round trip.
//!
//! What takes several statements at once takes no values beside its text. So they are prepared by name when a
//! connection is made, and the ids of wallets, nothing else, are written into the text as hex.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use holdfast_domain::{Micros, Timestamp, WalletId};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Executor, Row as _, query_with};

use super::arrays::{Rows, arguments};
use super::batch::{ANSWER, answered, has_code, is_locked, is_race, is_refusal, rollback};
use super::connect::{CLOCK, within};
use super::statements::{HELD, LOCK};
use crate::judge::Balance;

/// Isolation is said, whatever the server's default is: a statement sees what was committed before it
/// began, and what was locked before that.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Beginning takes no longer, or the connection is dead.
const BEGINNING: Duration = Duration::from_secs(5);

/// What a batch begins with.
#[derive(Debug)]
pub(super) struct Begun {
    /// Its wallets that exist, and what they have.
    pub(super) wallets: BTreeMap<WalletId, Balance>,
    /// The moment after they were locked, where it was asked for.
    pub(super) clock: Option<Timestamp>,
}

/// What is to be known of the moment when the wallets are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// Nothing: it is read with the rest.
    Later,
    /// Which one it is.
    Now,
}

/// Makes a new connection ready for [`begin`]. The server plans what is prepared when it is used first.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let sql = format!(
        "PREPARE holdfast_lock (bytea[]) AS {LOCK};
         PREPARE holdfast_clock AS SELECT {CLOCK}"
    );
    connection.execute(AssertSqlSafe(sql)).await.map(drop)
}

/// Begins the transaction of a batch, and locks its wallets, for each of which the server waits this
/// long. Where it fails, nothing has happened.
pub(super) async fn begin(
    connection: &mut PgConnection,
    wallets: &BTreeSet<WalletId>,
    clock: Clock,
    lock_timeout: Duration,
) -> Result<Begun, sqlx::Error> {
    let patience = patience(wallets.len(), lock_timeout);
    let text = text(wallets, clock).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let mut rows = within(patience, connection.fetch_all(AssertSqlSafe(text))).await?;
    let clock = match clock {
        Clock::Later => None,
        Clock::Now => rows.pop().map(|row| row.try_get(0)).transpose()?,
    };
    let wallets = rows.iter().map(balance).collect::<Result<_, _>>()?;
    Ok(Begun { wallets, clock: clock.map(Timestamp::from_micros) })
}

/// Whether beginning failed by what its statements met, not by the connection that they came on: another
/// one meets the same.
pub(super) fn is_met(error: &sqlx::Error) -> bool {
    // 57014: it took too long, or somebody ended it.
    is_race(error) || is_refusal(error) || is_locked(error) || has_code(error, &["57014"])
}

/// The wallets among these that somebody else has locked.
pub(super) async fn held(
    connection: &mut PgConnection,
    wallets: &BTreeSet<WalletId>,
) -> Result<BTreeSet<WalletId>, sqlx::Error> {
    within(BEGINNING, connection.execute(BEGIN)).await?;
    let mut ids = Rows::default();
    for id in wallets {
        ids.row().blob(&id.to_bytes());
    }
    let query = query_with(HELD, arguments(None, [ids])?);
    let rows = answered(connection.fetch_all(query)).await?;
    rollback(connection).await?;
    rows.iter().map(wallet).collect()
}

/// A connection that says nothing may be dead, or wait for one wallet after the other. The server ends a
/// statement that takes too long.
fn patience(wallets: usize, lock_timeout: Duration) -> Duration {
    let locks = lock_timeout.saturating_mul(u32::try_from(wallets).unwrap_or(u32::MAX));
    BEGINNING.saturating_add(locks).min(ANSWER)
}

/// Quoted by dollars a backslash is one, whatever the server's settings are; the array takes one of two.
fn text(wallets: &BTreeSet<WalletId>, clock: Clock) -> Result<String, fmt::Error> {
    let mut text = format!("{BEGIN}; EXECUTE holdfast_lock($${{");
    for (at, id) in wallets.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, r"{comma}\\x{:032x}", u128::from_be_bytes(id.to_bytes()))?;
    }
    text.push_str(match clock {
        Clock::Later => "}$$)",
        Clock::Now => "}$$); EXECUTE holdfast_clock",
    });
    Ok(text)
}

fn balance(row: &PgRow) -> Result<(WalletId, Balance), sqlx::Error> {
    let micros = |at: usize| row.try_get(at).map(Micros::new);
    Ok((wallet(row)?, Balance { available: micros(1)?, held: micros(2)? }))
}

fn wallet(row: &PgRow) -> Result<WalletId, sqlx::Error> {
    row.try_get(0).map(WalletId::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_hex_in_their_order() {
        let wallets = [WalletId::from_u128(1 << 127 | 0xa), WalletId::from_u128(7)].into();
        assert_eq!(
            text(&wallets, Clock::Now).unwrap(),
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; EXECUTE holdfast_lock($${\
             \\\\x00000000000000000000000000000007,\\\\x8000000000000000000000000000000a}$$); \
             EXECUTE holdfast_clock"
        );
    }

    #[test]
    fn a_wait_for_locks_is_not_taken_for_a_dead_connection() {
        let lock_timeout = Duration::from_millis(250);
        assert_eq!(patience(1, lock_timeout), Duration::from_millis(5_250));
        assert_eq!(patience(20, lock_timeout), Duration::from_secs(10));
        assert_eq!(patience(512, lock_timeout), ANSWER);
        assert_eq!(patience(1, Duration::MAX), ANSWER);
    }
}
