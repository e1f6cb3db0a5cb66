//! Tiers: which of them a prompt has, what a request costs in it, and what is held for those that it
//! can reach.

use holdfast_domain::hold::UsageBound;
use holdfast_domain::price::{BadTiers, ProviderCost, Tariff, Tier, UnitPrices};
use holdfast_domain::usage::{MeterKind, Meters};
use holdfast_testkit::sample;
use proptest::prelude::{Strategy, any, prop_assert, proptest};

/// Micros a token of any kind, so that every cost is a whole number of micros.
fn micros(a_token: u64) -> UnitPrices {
    UnitPrices::from_fn(|kind| if kind.per_million() { a_token * 1_000_000 } else { 0 }).unwrap()
}

fn tier(above_prompt_tokens: u64, a_token: u64) -> Tier {
    Tier { above_prompt_tokens, rates: micros(a_token) }
}

/// 1 a token, above 100 tokens 3, above 200 tokens 2.
fn tariff() -> Tariff {
    Tariff::with_tiers(micros(1), vec![tier(100, 3), tier(200, 2)]).unwrap()
}

fn bound(prompt_tokens: u64, output_tokens: u64) -> UsageBound {
    UsageBound {
        prompt_tokens,
        output_tokens,
        n: 1,
        images: 0,
        audio_input: false,
        audio_output: false,
    }
}

#[test]
fn a_whole_request_costs_what_its_tier_says() {
    for (prompt, output, cost) in [
        (0, 10, 10),
        (100, 10, 110),
        (101, 10, 333),
        (200, 10, 630),
        (201, 10, 422),
        (201, 0, 402),
        (1_000_000, 0, 2_000_000),
    ] {
        let meters = Meters::text(prompt, output).unwrap();
        assert_eq!(tariff().cost(&meters).get(), cost, "{prompt} and {output}");
    }
}

#[test]
fn the_lines_of_a_cost_are_of_what_was_counted_at_the_rates_of_its_tier() {
    let rates = UnitPrices::from_fn(|kind| if kind.per_million() { 333_333 } else { 7 }).unwrap();
    let tariff = Tariff::with_tiers(rates, vec![tier(100, 3)]).unwrap();
    for (prompt, rate) in [(100, 333_333), (101, 3_000_000)] {
        let meters = Meters::text(prompt, 0).unwrap().with(MeterKind::Reasoning, 10).unwrap();
        let lines: Vec<_> = tariff.applied(&meters).lines(&meters).collect();
        let counted: Vec<_> = lines.iter().map(|line| (line.kind, line.units)).collect();
        let expected =
            [(MeterKind::Input, prompt), (MeterKind::Reasoning, 10), (MeterKind::Request, 1)];
        assert_eq!(counted, expected);
        assert_eq!(lines[0].rate, rate);
        let sum: u128 = lines.iter().map(|line| line.millionths()).sum();
        assert_eq!(i64::try_from(sum.div_ceil(1_000_000)), Ok(tariff.cost(&meters).get()));
    }
}

#[test]
fn every_kind_of_prompt_token_counts_for_the_tier_and_no_token_of_the_answer() {
    let prompt =
        [MeterKind::Input, MeterKind::CachedInput, MeterKind::CacheWrite, MeterKind::AudioInput];
    for kind in MeterKind::ALL.into_iter().filter(|kind| kind.per_million()) {
        let meters = Meters::default().with(kind, 101).unwrap();
        let a_token = if prompt.contains(&kind) { 3 } else { 1 };
        assert_eq!(tariff().cost(&meters).get(), 101 * a_token, "{kind:?}");
    }
}

#[test]
fn a_hold_is_that_of_the_dearest_tier_that_the_prompt_can_reach() {
    for (prompt, hold) in [
        (0, 10),
        (100, 110),
        (101, (101 + 10) * 3),
        (200, (200 + 10) * 3),
        // 200 tokens of the dearer tier are more than 201 of the next.
        (201, (200 + 10) * 3),
        (400, (400 + 10) * 2),
    ] {
        assert_eq!(bound(prompt, 10).hold(&tariff()).unwrap().get(), hold, "{prompt}");
    }
}

#[test]
fn tiers_stand_in_order_and_are_few() {
    let of = |tiers: &[u64]| {
        let tiers = tiers.iter().map(|above| tier(*above, 1)).collect();
        Tariff::with_tiers(micros(1), tiers).map(|_tariff| ())
    };
    assert_eq!(of(&[]), Ok(()));
    assert_eq!(of(&[1]), Ok(()));
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8]), Ok(()));
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(BadTiers::TooMany));
    for unordered in [&[0][..], &[2, 1], &[1, 1], &[0, 1]] {
        assert_eq!(of(unordered), Err(BadTiers::Order), "{unordered:?}");
    }
}

#[test]
fn a_provider_cost_is_known_where_the_wallet_has_its_currency() {
    let usd = sample::usd();
    let cost = ProviderCost { currency: usd, tariff: tariff() };
    let meters = Meters::text(101, 10).unwrap();
    assert_eq!(cost.of(&meters, usd).map(|cost| cost.get()), Some(333));
    assert_eq!(cost.of(&meters, "EUR".parse().unwrap()), None);
}

fn any_tariff() -> impl Strategy<Value = Tariff> {
    let tiers = proptest::collection::vec((1_u64..3_000, any_rates()), 0..=Tariff::TIERS_MAX);
    (any_rates(), tiers).prop_map(|(rates, mut tiers)| {
        tiers.sort_by_key(|(above, _)| *above);
        tiers.dedup_by_key(|(above, _)| *above);
        let tier = |(above_prompt_tokens, rates)| Tier { above_prompt_tokens, rates };
        Tariff::with_tiers(rates, tiers.into_iter().map(tier).collect()).unwrap()
    })
}

fn any_rates() -> impl Strategy<Value = UnitPrices> {
    let rate = (any::<u64>(), 20_u32..64).prop_map(|(rate, by)| rate >> by);
    proptest::array::uniform9(rate).prop_map(|rates| {
        let at = |kind| MeterKind::ALL.iter().position(|other| *other == kind).unwrap();
        UnitPrices::from_fn(|kind| rates[at(kind)]).unwrap()
    })
}

proptest! {
    #[test]
    fn no_meters_within_the_bounds_cost_more_than_the_hold(
        tariff in any_tariff(),
        (prompt_max, output_max, images) in (0_u64..4_000, 0_u64..4_000, 0_u64..5),
        (prompt, output) in (0_u64..=1_000, 0_u64..=1_000),
        parts in proptest::array::uniform4(0_u64..=1_000),
        reasoning in 0_u64..=1_000,
    ) {
        let (prompt, output) = (prompt_max * prompt / 1_000, output_max * output / 1_000);
        let all = parts.iter().sum::<u64>().max(1);
        let part = |at: usize| prompt * parts[at] / all;
        let thought = output * reasoning / 1_000;
        let meters = Meters::from_fn(|kind| match kind {
            MeterKind::CachedInput => part(1),
            MeterKind::CacheWrite => part(2),
            MeterKind::AudioInput => part(3),
            MeterKind::Input => prompt - part(1) - part(2) - part(3),
            MeterKind::Output => output - thought,
            MeterKind::Reasoning => thought,
            MeterKind::AudioOutput => 0,
            MeterKind::Request => 1,
            MeterKind::Image => images,
        })
        .unwrap();
        let bound = UsageBound { images, audio_input: true, ..bound(prompt_max, output_max) };
        prop_assert!(tariff.cost(&meters) <= bound.hold(&tariff).unwrap());
    }

    #[test]
    fn a_longer_bound_holds_no_less(
        tariff in any_tariff(),
        (prompt, more_prompt) in (0_u64..4_000, 0_u64..4_000),
        (output, more_output) in (0_u64..4_000, 0_u64..4_000),
    ) {
        let hold = |prompt, output| bound(prompt, output).hold(&tariff).unwrap();
        prop_assert!(hold(prompt, output) <= hold(prompt + more_prompt, output + more_output));
    }
}
