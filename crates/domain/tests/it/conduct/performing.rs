//! The whole of it, as an embedder calls it: claimed, run and concluded in one.

use std::cell::Cell;
use std::sync::Arc;

use holdfast_domain::conduct::{ClaimError, ClaimOutcome, Ending};
use holdfast_domain::operation::{Claim, Operation};
use holdfast_domain::{Event, Journal};
use holdfast_testkit::laws::tenant::judged;
use holdfast_testkit::{MemoryJournal, sample};

use super::{LOSSES, check_wallet, conduct, journal, phase, row};

/// Performs, and says how often the run was called.
async fn perform(
    journal: &MemoryJournal,
    claim: &Claim,
    ending: Ending,
) -> (Result<ClaimOutcome, ClaimError>, u32) {
    let runs = Cell::new(0);
    let run = async |_operation: Arc<Operation>| {
        runs.set(runs.get() + 1);
        (ending, sample::attempts().to_vec())
    };
    let performed = conduct(journal).perform(&sample::order(claim), run).await;
    (performed, runs.get())
}

fn new_claim() -> Claim {
    sample::claim().claim_id(sample::fresh()).build()
}

#[tokio::test]
async fn one_key_runs_once_and_pays_once_whatever_is_lost() {
    for faults in LOSSES {
        let journal = journal().await;
        journal.fail_next(faults.iter().copied());
        let (first, runs) = perform(&journal, &new_claim(), sample::finished(20, 10)).await;
        assert!(
            matches!(&first, Ok(ClaimOutcome::Ended(s)) if phase(&s.snapshot) == "completed"),
            "{first:?}"
        );
        assert_eq!(runs, 1);
        let (second, runs) = perform(&journal, &new_claim(), sample::finished(1, 1)).await;
        assert_eq!(runs, 0, "a replay runs nothing");
        let (Ok(ClaimOutcome::Ended(first)), Ok(ClaimOutcome::Ended(second))) = (first, second)
        else {
            panic!("both should have ended");
        };
        let [first, second] = [first.snapshot, second.snapshot];
        assert_eq!((first.operation, first.result), (second.operation, second.result));
        check_wallet(&journal, 970, 0);
    }
}

#[tokio::test]
async fn a_conflict_runs_nothing() {
    let journal = journal().await;
    perform(&journal, &new_claim(), sample::finished(20, 10)).await.0.unwrap();
    let another = sample::claim().claim_id(sample::fresh()).request("another").build();
    let (found, runs) = perform(&journal, &another, sample::finished(20, 10)).await;
    assert!(matches!(found, Ok(ClaimOutcome::OtherRequest)), "{found:?}");
    assert_eq!(runs, 0);
    check_wallet(&journal, 970, 0);
}

#[tokio::test]
async fn a_run_that_cannot_be_paid_is_not_run() {
    let journal = journal().await;
    let dear = sample::claim().hold(1_001).build();
    let (refused, runs) = perform(&journal, &dear, sample::finished(1, 1)).await;
    assert!(matches!(refused, Err(ClaimError::Commit(_))), "{refused:?}");
    assert_eq!((runs, journal.operations().len()), (0, 0));
}

#[tokio::test]
async fn a_run_that_did_not_happen_leaves_the_key_open_to_run_again() {
    let journal = journal().await;
    let (first, _) = perform(&journal, &new_claim(), Ending::NotRun).await;
    assert!(
        matches!(&first, Ok(ClaimOutcome::Ended(s)) if phase(&s.snapshot) == "open"),
        "{first:?}"
    );
    check_wallet(&journal, 1_000, 0);
    let (second, runs) = perform(&journal, &new_claim(), sample::finished(20, 10)).await;
    assert!(
        matches!(&second, Ok(ClaimOutcome::Ended(s)) if phase(&s.snapshot) == "completed"),
        "{second:?}"
    );
    assert_eq!((runs, row(&journal).generation), (1, 2));
    check_wallet(&journal, 970, 0);
}

#[tokio::test]
async fn a_key_that_keeps_not_running_waits_and_then_runs() {
    let journal = journal().await;
    for _ in 0..3 {
        let (found, runs) = perform(&journal, &new_claim(), Ending::NotRun).await;
        assert!(matches!(found, Ok(ClaimOutcome::Ended(_))), "{found:?}");
        assert_eq!(runs, 1);
    }
    let (open, written) = (row(&journal), journal.lines().len());
    let (found, runs) = perform(&journal, &new_claim(), sample::finished(20, 10)).await;
    let Ok(ClaimOutcome::TooSoon(snapshot)) = found else { panic!("it should wait: {found:?}") };
    assert_eq!((phase(&snapshot), runs, journal.lines().len()), ("open", 0, written));
    assert_eq!(row(&journal), open);
    journal.advance(open.reopens_in(open.admitted_at));
    let (found, runs) = perform(&journal, &new_claim(), sample::finished(20, 10)).await;
    assert!(
        matches!(&found, Ok(ClaimOutcome::Ended(s)) if phase(&s.snapshot) == "completed"),
        "{found:?}"
    );
    assert_eq!((runs, row(&journal).generation), (1, 4));
}

#[tokio::test]
async fn an_outcome_that_is_unknown_costs_nothing_and_is_never_run_again() {
    let journal = journal().await;
    for runs in [1, 0, 0] {
        let (found, ran) = perform(&journal, &new_claim(), Ending::Unknown).await;
        assert!(
            matches!(&found, Ok(ClaimOutcome::Ended(s)) if phase(&s.snapshot) == "abandoned"),
            "{found:?}"
        );
        assert_eq!(ran, runs);
    }
    check_wallet(&journal, 1_000, 0);
}

#[tokio::test]
async fn a_settlement_that_is_refused_is_not_told_as_an_end() {
    let journal = journal().await;
    let run = async |_operation: Arc<Operation>| {
        journal.break_wallet(sample::WALLET);
        (sample::finished(20, 10), Vec::new())
    };
    let performed = conduct(&journal).perform(&sample::order(&new_claim()), run).await;
    assert!(matches!(&performed, Ok(ClaimOutcome::Recorded(_))), "{performed:?}");
}

#[tokio::test]
async fn an_operation_that_somebody_else_runs_by_now_is_not_told_as_an_end() {
    let journal = journal().await;
    let run = async |operation: Arc<Operation>| {
        let not_run = Event::NotRun { claim: operation.owner.claim, attempts: [].into() };
        for event in [not_run, Event::Claim(Box::new(new_claim()))] {
            let seen = journal.load(operation.id).await.unwrap();
            journal.commit(judged(&seen, event)).await.unwrap();
        }
        (sample::finished(20, 10), Vec::new())
    };
    let performed = conduct(&journal).perform(&sample::order(&new_claim()), run).await;
    assert!(matches!(&performed, Ok(ClaimOutcome::InProgress(_))), "{performed:?}");
    check_wallet(&journal, 900, 100);
}
