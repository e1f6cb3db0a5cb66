//! Reconciling and disowning: what somebody else may do with an operation, one try at a time.

use async_trait::async_trait;
use holdfast_domain::conduct::{Conduct, Ending, Reconciliation};
use holdfast_domain::operation::{Disown, Operation, SendStatus};
use holdfast_domain::ports::Pause;
use holdfast_domain::{ClaimId, OperationId};
use holdfast_domain::{Event, Refusal, Snapshot, decide};
use holdfast_testkit::sample::{self, CLAIM};
use holdfast_testkit::{Fault, MemoryJournal, join_all};

use super::{GRACE, check_wallet, claimed, conduct, journal, phase, row};

#[tokio::test]
async fn reconciling_leaves_the_living_and_the_ended_alone() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    let found = conduct(&journal).reconcile(operation.id).await.unwrap().snapshot;
    assert_eq!(found.operation.as_ref(), Some(&operation));
    for ending in [Ending::NotRun, sample::finished(1, 1)] {
        let journal = super::journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        conduct(&journal).conclude(&operation, &ending, &[]).await;
        let (before, offers) = (row(&journal), journal.offers());
        journal.advance(GRACE * 10);
        let found = conduct(&journal).reconcile(operation.id).await.unwrap().snapshot;
        assert_eq!((found.operation, journal.offers()), (Some(before), offers));
    }
    let nothing = conduct(&journal).reconcile(OperationId::from_u128(1)).await.unwrap().snapshot;
    assert_eq!(nothing.operation, None);
}

#[tokio::test]
async fn reconciling_an_orphan_gives_it_up_and_shows_the_row() {
    for faults in super::LOSSES {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.advance(sample::LEASE + GRACE);
        journal.fail_next(faults.iter().copied());
        let Reconciliation { snapshot, moved } =
            conduct(&journal).reconcile(operation.id).await.unwrap();
        assert_eq!((phase(&snapshot), moved), ("abandoned", true), "{faults:?}");
        assert_eq!(snapshot.now, journal.now(), "{faults:?}");
        assert_eq!(snapshot.operation, Some(row(&journal)));
        assert!(!conduct(&journal).reconcile(operation.id).await.unwrap().moved, "only once");
        check_wallet(&journal, 1_000, 0);
    }
}

/// Lets the owner finish while another waits to offer again.
struct OwnerFinishes<'a>(&'a MemoryJournal, &'a Operation);

#[async_trait]
impl Pause for OwnerFinishes<'_> {
    async fn pause(&self, _attempt: u32) {
        conduct(self.0).conclude(self.1, &sample::finished(20, 10), &[]).await;
    }
}

#[tokio::test]
async fn whose_lost_reap_came_too_late_is_not_told_that_it_did() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::LEASE + GRACE);
    journal.fail_next([Fault::NotLanded]);
    let pause = OwnerFinishes(&journal, &operation);
    let slow = Conduct { pause: &pause, ..conduct(&journal) };
    let Reconciliation { snapshot, moved } = slow.reconcile(operation.id).await.unwrap();
    assert_eq!((phase(&snapshot), moved), ("completed", false));
}

#[tokio::test]
async fn of_those_who_reconcile_at_once_one_is_told_that_it_did() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::LEASE + GRACE);
    let conducts = [(); 8].map(|()| conduct(&journal));
    let found = join_all(conducts.iter().map(|conduct| conduct.reconcile(operation.id))).await;
    let moved = found.iter().filter(|found| found.as_ref().unwrap().moved).count();
    assert_eq!(moved, 1, "{found:?}");
}

#[tokio::test]
async fn reconciling_past_the_deadline_does_not_care_for_the_lease() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::TIME);
    let careful = Conduct { orphan_grace: None, ..conduct(&journal) };
    assert_eq!(phase(&careful.reconcile(operation.id).await.unwrap().snapshot), "abandoned");
}

#[tokio::test]
async fn a_settlement_that_is_still_refused_leaves_the_result_recorded() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.break_wallet(sample::WALLET);
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    journal.advance(sample::TIME * 100);
    let found = conduct(&journal).reconcile(operation.id).await.unwrap().snapshot;
    assert_eq!(phase(&found), "recorded", "its only exit is its settlement");
    check_wallet(&journal, 900, 100);
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_an_error_and_one_that_takes_nothing_changes_nothing() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::LEASE + GRACE);
    journal.fail_loads(1);
    assert!(conduct(&journal).reconcile(operation.id).await.is_err());
    journal.fail_next([Fault::Unavailable]);
    let found = conduct(&journal).reconcile(operation.id).await.unwrap().snapshot;
    assert_eq!(found.operation, Some(row(&journal)));
    assert_eq!(phase(&found), "leased");
}

#[tokio::test]
async fn asking_marks_a_living_owners_row_once_however_its_commit_is_lost() {
    for faults in super::LOSSES {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.fail_next(faults.iter().copied());
        let asked = conduct(&journal).cancel(operation.id).await.unwrap().snapshot;
        assert_eq!(asked.now, journal.now(), "{faults:?}");
        assert_eq!((phase(&asked), asked.operation), ("leased", Some(row(&journal))), "{faults:?}");
        assert!(row(&journal).cancel_asked);
        let offers = journal.offers();
        let again = conduct(&journal).cancel(operation.id).await.unwrap().snapshot;
        assert_eq!((again.operation, journal.offers()), (Some(row(&journal)), offers));
        check_wallet(&journal, 900, 100);
    }
}

#[tokio::test]
async fn asking_reaps_the_dead_settles_the_recorded_and_leaves_the_ended_alone() {
    let journal = journal().await;
    let nothing = conduct(&journal).cancel(OperationId::from_u128(1)).await.unwrap().snapshot;
    assert_eq!(nothing.operation, None);
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::LEASE + GRACE);
    assert_eq!(phase(&conduct(&journal).cancel(operation.id).await.unwrap().snapshot), "abandoned");
    check_wallet(&journal, 1_000, 0);

    let journal = super::journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.break_wallet(sample::WALLET);
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    assert_eq!(phase(&conduct(&journal).cancel(operation.id).await.unwrap().snapshot), "recorded");
    journal.repair_wallet(sample::WALLET);
    assert_eq!(phase(&conduct(&journal).cancel(operation.id).await.unwrap().snapshot), "completed");
    check_wallet(&journal, 970, 0);

    for ending in [Ending::Unknown, sample::finished(1, 1)] {
        let journal = super::journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        conduct(&journal).conclude(&operation, &ending, &[]).await;
        let (before, offers) = (row(&journal), journal.offers());
        let found = conduct(&journal).cancel(operation.id).await.unwrap().snapshot;
        assert_eq!((found.operation, journal.offers()), (Some(before), offers));
    }
}

#[tokio::test]
async fn cancelling_an_open_operation_ends_it_once_however_its_commit_is_lost() {
    for faults in super::LOSSES {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        conduct(&journal).conclude(&operation, &Ending::NotRun, &[]).await;
        journal.fail_next(faults.iter().copied());
        let cancelled = conduct(&journal).cancel(operation.id).await.unwrap();
        assert!(cancelled.moved, "{faults:?}");
        let after = row(&journal);
        assert_eq!(cancelled.snapshot.operation.as_ref(), Some(&after), "{faults:?}");
        assert_eq!(after.phase.label(), "abandoned", "{faults:?}");
        assert!(after.is_cancelled_open() && !after.cancel_asked, "{after:?}");
        assert_eq!(
            (after.exposure(), after.phase.charge()),
            (None, Some(holdfast_domain::Micros::ZERO))
        );
        let again = sample::claim().claim_id(sample::fresh()).build();
        let claim = Event::Claim(Box::new(again));
        let retried = decide(&Snapshot { operation: Some(after), ..cancelled.snapshot }, claim);
        assert_eq!(retried.unwrap_err(), Refusal::Ended, "its key never runs again");
        assert!(!conduct(&journal).cancel(operation.id).await.unwrap().moved);
        check_wallet(&journal, 1_000, 0);
    }
}

#[tokio::test]
async fn asking_a_store_that_takes_nothing_is_an_error() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    for fault in [Fault::Unavailable, Fault::Overloaded] {
        journal.fail_next([fault]);
        assert!(conduct(&journal).cancel(operation.id).await.is_err());
        assert!(!row(&journal).cancel_asked);
    }
    journal.fail_loads(1);
    assert!(conduct(&journal).cancel(operation.id).await.is_err());
}

#[tokio::test]
async fn asking_and_ending_at_once_both_come_through() {
    for (ending, label) in [
        (sample::finished(20, 10), "completed"),
        (sample::refused(), "refused"),
        // Whichever is first: the key never runs again.
        (Ending::NotRun, "abandoned"),
        (Ending::Unknown, "abandoned"),
    ] {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        let asking = async { conduct(&journal).cancel(operation.id).await.map(|_snapshot| ()) };
        let ending = async {
            conduct(&journal).conclude(&operation, &ending, &[]).await;
            Ok(())
        };
        let both: [std::pin::Pin<Box<dyn Future<Output = _>>>; 2] =
            [Box::pin(asking), Box::pin(ending)];
        assert!(join_all(both).await.iter().all(Result::is_ok));
        let after = row(&journal);
        assert_eq!(after.phase.label(), label);
        assert_eq!(journal.wallet(sample::WALLET).unwrap().held.get(), 0);
    }
}

#[tokio::test]
async fn a_claim_that_never_sent_is_disowned_as_not_run_and_any_other_as_unknown() {
    for (sent, label) in [(SendStatus::Never, "open"), (SendStatus::Perhaps, "abandoned")] {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        let another = Disown { claim: ClaimId::from_u128(1), sent };
        assert!(!conduct(&journal).disown(operation.id, another).await.unwrap().moved);
        assert_eq!(row(&journal), operation);
        let disown = Disown { claim: CLAIM, sent };
        assert!(conduct(&journal).disown(operation.id, disown).await.unwrap().moved);
        assert_eq!(row(&journal).phase.label(), label);
        check_wallet(&journal, 1_000, 0);
        assert!(!conduct(&journal).disown(operation.id, disown).await.unwrap().moved, "only once");
    }
}
