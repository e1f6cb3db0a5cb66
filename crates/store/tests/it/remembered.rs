//! What a process remembers of its operations' rows, where somebody else has changed them meanwhile:
//! verdicts are those of the rows.

use std::sync::Arc;

use futures_util::future::join_all;
use holdfast_domain::operation::{Operation, Phase, Transition};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Event, Journal};
use holdfast_testkit::laws::tenant::{Tenant, finish, judged};
use sqlx::Executor;

use crate::raw::Raw;
use crate::scratch::Home;
use crate::server::Server;

/// An operation that this process has just let run, and its end as it is judged now.
async fn running(tenant: &Tenant<'_>) -> (Operation, Arc<Transition>) {
    let operation = tenant.admit(&tenant.claim().build()).await;
    let end = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
    (operation, end)
}

#[tokio::test]
async fn postgres_an_end_meets_what_another_process_has_made_of_its_operation() {
    let server = Server::open().await;
    let other = server.database.open().await.unwrap();
    let tenant = Tenant::new(&server, 1_000).await;
    for others_hold in [false, true] {
        if others_hold {
            // As much is held as the end would take.
            tenant.admit(&tenant.claim().hold(500).build()).await;
        }
        let (ended, end) = running(&tenant).await;
        let give_up = Event::GiveUp { claim: ended.owner.claim, attempts: [].into() };
        let snapshot = tenant.load(ended.id).await;
        other.commit(judged(&snapshot, give_up)).await.unwrap();
        let late = server.store.commit(end).await;
        assert!(matches!(late, Err(CommitError::Conflict)), "{late:?}");

        let (asked, end) = running(&tenant).await;
        let snapshot = tenant.load(asked.id).await;
        other.commit(judged(&snapshot, Event::AskCancel)).await.unwrap();
        let late = server.store.commit(end).await;
        assert!(matches!(late, Err(CommitError::Conflict)), "{late:?}");
        let again = finish(&asked, 10, 10);
        tenant.step(asked.id, again).await;
    }
    assert_eq!(other.verify().await.unwrap().mismatches, []);
    other.close().await.unwrap();
}

#[tokio::test]
async fn postgres_one_row_that_is_another_by_now_takes_nothing_from_its_batch() {
    const COUNT: usize = 30;
    let server = Server::open().await;
    let other = server.database.open().await.unwrap();
    let tenant = Tenant::new(&server, 100_000).await;
    let mut ends = Vec::new();
    for n in 0..COUNT {
        let (operation, end) = running(&tenant).await;
        if n % 10 == 3 {
            let snapshot = tenant.load(operation.id).await;
            other.commit(judged(&snapshot, Event::AskCancel)).await.unwrap();
        }
        ends.push(end);
    }
    let verdicts = join_all(ends.into_iter().map(|end| server.store.commit(end))).await;
    for (n, verdict) in verdicts.iter().enumerate() {
        match verdict {
            Ok(_) => assert_ne!(n % 10, 3),
            Err(CommitError::Conflict) => assert_eq!(n % 10, 3),
            Err(_) => panic!("{verdict:?}"),
        }
    }
    assert_eq!(other.verify().await.unwrap().mismatches, []);
    other.close().await.unwrap();
}

#[tokio::test]
async fn postgres_a_number_that_leads_to_another_operation_writes_nothing_there() {
    for (is_left, is_asked) in [(false, false), (false, true), (true, false)] {
        let server = Server::open().await;
        let tenant = Tenant::new(&server, 1_000).await;
        let (operation, end) = running(&tenant).await;
        let asked = judged(&tenant.load(operation.id).await, Event::AskCancel);
        let before = tenant.balances().await;
        // As where a standby follows that has lost the operation, and gave its number to another one.
        let mut raw = server.database.connect().await;
        let moved = "SET session_replication_role = replica;
            UPDATE operations SET id = decode(repeat('ab', 16), 'hex'),
            claim = decode(repeat('cd', 16), 'hex')";
        raw.execute(moved).await.unwrap();
        if is_left {
            let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            raw.execute(cut).await.unwrap();
        }
        let refused = server.store.commit(if is_asked { asked } else { end }).await;
        assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
        assert!(tenant.load(operation.id).await.operation.is_none());
        assert_eq!(tenant.balances().await, before);
    }
}

#[tokio::test]
async fn postgres_a_price_that_a_server_has_lost_is_written_again() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    tenant.admit(&tenant.claim().build()).await;
    let mut raw = server.database.connect().await;
    // As where a standby follows that has lost what was committed last.
    let lost = "SET session_replication_role = replica;
        DELETE FROM prices;
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    raw.execute(lost).await.unwrap();
    let operation = tenant.admit(&tenant.claim().build()).await;
    let snapshot = tenant.load(operation.id).await;
    assert_eq!(snapshot.operation.map(|it| it.price), Some(operation.price));
}

async fn an_end_of_a_claim_that_was_lost_leaves_the_one_alone_that_came_after_it(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let (lost, end) = running(&tenant).await;
    // As where a standby follows that has lost the claim, and another process has claimed the key since.
    Raw::reckless(home).await.run("UPDATE operations SET claim = randomblob(16)").await;
    for row in ["remembered", "read"] {
        let refused = home.store().commit(Arc::clone(&end)).await;
        assert!(matches!(refused, Err(CommitError::Conflict)), "{row}: {refused:?}");
    }
    let after = tenant.load(lost.id).await.operation.unwrap();
    assert_ne!(after.owner.claim, lost.owner.claim);
    assert_eq!((&after.phase, after.version), (&Phase::Leased, lost.version));
    assert_eq!(tenant.balances().await, (900, 100));
    tenant.step(after.id, finish(&after, 10, 10)).await;
}

crate::scratch::on_every_store! {
    an_end_of_a_claim_that_was_lost_leaves_the_one_alone_that_came_after_it,
}
