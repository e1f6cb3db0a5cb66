//! Counters: their windows by the calendar, and reservations that add up to the truth.

use holdfast_domain::limits::{
    Counter, CounterMove, CounterReadings, Limits, ReachedLimit, Reservation, SpendLimit,
    SpendWindow,
};
use holdfast_domain::{Micros, Timestamp};
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

/// Seconds since the epoch, as `date -u -d … +%s` says.
#[track_caller]
fn check(counter: Counter, at: i64, window: i64) {
    for micros in [0, 1, 999_999] {
        let at = Timestamp::from_micros(at * 1_000_000 + micros);
        let window = Timestamp::from_micros(window * 1_000_000);
        assert_eq!(counter.window(at), window);
    }
}

#[test]
fn a_minute_and_a_day_begin_where_the_clock_says() {
    // 2026-11-20T12:34:56Z
    for counter in [Counter::Requests, Counter::Tokens] {
        check(counter, 1_795_178_096, 1_795_178_040);
        check(counter, 1_795_178_040, 1_795_178_040);
        check(counter, 1_795_178_039, 1_795_177_980);
        check(counter, -1, -60);
    }
    check(Counter::SpendDay, 1_795_178_096, 1_795_132_800);
    check(Counter::SpendDay, 1_795_132_800, 1_795_132_800);
    check(Counter::SpendDay, 1_795_132_799, 1_795_046_400);
    check(Counter::SpendDay, -1, -86_400);
}

#[test]
fn a_month_begins_on_its_first_day_in_leap_years_too() {
    let months = [
        ("1970-01", 0, 2_678_400),
        ("1999-12", 944_006_400, 946_684_800),
        ("2000-02", 949_363_200, 951_868_800),
        ("2000-12", 975_628_800, 978_307_200),
        ("2023-02", 1_675_209_600, 1_677_628_800),
        ("2024-02", 1_706_745_600, 1_709_251_200),
        ("2026-01", 1_767_225_600, 1_769_904_000),
        ("2026-02", 1_769_904_000, 1_772_323_200),
        ("2026-04", 1_775_001_600, 1_777_593_600),
        ("2026-11", 1_793_491_200, 1_796_083_200),
        ("2026-12", 1_796_083_200, 1_798_761_600),
        ("2100-02", 4_105_123_200, 4_107_542_400),
        ("2399-12", 13_566_787_200, 13_569_465_600),
        ("2400-02", 13_572_144_000, 13_574_649_600),
    ];
    for (name, begins, ends) in months {
        for at in [begins, begins + 1, (begins + ends) / 2, ends - 1] {
            let at = Timestamp::from_micros(at * 1_000_000);
            let window = Timestamp::from_micros(begins * 1_000_000);
            assert_eq!(Counter::SpendMonth.window(at), window, "{name}");
        }
        check(Counter::SpendMonth, ends, ends);
    }
    check(Counter::SpendMonth, -1, -2_678_400);
}

#[test]
fn what_counts_for_ever_has_one_window() {
    for counter in [Counter::Concurrency, Counter::SpendTotal] {
        for at in [i64::MIN, -1, 0, 1_795_178_096, i64::MAX / 1_000_000 - 1] {
            assert_eq!(counter.window(Timestamp::from_micros(at)).as_micros(), 0);
        }
    }
}

proptest! {
    #[test]
    fn a_window_holds_its_moment_and_begins_itself(micros in 0_i64..=8_000_000_000_000_000) {
        let at = Timestamp::from_micros(micros);
        for counter in Counter::ALL {
            let window = counter.window(at);
            prop_assert_eq!(counter.window(window), window);
            assert!(window <= at, "{counter:?} of {at:?}");
        }
    }
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let count = || proptest::option::of(any::<u64>());
    let window =
        proptest::sample::select(vec![SpendWindow::Total, SpendWindow::Day, SpendWindow::Month]);
    let spend = proptest::option::of((0_i64..i64::MAX, window));
    (count(), count(), count(), spend).prop_map(|(requests, tokens, concurrency, spend)| Limits {
        requests_per_minute: requests,
        tokens_per_minute: tokens,
        concurrency,
        spend: spend.map(|(micros, window)| SpendLimit { micros: Micros::new(micros), window }),
    })
}

fn sum(counter: Counter, moves: &[&[CounterMove]]) -> i64 {
    let of_counter = moves.iter().copied().flatten().filter(|moved| moved.counter == counter);
    of_counter.map(|moved| moved.amount).sum()
}

/// What a counter is left with by the endings of one operation: T2; T3, by its generation; T4 to T6.
fn left(
    counter: Counter,
    (used, charge): (i64, i64),
    (tokens, generation): (i64, u32),
) -> [i64; 3] {
    match counter {
        Counter::Requests => [1, i64::from(generation > 1), 1],
        Counter::Tokens => [used, 0, tokens],
        Counter::Concurrency => [0, 0, 0],
        Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => [charge, 0, 0],
    }
}

proptest! {
    #[test]
    fn what_is_reserved_and_corrected_sums_to_what_the_table_says(
        limits in any_limits(),
        (hold, charge) in (0_i64..1 << 50, 0_i64..1 << 50),
        (tokens, used) in (0_u64..1 << 50, 0_u64..1 << 50),
        generation in 1_u32..4,
    ) {
        let whole = |count: u64| i64::try_from(count).unwrap();
        let (amounts, reservation) =
            ((whole(used), charge), (whole(tokens), generation));
        let (hold, charge) = (Micros::new(hold), Micros::new(charge));
        let reserved = limits.reservations(hold, tokens);
        // As a row keeps it.
        let kept = Reservation::for_limits(&limits, tokens);
        let kept = Reservation::from_stored(kept.counters(), kept.tokens());
        let corrected = kept.settlement_moves(hold, charge, used);
        let given_back = kept.not_run_moves(hold, generation);
        let released = kept.release_moves(hold);
        for counter in Counter::ALL {
            let counts = reserved.iter().any(|moved| moved.counter == counter);
            let after = [&corrected, &given_back, &released]
                .map(|ending| sum(counter, &[&reserved, ending]));
            let expected = left(counter, amounts, reservation);
            prop_assert_eq!(after, if counts { expected } else { [0; 3] });
        }
        assert!(reserved.iter().all(|moved| moved.bound.is_some()));
        let corrections = corrected.iter().chain(&given_back).chain(&released);
        assert!(corrections.into_iter().all(|moved| moved.bound.is_none() && moved.amount != 0));
    }
}

#[test]
fn a_limit_reserves_its_own_counter_with_its_own_bound() {
    let all = Limits {
        requests_per_minute: Some(1),
        tokens_per_minute: Some(u64::MAX),
        concurrency: Some(3),
        spend: None,
    };
    let moved = |counter, amount, bound| CounterMove { counter, amount, bound: Some(bound) };
    let hold = Micros::new(50);
    let mut expected = vec![
        moved(Counter::Requests, 1, 1),
        moved(Counter::Tokens, 9, i64::MAX),
        moved(Counter::Concurrency, 1, 3),
    ];
    assert_eq!(all.reservations(hold, 9), expected);
    let windows = [
        (SpendWindow::Total, Counter::SpendTotal),
        (SpendWindow::Day, Counter::SpendDay),
        (SpendWindow::Month, Counter::SpendMonth),
    ];
    for (window, counter) in windows {
        let spend = Some(SpendLimit { micros: Micros::new(70), window });
        expected.truncate(3);
        expected.push(moved(counter, 50, 70));
        assert_eq!(Limits { spend, ..all }.reservations(hold, 9), expected);
    }
    assert_eq!(Limits::default().reservations(hold, 9), []);
}

#[test]
fn a_window_ends_where_the_next_one_begins() {
    // 2026-02-28T23:59:59.999999Z and the microsecond after it.
    let last = Timestamp::from_micros(1_772_323_199_999_999);
    let next = Timestamp::from_micros(1_772_323_200_000_000);
    for counter in [Counter::Requests, Counter::Tokens, Counter::SpendDay, Counter::SpendMonth] {
        assert_eq!(counter.window_end(last), Some(next), "{counter:?}");
        assert_eq!(counter.window(next), next);
    }
    for month in 0..48 {
        let at = Timestamp::from_micros((1_700_000_000 + month * 2_629_800) * 1_000_000);
        let end = Counter::SpendMonth.window_end(at).unwrap();
        assert_eq!(Counter::SpendMonth.window(end), end, "a first of a month");
        let before = Timestamp::from_micros(end.as_micros() - 1);
        assert_eq!(Counter::SpendMonth.window(before), Counter::SpendMonth.window(at));
    }
    for counter in [Counter::Concurrency, Counter::SpendTotal] {
        assert_eq!(counter.window_end(last), None, "{counter:?}");
    }
}

#[test]
fn a_tally_knows_what_it_was_told() {
    let tally = CounterReadings::default().with(Counter::Tokens, 40).with(Counter::Concurrency, 1);
    assert_eq!(tally.used(Counter::Tokens), Some(40));
    assert_eq!(tally.used(Counter::Requests), None);
    assert_eq!(format!("{tally:?}"), "{Tokens: 40, Concurrency: 1}");
    let moved = |counter, amount| CounterMove { counter, amount, bound: None };
    let moves = [moved(Counter::Tokens, -50), moved(Counter::Concurrency, 2)];
    let unknown = [moved(Counter::Requests, 1)];
    let after = tally.with_moves(&moves).with_moves(&unknown);
    assert_eq!(
        after,
        CounterReadings::default().with(Counter::Tokens, 0).with(Counter::Concurrency, 3)
    );
}

#[test]
fn what_is_reached_says_what_is_left_and_when_there_is_more() {
    let reached = |counter, amount, used| ReachedLimit {
        counter,
        amount,
        bound: 100,
        counters: CounterReadings::default().with(counter, used),
        at: Timestamp::from_micros(1_795_178_096_250_000),
    };
    let tokens = reached(Counter::Tokens, 30, 80);
    assert_eq!((tokens.remaining(), tokens.may_fit_later()), (20, true));
    assert_eq!(tokens.resets_in().map(|wait| wait.as_millis()), Some(3_750));
    let never = reached(Counter::SpendTotal, 101, 130);
    assert_eq!((never.remaining(), never.may_fit_later(), never.resets_in()), (0, false, None));
}

#[test]
fn a_counter_that_is_reserved_stays_reserved_when_it_is_added_again() {
    let once = Reservation::default().with(Counter::Tokens);
    assert_eq!(once.with(Counter::Tokens), once);
    assert_ne!(once, Reservation::default());
}
