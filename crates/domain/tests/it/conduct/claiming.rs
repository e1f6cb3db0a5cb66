//! Claims: lost commits, races, and whatever stands in their way.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::conduct::{ClaimError, ClaimOffer, ClaimOutcome, Conduct, Ending, Rebinding};
use holdfast_domain::limits::{Counter, Limits};
use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::{Claim, Lease, Node, Operation, Receipt, Snapshot, Transition};
use holdfast_domain::ports::{CommitError, LeaseMode, LeasedOperation, Unavailable};
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{ClaimId, Journal, Nodes, OperationId, Timestamp};
use holdfast_testkit::sample::{self, CLAIM, NOW};
use holdfast_testkit::{Fault, MemoryJournal, NoPause, join_all};

use super::{
    GRACE, LOSSES, charge, check_wallet, claimed, conduct, journal, phase, row, transfers,
};

const OTHER: ClaimId = ClaimId::from_u128(0xff);

/// What a claim by another task comes to.
async fn claim_again(journal: &MemoryJournal) -> Result<ClaimOutcome, ClaimError> {
    let claim = sample::claim().claim_id(OTHER).build();
    conduct(journal).claim(&sample::order(&claim)).await
}

#[tokio::test]
async fn a_claim_whose_commit_is_lost_is_held_once_and_mine() {
    for faults in LOSSES {
        let journal = journal().await;
        journal.fail_next(faults.iter().copied());
        let operation = claimed(&journal, &sample::claim().build()).await;
        assert_eq!(operation, row(&journal), "{faults:?}");
        assert_eq!(operation.owner.claim, CLAIM);
        assert_eq!(transfers(&journal, "hold"), 1, "{faults:?}");
        check_wallet(&journal, 900, 100);
    }
}

#[tokio::test]
async fn a_lost_claim_is_followed_although_its_row_cannot_be_read() {
    let journal = journal().await;
    journal.fail_next([Fault::Landed]);
    journal.fail_loads(5);
    let operation = claimed(&journal, &sample::claim().build()).await;
    assert_eq!(operation, row(&journal));
}

#[tokio::test]
async fn a_claim_that_the_store_did_not_take_leaves_the_key_as_it_was() {
    for fault in [Fault::Unavailable, Fault::Overloaded] {
        let journal = journal().await;
        journal.fail_next([fault]);
        let refused = claim_again(&journal).await;
        let Err(ClaimError::Commit(said)) = refused else { panic!("{fault:?}: {refused:?}") };
        assert_eq!(matches!(said, CommitError::Overloaded), fault == Fault::Overloaded);
        assert_eq!(matches!(said, CommitError::Unavailable(_)), fault == Fault::Unavailable);
        assert_eq!((journal.operations().len(), journal.offers()), (0, 1));
        check_wallet(&journal, 1_000, 0);
    }
}

#[tokio::test]
async fn a_bound_key_whose_row_cannot_be_read_is_told_apart_from_a_free_one() {
    let journal = journal().await;
    claimed(&journal, &sample::claim().build()).await;
    journal.fail_loads(1);
    assert!(matches!(claim_again(&journal).await, Err(ClaimError::Load(_))));
}

#[tokio::test]
async fn funds_and_limits_are_refused_by_name() {
    let journal = journal().await;
    let dear = sample::claim().hold(1_001).build();
    let refused = conduct(&journal).claim(&sample::order(&dear)).await;
    assert!(matches!(refused, Err(ClaimError::Commit(CommitError::InsufficientFunds))));
    let limits = Limits { concurrency: Some(0), ..Limits::default() };
    let limited = sample::claim().limits(limits).build();
    let refused = conduct(&journal).claim(&sample::order(&limited)).await;
    let Err(ClaimError::Commit(error @ CommitError::LimitReached(reached))) = refused else {
        panic!("a limit is reached: {refused:?}")
    };
    assert_eq!(error.to_string(), "the API key's limit of concurrency is reached");
    assert_eq!((reached.counter, reached.amount, reached.bound), (Counter::Concurrency, 1, 0));
    assert_eq!(
        (reached.remaining(), reached.may_fit_later(), reached.resets_in()),
        (0, false, None)
    );
    assert_eq!(journal.operations().len(), 0);
}

#[tokio::test]
async fn of_two_claims_that_race_one_is_mine_and_the_other_finds_it_in_progress() {
    let journal = journal().await;
    let claims = [CLAIM, OTHER].map(|id| sample::claim().claim_id(id).build());
    let claimed = join_all(claims.iter().map(async |claim| {
        let order = sample::order(claim);
        conduct(&journal).claim(&order).await.unwrap()
    }))
    .await;
    let mine = claimed.iter().filter(|claimed| matches!(claimed, ClaimOutcome::Mine(..))).count();
    let waiting =
        claimed.iter().filter(|claimed| matches!(claimed, ClaimOutcome::InProgress(_))).count();
    assert_eq!((mine, waiting), (1, 1), "{claimed:?}");
    assert_eq!(transfers(&journal, "hold"), 1);
    check_wallet(&journal, 900, 100);
}

#[tokio::test]
async fn another_request_is_a_conflict_before_anything_else_happens() {
    let endings = [sample::finished(20, 10), sample::refused()];
    for ending in endings.iter().map(Some).chain([None]) {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().build()).await;
        if let Some(ending) = ending {
            conduct(&journal).conclude(&operation, ending, &[]).await;
        }
        // Stale by now, out of funds, and asked by a process whose own lease is dead.
        journal.advance(GRACE * 2);
        let before = row(&journal);
        for lease in
            [sample::claim().build().lease, Lease { node: sample::node("b"), ends_at: NOW }]
        {
            let claim = sample::claim().request("another").hold(9_999).lease(lease).build();
            let order = ClaimOffer { now: NOW, ..sample::order(&claim) };
            let claimed = conduct(&journal).claim(&order).await.unwrap();
            assert!(matches!(claimed, ClaimOutcome::OtherRequest), "{claimed:?}");
        }
        assert_eq!(row(&journal), before);
    }
}

#[tokio::test]
async fn an_ended_operation_is_replayed_with_its_result() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    let found = claim_again(&journal).await.unwrap();
    let ClaimOutcome::Ended(ended) = found else { panic!("it should have ended: {found:?}") };
    assert_eq!(ended.snapshot.operation, Some(row(&journal)));
    assert_eq!(ended.snapshot.result, Some(sample::result("answer")));
    assert!(!ended.moved);
    check_wallet(&journal, 970, 0);
}

#[tokio::test]
async fn a_lost_lease_starts_nothing_and_hides_no_answer() {
    let journal = journal().await;
    let dead = Lease { node: sample::node("b"), ends_at: NOW };
    let claim = sample::claim().claim_id(OTHER).lease(dead).build();
    let order = ClaimOffer { now: NOW, ..sample::order(&claim) };
    assert!(matches!(conduct(&journal).claim(&order).await, Err(ClaimError::LeaseLost)));
    assert_eq!(journal.offers(), 0);
    let operation = claimed(&journal, &sample::claim().build()).await;
    let found = conduct(&journal).claim(&order).await.unwrap();
    assert!(matches!(found, ClaimOutcome::InProgress(_)), "{found:?}");
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    let found = conduct(&journal).claim(&order).await.unwrap();
    assert!(matches!(found, ClaimOutcome::Ended(_)), "{found:?}");
}

#[tokio::test]
async fn a_recorded_result_is_settled_by_the_next_claim_that_can() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    journal.break_wallet(sample::WALLET);
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    let found = claim_again(&journal).await.unwrap();
    assert!(matches!(&found, ClaimOutcome::Recorded(_)), "{found:?}");
    check_wallet(&journal, 900, 100);
    journal.repair_wallet(sample::WALLET);
    for settles in [true, false] {
        let found = claim_again(&journal).await.unwrap();
        let ClaimOutcome::Ended(ended) = found else { panic!("it should have ended: {found:?}") };
        assert_eq!((phase(&ended.snapshot), ended.moved), ("completed", settles));
        assert_eq!(ended.snapshot.result, Some(sample::result("answer")));
    }
    assert_eq!(charge(&row(&journal)), Some(30));
    check_wallet(&journal, 970, 0);
}

#[tokio::test]
async fn a_stale_operation_is_reaped_by_the_next_claim_once_its_grace_is_over() {
    let journal = journal().await;
    claimed(&journal, &sample::claim().build()).await;
    journal.advance(sample::LEASE);
    let found = claim_again(&journal).await.unwrap();
    assert!(matches!(found, ClaimOutcome::InProgress(_)), "within the grace: {found:?}");
    journal.advance(GRACE);
    let claim = sample::claim().claim_id(OTHER).build();
    let careful = Conduct { orphan_grace: None, ..conduct(&journal) };
    let found = careful.claim(&sample::order(&claim)).await.unwrap();
    assert!(matches!(found, ClaimOutcome::InProgress(_)), "just back: {found:?}");
    let found = claim_again(&journal).await.unwrap();
    assert!(matches!(&found, ClaimOutcome::Ended(found) if phase(&found.snapshot) == "abandoned"));
    check_wallet(&journal, 1_000, 0);
}

#[tokio::test]
async fn a_superseded_operation_is_reaped_at_once() {
    let journal = journal().await;
    claimed(&journal, &sample::claim().build()).await;
    let next = Node { incarnation: sample::fresh(), ..sample::node("a") };
    journal.heartbeat(&next, sample::LEASE, LeaseMode::Take).await.unwrap();
    let found = claim_again(&journal).await.unwrap();
    assert!(matches!(&found, ClaimOutcome::Ended(found) if phase(&found.snapshot) == "abandoned"));
}

#[tokio::test]
async fn an_open_operation_runs_again_under_a_new_claim_id_and_no_other() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    conduct(&journal).conclude(&operation, &Ending::NotRun, &[]).await;
    let same = sample::claim().build();
    let reused = conduct(&journal).claim(&sample::order(&same)).await;
    assert!(matches!(reused, Err(ClaimError::Contended)), "{reused:?}");
    assert_eq!(row(&journal).generation, 1);
    for faults in LOSSES {
        let journal = super::journal().await;
        let operation = claimed(&journal, &same).await;
        conduct(&journal).conclude(&operation, &Ending::NotRun, &[]).await;
        // The first offer finds the row; what is lost is the reopening.
        journal.fail_next([Fault::None].into_iter().chain(faults.iter().copied()));
        let second = claimed(&journal, &sample::claim().claim_id(OTHER).hold(250).build()).await;
        assert_eq!((second.generation, second.owner.claim), (2, OTHER), "{faults:?}");
        assert_eq!(second, row(&journal), "{faults:?}");
        assert_eq!(transfers(&journal, "hold"), 2, "{faults:?}");
        check_wallet(&journal, 750, 250);
    }
}

#[tokio::test]
async fn a_key_that_was_bound_under_older_terms_is_compared_under_them() {
    let journal = journal().await;
    let operation = claimed(&journal, &sample::claim().build()).await;
    conduct(&journal).conclude(&operation, &sample::finished(20, 10), &[]).await;
    let old = sample::terms();
    let other_secret = ServerSecretId::from_bytes([2; 8]);
    let new = FingerprintTerms { server_secret: other_secret, contract: 2, ..old };
    let claim = |text: &str, terms| {
        let bound = sample::claim().binding(sample::binding(text, terms));
        bound.claim_id(OTHER).build()
    };
    let rebound = async |text: &'static str| {
        let claim = claim(text, new);
        let rebind = |row: &Operation| Rebinding::Bound(sample::binding(text, row.binding.terms));
        let order = ClaimOffer { rebind: &rebind, ..sample::order(&claim) };
        conduct(&journal).claim(&order).await.unwrap()
    };
    assert!(matches!(rebound("hello").await, ClaimOutcome::Ended(_)));
    assert!(matches!(rebound("another").await, ClaimOutcome::OtherRequest));
    // Where nothing can be computed any more, the same bytes are still the same request, as long as
    // their digest was made with the same secret.
    let same_secret = claim("hello", FingerprintTerms { contract: 2, ..old });
    let found = conduct(&journal).claim(&sample::order(&same_secret)).await.unwrap();
    assert!(matches!(found, ClaimOutcome::Ended(_)), "{found:?}");
    let unknown = claim("hello", new);
    let found = conduct(&journal).claim(&sample::order(&unknown)).await.unwrap();
    assert!(matches!(found, ClaimOutcome::OtherRequest), "{found:?}");
}

/// A row of a later release: its answer for the same bytes, an error for anything else, never a run.
#[tokio::test]
async fn unknown_fingerprint_version_is_neither_a_conflict_nor_a_run() {
    let later = FingerprintTerms { fingerprint_version: 99, ..sample::terms() };
    let bound = sample::binding("hello", later);
    for (ending, is_open) in [(sample::finished(20, 10), false), (Ending::NotRun, true)] {
        let journal = journal().await;
        let operation = claimed(&journal, &sample::claim().binding(bound).build()).await;
        conduct(&journal).conclude(&operation, &ending, &[]).await;
        let before = row(&journal);
        let other = sample::binding("another", later).body_digest;
        for digest in [None, Some(other), Some(bound.body_digest)] {
            let claim = sample::claim().claim_id(OTHER).build();
            let rebind = |_row: &Operation| Rebinding::UnknownVersion(digest);
            let order = ClaimOffer { rebind: &rebind, ..sample::order(&claim) };
            let found = conduct(&journal).claim(&order).await;
            let is_same = digest == Some(bound.body_digest);
            let is_right = match &found {
                Ok(ClaimOutcome::Ended(_)) => is_same && !is_open,
                Err(ClaimError::UnknownVersion) => !is_same || is_open,
                other => panic!("{other:?}"),
            };
            assert!(is_right, "open {is_open}, {digest:?}: {found:?}");
            assert_eq!(row(&journal), before);
        }
    }
}

#[tokio::test]
async fn a_claim_gives_up_when_others_keep_moving_the_operation() {
    let journal = journal().await;
    let first = claimed(&journal, &sample::claim().build()).await;
    conduct(&journal).conclude(&first, &Ending::NotRun, &[]).await;
    let contested = ContestedJournal(&journal);
    let claim = lasting(OTHER);
    let loser = Conduct { journal: &contested, pause: &NoPause, orphan_grace: None };
    let given_up = loser.claim(&sample::order(&claim)).await;
    assert!(matches!(given_up, Err(ClaimError::Contended)), "{given_up:?}");
    check_wallet(&journal, 1_000, 0);
    assert_ne!(row(&journal).owner.claim, OTHER);
}

/// A claim by a node whose lease lasts.
fn lasting(claim: ClaimId) -> Claim {
    let ends_at = NOW.after(Duration::from_secs(3_600));
    let lease = Lease { node: sample::node("a"), ends_at };
    sample::claim().claim_id(claim).lease(lease).build()
}

/// A journal on which somebody else always claims, and finds that nothing runs, a minute before.
struct ContestedJournal<'a>(&'a MemoryJournal);

#[async_trait::async_trait]
impl Journal for ContestedJournal<'_> {
    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        let operation = claimed(self.0, &lasting(sample::fresh())).await;
        conduct(self.0).conclude(&operation, &Ending::NotRun, &[]).await;
        self.0.advance(Duration::from_secs(60));
        self.0.commit(change).await
    }

    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        self.0.load(operation).await
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        self.0.clock().await
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        self.0.due(limit).await
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        self.0.leased_to(node).await
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        self.0.purge(age, limit).await
    }
}
