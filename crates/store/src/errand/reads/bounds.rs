//! Reads of counts that are judged by a bound.
//!
//! A count of what a wallet has ends at its bound: the bound is all that is judged, and a wallet may have a million
//! rows that are not in force. An index has those in force alone.

use holdfast_domain::admin::{AdminKey, EmailAddress, Reach};
use holdfast_domain::{AdminKeyId, ApiKeyId, Timestamp, WalletId};
use sea_orm::Statement;

use super::Read;
use crate::dialect::{Dialect, blob};
use crate::rows::person::of_email;

/// Keys in force of a wallet, those without an end first. Each condition on `revoked_at` is the one of the partial
/// index, letter by letter.
macro_rules! in_force {
    ($table:literal) => {
        concat!(
            "SELECT (SELECT count(*) FROM (SELECT k.id FROM ",
            $table,
            " AS k WHERE k.wallet_id = $1 AND k.revoked_at IS NULL AND k.ends_at IS NULL
              LIMIT $3) AS lasting)
            + (SELECT count(*) FROM (SELECT k.id FROM ",
            $table,
            " AS k WHERE k.wallet_id = $1 AND k.revoked_at IS NULL AND k.ends_at > $2
              LIMIT $3) AS ending)"
        )
    };
}

/// By the index `api_keys_in_force`.
pub(crate) const API_KEYS: &str = in_force!("api_keys");
/// By the index `admin_keys_in_force`.
pub(crate) const ADMIN_KEYS: &str = in_force!("admin_keys");
const CREDENTIALS: &str = "SELECT count(*) FROM credentials AS c
    WHERE c.api_key_id = $1 AND (c.ends_at IS NULL OR c.ends_at > $2)";
const ADMIN_CREDENTIALS: &str = "SELECT count(*) FROM admin_credentials AS c
    WHERE c.admin_key_id = $1 AND (c.ends_at IS NULL OR c.ends_at > $2)";

/// API keys in force of a wallet.
pub(super) fn api_keys(dialect: Dialect, wallet: WalletId, bound: u32, now: Timestamp) -> Read {
    let binds = [blob(wallet.to_bytes()), now.as_micros().into(), i64::from(bound).into()];
    in_force(dialect.statement(API_KEYS, binds))
}

/// Admin keys in force of the wallet of a new one, but for one that takes its name over.
pub(super) fn admin_keys(
    dialect: Dialect,
    key: &AdminKey,
    bound: u32,
    now: Timestamp,
) -> Option<Read> {
    let Reach::Wallet(wallet) = key.reach else { return None };
    let binds = [blob(wallet.to_bytes()), now.as_micros().into(), i64::from(bound).into()];
    Some(in_force(dialect.statement(ADMIN_KEYS, binds)))
}

/// People of a wallet, and people who are invited there by a link of this version or of the one before, but for whoever has the address. One more than the bound is
/// read of each: the person of the address may be among them.
pub(super) fn people(dialect: Dialect, wallet: WalletId, email: &EmailAddress, bound: u32) -> Read {
    let (is_of_email, mut binds) = of_email(email);
    let (wallet_at, limit_at) = (binds.len().saturating_add(1), binds.len().saturating_add(2));
    binds.extend([blob(wallet.to_bytes()), i64::from(bound).saturating_add(1).into()]);
    let sql = format!(
        "SELECT count(*) FROM (
            SELECT g.person_id FROM (SELECT g.person_id FROM person_grants AS g
                WHERE g.wallet_id = ${wallet_at} LIMIT ${limit_at}) AS g
            UNION
            SELECT l.person_id FROM (SELECT l.person_id FROM person_wallet_links AS l
                WHERE l.wallet_id = ${wallet_at} AND l.used_at IS NULL LIMIT ${limit_at}) AS l
            UNION
            SELECT l.person_id FROM (SELECT l.person_id FROM person_links AS l
                WHERE l.wallet_id = ${wallet_at} AND l.used_at IS NULL LIMIT ${limit_at}) AS l
        ) AS of_wallet
        WHERE NOT EXISTS (SELECT 1 FROM people AS p
            WHERE p.id = of_wallet.person_id AND {is_of_email})"
    );
    in_force(Statement::from_sql_and_values(dialect.backend(), sql, binds))
}

/// Credentials in force of an API key.
pub(super) fn credentials(dialect: Dialect, key: ApiKeyId, now: Timestamp) -> Read {
    let binds = [blob(key.to_bytes()), now.as_micros().into()];
    credentials_of(dialect.statement(CREDENTIALS, binds))
}

/// Credentials in force of an admin key.
pub(super) fn admin_credentials(dialect: Dialect, key: AdminKeyId, now: Timestamp) -> Read {
    let binds = [blob(key.to_bytes()), now.as_micros().into()];
    credentials_of(dialect.statement(ADMIN_CREDENTIALS, binds))
}

fn in_force(statement: Statement) -> Read {
    Read {
        statement,
        take: |findings, cells| {
            findings.facts.in_force = cells.small()?;
            Ok(())
        },
    }
}

fn credentials_of(statement: Statement) -> Read {
    Read {
        statement,
        take: |findings, cells| {
            findings.facts.credentials = cells.small()?;
            Ok(())
        },
    }
}
