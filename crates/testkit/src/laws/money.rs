//! Laws of money that moves by itself, and of the book as a whole.
//!
//! A posting has its id for ever: another one under it is a conflict. No amount is posted that a wallet could
//! not hold beside the holds that may come back to it, no amount is taken that is not available, and the
//! refunds of an operation stay within its captured charge. After any history, also one of refusals, each
//! balance is the sum of its transfers and no money came from nowhere.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::money};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! money::a_deposit_is_posted_once(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use holdfast_domain::admin::AccountRefusal;
use holdfast_domain::admin::ports::CommandError::{self, Refused};
use holdfast_domain::ledger::{Account, Posting, PostingKind};
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::{Event, Micros, PostingId, WalletId};

use super::Stores;
use super::tenant::{Tenant, finish, give_up, judged, not_run, record, refuse};
use crate::dice::Dice;
use crate::join::join_all;
use crate::sample;

/// A posting is made once, however often it is offered; another one under its id is a conflict. The first can
/// be read again.
pub async fn a_deposit_is_posted_once(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 0).await;
    let deposit = deposit(tenant.wallet, 500);
    // Same id, other amount: the reuse of an id is a conflict, and the first one stands.
    let other = Posting { amount: Micros::new(7), ..deposit.clone() };
    let posted = join_all((0..3).map(|_| stores.commands().post(&deposit))).await;
    let done = posted.iter().map(|posted| posted.as_ref().unwrap());
    assert_eq!(done.filter(|receipt| !receipt.replayed).count(), 1, "{posted:?}");
    let again = stores.commands().post(&other).await;
    let is_conflict =
        matches!(&again, Err(Refused(AccountRefusal::PostingConflict(known))) if *known == deposit);
    assert!(is_conflict, "{again:?}");
    assert_eq!(stores.wallets().posting(deposit.id).await.unwrap(), Some(deposit));
    assert_eq!(stores.wallets().posting(sample::fresh()).await.unwrap(), None);
    assert_eq!(tenant.balances().await, (500, 0));
    // An amount that does not fit into the balance is refused and posts no transfer.
    refuse_posting(tenant.post(PostingKind::Deposit, i64::MAX).await);
    assert_eq!(tenant.balances().await, (500, 0));
}

/// A posting fits only beside all that is in the wallet, for what is held may come back.
pub async fn postings_leave_room_for_what_is_held(stores: &dyn Stores) {
    let full = Micros::BALANCE_MAX.get();
    let tenant = Tenant::new(stores, 500).await;
    let operation = tenant.admit(&tenant.claim().hold(400).build()).await;
    let mut left = full - 500;
    while left > Micros::POSTING_MAX.get() {
        tenant.post(PostingKind::Deposit, Micros::POSTING_MAX.get()).await.unwrap();
        left -= Micros::POSTING_MAX.get();
    }
    refuse_posting(tenant.post(PostingKind::Deposit, left + 1).await);
    assert_eq!(tenant.balances().await, (full - 400 - left, 400));
    // Exactly full, so that the release below has just room.
    tenant.post(PostingKind::Deposit, left).await.unwrap();
    tenant.step(operation.id, give_up(&operation)).await;
    assert_eq!(tenant.balances().await, (full, 0));
}

/// Money goes to no wallet that does not exist.
pub async fn a_deposit_to_no_wallet_is_refused(stores: &dyn Stores) {
    let lost = deposit(sample::fresh(), 500);
    let refused = stores.commands().post(&lost).await;
    assert!(matches!(refused, Err(Refused(AccountRefusal::NoWallet))), "{refused:?}");
    assert_eq!(stores.wallets().posting(lost.id).await.unwrap(), None);
}

/// No posting is of zero, and deposits and refunds only give.
pub async fn postings_move_something_in_their_direction(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 30, 0)).await;
    tenant.post(PostingKind::Refund(operation.id), 10).await.unwrap();
    let refund = || PostingKind::Refund(operation.id);
    let reason = || PostingKind::Adjustment("drift".to_owned());
    let deposit = || PostingKind::Deposit;
    for (kind, amount) in
        [(deposit(), 0), (deposit(), -1), (refund(), 0), (refund(), -1), (reason(), 0)]
    {
        // Callers build a posting by `Posting::new`: a table is the last to refuse it.
        assert!(tenant.post(kind, amount).await.is_err());
    }
    assert_eq!(tenant.balances().await, (980, 0));
}

/// An adjustment goes both ways, and takes no more than is available.
pub async fn adjustments_do_not_overdraw(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let reason = || PostingKind::Adjustment("goodwill, “quoted”".to_owned());
    tenant.admit(&tenant.claim().hold(600).build()).await;
    refuse_posting(tenant.post(reason(), -401).await);
    let taken = tenant.post(reason(), -400).await.unwrap();
    assert_eq!(tenant.balances().await, (0, 600));
    let given = tenant.post(reason(), 5).await.unwrap();
    assert_eq!(tenant.balances().await, (5, 600));
    let posting = stores.wallets().posting(taken).await.unwrap().unwrap();
    assert_eq!((posting.kind, posting.amount.get()), (reason(), -400));
    let sides: Vec<_> = tenant
        .entries()
        .await
        .into_iter()
        .filter(|entry| [taken, given].map(LedgerSource::Posting).contains(&entry.source))
        .map(|entry| (entry.debit, entry.credit, entry.amount.get()))
        .collect();
    let (available, adjustments) = (Account::Available, Account::Adjustments);
    assert_eq!(sides, [(available, adjustments, 400), (adjustments, available, 5)]);
}

/// A refund goes back from the charge of an operation: none before it is settled, and never more.
pub async fn refunds_need_a_captured_charge(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    let refund = |amount| tenant.post(PostingKind::Refund(operation.id), amount);
    refuse_posting(refund(1).await);
    tenant.step(operation.id, record(&operation, 20, 10)).await;
    refuse_posting(refund(1).await);
    tenant.step(operation.id, Event::Settle).await;
    // 30 was charged: 31 is too much, and so is 21 after 10.
    refuse_posting(refund(31).await);
    refund(10).await.unwrap();
    refuse_posting(refund(21).await);
    refund(20).await.unwrap();
    refuse_posting(refund(1).await);
    assert_eq!(tenant.balances().await, (1_000, 0));
    refuse_posting(tenant.post(PostingKind::Refund(sample::fresh()), 1).await);
    let ends: [fn(&Operation) -> Event; 3] = [not_run, refuse, give_up];
    for end in ends {
        let uncharged = tenant.admit(&tenant.claim().build()).await;
        tenant.step(uncharged.id, end(&uncharged)).await;
        refuse_posting(tenant.post(PostingKind::Refund(uncharged.id), 1).await);
    }
}

/// Refunds that race give back the charge once.
pub async fn concurrent_refunds_stay_within_the_charge(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 30, 0)).await;
    let refunds = (0..10).map(|_| tenant.post(PostingKind::Refund(operation.id), 10));
    let posted = join_all(refunds).await;
    assert_eq!(posted.iter().filter(|posted| posted.is_ok()).count(), 3, "{posted:?}");
    assert_eq!(tenant.balances().await, (1_000, 0));
}

/// After any history: each balance is the sum of its transfers, the held amount is the sum of the active holds,
/// and no money came from nowhere.
pub async fn balances_are_the_sums_of_their_transfers(stores: &dyn Stores) {
    // Few histories, for a store may be slow: what fails is repeated by its seed.
    for seed in 1..=3 {
        let tenant = Tenant::new(stores, 2_000).await;
        let mut dice = Dice::new(seed);
        let mut operations: Vec<Operation> = Vec::new();
        for _ in 0..60 {
            random_step(&tenant, &mut dice, &mut operations).await;
        }
        let (available, held) = tenant.balances().await;
        let mut active = 0;
        let mut captured = 0;
        for operation in &operations {
            let row = tenant.load(operation.id).await.operation.unwrap();
            active += if row.phase.holds() { row.hold.get() } else { 0 };
            captured += match &row.phase {
                Phase::Completed { usage, .. } => usage.charge.get(),
                Phase::Leased
                | Phase::Recorded(_)
                | Phase::Open
                | Phase::Refused { .. }
                | Phase::Abandoned { .. } => 0,
            };
        }
        assert_eq!(held, active, "what is held is the sum of the active holds");
        let posted: i64 = tenant
            .entries()
            .await
            .iter()
            .filter(|entry| matches!(entry.source, LedgerSource::Posting(_)))
            .map(|entry| {
                let amount = entry.amount.get();
                if entry.credit == Account::Available { amount } else { -amount }
            })
            .sum();
        assert_eq!(available + held + captured, posted, "nothing came from nowhere");
    }
}

/// The newest so many, the oldest of them first, each with what it belongs to.
pub async fn statements_show_the_newest_transfers_oldest_first(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 20, 10)).await;
    let last = tenant.post(PostingKind::Deposit, 1).await.unwrap();
    let all = tenant.entries().await;
    let kinds: Vec<_> = all.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["deposit", "hold", "settle", "rest", "deposit"]);
    let sources: Vec<_> = all.iter().skip(1).map(|entry| entry.source).collect();
    let of_operation = LedgerSource::Operation(operation.id, 1);
    let of_posting = LedgerSource::Posting(last);
    assert_eq!(sources, [of_operation, of_operation, of_operation, of_posting]);
    assert!(all.is_sorted_by_key(|entry| entry.at));
    for limit in 0..=6_u32 {
        let newest = stores.wallets().transfers(tenant.wallet, limit).await.unwrap();
        let skipped = all.len().saturating_sub(usize::try_from(limit).unwrap());
        assert_eq!(newest, all.iter().skip(skipped).cloned().collect::<Vec<_>>());
    }
}

/// Random step; the store's refusals are part of the history.
async fn random_step(tenant: &Tenant<'_>, dice: &mut Dice, operations: &mut Vec<Operation>) {
    let amount = i64::try_from(dice.roll(400)).unwrap() + 1;
    let choice = dice.roll(10);
    let some = usize::try_from(dice.roll(8)).unwrap();
    match (choice, operations.iter().rev().nth(some)) {
        (0..4, _) | (_, None) => {
            let claim = tenant.claim().hold(amount).build();
            if tenant.offer(&claim).await.is_ok() {
                let id = holdfast_domain::OperationId::of(claim.api_key, claim.request_key);
                operations.extend(tenant.load(id).await.operation);
            }
        }
        (4, Some(_)) => drop(tenant.post(PostingKind::Deposit, amount).await),
        (5, Some(_)) => {
            let reason = PostingKind::Adjustment("drift".to_owned());
            drop(tenant.post(reason, 200 - amount).await);
        }
        (6, Some(operation)) => {
            drop(tenant.post(PostingKind::Refund(operation.id), amount).await);
        }
        (_, Some(operation)) => {
            let snapshot = tenant.load(operation.id).await;
            let event = event(&snapshot.operation.clone().unwrap(), tenant, dice);
            if holdfast_domain::decide(&snapshot, event.clone()).is_ok() {
                // A refusal is as good as a commit here: the sums are what is checked.
                drop(tenant.stores.journal().commit(judged(&snapshot, event)).await);
            }
        }
    }
}

fn event(operation: &Operation, tenant: &Tenant<'_>, dice: &mut Dice) -> Event {
    match (&operation.phase, dice.roll(5)) {
        (Phase::Open, _) => {
            let again = tenant.claim().request_key(operation.request_key).build();
            Event::Claim(Box::new(again))
        }
        (Phase::Recorded(_), _) => Event::Settle,
        (_, 0) => record(operation, dice.roll(300), dice.roll(300)),
        (_, 1) => not_run(operation),
        (_, 2) => give_up(operation),
        (_, 3) => refuse(operation),
        (_, _) => finish(operation, dice.roll(300), dice.roll(300)),
    }
}

fn deposit(wallet: WalletId, amount: i64) -> Posting {
    let (id, amount) = (sample::fresh(), Micros::new(amount));
    Posting { id, wallet, kind: PostingKind::Deposit, amount }
}

/// Refused because of the wallet's balance or the operation's charge, and for no other reason.
#[track_caller]
fn refuse_posting(posted: Result<PostingId, CommandError>) {
    let is_refused = matches!(
        posted,
        Err(Refused(
            AccountRefusal::WalletFull
                | AccountRefusal::PostingTooLarge
                | AccountRefusal::InsufficientFunds { .. }
                | AccountRefusal::NothingCharged
                | AccountRefusal::RefundTooLarge { .. }
                | AccountRefusal::NoOperation
        ))
    );
    assert!(is_refused, "{posted:?}");
}
