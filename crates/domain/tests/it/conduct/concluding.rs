//! Endings: told once however their commit is lost, and never thrown away.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use holdfast_domain::conduct::{Conduct, Ending};
use holdfast_domain::limits::{Counter, Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Disown, SendStatus};
use holdfast_domain::ports::Pause;
use holdfast_domain::{Event, Journal, Micros};
use holdfast_testkit::laws::tenant::judged;
use holdfast_testkit::sample::{self, CLAIM};
use holdfast_testkit::{Fault, MemoryJournal, join_all};

use super::{
    GRACE, LOSSES, charge, check_wallet, claimed, conduct, journal, phase, row, transfers,
};

/// Each ending, the phase that it leads to, and what its run of 30 tokens costs.
fn endings() -> [(Ending, &'static str, i64); 4] {
    [
        (sample::finished(20, 10), "completed", 30),
        (Ending::NotRun, "open", 0),
        (sample::refused(), "refused", 0),
        (Ending::Unknown, "abandoned", 0),
    ]
}

#[tokio::test]
async fn an_ending_whose_commit_is_lost_is_told_once() {
    for (ending, label, cost) in endings() {
        for faults in LOSSES {
            let journal = journal().await;
            let operation = claimed(&journal, &sample::claim().build()).await;
            journal.fail_next(faults.iter().copied());
            let attempts = sample::attempts();
            let concluded = conduct(&journal).conclude(&operation, &ending, &attempts).await;
            assert_eq!(phase(&concluded.snapshot), label, "{faults:?}");
            assert_eq!(concluded.snapshot.operation, Some(row(&journal)), "{faults:?}");
            assert_eq!((concluded.late, concluded.moved), (false, true), "{faults:?}");
            assert_eq!(row(&journal).attempts, attempts);
            assert_eq!(transfers(&journal, "settle"), usize::from(cost > 0), "{faults:?}");
            check_wallet(&journal, 1_000 - cost, 0);
        }
    }
}

#[tokio::test]
async fn an_ending_is_offered_until_the_store_takes_it() {
    for (ending, label, cost) in endings() {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.fail_next([Fault::Unavailable, Fault::Overloaded, Fault::Unavailable]);
        let concluded = conduct(&journal).conclude(&operation, &ending, &[]).await;
        assert_eq!(phase(&concluded.snapshot), label);
        assert_eq!(journal.offers(), 5);
        check_wallet(&journal, 1_000 - cost, 0);
    }
}

#[tokio::test]
async fn a_result_is_answered_with_what_was_stored() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    let concluded = conduct(&journal).conclude(&operation, &sample::finished(1, 1), &[]).await;
    let read = journal.load(operation.id).await.unwrap();
    assert_eq!(concluded.snapshot.operation, read.operation);
    assert_eq!(concluded.snapshot.result, read.result);
}

#[tokio::test]
async fn nobody_is_answered_before_the_row_could_be_read() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.fail_next([Fault::Landed]);
    journal.fail_loads(4);
    let concluded = conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    assert_eq!(concluded.snapshot.operation, Some(row(&journal)));
    assert_eq!((phase(&concluded.snapshot), concluded.late), ("completed", false));
}

#[tokio::test]
async fn a_wish_to_cancel_between_claim_and_ending_loses_no_result_and_leaves_nothing_to_run_again()
{
    for (ending, label, cost) in endings() {
        let label = if ending == Ending::NotRun { "abandoned" } else { label };
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        let seen = journal.load(operation.id).await.unwrap();
        journal.commit(judged(&seen, Event::AskCancel)).await.unwrap();
        let concluded = conduct(&journal).conclude(&operation, &ending, &[]).await;
        assert_eq!((phase(&concluded.snapshot), concluded.late), (label, false));
        assert!(row(&journal).cancel_asked);
        check_wallet(&journal, 1_000 - cost, 0);
    }
}

#[tokio::test]
async fn a_result_whose_settlement_is_refused_is_recorded_with_its_hold() {
    for faults in [&[][..]].into_iter().chain(LOSSES) {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.break_wallet(sample::WALLET);
        // The first offer is judged; what is lost is the recording.
        journal.fail_next([Fault::None].into_iter().chain(faults.iter().copied()));
        let concluded =
            conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
        assert_eq!((phase(&concluded.snapshot), concluded.late), ("recorded", false));
        assert!(concluded.moved, "{faults:?}");
        assert_eq!(concluded.snapshot.result, Some(sample::result("answer")));
        assert_eq!((charge(&row(&journal)), row(&journal).version.get()), (Some(30), 2));
        check_wallet(&journal, 900, 100);
        journal.repair_wallet(sample::WALLET);
        let settled = conduct(&journal).reconcile(operation.id).await.unwrap();
        assert_eq!((phase(&settled.snapshot), settled.moved), ("completed", true));
        assert_eq!(transfers(&journal, "settle"), 1);
        check_wallet(&journal, 970, 0);
    }
}

/// Mends the wallet whenever it is waited for.
struct Mending<'a>(&'a MemoryJournal, AtomicU32);

#[async_trait::async_trait]
impl Pause for Mending<'_> {
    async fn pause(&self, _attempt: u32) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.repair_wallet(sample::WALLET);
    }
}

#[tokio::test]
async fn a_refused_settlement_is_recorded_at_once_and_any_other_ending_waits() {
    for (ending, label, _) in endings() {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.break_wallet(sample::WALLET);
        let offers = journal.offers();
        let pause = Mending(&journal, AtomicU32::new(0));
        let conduct = Conduct { pause: &pause, ..conduct(&journal) };
        let concluded = conduct.conclude(&operation, &ending, &[]).await;
        let (expected, pauses) = if label == "completed" { ("recorded", 0) } else { (label, 1) };
        assert_eq!(phase(&concluded.snapshot), expected);
        assert_eq!(pause.1.load(Ordering::Relaxed), pauses, "{label}");
        assert_eq!(journal.offers() - offers, 2, "{label}");
    }
}

#[tokio::test]
async fn an_ending_without_a_result_waits_for_its_wallet_to_be_repaired() {
    for (ending, label, _) in endings().into_iter().skip(1) {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.break_wallet(sample::WALLET);
        let offers = journal.offers();
        let conclude = async {
            let concluded = conduct(&journal).conclude(&operation, &ending, &[]).await;
            phase(&concluded.snapshot)
        };
        let repair = async {
            while journal.offers() < offers + 5 {
                tokio::task::yield_now().await;
            }
            journal.repair_wallet(sample::WALLET);
            "repaired"
        };
        let (concluded, _) = tokio::join!(conclude, repair);
        assert_eq!(concluded, label);
        check_wallet(&journal, 1_000, 0);
    }
}

#[tokio::test]
async fn a_result_after_a_reaping_is_late_and_the_row_answers() {
    for (ending, _, cost) in endings() {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        journal.advance(sample::LEASE + GRACE);
        assert!(conduct(&journal).reconcile(operation.id).await.unwrap().moved);
        let before = row(&journal);
        let concluded = conduct(&journal).conclude(&operation, &ending, &[]).await;
        assert_eq!((phase(&concluded.snapshot), concluded.moved), ("abandoned", false));
        assert_eq!(concluded.late, cost > 0, "only a result is an unbilled cost");
        assert!(!concluded.is_commit_lost(&operation));
        assert_eq!((row(&journal), journal.lines().len()), (before, 3));
        check_wallet(&journal, 1_000, 0);
    }
}

#[tokio::test]
async fn a_result_of_an_earlier_generation_does_not_end_the_next_one() {
    for (ending, _, cost) in endings() {
        let journal = journal().await;
        let first = claimed(&journal, &sample::claim().build()).await;
        let disown = Disown { claim: CLAIM, sent: SendStatus::Never };
        assert!(conduct(&journal).disown(first.id, disown).await.unwrap().moved);
        let again = sample::claim().claim_id(sample::fresh()).hold(200).build();
        let second = claimed(&journal, &again).await;
        let concluded = conduct(&journal).conclude(&first, &ending, &[]).await;
        assert_eq!((phase(&concluded.snapshot), concluded.late), ("leased", cost > 0));
        assert!(!concluded.is_commit_lost(&first));
        assert_eq!(row(&journal), second);
        check_wallet(&journal, 800, 200);
        // The next one's result is not the first one's, even when both are there.
        conduct(&journal).conclude(&second, &sample::finished(1, 1), &[]).await;
        let concluded = conduct(&journal).conclude(&first, &ending, &[]).await;
        assert_eq!((phase(&concluded.snapshot), concluded.late), ("completed", cost > 0));
        check_wallet(&journal, 998, 0);
    }
}

#[tokio::test]
async fn a_store_that_is_behind_an_acknowledged_claim_has_lost_it() {
    let disown = Disown { claim: CLAIM, sent: SendStatus::Never };
    for (ending, _, _) in endings() {
        // Each is another store, as one that followed the first and took its place.
        let [ahead, empty, first_only, another] =
            [journal().await, journal().await, journal().await, journal().await];
        let first = claimed(&ahead, &sample::claim().build()).await;
        assert!(conduct(&ahead).disown(first.id, disown).await.unwrap().moved);
        let again = sample::claim().claim_id(sample::fresh()).build();
        let second = claimed(&ahead, &again).await;
        claimed(&first_only, &sample::claim().build()).await;
        assert!(conduct(&first_only).disown(first.id, disown).await.unwrap().moved);
        let other = claimed(&another, &again).await;
        conduct(&another).conclude(&other, &sample::finished(1, 1), &[]).await;
        for (store, claim, lost) in [
            (&empty, &first, true),
            (&first_only, &second, true),
            (&another, &first, true),
            (&first_only, &first, false),
            (&ahead, &first, false),
            (&ahead, &second, false),
        ] {
            let rows = store.operations();
            let concluded = conduct(store).conclude(claim, &ending, &[]).await;
            assert_eq!(concluded.is_commit_lost(claim), lost, "{rows:?}");
            assert!(!lost || store.operations() == rows, "nothing is written where it is gone");
        }
    }
}

#[tokio::test]
async fn endings_of_one_claim_that_race_settle_once() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    let ending = sample::finished(20, 10);
    let conducts = (0..4).map(|_| conduct(&journal)).collect::<Vec<_>>();
    let concluded =
        join_all(conducts.iter().map(|conduct| conduct.conclude(&operation, &ending, &[]))).await;
    let moved = concluded.iter().filter(|concluded| concluded.moved).count();
    assert_eq!(moved, 1, "one of them is told that it was its ending");
    for concluded in concluded {
        assert_eq!(concluded.snapshot.operation, Some(row(&journal)));
        assert!(!concluded.late);
    }
    assert_eq!(transfers(&journal, "settle"), 1);
    check_wallet(&journal, 970, 0);
}

#[tokio::test]
async fn a_counter_is_corrected_in_the_window_of_the_admission_after_it_has_passed() {
    let journal = journal().await;
    let limits = Limits {
        requests_per_minute: Some(5),
        tokens_per_minute: Some(1_000),
        concurrency: Some(5),
        spend: Some(SpendLimit { micros: Micros::new(1_000), window: SpendWindow::Day }),
    };
    let claim = |limits| sample::claim().limits(limits).time(Duration::from_secs(900_000)).build();
    let operation = claimed(&journal, &claim(limits)).await;
    let admitted = operation.admitted_at;
    journal.advance(Duration::from_secs(2 * 86_400));
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    let counted = |counter, at| journal.counter(sample::API_KEY, counter, at);
    let then = Counter::ALL.map(|counter| counted(counter, admitted));
    assert_eq!(then, [1, 30, 0, 0, 30, 0]);
    let now = Counter::ALL.map(|counter| counted(counter, journal.now()));
    assert_eq!(now, [0; 6]);
}
