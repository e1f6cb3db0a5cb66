//! What only a store with a queue and a writer can get wrong: dropped callers, full queues, a change
//! that poisons its batch, a database that somebody else holds.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use holdfast_domain::limits::Limits;
use holdfast_domain::ports::{CommitError, LeaseMode};
use holdfast_domain::{Event, Journal, Micros, OperationId, Phase, Wallets};
use holdfast_testkit::laws::Stores;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, judged};
use holdfast_testkit::sample;

use crate::raw::Raw;
use crate::scratch::Scratch;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_tasks_get_the_hundred_holds_that_fit() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 100_000).await;
    let claims: Vec<_> = (0..200).map(|_| tenant.claim().hold(1_000).build()).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for claim in &claims {
        let (store, change) = (scratch.store.clone(), sample::admission(claim));
        tasks.spawn(async move { store.commit(change).await });
    }
    let verdicts = tasks.join_all().await;
    let admitted = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
    assert_eq!(admitted, 100);
    for verdict in verdicts.into_iter().filter_map(Result::err) {
        assert!(matches!(verdict, CommitError::FundsHeld { .. }), "{verdict:?}");
    }
    assert_eq!(tenant.balances().await, (0, 100_000));
    assert_eq!(scratch.store.verify().await.unwrap().mismatches, []);
}

#[tokio::test]
async fn a_commit_whose_caller_went_away_is_committed() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let claims: Vec<_> = (0..5).map(|_| tenant.claim().build()).collect();
    for claim in &claims {
        // Polled once, so that it is queued, and dropped.
        assert!(scratch.store.commit(sample::admission(claim)).now_or_never().is_none());
    }
    // What is queued later is committed later.
    tenant.admit(&tenant.claim().build()).await;
    for claim in claims {
        let id = OperationId::of(claim.api_key, claim.request_key);
        assert_eq!(tenant.load(id).await.operation.map(|row| row.owner), Some(claim.owner));
    }
    assert_eq!(tenant.balances().await, (400, 600));
}

#[tokio::test]
async fn a_full_queue_turns_away_what_comes_next_and_loses_nothing() {
    let scratch = Scratch::with(|options| options.commit_queue = 2).await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let claims: Vec<_> = (0..9).map(|_| tenant.claim().build()).collect();
    // Meanwhile the writer waits, with at most as many in its hand as there were.
    let mut raw = Raw::open(&scratch).await;
    raw.run("BEGIN IMMEDIATE").await;
    let mut verdicts: Vec<_> = claims.iter().map(|claim| Box::pin(tenant.offer(claim))).collect();
    let mut refused = 0;
    verdicts.retain_mut(|verdict| match verdict.now_or_never() {
        None => true,
        Some(Err(CommitError::Overloaded)) => {
            refused += 1;
            false
        }
        Some(other) => panic!("{other:?}"),
    });
    raw.run("ROLLBACK").await;
    let accepted = verdicts.len();
    assert!((2..=4).contains(&accepted), "{accepted}");
    assert_eq!(refused, claims.len() - accepted);
    assert!(join_all(verdicts).await.iter().all(Result::is_ok));
    let held = 100 * i64::try_from(accepted).unwrap();
    assert_eq!(tenant.balances().await, (1_000 - held, held));
}

#[tokio::test]
async fn one_bad_change_of_a_batch_fails_alone() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let mut operations = Vec::new();
    for _ in 0..5 {
        operations.push(tenant.admit(&tenant.claim().build()).await);
    }
    // A settlement of the third is in the book already, though its row does not say so.
    let mut raw = Raw::open(&scratch).await;
    raw.run("INSERT INTO transfers VALUES (3, 9, 1, 0, NULL)").await;
    let mut changes = Vec::new();
    for operation in &operations {
        changes.push(judged(&tenant.load(operation.id).await, finish(operation, 10, 10)));
    }
    let commits = changes.iter().map(|change| scratch.store.commit(Arc::clone(change)));
    let verdicts = join_all(commits).await;
    for (place, verdict) in verdicts.iter().enumerate() {
        if place == 2 {
            assert!(matches!(verdict, Err(CommitError::Collision)), "{verdict:?}");
        } else {
            assert!(verdict.is_ok(), "{verdict:?}");
        }
    }
    let phases = operations.iter().map(|operation| tenant.load(operation.id));
    let leased = join_all(phases).await.into_iter().map(|s| s.operation.unwrap().phase);
    let leased: Vec<bool> = leased.map(|phase| phase == Phase::Leased).collect();
    assert_eq!(leased, [false, false, true, false, false]);
}

#[tokio::test]
async fn what_somebody_else_wrote_since_is_judged_by_its_row() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let mut raw = Raw::open(&scratch).await;
    let mut operations = Vec::new();
    for _ in 0..3 {
        operations.push(tenant.admit(&tenant.claim().build()).await);
    }
    let [early, late, other] = operations.as_slice() else { panic!("three") };
    // The first two are asked to cancel, behind the back of the writer that admitted them.
    let judged_before = judged(&tenant.load(early.id).await, finish(early, 10, 10));
    raw.run("UPDATE operations SET version = 2, cancel_asked = 1 WHERE seq IN (1, 2)").await;
    let judged_after = judged(&tenant.load(late.id).await, finish(late, 10, 10));
    let beside = judged(&tenant.load(other.id).await, finish(other, 10, 10));
    let alone = scratch.store.commit(Arc::clone(&judged_before)).await;
    assert!(matches!(alone, Err(CommitError::Conflict)), "{alone:?}");
    scratch.store.commit(judged_after).await.unwrap();
    let batch = [judged_before, beside].map(|change| scratch.store.commit(change));
    let [conflict, written] = join_all(batch).await.try_into().unwrap();
    assert!(matches!(conflict, Err(CommitError::Conflict)), "{conflict:?}");
    written.unwrap();
    tenant.step(early.id, finish(early, 10, 10)).await;
    assert_eq!(scratch.store.verify().await.unwrap().mismatches, []);
}

#[tokio::test]
async fn what_somebody_else_released_is_a_conflict_and_no_lack_of_funds() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let mut raw = Raw::open(&scratch).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let given_up = judged(&tenant.load(operation.id).await, give_up(&operation));
    raw.run("UPDATE operations SET version = 2, cancel_asked = 1 WHERE seq = 1").await;
    raw.run("UPDATE wallets SET held = 0").await;
    let told = scratch.store.commit(given_up).await;
    assert!(matches!(told, Err(CommitError::Conflict)), "{told:?}");
}

#[tokio::test]
async fn a_wallet_that_would_leave_its_bounds_refuses_the_settlement_and_keeps_the_record() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let mut raw = Raw::open(&scratch).await;
    raw.run("UPDATE wallets SET held = 99").await;
    let refused = tenant.offer_event(operation.id, finish(&operation, 10, 10)).await;
    assert!(matches!(refused, Err(CommitError::InsufficientFunds)), "{refused:?}");
    let recorded = holdfast_testkit::laws::tenant::record(&operation, 10, 10);
    tenant.offer_event(operation.id, recorded).await.unwrap();
    raw.run("UPDATE wallets SET held = 100").await;
    tenant.offer_event(operation.id, Event::Settle).await.unwrap();
    assert_eq!(tenant.balances().await, (980, 0));
}

#[tokio::test]
async fn a_settlement_does_not_wait_for_a_result_that_somebody_took_away() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let recorded = holdfast_testkit::laws::tenant::record(&operation, 10, 10);
    tenant.offer_event(operation.id, recorded).await.unwrap();
    Raw::reckless(&scratch).await.run("DELETE FROM results").await;
    tenant.offer_event(operation.id, Event::Settle).await.unwrap();
    assert_eq!(tenant.balances().await, (980, 0));
}

#[tokio::test]
async fn a_database_that_another_process_writes_is_unavailable_until_it_is_done() {
    let scratch = Scratch::with(|options| options.busy_timeout = Duration::from_millis(20)).await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let mut raw = Raw::open(&scratch).await;
    raw.run("BEGIN IMMEDIATE").await;
    let claim = tenant.claim().build();
    for _ in 0..2 {
        let refused = tenant.offer(&claim).await;
        assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    }
    let node = &tenant.lease.node;
    assert!(scratch.nodes().heartbeat(node, sample::LEASE, LeaseMode::Renew).await.is_err());
    assert_eq!(
        tenant.load(OperationId::of(claim.api_key, claim.request_key)).await.operation,
        None
    );
    raw.run("ROLLBACK").await;
    tenant.admit(&claim).await;
    scratch.nodes().heartbeat(node, sample::LEASE, LeaseMode::Renew).await.unwrap();
    assert_eq!(tenant.balances().await, (900, 100));
}

#[tokio::test]
async fn a_commit_that_fails_is_uncertain_and_takes_its_connection_with_it() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let claim = tenant.claim().build();
    let mut raw = Raw::open(&scratch).await;
    // A rule that is looked at by COMMIT alone, and leaves its transaction open.
    raw.run(
        "CREATE TABLE late (wallet INTEGER REFERENCES wallets (seq) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER late AFTER INSERT ON operations BEGIN INSERT INTO late VALUES (99); END",
    )
    .await;
    for _ in 0..2 {
        let uncertain = tenant.offer(&claim).await;
        assert!(matches!(uncertain, Err(CommitError::Uncertain(_))), "{uncertain:?}");
    }
    // Nobody holds what was begun.
    raw.run("DROP TRIGGER late; DROP TABLE late").await;
    tenant.admit(&claim).await;
    assert_eq!(tenant.balances().await, (900, 100));
}

#[tokio::test]
async fn what_another_process_wrote_between_two_batches_is_seen() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 100).await;
    let other = scratch.folder.open().await.unwrap();
    let (first, second) = (tenant.claim().build(), tenant.claim().build());
    other.commit(sample::admission(&first)).await.unwrap();
    let refused = tenant.offer(&second).await;
    assert!(matches!(refused, Err(CommitError::FundsHeld { .. })), "{refused:?}");
    let mut raw = Raw::open(&scratch).await;
    assert_eq!(raw.number("SELECT max(seq) FROM operations").await, 1);
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_price_is_kept_at_first_sight_and_never_replaced() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let unpinned = sample::priced("2026-05-01T00:00:00Z", 2_000_000);
    let operation = tenant.admit(&tenant.claim().price(unpinned.clone()).build()).await;
    assert_eq!(tenant.load(operation.id).await.operation.unwrap().price, unpinned);
    let other = sample::priced("2026-05-01T00:00:00Z", 3_000_000);
    let refused = tenant.offer(&tenant.claim().price(other).build()).await;
    assert!(matches!(refused, Err(CommitError::Collision)), "{refused:?}");
    tenant.admit(&tenant.claim().price(unpinned).build()).await;
    assert_eq!(tenant.balances().await, (800, 200));
}

#[tokio::test]
async fn closing_commits_what_is_queued_and_takes_in_nothing_more() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let claims: Vec<_> = (0..3).map(|_| tenant.claim().build()).collect();
    for claim in &claims {
        assert!(scratch.store.commit(sample::admission(claim)).now_or_never().is_none());
    }
    let late = sample::admission(&tenant.claim().build());
    scratch.store.clone().close().await.unwrap();
    let refused = scratch.store.commit(late).await;
    assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    let mut log = scratch.file().into_os_string();
    log.push("-wal");
    let log = std::fs::metadata(log).map_or(0, |log| log.len());
    assert_eq!(log, 0, "the log is folded into the file");
    let again = scratch.folder.open().await.unwrap();
    let wallet = again.find(tenant.wallet).await.unwrap().unwrap();
    assert_eq!((wallet.available, wallet.held), (Micros::new(700), Micros::new(300)));
}

#[tokio::test]
async fn more_than_a_batch_is_committed_in_several() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 10_000).await;
    let limits = Limits {
        requests_per_minute: Some(100_000),
        tokens_per_minute: Some(10_000_000),
        concurrency: Some(1_100),
        ..Default::default()
    };
    let claims: Vec<_> =
        (0..1_200).map(|_| tenant.claim().hold(1).limits(limits).build()).collect();
    let verdicts = join_all(claims.iter().map(|claim| tenant.offer(claim))).await;
    assert_eq!(verdicts.iter().filter(|verdict| verdict.is_ok()).count(), 1_100);
    assert_eq!(tenant.balances().await, (8_900, 1_100));
    assert_eq!(scratch.store.verify().await.unwrap().mismatches, []);
}

#[test]
fn a_runtime_that_ends_takes_no_verdict_with_it() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dying = runtime();
    let scratch = dying.block_on(Scratch::open());
    let (verdicts, wallet, mut raw) = dying.block_on(async {
        let tenant = Tenant::new(&scratch, 1_000).await;
        let mut raw = Raw::open(&scratch).await;
        raw.run("BEGIN IMMEDIATE").await;
        let verdicts = [(); 2].map(|()| {
            let (store, change) =
                (scratch.store.clone(), sample::admission(&tenant.claim().build()));
            let mut verdict = Box::pin(async move { store.commit(change).await });
            assert!((&mut verdict).now_or_never().is_none());
            verdict
        });
        (verdicts, tenant.wallet, raw)
    });
    drop(dying);
    let living = runtime();
    living.block_on(async {
        raw.run("ROLLBACK").await;
        let verdicts = join_all(verdicts).await;
        assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
        scratch.store.close().await.unwrap();
        let again = scratch.folder.open().await.unwrap();
        let wallet = again.find(wallet).await.unwrap().unwrap();
        assert_eq!((wallet.available, wallet.held), (Micros::new(800), Micros::new(200)));
        again.close().await.unwrap();
    });
}

#[tokio::test]
async fn a_sweep_takes_old_minutes_and_nothing_else() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let limits =
        Limits { requests_per_minute: Some(9), concurrency: Some(9), ..Default::default() };
    tenant.admit(&tenant.claim().limits(limits).build()).await;
    let mut raw = Raw::open(&scratch).await;
    raw.run("INSERT INTO counters VALUES (zeroblob(16), 0, 0, 1), (zeroblob(16), 4, 0, 1)").await;
    assert_eq!(scratch.store.purge(Duration::ZERO, 10).await.unwrap(), 0);
    let left = raw.number("SELECT sum(1 << counter) FROM counters").await;
    assert_eq!(left, 0b1_0101, "this minute's requests, concurrency, the old day");
}

#[tokio::test]
async fn a_purge_forgets_nodes_that_have_ended_long_ago() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 1_000).await;
    let mut raw = Raw::open(&scratch).await;
    raw.run("INSERT INTO nodes VALUES ('another', zeroblob(16), 0, NULL, NULL)").await;
    scratch.store.purge(Duration::ZERO, 10).await.unwrap();
    assert_eq!(
        raw.text("SELECT group_concat(name) FROM nodes").await,
        tenant.lease.node.name.as_str()
    );
}

#[tokio::test]
async fn a_purge_of_large_results_has_an_end() {
    let scratch = Scratch::open().await;
    let tenant = Tenant::new(&scratch, 10_000).await;
    for _ in 0..5 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, finish(&operation, 1, 1)).await;
    }
    Raw::reckless(&scratch).await.run("UPDATE results SET sealed = zeroblob(3 << 20)").await;
    let mut purged = Vec::new();
    while purged.last() != Some(&0) {
        purged.push(scratch.store.purge(Duration::ZERO, 9).await.unwrap());
    }
    assert_eq!(purged, [2, 2, 1, 0]);
}
