//! Reconciling and disowning: what somebody else may do with an operation, one try at a time.

use holdfast_domain::conduct::Ending;
use holdfast_domain::operation::{Disown, Sent};
use holdfast_domain::{ClaimId, OperationId};
use holdfast_testkit::Fault;
use holdfast_testkit::sample::{self, CLAIM};

use super::{GRACE, check_wallet, claimed, conduct, journal, phase, row};

#[tokio::test]
async fn reconciling_leaves_the_living_and_the_ended_alone() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    let found = conduct(&journal).reconcile(operation.id).await.unwrap();
    assert_eq!(found.operation.as_ref(), Some(&operation));
    for ending in [Ending::NotRun, sample::finished(1, 1)] {
        let journal = super::journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        conduct(&journal).conclude(&operation, &ending, &[]).await;
        let (before, offers) = (row(&journal), journal.offers());
        journal.advance(GRACE * 10);
        let found = conduct(&journal).reconcile(operation.id).await.unwrap();
        assert_eq!((found.operation, journal.offers()), (Some(before), offers));
    }
    let nothing = conduct(&journal).reconcile(OperationId::from_u128(1)).await.unwrap();
    assert_eq!(nothing.operation, None);
}

#[tokio::test]
async fn reconciling_an_orphan_gives_it_up_and_shows_the_row() {
    for faults in super::LOSSES {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.advance(sample::LEASE + GRACE);
        journal.fail_next(faults.iter().copied());
        let found = conduct(&journal).reconcile(operation.id).await.unwrap();
        assert_eq!((phase(&found), found.operation), ("abandoned", Some(row(&journal))));
        check_wallet(&journal, 1_000, 0);
    }
}

#[tokio::test]
async fn reconciling_past_the_deadline_does_not_care_for_the_lease() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::TIME);
    let careful = holdfast_domain::conduct::Conduct { orphan_grace: None, ..conduct(&journal) };
    assert_eq!(phase(&careful.reconcile(operation.id).await.unwrap()), "abandoned");
}

#[tokio::test]
async fn a_settlement_that_is_still_refused_leaves_the_result_recorded() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.break_wallet(sample::WALLET);
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    journal.advance(sample::TIME * 100);
    let found = conduct(&journal).reconcile(operation.id).await.unwrap();
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
    let found = conduct(&journal).reconcile(operation.id).await.unwrap();
    assert_eq!(found.operation, Some(row(&journal)));
    assert_eq!(phase(&found), "leased");
}

#[tokio::test]
async fn a_claim_that_never_sent_is_disowned_as_not_run_and_any_other_as_unknown() {
    for (sent, label) in [(Sent::Never, "open"), (Sent::Perhaps, "abandoned")] {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        let another = Disown { claim: ClaimId::from_u128(1), sent };
        assert!(!conduct(&journal).disown(operation.id, another).await.unwrap());
        assert_eq!(row(&journal), operation);
        let disown = Disown { claim: CLAIM, sent };
        assert!(conduct(&journal).disown(operation.id, disown).await.unwrap());
        assert_eq!(row(&journal).phase.label(), label);
        check_wallet(&journal, 1_000, 0);
        assert!(!conduct(&journal).disown(operation.id, disown).await.unwrap(), "only once");
    }
}
