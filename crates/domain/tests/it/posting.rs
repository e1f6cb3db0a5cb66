//! A posting moves something, in the direction of its kind.

use holdfast_domain::ledger::{BadPosting, Posting, PostingKind};
use holdfast_domain::{Micros, OperationId, PostingId};
use holdfast_testkit::sample;

#[track_caller]
fn check(kind: &PostingKind, amount: i64, is_made: bool) {
    let (id, amount) = (PostingId::from_u128(1), Micros::new(amount));
    let made = Posting::new(id, sample::WALLET, kind.clone(), amount);
    let expected = Posting { id, wallet: sample::WALLET, kind: kind.clone(), amount };
    assert_eq!(made, is_made.then_some(expected).ok_or(BadPosting));
}

#[test]
fn deposits_and_refunds_only_give() {
    for kind in [PostingKind::Deposit, PostingKind::Refund(OperationId::from_u128(1))] {
        check(&kind, 1, true);
        check(&kind, 0, false);
        check(&kind, -1, false);
    }
}

#[test]
fn adjustments_go_both_ways() {
    let kind = PostingKind::Adjustment("drift".to_owned());
    check(&kind, 1, true);
    check(&kind, 0, false);
    check(&kind, -1, true);
}
