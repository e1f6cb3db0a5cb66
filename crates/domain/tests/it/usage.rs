//! The billing fact: what a run cost, what of it is charged, and what the operator bears.

use holdfast_domain::Micros;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::price::{BadRate, PriceVersion, UnitPrices};
use holdfast_domain::usage::{
    BadCount, MeterKind, MeterReading, Meters, MetersSource, UsageReasons,
};
use holdfast_testkit::sample;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

fn any_counts(max: u64) -> impl Strategy<Value = [u64; MeterKind::COUNT]> {
    proptest::array::uniform9((any::<u64>(), 0_u32..64).prop_map(move |(n, by)| (n >> by).min(max)))
}

fn by(counts: [u64; MeterKind::COUNT]) -> impl Fn(MeterKind) -> u64 {
    move |kind| counts[MeterKind::ALL.iter().position(|k| *k == kind).unwrap()]
}

proptest! {
    #[test]
    fn a_charge_ends_at_the_hold_and_the_rest_is_shortfall(
        rates in any_counts(UnitPrices::RATE_MAX),
        counts in any_counts(Meters::COUNT_MAX),
        hold in 0_i64..=i64::MAX,
    ) {
        let rates = UnitPrices::from_fn(by(rates)).unwrap();
        let meters = Meters::from_fn(by(counts)).unwrap();
        let price = PriceVersion { tariff: rates.into(), ..sample::price() };
        let metered = MeterReading { meters, source: MetersSource::Estimated, reasons: UsageReasons::NONE, provider_cost: None };
        let hold = Micros::new(hold);
        let record = UsageRecord::of(metered, &price, hold);
        let cost = rates.cost(&meters);
        prop_assert!(record.charge <= hold && record.charge >= Micros::ZERO);
        prop_assert_eq!(record.charge.plus(record.shortfall), Some(cost));
        prop_assert!(record.shortfall == Micros::ZERO || record.charge == hold);
        prop_assert_eq!(record.metered, metered);
        prop_assert_eq!(record.price_version, price.id);
    }

    #[test]
    fn a_cost_is_rounded_up_once(
        rates in any_counts(1 << 40),
        counts in any_counts(1 << 16),
    ) {
        // The whole sum in millionths, then one division.
        let millionths: u128 = MeterKind::ALL
            .iter()
            .zip(rates.into_iter().zip(counts))
            .map(|(kind, (rate, count))| {
                let each = u128::from(rate) * u128::from(count);
                if kind.per_million() { each } else { each * 1_000_000 }
            })
            .sum();
        let cost = UnitPrices::from_fn(by(rates)).unwrap().cost(&Meters::from_fn(by(counts)).unwrap());
        let cost = u128::try_from(cost.get()).unwrap();
        prop_assert!(cost * 1_000_000 >= millionths && cost * 1_000_000 < millionths + 1_000_000);
    }
}

#[test]
fn costs_are_exact() {
    let rates = |input, output, request| {
        UnitPrices::from_fn(|kind| match kind {
            MeterKind::Input => input,
            MeterKind::Output => output,
            MeterKind::Request => request,
            MeterKind::CachedInput
            | MeterKind::CacheWrite
            | MeterKind::AudioInput
            | MeterKind::Reasoning
            | MeterKind::AudioOutput
            | MeterKind::Image => 0,
        })
        .unwrap()
    };
    let cost =
        |rates: UnitPrices, input, output| rates.cost(&Meters::text(input, output).unwrap()).get();
    // gpt-4o-mini: 0.15 and 0.60 a million.
    assert_eq!(cost(rates(150_000, 600_000, 0), 1_000, 500), 150 + 300);
    assert_eq!(cost(rates(150_000, 600_000, 0), 1, 0), 1);
    // A third and two thirds of a micro are one micro, not two.
    assert_eq!(cost(rates(333_333, 666_667, 0), 1, 1), 1);
    assert_eq!(cost(rates(333_333, 666_668, 0), 1, 1), 2);
    assert_eq!(cost(rates(0, 0, 7), 0, 0), 7);
    assert_eq!(cost(rates(0, 0, 0), 5, 5), 0);
    let most = cost(rates(UnitPrices::RATE_MAX, 0, 0), Meters::COUNT_MAX, 0);
    assert_eq!(most, i64::MAX, "what does not fit is the largest amount");
}

#[test]
fn absurd_counts_and_rates_are_refused() {
    assert_eq!(Meters::text(Meters::COUNT_MAX + 1, 0), Err(BadCount));
    assert!(Meters::text(Meters::COUNT_MAX, Meters::COUNT_MAX).is_ok());
    assert_eq!(UnitPrices::from_fn(|_| UnitPrices::RATE_MAX + 1), Err(BadRate));
}

#[test]
fn tokens_are_counted_by_side() {
    let meters = Meters::from_fn(by([1, 2, 4, 8, 16, 32, 64, 128, 256])).unwrap();
    assert_eq!((meters.prompt_tokens(), meters.completion_tokens()), (15, 112));
}

#[test]
fn one_count_is_replaced_and_the_others_stay() {
    let meters = Meters::text(7, 11).unwrap();
    let pictured = meters.with(MeterKind::Image, 3).unwrap();
    assert_eq!(MeterKind::ALL.map(|kind| pictured.count(kind)), [7, 0, 0, 0, 11, 0, 0, 1, 3]);
    assert_eq!(
        pictured.with(MeterKind::Input, 5).map(|meters| meters.count(MeterKind::Input)),
        Ok(5)
    );
    assert_eq!(meters.with(MeterKind::Image, Meters::COUNT_MAX + 1), Err(BadCount));
}

#[test]
fn an_own_count_is_never_nothing_because_it_is_large() {
    let most = Meters::COUNT_MAX;
    assert_eq!(Meters::text(most, most), Ok(Meters::estimated(most, most)));
    for (input, output) in [(most + 1, 7), (7, most + 1)] {
        assert_eq!(Meters::text(input, output), Err(BadCount));
        let counted = Meters::estimated(input, output);
        assert_eq!(counted, Meters::estimated(input.min(most), output.min(most)));
        assert_eq!(counted.prompt_tokens() + counted.completion_tokens(), most + 7);
    }
}
