//! The audit finds what does not fit, whoever broke it, and nothing where all is well.

mod administration;
mod boundaries;
mod broken;
mod fields;
mod pages;
mod trail;

use std::time::Duration;

use holdfast_domain::ledger::PostingKind;
use holdfast_domain::limits::{Limits, SpendLimit, SpendWindow};
use holdfast_domain::{Event, Journal as _, Micros};
use holdfast_store::verify::{AuditOptions, Verification};
use holdfast_testkit::laws::Stores;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, record, refuse};

use crate::raw::Raw;
use crate::scratch::{Home, Scratch};
use crate::server::Server;

/// Rows of each kind. Operations by their numbers: 1 leased, 2 recorded, 3 completed and refunded,
/// 4 refused, 5 open, 6 abandoned, 7 completed in its second generation, 8 completed for nothing, 9 and 10
/// completed under limits of a minute, a day and a month.
async fn fill(opened: &dyn Stores) {
    let tenant = Tenant::new(opened, 10_000).await;
    let spend = SpendLimit { micros: Micros::new(9_000), window: SpendWindow::Total };
    let limits = Limits { concurrency: Some(9), spend: Some(spend), ..Limits::default() };
    let claim = || tenant.claim().limits(limits);
    tenant.admit(&claim().build()).await;
    let ends: [fn(&holdfast_domain::Operation) -> Event; 5] =
        [|o| record(o, 20, 10), |o| finish(o, 20, 10), refuse, not_run, give_up];
    for end in ends {
        let operation = tenant.admit(&claim().build()).await;
        tenant.step(operation.id, end(&operation)).await;
        if operation_is_completed(&tenant, operation.id).await {
            tenant.post(PostingKind::Refund(operation.id), 5).await.unwrap();
        }
    }
    let again = claim();
    let first = tenant.admit(&again.clone().build()).await;
    tenant.step(first.id, not_run(&first)).await;
    let again = again.claim_id(holdfast_testkit::sample::fresh()).build();
    let second = tenant.step(first.id, Event::Claim(Box::new(again))).await;
    tenant.step(second.id, finish(&second, 500, 0)).await;
    let free = tenant.admit(&tenant.claim().hold(0).build()).await;
    tenant.step(free.id, finish(&free, 0, 0)).await;
    for window in [SpendWindow::Day, SpendWindow::Month] {
        let spend = Some(SpendLimit { micros: Micros::new(9_000), window });
        let (requests_per_minute, tokens_per_minute) = (Some(9), Some(9_000));
        let limits = Limits { requests_per_minute, tokens_per_minute, spend, concurrency: None };
        let limited = tenant.admit(&tenant.claim().limits(limits).build()).await;
        tenant.step(limited.id, finish(&limited, 20, 10)).await;
    }
    tenant.post(PostingKind::Adjustment("goodwill".to_owned()), -7).await.unwrap();
}

async fn operation_is_completed(tenant: &Tenant<'_>, id: holdfast_domain::OperationId) -> bool {
    let row = tenant.load(id).await.operation.unwrap();
    matches!(row.phase, holdfast_domain::Phase::Completed { .. })
}

async fn a_book_that_the_store_wrote_is_in_order(home: &impl Home) {
    fill(home).await;
    let found = home.store().verify().await.unwrap();
    // 8 holds but one of nothing; settle and rest, settle alone; 5 releases; 3 postings; two of three more.
    let expected = Verification {
        notes: Vec::new(),
        wallets: 1,
        operations: 10,
        transfers: 8 + 3 + 4 + 3 + 6,
        mismatches: Vec::new(),
        unlisted: 0,
    };
    assert_eq!(found, expected);
}

/// Breaks a book and expects a mismatch that says this of this kind of subject.
async fn finds<H: Home>(home: &H, sql: &str, subject: &str, sentence: &str) {
    finds_all(home, sql, subject, &[sentence]).await;
}

/// The same in several places at once.
async fn finds_all<H: Home>(_: &H, sql: &str, subject: &str, sentences: &[&str]) {
    let home = H::make().await;
    fill(&home).await;
    Raw::reckless(&home).await.run(sql).await;
    let found = home.store().verify().await.unwrap();
    let told: Vec<String> = found.mismatches.iter().map(ToString::to_string).collect();
    assert_eq!(told.is_empty(), sentences.is_empty(), "{sql}: {told:#?}");
    for sentence in sentences {
        let is_found = told.iter().any(|told| told.starts_with(subject) && told.contains(sentence));
        assert!(is_found, "{sql}: {sentence}: {told:#?}");
    }
}

async fn balances_that_were_touched_are_found(home: &impl Home) {
    finds(home, "UPDATE wallets SET available = available + 1", "wallet", "available is").await;
    finds(home, "UPDATE wallets SET held = held - 1", "wallet", "its active holds make 200").await;
    finds(home, "UPDATE wallets SET held = held - 1", "wallet", "its transfers make 200").await;
    finds(home, "DELETE FROM postings WHERE kind = 'deposit'", "wallet", "take more than").await;
    finds(home, "UPDATE postings SET amount = 1 WHERE kind = 'adjustment'", "wallet", "available")
        .await;
    finds(home, "DELETE FROM wallets", "operation", "its wallet does not exist").await;
    finds(home, "DELETE FROM wallets", "posting", "its wallet does not exist").await;
    finds(home, "UPDATE wallets SET currency = 'EUR'", "operation", "another currency").await;
    finds(home, "UPDATE wallets SET currency = 'eu'", "wallet", "cannot be read").await;
}

async fn transfers_that_were_touched_are_found(home: &impl Home) {
    let of = |sql: &'static str| finds(home, sql, "operation", "the transfers of its generation");
    of("DELETE FROM transfers WHERE op_seq = 1").await;
    of("DELETE FROM transfers WHERE op_seq = 3 AND leg = 9").await;
    of("UPDATE transfers SET amount = 31 WHERE op_seq = 3 AND leg = 9").await;
    of("UPDATE transfers SET leg = 9 WHERE op_seq = 4 AND leg = 11").await;
    of("INSERT INTO transfers VALUES (1, 9, 100, 0, NULL)").await;
    of("INSERT INTO transfers VALUES (8, 8, 1, 0, NULL)").await;
    of("INSERT INTO transfers VALUES (6, 16, 1, 0, NULL)").await;
    of("INSERT INTO transfers VALUES (6, 0, 1, 0, NULL)").await;
    of("DELETE FROM transfers WHERE op_seq = 7 AND leg = 11").await;
    of("UPDATE transfers SET amount = 99 WHERE op_seq = 7 AND leg = 8").await;
    of("UPDATE operations SET hold = 101 WHERE seq = 6").await;
    finds(home, "INSERT INTO transfers VALUES (99, 8, 1, 0, NULL)", "the ledger", "1 ").await;
    finds(home, "UPDATE transfers SET leg = -8 WHERE op_seq = 2", "operation", "be read").await;
}

async fn phases_that_were_touched_are_found(home: &impl Home) {
    let of = |sql: &'static str| finds(home, sql, "operation", "the transfers of its generation 1");
    // Active without a hold, released with one, captured without a settlement.
    of("UPDATE operations SET phase = 'leased' WHERE seq = 5").await;
    of("UPDATE operations SET phase = 'open' WHERE seq = 1").await;
    of("UPDATE operations SET phase = 'abandoned', finished_at = 1 WHERE seq = 1").await;
    of("UPDATE operations SET phase = 'completed', finished_at = 1 WHERE seq = 2").await;
    of("UPDATE operations SET phase = 'recorded', finished_at = NULL WHERE seq = 3").await;
    finds(home, "UPDATE operations SET phase = 'completed' WHERE seq = 1", "operation", "be read")
        .await;
    finds(home, "UPDATE operations SET input = NULL WHERE seq = 3", "operation", "be read").await;
    finds(home, "UPDATE operations SET phase = 'gone' WHERE seq = 1", "operation", "be read").await;
}

async fn charges_and_refunds_that_were_touched_are_found(home: &impl Home) {
    finds(
        home,
        "UPDATE operations SET charge = 29 WHERE seq = 3",
        "operation",
        "its meters make 30",
    )
    .await;
    finds(home, "UPDATE operations SET input = 21 WHERE seq = 3", "operation", "make 31 and 0")
        .await;
    finds(home, "UPDATE operations SET shortfall = 1 WHERE seq = 7", "operation", "100 and 400")
        .await;
    finds(home, "UPDATE operations SET charge = 29 WHERE seq = 2", "operation", "its meters make")
        .await;
    finds(home, "UPDATE prices SET output = 0", "operation", "its meters make").await;
    finds(home, "DELETE FROM prices", "operation", "cannot be read").await;
    let refunds = "UPDATE postings SET amount = 31 WHERE kind = 'refund'";
    finds(home, refunds, "operation", "31 micros were refunded of a charge of 30").await;
    let moved = "UPDATE postings SET operation_id = (SELECT id FROM operations WHERE seq = 1)
        WHERE kind = 'refund'";
    finds(home, moved, "operation", "5 micros were refunded of a charge of 0").await;
    let nobody = "UPDATE postings SET operation_id = zeroblob(16) WHERE kind = 'refund'";
    finds(home, nobody, "operation", "refunded and does not exist").await;
    let other = "INSERT INTO wallets (seq, id, name, currency, available, held, created_at) VALUES (9, zeroblob(16), 'x', 'USD', 5, 0, 0);
        UPDATE postings SET wallet_id = zeroblob(16) WHERE kind = 'refund'";
    finds(home, other, "operation", "refunded to another wallet").await;
    finds(home, "UPDATE postings SET kind = 'gift'", "posting", "cannot be read").await;
    // Balances that follow do not hide an amount that no posting of its kind may have.
    let taken = "UPDATE postings SET amount = -5 WHERE kind = 'refund';
        UPDATE wallets SET available = available - 10";
    finds(home, taken, "posting", "it is a refund of -5 micros").await;
    let taken =
        "INSERT INTO postings SELECT 9, randomblob(16), id, 'deposit', NULL, -5, NULL, 0, NULL
        FROM wallets; UPDATE wallets SET available = available - 5";
    finds(home, taken, "posting", "it is a deposit of -5 micros").await;
    let twice = "INSERT INTO postings SELECT 9, randomblob(16), wallet_id, kind, operation_id, 26,
        NULL, 0, NULL FROM postings WHERE kind = 'refund'; UPDATE wallets SET available = available + 26";
    finds(home, twice, "operation", "31 micros were refunded of a charge of 30").await;
    finds(
        home,
        "UPDATE postings SET reason = NULL WHERE kind = 'adjustment'",
        "posting",
        "be read",
    )
    .await;
    finds(home, "UPDATE postings SET amount = 7 WHERE kind = 'adjustment'", "wallet", "available")
        .await;
}

async fn ids_results_and_counters_that_were_touched_are_found(home: &impl Home) {
    finds(home, "UPDATE operations SET id = zeroblob(16) WHERE seq = 1", "operation", "its id")
        .await;
    let other_key = "UPDATE operations SET api_key_id = zeroblob(16) WHERE seq = 6";
    finds(home, other_key, "operation", "its id does not follow").await;
    finds(home, "DELETE FROM api_keys", "operation", "its API key does not exist").await;
    let given = |seq: u8| {
        format!(
            "INSERT INTO results (op_seq, credential_id, format, nonce, sealed)
             VALUES ({seq}, zeroblob(16), 1, zeroblob(12), zeroblob(0))"
        )
    };
    finds(home, &given(1), "operation", "it is leased and has a result").await;
    finds(home, &given(5), "operation", "it is open and has a result").await;
    finds(home, &given(6), "operation", "it is abandoned and has a result").await;
    finds(home, &given(99), "the ledger", "belong to no operation").await;
    finds(home, "DELETE FROM results WHERE op_seq = 2", "operation", "its result is gone").await;
    finds(home, "UPDATE results SET finished_at = 1", "operation", "another moment").await;
    finds(home, "UPDATE counters SET used = used + 1 WHERE counter = 2", "API key", "concurrency")
        .await;
    finds(home, "DELETE FROM counters WHERE counter = 2", "API key", "not counted").await;
    finds(home, "UPDATE counters SET used = 0 WHERE counter = 3", "API key", "spend_total").await;
}

async fn what_was_given_up_is_not_what_did_not_run(home: &impl Home) {
    let other = "UPDATE operations SET phase = 'open', finished_at = NULL WHERE seq = 6;
        UPDATE operations SET phase = 'abandoned', finished_at = 1 WHERE seq = 5";
    let lapsed = "the transfers of its generation 1 are hold 100 (available to held), lapse 100";
    let should_lapse = "they should be hold 100 (available to held), lapse 100";
    finds_all(home, other, "operation", &[lapsed, should_lapse]).await;
}

async fn generations_that_are_over_are_found_where_both_their_sides_were_touched(home: &impl Home) {
    let of = async |sql: &str, found: [&str; 2]| finds_all(home, sql, "operation", &found).await;
    of(
        "DELETE FROM transfers WHERE op_seq = 7 AND leg < 16;
         UPDATE operations SET released = 1 WHERE seq = 1",
        [
            "its earlier generations held 0 micros by its transfers and 100 by its row",
            "0 micros by its transfers and 1 by its row",
        ],
    )
    .await;
    of(
        "UPDATE transfers SET amount = 99 WHERE op_seq = 7 AND leg < 16;
         UPDATE operations SET version = 1, cancel_asked = 1 WHERE seq = 1",
        ["its earlier generations held 99 micros", "its version is 1, its generations make 2"],
    )
    .await;
    of(
        "UPDATE operations SET released = NULL, version = 3 WHERE seq = 7",
        ["100 micros by its transfers and 0", "its version is 3, its generations make 4"],
    )
    .await;
}

async fn what_an_operation_is_bound_to_is_compared(home: &impl Home) {
    let moved = "INSERT INTO wallets (seq, id, name, currency, available, held, created_at) VALUES (9, zeroblob(16), 'x', 'USD', 0, 0, 0);
        UPDATE api_keys SET wallet_id = zeroblob(16);
        UPDATE operations SET model = 'other/model' WHERE seq = 3";
    let told = ["its wallet is not that of its API key", "is not of its model other/model"];
    finds_all(home, moved, "operation", &told).await;
    let renamed = "UPDATE prices SET price_version = replace(price_version, '/USD/', '/EUR/');
        UPDATE operations SET price_version = replace(price_version, '/USD/', '/EUR/')";
    finds(home, renamed, "operation", "is in USD").await;
}

async fn moments_are_those_of_the_transfers(home: &impl Home) {
    let other = "UPDATE operations SET finished_at = admitted_at - 1 WHERE seq = 6;
        UPDATE operations SET admitted_at = admitted_at - 1 WHERE seq = 1";
    let told = ["it was finished at another moment", "it was admitted at another moment"];
    finds_all(home, other, "operation", &told).await;
}

/// As a purge of the results of the operations 3 and 4 notes it.
const PURGED: &str = "INSERT INTO results_purged
    SELECT 1, max(finished_at) FROM operations WHERE seq IN (3, 4)";

async fn results_that_no_purge_deleted_are_found_also_if_none_is_left(home: &impl Home) {
    fill(home).await;
    Raw::reckless(home).await.run("DELETE FROM results WHERE finished_at IS NOT NULL").await;
    let hour = AuditOptions::keeping(Duration::from_secs(3_600));
    let told = home.store().verify_by(hour, |_progress| {}).await.unwrap().mismatches;
    let gone = told.iter().filter(|it| it.sentence.contains("no purge has deleted one so young"));
    assert!(gone.count() >= 3, "{told:?}");
    // A purge notes what it deletes, so that nothing is reported after it.
    fill(home).await;
    while home.store().purge(Duration::ZERO, 1).await.unwrap() > 0 {}
    let hour = AuditOptions::keeping(Duration::from_secs(3_600));
    let told = home.store().verify_by(hour, |_progress| {}).await.unwrap().mismatches;
    assert_eq!(told, []);
}

async fn results_go_in_the_order_of_their_age(home: &impl Home) {
    let gone = "DELETE FROM results WHERE op_seq = 4";
    finds(home, gone, "operation", "its result is gone, and older ones are kept").await;
    fill(home).await;
    Raw::reckless(home).await.run("DELETE FROM results WHERE op_seq IN (3, 4)").await;
    let told = home.store().verify().await.unwrap().mismatches;
    assert!(told.iter().all(|it| it.sentence.contains("no purge has deleted one so young")));
    assert_eq!(told.len(), 2, "the oldest, and by no purge: {told:?}");
    Raw::open(home).await.run(PURGED).await;
    assert_eq!(home.store().verify().await.unwrap().mismatches, [], "a purge takes the oldest");
    Raw::open(home).await.run("DELETE FROM results WHERE op_seq = 9").await;
    let kept_for =
        |retention| home.store().verify_by(AuditOptions::keeping(retention), |_progress| {});
    assert_eq!(kept_for(Duration::ZERO).await.unwrap().mismatches, [], "all are due");
    let told = kept_for(Duration::from_secs(3_600)).await.unwrap().mismatches;
    assert_eq!(told.len(), 1, "{told:?}");
}

async fn counters_of_every_window_are_recomputed(home: &impl Home) {
    let labels = ["requests", "tokens", "spend_day", "spend_month"];
    let of = async |sql: &str, told: [String; 4]| {
        finds_all(home, sql, "API key", &told.each_ref().map(String::as_str)).await;
    };
    let stands = labels.map(|label| format!("its counter {label} stands at"));
    of("UPDATE counters SET used = used + 9000 WHERE counter IN (0, 1, 4, 5)", stands).await;
    let missing = labels.map(|label| format!("of {label}, which is not counted"));
    of("DELETE FROM counters WHERE counter IN (0, 1, 4, 5)", missing).await;
    let other = "UPDATE counters SET window_start = window_start - 86400000000 WHERE counter = 4";
    finds(home, other, "API key", "its counter spend_day stands at 30, its operations make 0")
        .await;
}

async fn a_refund_that_calls_itself_a_deposit_is_found_by_what_it_names(home: &impl Home) {
    let kind = "UPDATE postings SET kind = 'deposit' WHERE kind = 'refund'";
    finds(home, kind, "posting", "cannot be read").await;
}

async fn results_are_sealed_for_the_api_key_of_their_operation(home: &impl Home) {
    let another = "INSERT INTO api_keys (seq, id, wallet_id, name, balance, created_at)
            SELECT 2, zeroblob(16), id, 'other', 'shown', 0 FROM wallets;
        INSERT INTO credentials SELECT zeroblob(16), zeroblob(16), verifier, server_secret, 0, NULL
            FROM credentials;
        UPDATE results SET credential_id = zeroblob(16) WHERE op_seq = 3";
    finds(home, another, "operation", "its result is sealed for another API key").await;
}

async fn a_first_generation_was_admitted_when_its_operation_was_made(home: &impl Home) {
    // It holds nothing, and has no transfer that says a moment.
    let other = "UPDATE operations SET created_at = created_at - 1 WHERE seq = 8";
    finds(home, other, "operation", "it was made at another moment").await;
    let finished = "UPDATE operations SET finished_at = finished_at + 1 WHERE seq = 8";
    finds(home, finished, "operation", "its result has another moment").await;
}

async fn sealed_bytes_show_their_shape_and_no_more(home: &impl Home) {
    let result = |set: &str| format!("UPDATE results SET {set} WHERE op_seq = 3");
    let of = async |set: &str, told: &str| finds(home, &result(set), "operation", told).await;
    // A service that embeds the store has a layout of its own, and the shape of that is its business.
    let own = "format = 0, sealed = zeroblob(1), credential_id = zeroblob(16)";
    finds_all(home, &result(own), "operation", &[]).await;
    let known =
        "format = 0, credential_id = (SELECT c.id FROM credentials AS c JOIN operations AS o
        ON o.api_key_id = c.api_key_id WHERE o.seq = 3 LIMIT 1)";
    of(known, "its result is in format 0, which this version does not know").await;
    of("format = 3", "its result is in format 3, which this version does not know").await;
    of("nonce = zeroblob(11)", "the nonce of its result has 11 bytes").await;
    of("sealed = zeroblob(15)", "its result has 15 bytes, which is less than its seal").await;
    for bound in ["fingerprint", "body_digest"] {
        let short = format!("UPDATE operations SET {bound} = zeroblob(31) WHERE seq = 3");
        finds(home, &short, "operation", "cannot be read").await;
    }
}

async fn whether_a_cancel_was_asked_for_is_in_the_version(home: &impl Home) {
    let told =
        |version: u8, made: &str| format!("its version is {version}, its generations make {made}");
    for (number, version, made) in [(1, 1, "2"), (4, 2, "3"), (5, 2, "3"), (7, 4, "5 or 6")] {
        let asked = format!("UPDATE operations SET cancel_asked = 1 WHERE seq = {number}");
        finds(home, &asked, "operation", &told(version, made)).await;
    }
    // One that was asked for, and is said not to have been.
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, Event::AskCancel).await;
    tenant.step(operation.id, give_up(&operation)).await;
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
    Raw::reckless(home).await.run("UPDATE operations SET cancel_asked = 0").await;
    let found = home.store().verify().await.unwrap().mismatches;
    assert!(matches!(&*found, [one] if one.sentence == told(3, "2")), "{found:?}");
}

async fn what_belongs_to_nobody_is_found(home: &impl Home) {
    let counters = "INSERT INTO counters VALUES (zeroblob(16), 3, 0, 7)";
    finds(home, counters, "the ledger", "1 counters belong to no API key").await;
    let unknown = "UPDATE counters SET counter = 7 WHERE counter = 2";
    finds(home, unknown, "the ledger", "1 counters belong to no API key").await;
    let credentials = "UPDATE credentials SET api_key_id = zeroblob(16)";
    finds(home, credentials, "the ledger", "1 credentials belong to no API key").await;
    let wallet = "UPDATE api_keys SET wallet_id = zeroblob(16)";
    finds(home, wallet, "API key", "its wallet does not exist").await;
    let models = "UPDATE api_keys SET models = 'no id'";
    finds(home, models, "API key", "cannot be read").await;
    // Between two operations, before the first and after the last.
    let late = "INSERT INTO late_ends VALUES (99)";
    finds(home, late, "the ledger", "1 transfers, results or notes").await;
    let cost = "INSERT INTO late_costs VALUES (99, 1, 1, 7, 0)";
    finds(home, cost, "the ledger", "1 late costs belong to no ended generation").await;
    let generation = "INSERT INTO late_costs SELECT min(seq), 9, 1, 7, 0 FROM operations";
    finds(home, generation, "the ledger", "1 late costs belong to no ended generation").await;
    let twice = "INSERT INTO late_costs SELECT seq, generation, 1, 7, 0 FROM operations
        WHERE provider_cost IS NOT NULL ORDER BY seq LIMIT 1";
    finds(home, twice, "the ledger", "1 late costs belong to operations whose rows").await;
    for number in [-4, 0, 99] {
        let transfer = format!("INSERT INTO transfers VALUES ({number}, 8, 1, 0, NULL)");
        finds(home, &transfer, "the ledger", "1 transfers, results or notes").await;
    }
}

/// Two operations of more than any sum of 64 bits holds, and what their holds would be.
const HUGE: &str = "
    UPDATE transfers SET amount = 9223372036854775807 WHERE leg = 8;
    UPDATE operations SET hold = 9223372036854775807, charge = 9223372036854775807
        WHERE charge IS NOT NULL";

async fn sums_that_overflow_are_told(home: &impl Home) {
    finds_all(home, HUGE, "wallet", &["its transfers make -", "its transfers take more"]).await;
    finds(home, HUGE, "API key", "its counter spend_total stands at").await;
}

#[tokio::test]
async fn numbers_of_a_file_have_no_gaps() {
    let home = Scratch::make().await;
    let gone = "DELETE FROM results WHERE op_seq = 8; DELETE FROM operations WHERE seq = 8";
    finds(&home, gone, "the ledger", "its operations 8 to 8 are missing").await;
    // Balances that follow do not hide it.
    let gone = "DELETE FROM postings WHERE seq = 2; UPDATE wallets SET available = available - 5";
    finds(&home, gone, "the ledger", "its postings 2 to 2 are missing").await;
    let gone = "UPDATE wallets SET seq = 3; UPDATE api_keys SET seq = 2";
    finds(&home, gone, "the ledger", "its wallets 1 to 2 are missing").await;
    finds(&home, gone, "the ledger", "its API keys 1 to 1 are missing").await;
}

#[tokio::test]
async fn entries_of_a_file_have_the_numbers_that_their_wallet_counts() {
    let home = Scratch::make().await;
    for altered in [
        "UPDATE wallets SET entries = entries - 1",
        "UPDATE postings SET number = number + 100 WHERE seq = 2",
        "UPDATE transfers SET number = 2 WHERE number = 3",
        "UPDATE transfers SET number = -1 WHERE number = 3",
        "UPDATE transfers SET number = 9223372036854775807 WHERE number > 1",
    ] {
        finds(&home, altered, "wallet", "its entries have other numbers than its row counts").await;
    }
}

#[tokio::test]
async fn postgres_what_the_reconciler_finds_is_what_runs() {
    let home = Server::make().await;
    for number in ["1", "2"] {
        let gone = format!("DELETE FROM running WHERE op_seq = {number}");
        finds(&home, &gone, "operation", "it is not listed among those that run").await;
    }
    finds(&home, "INSERT INTO running VALUES (3)", "operation", "it is listed among").await;
    finds(&home, "INSERT INTO running VALUES (99)", "the ledger", "notes of what runs").await;
}

crate::scratch::on_every_store! {
    a_book_that_the_store_wrote_is_in_order,
    balances_that_were_touched_are_found,
    transfers_that_were_touched_are_found,
    phases_that_were_touched_are_found,
    charges_and_refunds_that_were_touched_are_found,
    ids_results_and_counters_that_were_touched_are_found,
    what_was_given_up_is_not_what_did_not_run,
    generations_that_are_over_are_found_where_both_their_sides_were_touched,
    what_an_operation_is_bound_to_is_compared,
    moments_are_those_of_the_transfers,
    results_go_in_the_order_of_their_age,
    results_that_no_purge_deleted_are_found_also_if_none_is_left,
    counters_of_every_window_are_recomputed,
    a_refund_that_calls_itself_a_deposit_is_found_by_what_it_names,
    results_are_sealed_for_the_api_key_of_their_operation,
    a_first_generation_was_admitted_when_its_operation_was_made,
    sealed_bytes_show_their_shape_and_no_more,
    whether_a_cancel_was_asked_for_is_in_the_version,
    what_belongs_to_nobody_is_found,
    sums_that_overflow_are_told,
}
