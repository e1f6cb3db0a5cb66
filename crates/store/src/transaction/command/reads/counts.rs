//! Reads of counts that are judged by a bound.
//!
//! A count of a wallet's rows ends at its bound: only the bound is judged, and a wallet may have a million rows
//! that are not in force. An index has only those in force.

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::{Count, EmailAddress};
use holdfast_domain::{Timestamp, WalletId};
use sea_orm::Statement;

use crate::rows::person::of_email;
use crate::schema::{Dialect, blob};

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

const WEBHOOKS: &str =
    "SELECT count(*) FROM webhooks AS h WHERE h.disabled_at IS NULL AND h.id <> $1";
const WEBHOOKS_BESIDE: &str =
    "SELECT count(*) FROM webhooks AS h JOIN webhooks AS own ON own.id = $1
        WHERE h.disabled_at IS NULL AND h.id <> own.id
        AND (h.wallet_id = own.wallet_id OR (h.wallet_id IS NULL AND own.wallet_id IS NULL))";
const RECENT_TESTS: &str =
    "SELECT count(*) FROM (SELECT d.event_seq, d.created_at FROM deliveries AS d
            WHERE d.webhook_id = $1 ORDER BY d.seq DESC LIMIT 1000) AS d
        JOIN events AS e ON e.seq = d.event_seq WHERE e.kind = $2 AND d.created_at > $3";
const DELIVERIES: &str =
    "SELECT count(*) FROM deliveries AS d JOIN events AS e ON e.seq = d.event_seq
        WHERE d.webhook_id = $1 AND e.id = $2";
/// Span in which tests are counted, in microseconds.
const MINUTE: i64 = 60_000_000;

/// The statement of a count.
pub(super) fn statement(dialect: Dialect, of: Count<'_>, now: Timestamp) -> Statement {
    let now = now.as_micros();
    let bounded = |sql, wallet: WalletId, bound: u32| {
        dialect.statement(sql, [blob(wallet.to_bytes()), now.into(), i64::from(bound).into()])
    };
    match of {
        Count::ApiKeys(wallet, bound) => bounded(API_KEYS, wallet, bound),
        Count::AdminKeys(wallet, bound) => bounded(ADMIN_KEYS, wallet, bound),
        Count::People(wallet, email, bound) => people(dialect, wallet, email, bound),
        Count::Credentials(key) => {
            dialect.statement(CREDENTIALS, [blob(key.to_bytes()), now.into()])
        }
        Count::AdminCredentials(key) => {
            dialect.statement(ADMIN_CREDENTIALS, [blob(key.to_bytes()), now.into()])
        }
        Count::WebhooksOf(Some(wallet), but) => {
            let sql = format!("{WEBHOOKS} AND h.wallet_id = $2");
            dialect.statement(&sql, [blob(but.to_bytes()), blob(wallet.to_bytes())])
        }
        Count::WebhooksOf(None, but) => {
            let sql = format!("{WEBHOOKS} AND h.wallet_id IS NULL");
            dialect.statement(&sql, [blob(but.to_bytes())])
        }
        Count::WebhooksBeside(id) => dialect.statement(WEBHOOKS_BESIDE, [blob(id.to_bytes())]),
        Count::RecentTests(id) => {
            let kind = EventKind::WebhookTest.label().into();
            let since = now.saturating_sub(MINUTE).into();
            dialect.statement(RECENT_TESTS, [blob(id.to_bytes()), kind, since])
        }
        Count::Deliveries(id, event) => {
            dialect.statement(DELIVERIES, [blob(id.to_bytes()), blob(event.to_bytes())])
        }
    }
}

/// People of a wallet, and people who are invited there by a link of this version or of the one before, except for
/// the person of the address. One more than the bound is read of each: the person of the address may be among them.
fn people(dialect: Dialect, wallet: WalletId, email: &EmailAddress, bound: u32) -> Statement {
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
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}
