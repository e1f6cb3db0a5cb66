//! Amounts as text, and what they refuse to be.

use std::time::Duration;

use holdfast_domain::money::{BadAmount, BadCurrency};
use holdfast_domain::{Currency, Micros, Timestamp};
use proptest::prelude::{any, prop_assert_eq, proptest};

#[test]
fn amounts_have_two_to_six_decimals() {
    let table = [
        (0, "0.00"),
        (1, "0.000001"),
        (15, "0.000015"),
        (10_000, "0.01"),
        (100_000, "0.10"),
        (1_500_000, "1.50"),
        (10_000_000, "10.00"),
        (-15, "-0.000015"),
        (-1_234_567, "-1.234567"),
        (i64::MAX, "9223372036854.775807"),
        (i64::MIN, "-9223372036854.775808"),
    ];
    for (micros, text) in table {
        assert_eq!(Micros::new(micros).to_string(), text);
        assert_eq!(text.parse(), Ok(Micros::new(micros)), "{text}");
    }
}

#[test]
fn shorter_and_padded_spellings_are_read_too() {
    for (text, micros) in [("10", 10_000_000), ("1.5", 1_500_000), ("007.0", 7_000_000), ("-0", 0)]
    {
        assert_eq!(text.parse(), Ok(Micros::new(micros)), "{text}");
    }
}

#[test]
fn what_is_no_amount_is_refused() {
    let bad = [
        "",
        "-",
        ".",
        "1.",
        ".5",
        "-.5",
        "+1",
        "--1",
        "1-",
        " 1",
        "1 ",
        "1,5",
        "1.0000001",
        "1e3",
        "1.-5",
        "1.2.3",
        "0x1",
        "١",
    ];
    for text in bad {
        assert_eq!(text.parse::<Micros>(), Err(BadAmount::Unreadable), "{text}");
    }
    for text in ["9223372036854.775808", "-9223372036854.775809", "99999999999999999999"] {
        assert_eq!(text.parse::<Micros>(), Err(BadAmount::TooLarge), "{text}");
    }
}

proptest! {
    #[test]
    fn an_amount_reads_back_as_it_was_written(micros in any::<i64>()) {
        let amount = Micros::new(micros);
        prop_assert_eq!(amount.to_string().parse(), Ok(amount));
    }

    #[test]
    fn sums_and_differences_are_exact_or_not_at_all(a in any::<i64>(), b in any::<i64>()) {
        let (left, right) = (Micros::new(a), Micros::new(b));
        prop_assert_eq!(left.plus(right).map(Micros::get), a.checked_add(b));
        prop_assert_eq!(left.minus(right).map(Micros::get), a.checked_sub(b));
    }
}

#[test]
fn currencies_are_three_capital_letters() {
    for text in ["USD", "EUR", "XTS"] {
        assert_eq!(text.parse::<Currency>().unwrap().to_string(), text);
    }
    for text in ["", "US", "USDT", "usd", "U5D", "ÜSD", "US "] {
        assert_eq!(text.parse::<Currency>(), Err(BadCurrency), "{text}");
    }
}

#[test]
fn moments_end_at_the_end_of_time() {
    let last = Timestamp::from_micros(i64::MAX);
    assert_eq!(last.after(Duration::from_micros(1)), last);
    assert_eq!(Timestamp::from_micros(5).after(Duration::MAX), last);
    assert_eq!(Timestamp::from_micros(-1).as_seconds(), -1);
    assert_eq!(Timestamp::from_micros(1_999_999).as_seconds(), 1);
}
