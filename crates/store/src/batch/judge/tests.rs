//! The judge over batches of a few rows: the effect of a change on a wallet and on the counters of a key, and its
//! events.
//!
//! Rows are made by hand and judged without a database, so each case is one change and its verdict. The effect of a
//! verdict in the two databases is in the tests of the store.
//!
//! No case depends on another one's rows.

use std::sync::Arc;

use holdfast_domain::limits::{Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Receipt, Transition, Version};
use holdfast_domain::{Event, Operation, Snapshot, decide};
use holdfast_testkit::Dice;
use holdfast_testkit::sample::{self, ClaimBuilder, NOW};

use super::*;

/// A book with one wallet.
fn state(available: i64, held: i64) -> BatchState {
    let (available, held) = (Micros::new(available), Micros::new(held));
    let balance = WalletBalance { available, held, low_balance: None, limits_revision: 0 };
    BatchState { wallets: [(sample::WALLET, balance)].into(), ..BatchState::default() }
}

fn claim(n: u64) -> ClaimBuilder {
    sample::claim().request_key(sample::request_key(n))
}

fn judge(state: &mut BatchState, change: &Transition) -> Result<Acceptance, Rejection> {
    state.judge(change, NOW)
}

fn admit(state: &mut BatchState, claim: ClaimBuilder) -> Result<Acceptance, Rejection> {
    judge(state, &sample::admission(&claim.build()))
}

/// Change by an event on an operation that was just admitted by this claim.
fn after(claim: ClaimBuilder, event: impl FnOnce(&Operation) -> Event) -> Arc<Transition> {
    let admission = sample::admission(&claim.build());
    let transition = &*admission;
    let receipt =
        Receipt { version: Version::FIRST, at: NOW, counters: CounterReadings::default() };
    let operation = transition.apply(None, receipt).unwrap();
    let event = event(&operation);
    let snapshot = Snapshot { operation: Some(operation), ..Snapshot::vacant(NOW) };
    Arc::new(decide(&snapshot, event).unwrap())
}

/// A book in which the first operation's row is at this version.
fn with_row(mut state: BatchState, version: u32) -> BatchState {
    let id = OperationId::of(sample::API_KEY, sample::request_key(1));
    let claim = claim(1).build().owner.claim;
    state.operations.insert(id, OperationRow { seq: 5, version: Version::new(version), claim });
    state
}

fn give_up(operation: &Operation) -> Event {
    Event::GiveUp { claim: operation.owner.claim, attempts: Arc::default() }
}

fn not_run(operation: &Operation) -> Event {
    Event::NotRun { claim: operation.owner.claim, attempts: Arc::default() }
}

#[test]
fn totals_run_through_a_batch() {
    let mut state = state(250, 0);
    let verdicts: Vec<bool> = (0..4).map(|n| admit(&mut state, claim(n)).is_ok()).collect();
    assert_eq!(verdicts, [true, true, false, false]);
    assert!(admit(&mut state, claim(9).hold(50)).is_ok(), "a smaller one still fits");
    let moves = BalanceChange { available: Micros::new(-250), held: Micros::new(250) };
    assert_eq!(state.moved.wallets, [(sample::WALLET, moves)].into());
}

#[test]
fn what_an_earlier_change_gave_back_a_later_one_may_hold() {
    let mut state = with_row(state(0, 100), 1);
    let uncovered =
        UncoveredHold { hold: Micros::new(100), available: Micros::ZERO, held: Micros::new(100) };
    assert_eq!(admit(&mut state, claim(2)), Err(Rejection::HoldUncovered(uncovered)));
    let passed =
        Acceptance { seq: Some(5), version: Version::new(2), tally: CounterReadings::default() };
    assert_eq!(judge(&mut state, &after(claim(1), give_up)), Ok(passed));
    let passed =
        Acceptance { seq: None, version: Version::FIRST, tally: CounterReadings::default() };
    assert_eq!(admit(&mut state, claim(3)), Ok(passed));
}

#[test]
fn the_version_is_judged_before_everything_else() {
    let limits = Limits { concurrency: Some(0), ..Limits::default() };
    let mut broke = with_row(state(0, 0), 1);
    assert_eq!(admit(&mut broke, claim(1).limits(limits)), Err(Rejection::Conflict));
    for (row, verdict) in [(1, true), (2, false), (3, false)] {
        let mut state = with_row(state(0, 100), row);
        assert_eq!(
            judge(&mut state, &after(claim(1), give_up)) != Err(Rejection::Conflict),
            verdict
        );
    }
    assert_eq!(
        judge(&mut state(0, 100), &after(claim(1), give_up)),
        Err(Rejection::Conflict),
        "no row"
    );
    let mut another = with_row(state(0, 100), 1);
    another.operations.values_mut().for_each(|row| row.claim = sample::fresh());
    let verdict = judge(&mut another, &after(claim(1), give_up));
    assert_eq!(verdict, Err(Rejection::Conflict), "the row of another claim");
}

#[test]
fn limits_are_judged_before_funds_and_change_nothing() {
    let limits = Limits { concurrency: Some(1), ..Limits::default() };
    let mut state = state(100, 0);
    assert!(admit(&mut state, claim(1).limits(limits)).is_ok());
    let tally = CounterReadings::default().with(Counter::Concurrency, 1);
    let counter = Counter::Concurrency;
    let reached = ReachedLimit { counter, amount: 1, bound: 1, counters: tally, at: NOW };
    let refused = admit(&mut state, claim(2).limits(limits).hold(1_000));
    assert_eq!(refused, Err(Rejection::LimitReached(reached)));
    let window = (sample::API_KEY, Counter::Concurrency, Timestamp::from_micros(0));
    assert_eq!(state.moved.counters, [(window, 1)].into());
}

#[test]
fn a_bound_may_be_met_and_not_passed() {
    let spend = SpendLimit { micros: Micros::new(150), window: SpendWindow::Day };
    let limits = Limits { spend: Some(spend), ..Limits::default() };
    let window = (sample::API_KEY, Counter::SpendDay, Counter::SpendDay.window(NOW));
    for (used, fits) in [(0, true), (50, true), (51, false), (i64::MAX, false)] {
        let mut state = state(100, 0);
        state.counters.insert(window, used);
        assert_eq!(admit(&mut state, claim(1).limits(limits)).is_ok(), fits, "{used}");
    }
}

#[test]
fn a_correction_takes_no_more_than_is_there() {
    let limits = Limits { tokens_per_minute: Some(100), ..Limits::default() };
    let open = after(claim(1).limits(limits), not_run);
    let window = (sample::API_KEY, Counter::Tokens, Counter::Tokens.window(NOW));
    for (used, left) in [(130, 30), (100, 0), (40, 0), (0, 0)] {
        let mut state = with_row(state(0, 100), 1);
        state.counters.insert(window, used);
        judge(&mut state, &open).unwrap();
        assert_eq!(state.moved.counters, [(window, left)].into());
    }
}

#[test]
fn wallets_stay_within_their_bounds() {
    let mut full = with_row(state(i64::MAX, 100), 1);
    assert_eq!(
        judge(&mut full, &after(claim(1), give_up)),
        Err(Rejection::InsufficientFunds),
        "overflow"
    );
    let mut short = with_row(state(0, 99), 1);
    assert_eq!(
        judge(&mut short, &after(claim(1), give_up)),
        Err(Rejection::InsufficientFunds),
        "held"
    );
    assert_eq!(
        admit(&mut BatchState::default(), claim(1).hold(0)),
        Err(Rejection::InsufficientFunds)
    );
    // Only a change without money is written if the wallet is gone.
    let asked = after(claim(1), |_| Event::AskCancel);
    assert!(judge(&mut with_row(BatchState::default(), 1), &asked).is_ok());
    assert_eq!(
        judge(&mut with_row(BatchState::default(), 1), &after(claim(1), give_up)),
        Err(Rejection::InsufficientFunds)
    );
}

#[test]
fn a_price_is_new_or_the_same() {
    let known = sample::price();
    let mut state = state(1_000, 0);
    assert!(admit(&mut state, claim(1)).is_ok());
    assert!(admit(&mut state, claim(2)).is_ok());
    assert_eq!(state.moved.prices, [(known.id.clone(), known)].into());
    let dearer = sample::priced("2026-01-01T00:00:00Z", 2);
    assert_eq!(admit(&mut state, claim(3).price(dearer)), Err(Rejection::Collision));
}

#[test]
fn a_wallet_is_low_once_for_each_time_that_it_was_raised() {
    for seed in 0..64_u64 {
        let mut dice = Dice::new(seed);
        let mut state = state(1_000, 0);
        let threshold = Micros::new(i64::try_from(dice.roll(900)).unwrap());
        state.wallets.get_mut(&sample::WALLET).unwrap().low_balance = Some(threshold);
        let (mut expected, mut was_low) = (0, false);
        for n in 0..200_u128 {
            let amount = i64::try_from(dice.roll(120)).unwrap() + 1;
            // One batch of all: the sum of its moves does not show the steps between.
            let amount = match dice.roll(4) {
                0 => amount,
                1 => -amount,
                _ => -amount / 2 - 1,
            };
            let moves = BalanceChange { available: Micros::new(amount), held: Micros::ZERO };
            let Ok(balance) = state.balance(sample::WALLET, moves) else { continue };
            state.move_wallet(sample::WALLET, balance, moves, n.to_be_bytes());
            let has = state.wallets[&sample::WALLET].available;
            let is_low = has < threshold.max(Micros::new(1));
            expected += usize::from(is_low && !was_low);
            was_low = is_low;
        }
        let events: Vec<_> = state.moved.events.iter().map(|event| event.id).collect();
        assert_eq!(events.len(), expected, "seed {seed}");
        assert_eq!(BTreeSet::from_iter(&events).len(), expected, "no two have one id");
    }
}

#[test]
fn an_uncovered_hold_is_held_funds_unless_recorded_holds_make_it_up() {
    let change = sample::admission(&claim(1).hold(80).build());
    let mut state = state(30, 70);
    let refused = |recorded: i64, state: &mut BatchState| {
        let changes = [&*change];
        let mut verdicts = [state.judge(&change, NOW)];
        assert_eq!(uncovered_wallets(&changes, &verdicts), [sample::WALLET].into());
        resolve_holds(&changes, &mut verdicts, &[(sample::WALLET, Micros::new(recorded))].into());
        verdicts[0].err()
    };
    let held = |held| Rejection::FundsHeld { available: Micros::new(30), held: Micros::new(held) };
    assert_eq!(refused(0, &mut state), Some(held(70)));
    assert_eq!(refused(20, &mut state), Some(held(50)));
    assert_eq!(refused(21, &mut state), Some(Rejection::InsufficientFunds));
}
