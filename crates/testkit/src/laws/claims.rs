//! Laws of claims: one owner, no overdraft, and no trace of the claims that lost.
//!
//! A claim and its hold are one transaction, so a loser's reservation goes with it. Refusals have an order:
//! conflict, limits, funds, permanent ids. A bound key is a conflict even if other rules refuse as well, for
//! its caller is to be answered from the row.
//!
//! Each law runs against the fake and both databases, through the ports alone: it may not know how a store keeps its
//! promise, only that it does.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::claims};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! claims::a_claim_is_exclusive_among_concurrent_offers(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::sync::Arc;

use holdfast_domain::OperationId;
use holdfast_domain::limits::Limits;
use holdfast_domain::model::ModelAlias;
use holdfast_domain::operation::{Claim, Event, Owner};
use holdfast_domain::ports::CommitError;

use super::Stores;
use super::tenant::{Tenant, not_run, record};
use crate::join::join_all;
use crate::sample;

/// A single one of many claims for one key is admitted, and the row carries its claim id.
pub async fn a_claim_is_exclusive_among_concurrent_offers(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let first = tenant.claim();
    // Equal but for the claim id, the only column by which the database can distinguish them.
    let claims: Vec<Claim> =
        (0..20).map(|_| first.clone().claim_id(sample::fresh()).build()).collect();
    let verdicts = join_all(claims.iter().map(|claim| tenant.offer(claim))).await;
    let mut winners = Vec::new();
    for (claim, verdict) in claims.iter().zip(verdicts) {
        match verdict {
            Ok(_) => winners.push(claim.owner.claim),
            Err(error) => assert!(matches!(error, CommitError::Conflict), "{error:?}"),
        }
    }
    let row = tenant.load(operation_of(&first.build())).await.operation.unwrap();
    assert_eq!(winners, [row.owner.claim]);
    assert_eq!(tenant.balances().await, (9_900, 100));
}

/// Two hundred claims race for the funds of one hundred.
pub async fn holds_never_overdraw(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 100).await;
    let claims: Vec<Claim> = (0..200).map(|_| tenant.claim().hold(1).build()).collect();
    let verdicts = join_all(claims.iter().map(|claim| tenant.offer(claim))).await;
    let mut admitted = 0;
    for (claim, verdict) in claims.iter().zip(verdicts) {
        let bound = tenant.load(operation_of(claim)).await.operation.is_some();
        assert_eq!(bound, verdict.is_ok(), "what was refused is not there");
        match verdict {
            Ok(_) => admitted += 1,
            Err(error) => assert!(matches!(error, CommitError::FundsHeld { .. }), "{error:?}"),
        }
    }
    // All of it and no micro more, in any order.
    assert_eq!(admitted, 100);
    assert_eq!(tenant.balances().await, (0, 100));
}

/// A claim that lost its race has reserved no funds, no counter and no transfer.
pub async fn a_loser_leaves_no_trace(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let limits = Limits { concurrency: Some(2), ..Limits::default() };
    let first = tenant.claim().limits(limits);
    // Another hold and another request, so that the row shows whose reservation is left.
    let second = first.clone().claim_id(sample::fresh()).hold(300).request("another").build();
    let first = first.build();
    let verdicts = join_all([&first, &second].map(|claim| tenant.offer(claim))).await;
    assert_eq!(verdicts.iter().filter(|verdict| verdict.is_ok()).count(), 1);
    let row = tenant.load(operation_of(&first)).await.operation.unwrap();
    assert_eq!(tenant.balances().await, (1_000 - row.hold.get(), row.hold.get()));
    let holds = tenant.entries().await.iter().filter(|entry| entry.kind == "hold").count();
    assert_eq!(holds, 1);
    // One of two is reserved: one more fits, and no third.
    let third = tenant.claim().limits(limits).build();
    let fourth = tenant.claim().limits(limits).build();
    assert!(tenant.offer(&third).await.is_ok());
    assert!(matches!(tenant.offer(&fourth).await, Err(CommitError::LimitReached(_))));
}

/// A claim that funds or limits refuse binds no key: it is free as before.
pub async fn a_refused_claim_leaves_no_trace(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 99).await;
    let before = tenant.entries().await;
    let limits = Limits { concurrency: Some(1), ..Limits::default() };
    let claim = tenant.claim().limits(limits).hold(100);
    let refused = tenant.offer(&claim.clone().build()).await;
    assert!(matches!(refused, Err(CommitError::InsufficientFunds)), "{refused:?}");
    assert_eq!(tenant.load(operation_of(&claim.clone().build())).await.operation, None);
    assert_eq!(tenant.entries().await, before);
    assert_eq!(tenant.balances().await, (99, 0));
    // Neither the key nor the concurrency is taken.
    tenant.admit(&claim.hold(99).build()).await;
}

/// A row keeps the alias that its claim named the model by, over its endings and generations, and others of its batch
/// have theirs or none.
pub async fn a_row_keeps_the_alias_of_its_first_claim(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let names = [Some("smart"), None, Some("quick"), Some("smart")];
    let claims: Vec<Claim> = names
        .iter()
        .map(|name| name.map_or(tenant.claim(), |name| tenant.claim().alias(name)).build())
        .collect();
    join_all(claims.iter().map(|claim| tenant.offer(claim))).await;
    for (claim, name) in claims.iter().zip(names) {
        let row = tenant.load(operation_of(claim)).await.operation.unwrap();
        assert_eq!(row.alias.as_ref().map(ModelAlias::as_str), name);
        assert_eq!((row.model.as_str(), row.written_model()), {
            let id = claim.model.as_str();
            (id, name.unwrap_or(id))
        });
        tenant.step(row.id, not_run(&row)).await;
        let again = Claim {
            owner: Owner { claim: sample::fresh(), ..claim.owner.clone() },
            alias: None,
            ..claim.clone()
        };
        tenant.step(row.id, Event::Claim(Box::new(again))).await;
        let reopened = tenant.load(row.id).await.operation.unwrap();
        assert_eq!((reopened.generation, reopened.alias), (2, row.alias));
    }
}

/// A claim that has too little money only because of the holds of leased operations has its own refusal, with
/// both amounts. Recorded money does not go back by an ending, and open operations hold none.
pub async fn funds_that_leased_operations_hold_are_distinguished(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 100).await;
    let offer = |hold| {
        let claim = tenant.claim().hold(hold).build();
        let tenant = &tenant;
        async move {
            match tenant.offer(&claim).await {
                Err(CommitError::FundsHeld { available, held }) => {
                    Some((available.get(), held.get()))
                }
                refused => {
                    let is_refused = matches!(refused, Err(CommitError::InsufficientFunds));
                    assert!(is_refused, "{refused:?}");
                    None
                }
            }
        }
    };
    assert_eq!(offer(101).await, None, "nothing is held");
    let first = tenant.admit(&tenant.claim().hold(50).build()).await;
    let second = tenant.admit(&tenant.claim().hold(20).build()).await;
    assert_eq!(offer(31).await, Some((30, 70)));
    assert_eq!(offer(100).await, Some((30, 70)));
    assert_eq!(offer(101).await, None, "more than the wallet has");
    // Another wallet's holds are not this one's.
    let other = Tenant::new(stores, 40).await;
    other.admit(&other.claim().hold(40).build()).await;
    assert_eq!(offer(101).await, None);
    tenant.step(first.id, record(&first, 5, 10)).await;
    assert_eq!(offer(31).await, Some((30, 20)));
    assert_eq!(offer(50).await, Some((30, 20)));
    assert_eq!(offer(51).await, None, "what is recorded waits for its settlement");
    tenant.step(second.id, not_run(&second)).await;
    assert_eq!(offer(51).await, None, "nothing is leased");
    assert_eq!(tenant.balances().await, (50, 50));
}

/// A wallet that does not exist pays for no run, not even for a free one.
pub async fn a_missing_wallet_has_nothing(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    for hold in [100, 0] {
        let claim = tenant.claim().wallet(sample::fresh()).hold(hold).build();
        let refused = tenant.offer(&claim).await;
        assert!(matches!(refused, Err(CommitError::InsufficientFunds)), "{refused:?}");
        assert_eq!(tenant.load(operation_of(&claim)).await.operation, None);
    }
}

/// A limit is named if funds refuse as well: the order in which callers can act on it.
pub async fn limits_are_judged_before_funds(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 100).await;
    let limits = Limits { concurrency: Some(0), ..Limits::default() };
    let refused = tenant.offer(&tenant.claim().limits(limits).hold(101).build()).await;
    assert!(matches!(refused, Err(CommitError::LimitReached(_))), "{refused:?}");
}

/// Conflict is judged before funds, limits and permanent ids.
pub async fn a_key_that_is_bound_is_a_conflict_whatever_else_is_wrong(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 100).await;
    let limits = Limits { concurrency: Some(1), ..Limits::default() };
    let claim = tenant.claim().limits(limits);
    let operation = tenant.admit(&claim.clone().build()).await;
    // The wallet is empty, the limit is reached, and the hold of generation 1 exists.
    for hold in [0, 100, 1_000_000] {
        let again = claim.clone().claim_id(sample::fresh()).hold(hold).build();
        let refused = tenant.offer(&again).await;
        assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    }
    assert_eq!(tenant.load(operation.id).await.operation, Some(operation));
    assert_eq!(tenant.balances().await, (0, 100));
}

/// The same change, offered again because its answer was lost, is a conflict; the row shows whose it is.
pub async fn an_offer_again_after_it_landed_is_a_conflict_and_shows_whose_it_is(
    stores: &dyn Stores,
) {
    let tenant = Tenant::new(stores, 1_000).await;
    let claim = tenant.claim().build();
    let change = sample::admission(&claim);
    let journal = stores.journal();
    journal.commit(Arc::clone(&change)).await.unwrap();
    let verdicts = join_all((0..3).map(|_| journal.commit(Arc::clone(&change)))).await;
    for again in verdicts {
        assert!(matches!(again, Err(CommitError::Conflict)), "{again:?}");
    }
    let row = tenant.load(operation_of(&claim)).await.operation.unwrap();
    assert_eq!(row.owner, claim.owner);
    assert_eq!(tenant.balances().await, (900, 100));
}

/// Two wallets with operations at the same time: each has its own balances and its own book.
pub async fn one_wallets_operations_do_not_touch_another(stores: &dyn Stores) {
    let (one, other) = (Tenant::new(stores, 500).await, Tenant::new(stores, 700).await);
    let claims: Vec<_> = (0..5).flat_map(|_| [(&one, 10), (&other, 20)]).collect();
    // Taken in turns, so that a batch of commits has both wallets in it.
    let offers = claims
        .iter()
        .map(|(tenant, hold)| async { tenant.offer(&tenant.claim().hold(*hold).build()).await });
    assert!(join_all(offers).await.iter().all(Result::is_ok));
    assert_eq!(one.balances().await, (450, 50));
    assert_eq!(other.balances().await, (600, 100));
}

fn operation_of(claim: &Claim) -> OperationId {
    OperationId::of(claim.api_key, claim.request_key)
}
