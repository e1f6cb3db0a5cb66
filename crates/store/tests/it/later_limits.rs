//! Limits that are set while a key is in use: a counter is the sum over all rows of its window, whatever limits were
//! set when.

use std::sync::Arc;

use holdfast_domain::ledger::PostingKind;
use holdfast_domain::limits::{Counter, Limits, ReachedLimit, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Operation, Phase, Transition};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Event, Journal as _, Micros, OperationId};
use holdfast_testkit::Dice;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, judged, not_run, record, refuse};

use crate::administration::edit_limits;
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};
use crate::server::Server;
use crate::silence::until_waiting;

on_every_store! {
    counters_are_sums_over_all_rows_whatever_limits_were_set_when,
    a_limit_that_is_set_counts_what_was_used_before_it,
    a_seed_above_the_limit_stands_and_admits_nothing,
    an_ending_that_was_judged_before_an_edit_is_judged_again,
    limits_by_the_minute_and_of_concurrency_count_what_ran_before_them,
    limits_that_are_edited_while_operations_run_count_each_of_them_once,
    more_rows_than_a_chunk_are_all_counted,
}

fn spend(micros: i64, window: SpendWindow) -> Option<SpendLimit> {
    Some(SpendLimit { micros: Micros::new(micros), window })
}

/// Sets the limits of a tenant's key.
async fn set(home: &impl Home, tenant: &Tenant<'_>, limits: Limits) {
    edit_limits(home.store(), tenant.api_key, limits).await;
}

/// A counter of the only key in the window that the store's clock is in.
async fn counter(raw: &mut Raw, tenant: &Tenant<'_>, counter: Counter) -> i64 {
    let now = tenant.load(OperationId::from_u128(1)).await.now;
    let code = Counter::ALL.iter().position(|it| *it == counter).unwrap();
    let start = counter.window(now).as_micros();
    raw.number(&format!(
        "SELECT CAST(coalesce(max(used), 0) AS bigint) FROM counters
         WHERE counter = {code} AND window_start = {start}"
    ))
    .await
}

/// Sum over these operations, of those that were admitted in the window of now.
async fn sum(tenant: &Tenant<'_>, counter: Counter, operations: &[OperationId]) -> i64 {
    let mut sum = 0;
    for id in operations {
        let snapshot = tenant.load(*id).await;
        let operation = snapshot.operation.unwrap();
        if counter.window(operation.admitted_at) != counter.window(snapshot.now) {
            continue;
        }
        let is_running = matches!(operation.phase, Phase::Leased | Phase::Recorded(_));
        let usage = operation.phase.usage();
        sum += match counter {
            Counter::Concurrency => i64::from(is_running),
            Counter::Requests => i64::from(operation.phase != Phase::Open),
            Counter::Tokens => {
                i64::from(is_running) * i64::try_from(operation.reserved.tokens()).unwrap()
            }
            Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth if is_running => {
                operation.hold.get()
            }
            Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => {
                usage.map_or(0, |usage| usage.charge.get())
            }
        };
    }
    sum
}

async fn verify(home: &impl Home) {
    assert_eq!(home.store().verify().await.unwrap().mismatches, []);
}

/// One step of an operation: an ending, a record, a settlement, or a reopening under these limits.
async fn step(tenant: &Tenant<'_>, operation: &Operation, limits: Limits, side: u64) -> bool {
    let event = match (&operation.phase, side) {
        (Phase::Leased, 0 | 1) => finish(operation, 20, 10),
        (Phase::Leased, 2) => record(operation, 30, 10),
        (Phase::Leased, 3) => not_run(operation),
        (Phase::Leased, 4) => give_up(operation),
        (Phase::Leased, 5) => refuse(operation),
        (Phase::Leased, _) => Event::AskCancel,
        (Phase::Recorded(_), _) => Event::Settle,
        (Phase::Open, _) if operation.generation == 1 => {
            let claim = tenant.claim().request_key(operation.request_key).limits(limits);
            Event::Claim(Box::new(claim.build()))
        }
        (
            Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } | Phase::Open,
            _,
        ) => {
            return false;
        }
    };
    tenant.step(operation.id, event).await;
    true
}

async fn counters_are_sums_over_all_rows_whatever_limits_were_set_when(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000_000).await;
    let mut raw = Raw::open(home).await;
    let (mut dice, mut limits, mut operations) = (Dice::new(38), Limits::default(), Vec::new());
    for _round in 0..60 {
        match dice.roll(8) {
            0..=2 => {
                operations.push(tenant.admit(&tenant.claim().limits(limits).build()).await.id);
            }
            3 | 4 if !operations.is_empty() => {
                let at = usize::try_from(dice.roll(u64::try_from(operations.len()).unwrap()));
                let operation = tenant.load(operations[at.unwrap()]).await.operation.unwrap();
                let refunds =
                    matches!(operation.phase, Phase::Completed { .. }) && dice.roll(2) == 0;
                if refunds {
                    // Whether or not the charge has room for it: refunds do not lower what was spent.
                    let _refused = tenant.post(PostingKind::Refund(operation.id), 7).await;
                } else {
                    step(&tenant, &operation, limits, dice.roll(7)).await;
                }
            }
            5 | 6 => {
                for id in operations.iter().rev().take(3) {
                    let operation = tenant.load(*id).await.operation.unwrap();
                    step(&tenant, &operation, limits, dice.roll(7)).await;
                }
            }
            _ => {
                let windows = [
                    None,
                    Some(SpendWindow::Total),
                    Some(SpendWindow::Day),
                    Some(SpendWindow::Month),
                ];
                let window = windows[usize::try_from(dice.roll(4)).unwrap()];
                let amount = i64::try_from(100_000 + dice.roll(1_000)).unwrap();
                limits.spend = window.and_then(|window| spend(amount, window));
                limits.concurrency = (dice.roll(2) == 0).then(|| 200 + dice.roll(9));
                limits.requests_per_minute = (dice.roll(2) == 0).then_some(900);
                limits.tokens_per_minute = (dice.roll(2) == 0).then_some(900_000);
                set(home, &tenant, limits).await;
            }
        }
        let spend = limits.spend.map(|limit| limit.window.counter());
        for it in spend.into_iter().chain(limits.concurrency.map(|_max| Counter::Concurrency)) {
            let expected = sum(&tenant, it, &operations).await;
            assert_eq!(counter(&mut raw, &tenant, it).await, expected, "{it:?}");
        }
    }
    verify(home).await;
}

async fn a_limit_that_is_set_counts_what_was_used_before_it(home: &impl Home) {
    let tenant = Tenant::new(home, 10_000).await;
    let mut raw = Raw::open(home).await;
    for _run in 0..3 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        let operation = tenant.step(operation.id, finish(&operation, 20, 10)).await;
        tenant.post(PostingKind::Refund(operation.id), 5).await.unwrap();
    }
    tenant.admit(&tenant.claim().hold(40).build()).await;
    for window in [SpendWindow::Month, SpendWindow::Day, SpendWindow::Month, SpendWindow::Total] {
        let limits = Limits { spend: spend(500, window), ..Limits::default() };
        set(home, &tenant, limits).await;
        let used = counter(&mut raw, &tenant, window.counter()).await;
        let made = tenant.load(OperationId::from_u128(1)).await;
        assert_eq!(used, 3 * 30 + 40, "{window:?} at {:?}: charges and the hold", made.now);
    }
    verify(home).await;
}

async fn a_seed_above_the_limit_stands_and_admits_nothing(home: &impl Home) {
    let tenant = Tenant::new(home, 10_000).await;
    let mut raw = Raw::open(home).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 50, 40)).await;
    let limits = Limits { spend: spend(60, SpendWindow::Month), ..Limits::default() };
    set(home, &tenant, limits).await;
    let refused = tenant.offer(&tenant.claim().limits(limits).hold(1).build()).await;
    let is_full = |reached: &ReachedLimit| reached.counters.used(Counter::SpendMonth) == Some(90);
    assert!(
        matches!(&refused, Err(CommitError::LimitReached(reached)) if is_full(reached)),
        "{refused:?}"
    );
    assert_eq!(counter(&mut raw, &tenant, Counter::SpendMonth).await, 90);
}

async fn an_ending_that_was_judged_before_an_edit_is_judged_again(home: &impl Home) {
    let tenant = Tenant::new(home, 10_000).await;
    let mut raw = Raw::open(home).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let end = |snapshot: &_| -> Arc<Transition> { judged(snapshot, finish(&operation, 20, 10)) };
    let before = end(&tenant.load(operation.id).await);
    let limits = Limits { spend: spend(500, SpendWindow::Day), ..Limits::default() };
    set(home, &tenant, limits).await;
    assert_eq!(counter(&mut raw, &tenant, Counter::SpendDay).await, operation.hold.get());
    let late = home.store().commit(before).await;
    assert!(matches!(late, Err(CommitError::Conflict)), "{late:?}");
    home.store().commit(end(&tenant.load(operation.id).await)).await.unwrap();
    assert_eq!(counter(&mut raw, &tenant, Counter::SpendDay).await, 30);
    verify(home).await;
}

async fn limits_by_the_minute_and_of_concurrency_count_what_ran_before_them(home: &impl Home) {
    let tenant = Tenant::new(home, 100_000).await;
    let mut raw = Raw::open(home).await;
    let minute =
        async || Counter::Requests.window(tenant.load(OperationId::from_u128(1)).await.now);
    let mut begun = minute().await;
    let limits = Limits {
        requests_per_minute: Some(90),
        tokens_per_minute: Some(9_000),
        concurrency: Some(90),
        ..Limits::default()
    };
    // Ends: the turn of a minute spoils one round at most in a row.
    loop {
        let running = tenant.admit(&tenant.claim().build()).await;
        let ended = tenant.admit(&tenant.claim().build()).await;
        tenant.step(ended.id, finish(&ended, 20, 10)).await;
        set(home, &tenant, limits).await;
        let mut used = Vec::new();
        for it in [Counter::Requests, Counter::Tokens, Counter::Concurrency] {
            used.push(counter(&mut raw, &tenant, it).await);
        }
        let tokens = i64::try_from(running.reserved.tokens()).unwrap();
        tenant.step(running.id, finish(&running, 0, 5)).await;
        let ended = counter(&mut raw, &tenant, Counter::Tokens).await;
        let now = minute().await;
        if now == begun {
            assert_eq!((used, ended), (vec![2, tokens + 30, 1], 35));
            break;
        }
        begun = now;
        set(home, &tenant, Limits::default()).await;
    }
    assert_eq!(counter(&mut raw, &tenant, Counter::Concurrency).await, 0);
}

async fn limits_that_are_edited_while_operations_run_count_each_of_them_once(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000_000).await;
    let mut raw = Raw::open(home).await;
    // Those that had ended, that run, and that are open when the rows are summed.
    let mut operations = Vec::new();
    for at in 0..60 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        if at % 3 != 0 {
            let event = if at % 3 == 1 { not_run(&operation) } else { finish(&operation, 20, 10) };
            tenant.step(operation.id, event).await;
        }
        operations.push(operation.id);
    }
    let day = Limits { spend: spend(900_000, SpendWindow::Day), ..Limits::default() };
    let month = Limits { spend: spend(900_000, SpendWindow::Month), ..Limits::default() };
    let edits = async {
        for limits in [day, month, day, month, day, month, day] {
            set(home, &tenant, limits).await;
        }
    };
    // All reserve of the month's counter, as those do that were admitted under the last limits; of the
    // day's those that an edit meets.
    let runs = async {
        let mut begun = Vec::new();
        for id in &operations {
            let operation = tenant.load(*id).await.operation.unwrap();
            let event = match operation.phase {
                Phase::Leased => finish(&operation, 7, 7),
                Phase::Open => {
                    let claim = tenant.claim().request_key(operation.request_key).limits(month);
                    Event::Claim(Box::new(claim.build()))
                }
                Phase::Completed { .. }
                | Phase::Recorded(_)
                | Phase::Refused { .. }
                | Phase::Abandoned { .. } => continue,
            };
            // Refused where an edit moves the version: judged again.
            while matches!(tenant.offer_event(*id, event.clone()).await, Err(CommitError::Conflict))
            {
            }
            begun.push(tenant.admit(&tenant.claim().limits(month).build()).await.id);
        }
        begun
    };
    let ((), begun) = futures_util::join!(edits, runs);
    operations.extend(begun);
    set(home, &tenant, month).await;
    let expected = sum(&tenant, Counter::SpendMonth, &operations).await;
    assert_eq!(counter(&mut raw, &tenant, Counter::SpendMonth).await, expected);
    verify(home).await;
}

async fn more_rows_than_a_chunk_are_all_counted(home: &impl Home) {
    const COPIES: i64 = 20_005;
    let tenant = Tenant::new(home, 10_000).await;
    let mut raw = Raw::open(home).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 20, 10)).await;
    let numbers = match raw {
        Raw::File(_) => format!(
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {COPIES})
             SELECT i FROM n) AS n"
        ),
        Raw::Server(_) => format!("generate_series(1, {COPIES}) AS n (i)"),
    };
    for sql in [
        &*format!("CREATE TEMP TABLE copies AS SELECT * FROM operations CROSS JOIN {numbers}"),
        "UPDATE copies SET seq = seq + i, id = randomblob(16)",
        "ALTER TABLE copies DROP COLUMN i",
        "INSERT INTO operations SELECT * FROM copies",
    ] {
        raw.run(sql).await;
    }
    let limits = Limits { spend: spend(500, SpendWindow::Total), ..Limits::default() };
    set(home, &tenant, limits).await;
    let used = counter(&mut raw, &tenant, Counter::SpendTotal).await;
    assert_eq!(used, 30 * (COPIES + 1));
}

/// The rows are summed before the locks are taken: what changes from then until the lock is had is counted as it is
/// under the lock.
#[tokio::test]
async fn postgres_rows_that_change_after_they_were_summed_are_counted_under_the_lock() {
    let home = Server::open().await;
    let tenant = Tenant::new(&home, 1_000_000).await;
    let mut raw = Raw::open(&home).await;
    let ended = tenant.admit(&tenant.claim().build()).await;
    tenant.step(ended.id, finish(&ended, 20, 10)).await;
    let leased = tenant.admit(&tenant.claim().build()).await;
    let open = tenant.admit(&tenant.claim().build()).await;
    tenant.step(open.id, not_run(&open)).await;
    let recorded = tenant.admit(&tenant.claim().build()).await;
    tenant.step(recorded.id, record(&recorded, 30, 10)).await;

    let mut head = Raw::of_server(&home).await;
    head.run("BEGIN; SELECT seq FROM audit_head FOR UPDATE").await;
    let limits =
        Limits { spend: spend(500, SpendWindow::Month), concurrency: Some(9), ..Limits::default() };
    let edit = set(&home, &tenant, limits);
    let changes = async {
        // The edit waits for the head: its rows are summed.
        until_waiting(&mut home.database.connect().await, 1).await;
        tenant.step(leased.id, finish(&leased, 3, 1)).await;
        let again = tenant.claim().request_key(open.request_key).hold(50);
        let again = tenant.step(open.id, Event::Claim(Box::new(again.build()))).await;
        tenant.step(again.id, finish(&again, 7, 2)).await;
        tenant.step(recorded.id, Event::Settle).await;
        tenant.admit(&tenant.claim().hold(11).build()).await;
        head.run("COMMIT").await;
    };
    futures_util::join!(edit, changes);
    let used = counter(&mut raw, &tenant, Counter::SpendMonth).await;
    assert_eq!(used, 30 + 4 + 9 + 40 + 11);
    assert_eq!(counter(&mut raw, &tenant, Counter::Concurrency).await, 1);
    verify(&home).await;
}
