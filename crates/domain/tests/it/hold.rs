//! The hold is an upper bound: no run that keeps to what was sent upstream costs more.

use holdfast_domain::Micros;
use holdfast_domain::hold::UsageBound;
use holdfast_domain::model::Contract;
use holdfast_domain::price::{PriceLine, Tariff, Tier, UnitPrices};
use holdfast_domain::request::CostFactors;
use holdfast_domain::usage::{MeterKind, Meters};
use holdfast_testkit::sample;
use proptest::prelude::{Strategy, any, prop_assert, proptest};

fn contract() -> Contract {
    Contract::new(sample::model(), 1, 1_000, 200)
}

fn facts() -> CostFactors {
    CostFactors {
        prompt_bytes: 100,
        text_bytes: 100,
        messages: 2,
        max_output_tokens: None,
        n: 1,
        tools: 0,
        images: 0,
        recordings: 0,
        files: 0,
        searches: false,
        audio_output: false,
    }
}

/// Bounds of a request of text alone.
fn bound(prompt_tokens: u64, output_tokens: u64, n: u32) -> UsageBound {
    UsageBound {
        prompt_tokens,
        output_tokens,
        n,
        images: 0,
        audio_input: false,
        audio_output: false,
    }
}

/// Micros per million of input, cached input, cache write, output and reasoning; micros a request.
fn rates([input, cached, write, output, reasoning, request]: [u64; 6]) -> UnitPrices {
    UnitPrices::from_fn(|kind| match kind {
        MeterKind::Input => input,
        MeterKind::CachedInput => cached,
        MeterKind::CacheWrite => write,
        MeterKind::Output => output,
        MeterKind::Reasoning => reasoning,
        MeterKind::Request => request,
        MeterKind::AudioInput | MeterKind::AudioOutput | MeterKind::Image => u64::MAX / 100,
    })
    .unwrap()
}

#[test]
fn the_lines_of_a_hold_name_the_dearest_kinds_and_add_up_to_it() {
    let line = |kind, units, rate| PriceLine { kind, units, rate };
    let cheap = rates([2_000_001, 1_000_000, 1_000_000, 4_000_000, 4_000_000, 7]);
    let dear = rates([3_000_000, 1_000_000, 5_000_000, 4_000_000, 6_000_000, 7]);
    let tier = |rates| vec![Tier { above_prompt_tokens: 50, rates }];
    let request = bound(80, 20, 2);
    let tariff = Tariff::with_tiers(cheap, tier(dear)).unwrap();
    let lines = request.lines(&tariff);
    assert_eq!(
        lines,
        [
            line(MeterKind::CacheWrite, 80, 5_000_000),
            line(MeterKind::Reasoning, 40, 6_000_000),
            line(MeterKind::Image, 0, u64::MAX / 100),
            line(MeterKind::Request, 1, 7),
        ]
    );
    assert_eq!(request.hold(&tariff), Some(Micros::new(400 + 240 + 7)));
    // A tier that is cheaper than the one below it bounds nothing: the longest prompt below it is dearer.
    let tariff = Tariff::with_tiers(dear, tier(rates([0; 6]))).unwrap();
    assert_eq!(request.lines(&tariff)[0], line(MeterKind::CacheWrite, 50, 5_000_000));
    let tariff = Tariff::from(cheap);
    let lines = request.lines(&tariff);
    assert_eq!(lines[0], line(MeterKind::Input, 80, 2_000_001));
    assert_eq!(lines[1], line(MeterKind::Output, 40, 4_000_000), "the first of equals");
    assert_eq!(request.hold(&tariff), Some(Micros::new(161 + 160 + 7)), "rounded up once");
}

#[test]
fn the_prompt_is_bounded_by_its_bytes_its_frames_and_the_overhead() {
    assert_eq!(UsageBound::of(&facts(), &contract()).prompt_tokens, 100 + 2 * 16 + 64);
    let half = Contract { prompt_tokens_per_byte_millionths: 333_333, ..contract() };
    assert_eq!(UsageBound::of(&facts(), &half).prompt_tokens, 34 + 32 + 64, "rounded up");
    let long = CostFactors { prompt_bytes: u64::MAX, messages: u64::MAX, ..facts() };
    assert_eq!(UsageBound::of(&long, &contract()).prompt_tokens, 1_000, "the context bounds all");
}

#[test]
fn tools_add_to_the_overhead_unless_the_contract_says_how_much_there_is() {
    let tools = CostFactors { tools: 1, ..facts() };
    let wide = Contract { context_tokens: 100_000, ..contract() };
    assert_eq!(UsageBound::of(&tools, &wide).prompt_tokens, 100 + 2 * 16 + 1_024);
    let said = Contract { prompt_overhead_tokens: Some(7), ..wide };
    assert_eq!(UsageBound::of(&tools, &said).prompt_tokens, 100 + 2 * 16 + 7);
    assert_eq!(UsageBound::of(&facts(), &said).prompt_tokens, 100 + 2 * 16 + 7);
}

#[test]
fn what_has_no_cap_of_its_own_makes_the_prompt_as_long_as_the_context() {
    for open in [
        CostFactors { recordings: 1, ..facts() },
        CostFactors { files: 1, ..facts() },
        CostFactors { images: 1, ..facts() },
        CostFactors { searches: true, ..facts() },
    ] {
        assert_eq!(UsageBound::of(&open, &contract()).prompt_tokens, 1_000, "{open:?}");
    }
    let images = CostFactors { images: 2, ..facts() };
    let capped = Contract { image_tokens: Some(300), ..contract() };
    assert_eq!(UsageBound::of(&images, &capped).prompt_tokens, 100 + 2 * 16 + 64 + 2 * 300);
    let both = CostFactors { files: 1, ..images };
    assert_eq!(UsageBound::of(&both, &capped).prompt_tokens, 1_000);
}

#[test]
fn audio_and_pictures_are_held_for_where_a_request_has_them() {
    let rates = UnitPrices::from_fn(|kind| match kind {
        MeterKind::Input | MeterKind::Output => 1_000_000,
        MeterKind::AudioInput => 3_000_000,
        MeterKind::AudioOutput => 5_000_000,
        MeterKind::Image => 7,
        MeterKind::CachedInput
        | MeterKind::CacheWrite
        | MeterKind::Reasoning
        | MeterKind::Request => 0,
    })
    .unwrap();
    let micros = |bound: UsageBound| bound.hold(&rates.into()).map(Micros::get);
    let text = bound(100, 10, 2);
    assert_eq!(micros(text), Some(100 + 20));
    assert_eq!(micros(UsageBound { audio_input: true, ..text }), Some(300 + 20));
    assert_eq!(micros(UsageBound { audio_output: true, ..text }), Some(100 + 100));
    assert_eq!(micros(UsageBound { images: 3, ..text }), Some(100 + 20 + 21));
    let of = |facts: &CostFactors| UsageBound::of(facts, &contract());
    let all = of(&CostFactors { recordings: 1, images: 3, audio_output: true, ..facts() });
    assert_eq!((all.audio_input, all.audio_output, all.images), (true, true, 3));
    let none = of(&facts());
    assert_eq!((none.audio_input, none.audio_output, none.images), (false, false, 0));
}

#[test]
fn the_output_is_bounded_by_the_request_or_the_model_times_the_choices() {
    assert_eq!(UsageBound::of(&facts(), &contract()).all_output_tokens(), 200);
    let asked = CostFactors { max_output_tokens: Some(7), n: 3, ..facts() };
    assert_eq!(UsageBound::of(&asked, &contract()).all_output_tokens(), 21);
}

#[test]
fn a_hold_is_priced_at_the_dearest_kind_the_request_can_cause_and_rounded_up_once() {
    let bound = bound(100, 10, 2);
    let micros = |rates: UnitPrices| bound.hold(&rates.into()).map(Micros::get);
    assert_eq!(micros(rates([1_000_000, 0, 0, 2_000_000, 0, 5])), Some(100 + 40 + 5));
    assert_eq!(micros(rates([1_000_000, 0, 3_000_000, 0, 0, 0])), Some(300));
    assert_eq!(micros(rates([0, 1_000_000, 0, 0, 4_000_000, 0])), Some(100 + 80));
    // 0.0001 and 0.00002 of a micro: together one, not two.
    assert_eq!(micros(rates([1, 0, 0, 1, 0, 0])), Some(1));
    assert_eq!(micros(rates([0, 0, 0, 0, 0, 0])), Some(0));
}

#[test]
fn a_hold_that_is_no_amount_is_told() {
    let most = bound(u64::MAX, u64::MAX, u32::MAX);
    let dearest = rates([UnitPrices::RATE_MAX, 0, 0, UnitPrices::RATE_MAX, 0, 0]);
    assert_eq!(most.hold(&dearest.into()), None);
    let huge = bound(1_000_000_000, 0, 1);
    assert_eq!(huge.hold(&rates([UnitPrices::RATE_MAX, 0, 0, 0, 0, 0]).into()), None);
}

/// Rates of every size, zero and odd ones among them.
fn any_rate() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..63).prop_map(|(rate, shift)| (rate >> shift).min(1_000_000_000_000))
}

fn any_rates() -> impl Strategy<Value = UnitPrices> {
    [any_rate(), any_rate(), any_rate(), any_rate(), any_rate(), any_rate()].prop_map(rates)
}

proptest! {
    #[test]
    fn no_meters_within_the_bounds_cost_more_than_the_hold(
        rates in any_rates(),
        (bytes, messages, per_byte) in (0_u64..50_000, 1_u64..50, 1_u64..4_000_000),
        (asked, n) in (proptest::option::of(1_u64..5_000), 1_u32..=128),
        prompt in [0_u64..=1_000, 0..=1_000, 0..=1_000],
        output in [0_u64..=1_000, 0..=1_000],
        is_full in any::<bool>(),
    ) {
        let contract = Contract {
            context_tokens: 20_000,
            prompt_tokens_per_byte_millionths: per_byte,
            ..contract()
        };
        let facts = CostFactors { prompt_bytes: bytes, messages, max_output_tokens: asked, n, ..facts() };
        let bound = UsageBound::of(&facts, &contract);
        // Shares of what is allowed, in thousandths; all of it where the run is a full one.
        let share = |of: u64, parts: &[u64], at: usize| {
            let all: u64 = parts.iter().sum::<u64>().max(if is_full { 1 } else { 1_000 * 3 });
            of * parts[at] / all
        };
        let all_output = bound.all_output_tokens();
        let meters = Meters::from_fn(|kind| match kind {
            MeterKind::Input => share(bound.prompt_tokens, &prompt, 0),
            MeterKind::CachedInput => share(bound.prompt_tokens, &prompt, 1),
            MeterKind::CacheWrite => share(bound.prompt_tokens, &prompt, 2),
            MeterKind::Output => share(all_output, &output, 0),
            MeterKind::Reasoning => share(all_output, &output, 1),
            MeterKind::Request => 1,
            MeterKind::AudioInput | MeterKind::AudioOutput | MeterKind::Image => 0,
        })
        .unwrap();
        prop_assert!(meters.prompt_tokens() <= bound.prompt_tokens);
        prop_assert!(meters.completion_tokens() <= all_output);
        let hold = bound.hold(&rates.into()).unwrap();
        prop_assert!(rates.cost(&meters) <= hold);
    }
}
