//! The tables repeat what the code promises: a hand at the SQL prompt is stopped as well.

use holdfast_domain::Event;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::CommitError;
use holdfast_testkit::laws::tenant::{Tenant, finish, not_run, record, refuse};

use self::Why::Says;
use crate::raw::Raw;
use crate::scratch::Home;
use crate::server::Server;

/// One operation of each phase, in the order of their rows: leased, recorded, completed, refused,
/// open, abandoned.
async fn furnish(home: &impl Home) {
    let tenant = Tenant::new(home, 10_000).await;
    tenant.admit(&tenant.claim().build()).await;
    let ends: [fn(&holdfast_domain::Operation) -> Event; 5] = [
        |operation| record(operation, 20, 10),
        |operation| finish(operation, 20, 10),
        refuse,
        not_run,
        holdfast_testkit::laws::tenant::give_up,
    ];
    for end in ends {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, end(&operation)).await;
    }
    let reason = PostingKind::Adjustment("goodwill".to_owned());
    tenant.post(reason, 5).await.unwrap();
    let revoked = tenant.another_api_key().await;
    home.commands().revoke(revoked).await.unwrap();
}

/// Every statement must fail, and say why in these words.
async fn all_are_refused(home: &impl Home, forbidden: &[(&str, Why)]) {
    furnish(home).await;
    let mut raw = Raw::open(home).await;
    for (sql, why) in forbidden {
        let refused = raw.try_run(sql).await;
        let told = refused.as_ref().map_err(ToString::to_string);
        let said = told.as_ref().is_err_and(|told| why.is_in(told, &raw));
        assert!(said, "{sql}: {refused:?}");
    }
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

/// Why a statement is refused: in words of ours, or in those of the databases.
#[derive(Debug, Clone, Copy)]
enum Why {
    Says(&'static str),
    Words { file: &'static str, server: &'static str },
}

impl Why {
    fn is_in(self, told: &str, raw: &Raw) -> bool {
        match (self, raw) {
            (Self::Says(words), _)
            | (Self::Words { file: words, .. }, Raw::File(_))
            | (Self::Words { server: words, .. }, Raw::Server(_)) => told.contains(words),
        }
    }
}

const CHECK: Why = Why::Words { file: "CHECK constraint failed", server: "check constraint" };
const UNIQUE: Why = Why::Words { file: "UNIQUE constraint failed", server: "unique constraint" };
const FOREIGN: Why =
    Why::Words { file: "FOREIGN KEY constraint failed", server: "foreign key constraint" };
const NOT_NULL: Why =
    Why::Words { file: "NOT NULL constraint failed", server: "not-null constraint" };
const NUMBER: Why = Why::Words { file: "cannot store TEXT", server: "invalid input syntax" };

async fn wallets_stay_within_their_bounds(home: &impl Home) {
    all_are_refused(
        home,
        &[
            ("UPDATE wallets SET available = -1", Says("wallet_available")),
            ("UPDATE wallets SET held = -1", Says("wallet_held")),
            ("UPDATE wallets SET available = NULL", NOT_NULL),
            ("UPDATE wallets SET available = 'many'", NUMBER),
            ("UPDATE wallets SET currency = 'EUR'", Says("never change")),
            (
                "UPDATE wallets SET id = randomblob(16)",
                Why::Words { file: "never change", server: "foreign key constraint" },
            ),
            ("UPDATE wallets SET created_at = 0", Says("never change")),
            ("UPDATE wallets SET name = ''", CHECK),
            ("DELETE FROM wallets", Says("never deleted")),
            ("INSERT INTO wallets (seq, id, name, currency, available, held, created_at) SELECT 9, id, 'x', 'USD', 0, 0, 0 FROM wallets", UNIQUE),
            (
                "INSERT INTO wallets (seq, id, name, currency, available, held, created_at) SELECT 9, randomblob(16), name, 'USD', 0, 0, 0 FROM wallets",
                UNIQUE,
            ),
            ("INSERT INTO wallets (seq, id, name, currency, available, held, created_at) VALUES (9, randomblob(16), 'x', 'usd', 0, 0, 0)", CHECK),
            ("INSERT INTO wallets (seq, id, name, currency, available, held, created_at) VALUES (9, randomblob(15), 'x', 'USD', 0, 0, 0)", CHECK),
        ],
    )
    .await;
}

async fn keys_and_prices_keep_what_they_were_made_with(home: &impl Home) {
    all_are_refused(
        home,
        &[
            ("UPDATE api_keys SET wallet_id = randomblob(16)", Says("never change")),
            ("UPDATE api_keys SET concurrency = -1", CHECK),
            ("UPDATE api_keys SET spend_micros = 1", CHECK),
            ("UPDATE api_keys SET spend_micros = 1, spend_window = 'week'", CHECK),
            ("UPDATE api_keys SET models = ''", CHECK),
            ("UPDATE api_keys SET balance = 'guessed'", CHECK),
            ("UPDATE api_keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL", Says("stays")),
            ("DELETE FROM api_keys", Says("never deleted")),
            ("UPDATE credentials SET verifier = randomblob(32)", Says("only the end")),
            ("UPDATE credentials SET api_key_id = randomblob(16)", Says("only the end")),
            (
                "INSERT INTO credentials VALUES (randomblob(16), randomblob(16), randomblob(32),
             randomblob(8), 0, NULL)",
                FOREIGN,
            ),
            ("UPDATE prices SET input = 1", Says("never changes")),
            ("DELETE FROM prices", Says("never deleted")),
            ("INSERT INTO prices SELECT * FROM prices", UNIQUE),
            ("INSERT INTO prices VALUES ('x', 'USD', -1, 0, 0, 0, 0, 0, 0, 0, 0, '')", CHECK),
            ("INSERT INTO prices VALUES ('x', 'usd', 0, 0, 0, 0, 0, 0, 0, 0, 0, '')", CHECK),
            ("UPDATE prices SET tiers = '1 2 3'", Says("never changes")),
            ("UPDATE operations SET provider_cost = -1 WHERE charge IS NOT NULL", CHECK),
            ("UPDATE operations SET provider_cost = 1 WHERE charge IS NULL", CHECK),
        ],
    )
    .await;
}

async fn an_operation_keeps_what_it_is_bound_to(home: &impl Home) {
    all_are_refused(
        home,
        &[
            ("UPDATE operations SET fingerprint = randomblob(32)", Says("bound to never changes")),
            ("UPDATE operations SET body_digest = randomblob(32)", Says("bound to never changes")),
            ("UPDATE operations SET id = randomblob(16)", Says("bound to never changes")),
            ("UPDATE operations SET request_key = randomblob(16)", Says("bound to never changes")),
            ("UPDATE operations SET wallet_id = randomblob(16)", Says("bound to never changes")),
            ("UPDATE operations SET contract = 2", Says("bound to never changes")),
            ("UPDATE operations SET created_at = 0", Says("bound to never changes")),
            ("UPDATE operations SET hold = 1 WHERE seq = 1", Says("admitted with never changes")),
            (
                "UPDATE operations SET claim = randomblob(16) WHERE seq = 1",
                Says("admitted with never"),
            ),
            (
                "UPDATE operations SET deadline = 9e18 WHERE seq = 1",
                Says("admitted with never changes"),
            ),
            (
                "UPDATE operations SET generation = 0 WHERE seq = 5",
                Why::Words { file: "next generation", server: "check constraint" },
            ),
            (
                "UPDATE operations SET generation = 3, version = 3, phase = 'leased' WHERE seq = 5",
                Says("next generation"),
            ),
            ("UPDATE operations SET generation = 2 WHERE seq = 5", Says("next generation")),
            ("UPDATE operations SET generation = 2 WHERE seq = 3", Says("next generation")),
            ("UPDATE operations SET version = 0", CHECK),
            ("UPDATE operations SET cancel_asked = 2", CHECK),
            ("DELETE FROM operations", Says("never deleted")),
            ("INSERT INTO operations SELECT * FROM operations WHERE seq = 1", UNIQUE),
        ],
    )
    .await;
}

async fn a_phase_has_its_columns_and_no_others(home: &impl Home) {
    let usage = "input = 1, cached_input = 0, cache_write = 0, audio_input = 0, output = 0,
        reasoning = 0, audio_output = 0, request = 1, image = 0, meters_source = 'reported',
        charge = 1, shortfall = 0";
    let lacking = usage.replace(", image = 0", "");
    let owned = [
        format!("UPDATE operations SET {usage} WHERE seq IN (1, 4, 5, 6)"),
        format!("UPDATE operations SET phase = 'recorded', {lacking} WHERE seq = 1"),
        format!("UPDATE operations SET phase = 'completed', {usage} WHERE seq = 1"),
    ];
    let mut forbidden = vec![
        ("UPDATE operations SET phase = 'gone' WHERE seq = 1", Says("operation_phase")),
        ("UPDATE operations SET phase = 'completed' WHERE seq = 1", CHECK),
        ("UPDATE operations SET phase = 'recorded' WHERE seq = 1", Says("operation_usage")),
        ("UPDATE operations SET phase = 'refused', finished_at = 1 WHERE seq = 1", CHECK),
        ("UPDATE operations SET phase = 'abandoned' WHERE seq = 1", Says("operation_phase")),
        ("UPDATE operations SET phase = 'leased' WHERE seq = 3", CHECK),
        ("UPDATE operations SET finished_at = 1 WHERE seq IN (1, 2, 5)", Says("operation_phase")),
        (
            "UPDATE operations SET finished_at = NULL WHERE seq IN (3, 4, 6)",
            Says("operation_phase"),
        ),
        ("UPDATE operations SET refusal = 'request' WHERE seq <> 4", Says("operation_phase")),
        ("UPDATE operations SET refusal = NULL WHERE seq = 4", Says("operation_phase")),
        ("UPDATE operations SET refusal = 'rude' WHERE seq = 4", CHECK),
        (
            "UPDATE operations SET charge = NULL, provider_cost = NULL WHERE seq IN (2, 3)",
            Says("operation_usage"),
        ),
        ("UPDATE operations SET input = NULL WHERE seq IN (2, 3)", Says("operation_usage")),
        ("UPDATE operations SET meters_source = NULL WHERE seq IN (2, 3)", Says("operation_usage")),
        ("UPDATE operations SET meters_source = 'guessed' WHERE seq = 3", CHECK),
        ("UPDATE operations SET charge = 101 WHERE seq = 3", CHECK),
        ("UPDATE operations SET charge = -1 WHERE seq = 3", CHECK),
        ("UPDATE operations SET shortfall = 1 WHERE seq = 3", CHECK),
        ("UPDATE operations SET shortfall = -1 WHERE seq = 3", CHECK),
        ("UPDATE operations SET output = 1099511627777 WHERE seq = 3", CHECK),
        ("UPDATE operations SET image = -1 WHERE seq = 3", CHECK),
    ];
    forbidden.extend(owned.iter().map(|sql| (sql.as_str(), CHECK)));
    all_are_refused(home, &forbidden).await;
}

async fn the_book_is_append_only_and_each_effect_happens_once(home: &impl Home) {
    all_are_refused(home, &[
        ("UPDATE transfers SET amount = amount + 1", Says("append-only")),
        ("DELETE FROM transfers", Says("append-only")),
        ("INSERT INTO transfers SELECT * FROM transfers", UNIQUE),
        ("INSERT INTO transfers VALUES (1, 9, 0, 0, NULL)", CHECK),
        ("INSERT INTO transfers VALUES (1, 9, -5, 0, NULL)", CHECK),
        ("INSERT INTO transfers VALUES (1, 7, 5, 0, NULL)", CHECK),
        ("INSERT INTO transfers VALUES (1, 13, 5, 0, NULL)", CHECK),
        ("UPDATE postings SET amount = 6", Says("append-only")),
        ("DELETE FROM postings", Says("append-only")),
        ("INSERT INTO postings SELECT 99, id, wallet_id, kind, NULL, amount, reason, 0, NULL FROM postings
          WHERE kind = 'adjustment'", UNIQUE),
        (
            "INSERT INTO postings SELECT 99, randomblob(16), id, 'deposit', NULL, -5, NULL, 0, NULL
             FROM wallets",
            Says("posting_kind"),
        ),
        (
            "INSERT INTO postings SELECT 99, randomblob(16), id, 'adjustment', NULL, 5, NULL, 0, NULL
             FROM wallets",
            Says("posting_kind"),
        ),
        (
            "INSERT INTO postings SELECT 99, randomblob(16), id, 'refund', NULL, 5, NULL, 0, NULL
             FROM wallets",
            Says("posting_kind"),
        ),
        (
            "INSERT INTO postings SELECT 99, randomblob(16), id, 'refund', randomblob(16), 5, NULL,
             0, NULL FROM wallets",
            FOREIGN,
        ),
        (
            "INSERT INTO postings SELECT 99, randomblob(16), id, 'gift', NULL, 5, NULL, 0, NULL
             FROM wallets",
            Says("posting_kind"),
        ),
    ])
    .await;
}

#[tokio::test]
async fn postgres_what_runs_is_not_forgotten_at_once() {
    let home = Server::make().await;
    all_are_refused(&home, &[("TRUNCATE running", Says("nobody finds"))]).await;
}

/// By these the writer tells a caller who is short of funds.
#[tokio::test]
async fn postgres_a_wallet_out_of_its_bounds_is_told_by_code_and_name() {
    let home = Server::make().await;
    furnish(&home).await;
    let mut raw = Raw::open(&home).await;
    for (column, name) in [("available", "wallet_available"), ("held", "wallet_held")] {
        let refused = raw.try_run(&format!("UPDATE wallets SET {column} = {column} - 20000")).await;
        let refused = refused.unwrap_err();
        let told = refused.as_database_error().unwrap();
        assert_eq!((told.code().as_deref(), told.constraint()), (Some("23514"), Some(name)));
    }
}

#[tokio::test]
async fn postgres_whatever_else_a_statement_updates_an_operation_stays_bound() {
    let home = Server::make().await;
    let harmless = "UPDATE operations SET cancel_asked = 1, version = version + 1 WHERE seq = 1";
    let forbidden = "UPDATE operations SET wallet_id = sha256(wallet_id) WHERE seq = 2";
    let [first, last] = [(forbidden, harmless), (harmless, forbidden)]
        .map(|(one, other)| format!("WITH one AS ({one}) {other}"));
    let why = Says("bound to never changes");
    all_are_refused(&home, &[(first.as_str(), why), (last.as_str(), why)]).await;
}

async fn results_do_not_change_and_wait_for_their_settlement(home: &impl Home) {
    all_are_refused(
        home,
        &[
            ("UPDATE results SET sealed = zeroblob(1)", Says("never changes")),
            ("UPDATE results SET nonce = zeroblob(12)", Says("never changes")),
            ("DELETE FROM results WHERE op_seq = 2", Says("until it is settled")),
            ("INSERT INTO results SELECT * FROM results WHERE op_seq = 3", UNIQUE),
            (
                "INSERT INTO results (op_seq, credential_id, format, nonce, sealed)
                 VALUES (1, zeroblob(16), 256, zeroblob(12), zeroblob(0))",
                CHECK,
            ),
            (
                "INSERT INTO results (op_seq, credential_id, format, nonce, sealed)
                 VALUES (1, zeroblob(16), 1, zeroblob(11), zeroblob(0))",
                CHECK,
            ),
            ("INSERT INTO counters VALUES (zeroblob(16), 8, 0, 0)", CHECK),
            ("INSERT INTO counters VALUES (zeroblob(16), 0, 0, -1)", CHECK),
            ("INSERT INTO nodes VALUES ('', zeroblob(16), 0, NULL, NULL)", CHECK),
            ("INSERT INTO nodes VALUES ('a', zeroblob(1), 0, NULL, NULL)", CHECK),
            ("INSERT INTO nodes VALUES ('a', zeroblob(16), 0, ':1', NULL)", CHECK),
            ("INSERT INTO nodes VALUES ('a', zeroblob(16), 0, NULL, zeroblob(1))", CHECK),
        ],
    )
    .await;
}

/// A reason that nobody thought of: a rule that a hand has added.
async fn an_ending_that_any_constraint_refuses_is_recorded_and_settles_when_that_is_gone(
    home: &impl Home,
) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let mut raw = Raw::open(home).await;
    let rule = "ALTER TABLE operations ADD COLUMN unforeseen INTEGER
        CHECK (unforeseen IS NOT NULL OR phase <> 'completed')";
    raw.run(rule).await;
    let refused = tenant.offer_event(operation.id, finish(&operation, 10, 10)).await;
    assert!(matches!(refused, Err(CommitError::Collision)), "{refused:?}");
    tenant.step(operation.id, record(&operation, 10, 10)).await;
    let refused = tenant.offer_event(operation.id, Event::Settle).await;
    assert!(matches!(refused, Err(CommitError::Collision)), "{refused:?}");
    raw.run("ALTER TABLE operations DROP COLUMN unforeseen").await;
    tenant.step(operation.id, Event::Settle).await;
    assert_eq!(tenant.balances().await, (980, 0));
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

crate::scratch::on_every_store! {
    an_ending_that_any_constraint_refuses_is_recorded_and_settles_when_that_is_gone,
    wallets_stay_within_their_bounds,
    keys_and_prices_keep_what_they_were_made_with,
    an_operation_keeps_what_it_is_bound_to,
    a_phase_has_its_columns_and_no_others,
    the_book_is_append_only_and_each_effect_happens_once,
    results_do_not_change_and_wait_for_their_settlement,
}
