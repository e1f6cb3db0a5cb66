//! Both sides of each comparison of the audit: what just fits is no mismatch, what just does not is one, and where
//! two conditions meet each is broken alone.

use holdfast_domain::limits::Limits;
use holdfast_domain::{Event, Operation};
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, record};
use holdfast_testkit::sample;

use super::{fill, finds, finds_all};
use crate::raw::{FORGET_TRAIL, Raw};
use crate::scratch::Home;

/// What the audit says of a book.
async fn told(home: &impl Home) -> Vec<String> {
    let found = home.store().verify().await.unwrap();
    found.mismatches.iter().map(ToString::to_string).collect()
}

/// Changes a book, and expects as many mismatches as there are sentences, each of which has its own.
async fn finds_only<H: Home>(_: &H, sql: &str, sentences: &[&str]) {
    let home = H::make().await;
    fill(&home).await;
    let mut raw = Raw::reckless(&home).await;
    raw.run(FORGET_TRAIL).await;
    raw.run(sql).await;
    let told = told(&home).await;
    assert_eq!(told.len(), sentences.len(), "{sql}: {told:#?}");
    for (told, sentence) in told.iter().zip(sentences) {
        assert!(told.contains(sentence), "{sql}: {sentence}: {told}");
    }
}

/// Limits of a minute alone.
fn of_minutes() -> Limits {
    let (requests_per_minute, tokens_per_minute) = (Some(9), Some(9_000));
    Limits { requests_per_minute, tokens_per_minute, ..Limits::default() }
}

async fn what_just_fits_is_no_mismatch(home: &impl Home) {
    finds_only(home, "UPDATE results SET sealed = zeroblob(16) WHERE op_seq = 3", &[]).await;
    let whole_charge = "UPDATE postings SET amount = 30 WHERE kind = 'refund';
        UPDATE wallets SET available = available + 25";
    finds_only(home, whole_charge, &[]).await;
    // Of two results of one moment a purge may have taken either.
    let same_moment = "UPDATE operations SET finished_at = (SELECT finished_at FROM results
            WHERE op_seq = 4) WHERE seq = 3;
        UPDATE transfers SET created_at = (SELECT finished_at FROM results WHERE op_seq = 4)
            WHERE op_seq = 3 AND leg <> 8;
        DELETE FROM results WHERE op_seq = 3;
        INSERT INTO results_purged SELECT 1, finished_at FROM operations WHERE seq = 3";
    finds_only(home, same_moment, &[]).await;
    finds_only(home, "UPDATE operations SET version = 3 WHERE seq = 3", &[]).await;
    // Beyond one more for each counter: limits that are set while it runs move it.
    let version = "its version is 40, its generations make 2 or 3";
    finds_only(home, "UPDATE operations SET version = 40 WHERE seq = 3", &[version]).await;
}

async fn each_half_of_a_rule_is_broken_alone(home: &impl Home) {
    // It holds and releases as a generation does, and no generation has this number.
    let before_all = "INSERT INTO transfers VALUES (6, 0, 1, 0, NULL), (6, 3, 1, 0, NULL);
        UPDATE operations SET released = 1 WHERE seq = 6";
    let sentence = "the transfers of its generation 0 are hold 1";
    finds_only(home, before_all, &[sentence]).await;
    let held = "UPDATE transfers SET amount = 99 WHERE op_seq = 7 AND leg = 8";
    let sentence = "its earlier generations held 99 micros by its transfers and 100 by its row";
    finds(home, held, "operation", sentence).await;
    let unheld = "DELETE FROM transfers WHERE leg = 8";
    finds(home, unheld, "wallet", "its transfers take more than there was").await;
    let short = |table: &str| format!("UPDATE {table} SET server_secret = zeroblob(7)");
    finds_only(home, &short("credentials"), &["1 credentials belong to no API key"]).await;
    let nothing = "UPDATE postings SET amount = 0 WHERE kind = 'adjustment';
        UPDATE wallets SET available = available + 7";
    finds_only(home, nothing, &["it is a adjustment of 0 micros"]).await;
}

async fn codes_beside_those_of_counters_are_nobodys(home: &impl Home) {
    for code in [-1, 6] {
        let other = format!("UPDATE counters SET counter = {code} WHERE counter = 2");
        finds_all(home, &other, "the ledger", &["counters belong to no API key"]).await;
        let other = format!("UPDATE counters SET counter = {code} WHERE counter = 0");
        finds_all(home, &other, "the ledger", &["counters belong to no API key"]).await;
    }
}

async fn rows_of_no_operation_are_not_those_of_the_next_one(home: &impl Home) {
    for number in [-4, 0] {
        for leg in [8, -8] {
            let orphan = format!("INSERT INTO transfers VALUES ({number}, {leg}, 1, 0, NULL)");
            finds_only(home, &orphan, &["1 transfers, results or notes"]).await;
        }
    }
}

async fn what_was_cancelled_before_it_ran_is_given_back(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, Event::AskCancel).await;
    let ended = tenant.step(operation.id, not_run(&operation)).await;
    assert_eq!(ended.phase.label(), "abandoned");
    // A result that was recorded first makes one version more.
    let recorded = tenant.admit(&tenant.claim().build()).await;
    tenant.step(recorded.id, record(&recorded, 20, 10)).await;
    tenant.step(recorded.id, Event::Settle).await;
    assert_eq!(told(home).await, Vec::<String>::new());
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE operations SET cancel_asked = 0, version = 2 WHERE seq = 1").await;
    let told = told(home).await;
    assert!(
        told.iter().any(|it| it.contains("they should be hold 100 (available to held), lapse"))
    );
}

async fn counters_of_the_first_minute_that_is_looked_at_are_compared(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().limits(of_minutes()).build()).await;
    tenant.step(operation.id, finish(&operation, 20, 10)).await;
    let mut raw = Raw::reckless(home).await;
    // Sixty minutes ago; a minute later nothing of it is looked at any more, and all is well again.
    raw.run(
        "UPDATE operations SET admitted_at = admitted_at - 3600000000,
             created_at = created_at - 3600000000;
         UPDATE transfers SET created_at = created_at - 3600000000 WHERE leg = 8;
         UPDATE counters SET window_start = window_start - 3600000000",
    )
    .await;
    assert_eq!(told(home).await, Vec::<String>::new());
    // Long past: whatever they stand at.
    raw.run(
        "UPDATE counters SET window_start = window_start - 3600000000, used = used + 7;
         UPDATE operations SET admitted_at = admitted_at - 3600000000,
             created_at = created_at - 3600000000;
         UPDATE transfers SET created_at = created_at - 3600000000 WHERE leg = 8",
    )
    .await;
    assert_eq!(told(home).await, Vec::<String>::new());
}

/// Runs an operation again until it is in its third generation, and finishes it.
async fn thrice(tenant: &Tenant<'_>, hold: i64) -> Operation {
    let claim = tenant.claim().limits(of_minutes()).hold(hold);
    let mut operation = tenant.admit(&claim.clone().build()).await;
    for _again in 0..2 {
        tenant.step(operation.id, not_run(&operation)).await;
        let again = claim.clone().claim_id(sample::fresh()).build();
        operation = tenant.step(operation.id, Event::Claim(Box::new(again))).await;
    }
    tenant.step(operation.id, finish(&operation, 0, 0)).await
}

async fn requests_of_generations_in_between_may_have_been_counted(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = thrice(&tenant, 100).await;
    assert_eq!(operation.generation, 3);
    assert_eq!(told(home).await, Vec::<String>::new());
    let mut raw = Raw::reckless(home).await;
    let set = |used: i64| format!("UPDATE counters SET used = {used} WHERE counter = 0");
    // The last generation was counted, and the one in between may have been: its row does not tell.
    for (count, is_told) in [(0, true), (1, false), (2, false), (3, true)] {
        raw.run(&set(count)).await;
        let told = told(home).await;
        let expected =
            format!("its counter requests stands at {count}, its operations make 1 to 2");
        assert_eq!(told.iter().any(|it| it.contains(&expected)), is_told, "{count}: {told:?}");
    }
}

async fn minutes_of_a_key_whose_generations_left_no_trace_are_not_known(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    thrice(&tenant, 0).await;
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE counters SET used = used + 7 WHERE counter = 0").await;
    assert_eq!(told(home).await, Vec::<String>::new());
    raw.run("DELETE FROM counters WHERE counter < 2").await;
    assert_eq!(told(home).await, Vec::<String>::new());
    raw.run("INSERT INTO counters SELECT id, 3, 0, 7 FROM api_keys").await;
    let told = told(home).await;
    assert!(matches!(&*told, [one] if one.contains("spend_total stands at 7")), "{told:?}");
}

async fn what_was_given_up_may_have_no_counters(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().limits(of_minutes()).build()).await;
    tenant.step(operation.id, give_up(&operation)).await;
    Raw::reckless(home).await.run("DELETE FROM counters").await;
    assert_eq!(told(home).await, Vec::<String>::new());
}

async fn api_keys_that_cannot_be_read_are_told(home: &impl Home) {
    for set in [
        "models = 'no id'",
        "balance = 'maybe'",
        "usage = 'all'",
        "requests_per_minute = -1",
        "tokens_per_minute = -1",
        "concurrency = -1",
        "spend_micros = 1, spend_window = 'year'",
        "edited = -1",
    ] {
        let sql = format!("UPDATE api_keys SET {set}");
        finds_only(home, &sql, &["its row cannot be read"]).await;
        finds(home, &sql, "API key", "its row cannot be read").await;
    }
}

/// Rows of usage of so many hours, one each, in which nothing ended.
fn hours(count: u32) -> String {
    format!(
        "INSERT INTO usage_hours
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         SELECT zeroblob(16), i * 3600000000, zeroblob(16), 'a/b', '', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n"
    )
}

async fn sums_of_hours_in_which_nothing_ended_are_told(home: &impl Home) {
    let sentence = "its usage of the hour at 3600 s is not that of its operations: completed +1";
    finds_only(home, &hours(1), &[sentence]).await;
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run(&hours(503)).await;
    let many = told(home).await;
    assert_eq!(many.len(), 501, "{many:#?}");
    assert!(many[500].contains("its usage of 3 more hours"), "{}", many[500]);
    raw.run("DELETE FROM usage_hours WHERE hour > 2 * 3600000000").await;
    // A row that cannot be read stands alone, or before others.
    raw.run("UPDATE usage_hours SET wallet_id = zeroblob(15) WHERE hour = 3600000000").await;
    let unread = "1 rows of its usage cannot be read";
    let told = told(home).await;
    assert!(told.len() == 2 && told.iter().any(|it| it.contains(unread)), "{told:?}");
    raw.run("DELETE FROM usage_hours WHERE hour > 3600000000").await;
    let told = self::told(home).await;
    assert!(matches!(&*told, [one] if one.contains(unread)), "{told:?}");
}

crate::scratch::on_every_store! {
    what_just_fits_is_no_mismatch,
    each_half_of_a_rule_is_broken_alone,
    codes_beside_those_of_counters_are_nobodys,
    rows_of_no_operation_are_not_those_of_the_next_one,
    what_was_cancelled_before_it_ran_is_given_back,
    counters_of_the_first_minute_that_is_looked_at_are_compared,
    requests_of_generations_in_between_may_have_been_counted,
    minutes_of_a_key_whose_generations_left_no_trace_are_not_known,
    what_was_given_up_may_have_no_counters,
    api_keys_that_cannot_be_read_are_told,
    sums_of_hours_in_which_nothing_ended_are_told,
}
