//! The rule of usage reports: a report that contradicts itself is cut, and its total says what contains
//! what.

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::price::{PriceVersion, Tariff, UnitPrices};
use holdfast_domain::usage::{
    LatestUsage, MeterKind, MeterReading, Meters, MetersSource, ReportedCount, ResolvedUsage,
    UsageCeiling, UsageReason, UsageReasons, UsageReport,
};
use holdfast_testkit::sample;

mod property_tests;

use ReportedCount::{Count, Missing, Unreadable};
use UsageReason::{BesideWhole, PartCut, PartUnreadable, RestIsOutput, TotalNotBelieved};

const CEILING: UsageCeiling = UsageCeiling { context_tokens: 1_000_000, output_tokens: 200_000 };

/// A micro a token of input, ten of output; audio as text, reasoning as output.
fn tariff() -> Tariff {
    rates([1_000_000, 100_000, 1_250_000, 1_000_000, 10_000_000, 10_000_000, 10_000_000])
}

/// Prices of the token kinds, in their order.
fn rates(tokens: [u64; 7]) -> Tariff {
    let rate = |kind| MeterKind::ALL.iter().position(|other| *other == kind);
    UnitPrices::from_fn(|kind| rate(kind).and_then(|at| tokens.get(at)).copied().unwrap_or(0))
        .unwrap()
        .into()
}

/// A report by its prompt, completion and total.
fn report(prompt: u64, completion: u64, total: Option<u64>) -> UsageReport {
    let total = total.map_or(Missing, Count);
    UsageReport { total, has_content: true, ..UsageReport::text(prompt, completion) }
}

/// Counts of the token kinds, in their order.
fn tokens(meters: &Meters) -> [u64; 7] {
    let [input, cached, written, heard, output, reasoning, spoken, request, image] =
        MeterKind::ALL.map(|kind| meters.count(kind));
    assert_eq!((request, image), (1, 0));
    [input, cached, written, heard, output, reasoning, spoken]
}

#[track_caller]
fn check(report: UsageReport, expected: [u64; 7], reasons: &[UsageReason]) {
    let ResolvedUsage { meters, reasons: found } =
        report.resolve(&CEILING, |meters| tariff().cost(meters)).unwrap();
    assert_eq!(tokens(&meters), expected, "{report:?}");
    assert_eq!(found, reasons.iter().copied().collect(), "{report:?}");
}

#[test]
fn details_are_parts_unless_the_total_leaves_a_rest() {
    let details = UsageReport {
        cached: Count(30),
        written: Count(20),
        audio_in: Count(10),
        reasoning: Count(25),
        audio_out: Count(5),
        ..report(100, 50, None)
    };
    for total in [Missing, Count(150), Count(149), Count(0)] {
        check(UsageReport { total, ..details }, [40, 30, 20, 10, 20, 25, 5], &[]);
    }
}

#[test]
fn a_set_of_details_that_is_exactly_the_rest_stands_beside_its_whole() {
    let of = |total: u64| UsageReport {
        cached: Count(1),
        written: Count(2),
        audio_in: Count(4),
        reasoning: Count(8),
        audio_out: Count(16),
        ..report(100, 50, Some(150 + total))
    };
    let beside = &[BesideWhole];
    // One, of either side.
    check(of(1), [94, 1, 2, 4, 26, 8, 16], beside);
    check(of(2), [95, 1, 2, 4, 26, 8, 16], beside);
    check(of(3), [96, 1, 2, 4, 26, 8, 16], beside);
    check(of(4), [97, 1, 2, 4, 26, 8, 16], beside);
    check(of(8), [93, 1, 2, 4, 34, 8, 16], beside);
    check(of(16), [93, 1, 2, 4, 42, 8, 16], beside);
    // One of each side.
    check(of(3 + 8), [96, 1, 2, 4, 34, 8, 16], beside);
    check(of(4 + 16), [97, 1, 2, 4, 42, 8, 16], beside);
    // Not a set of the table: two of one side.
    for rest in [1 + 4, 2 + 4, 1 + 2 + 4, 8 + 16, 1 + 4 + 8] {
        check(of(rest), [93, 1, 2, 4, 26 + rest, 8, 16], &[RestIsOutput]);
    }
}

#[test]
fn of_several_sets_the_one_that_costs_least_is_taken() {
    let of = |total: u64| UsageReport {
        cached: Count(40),
        written: Count(40),
        audio_in: Count(40),
        reasoning: Count(40),
        ..report(100, 50, Some(150 + total))
    };
    let prices = [
        ([10, 1, 9, 9, 90, 90, 90], [20, 40, 40, 40, 10, 40, 0]),
        ([10, 90, 90, 90, 1, 1, 1], [0, 40, 40, 20, 50, 40, 0]),
    ];
    for (prices, expected) in prices {
        let tariff = rates(prices.map(|micros| micros * 1_000_000));
        let usage = of(40).resolve(&CEILING, |meters| tariff.cost(meters)).unwrap();
        assert_eq!(tokens(&usage.meters), expected, "{prices:?}");
        assert_eq!(usage.reasons, [BesideWhole].into_iter().collect());
    }
    // A longer prompt may have other rates: the whole cost counts, and not that of the rest.
    let base = *rates([10_000_000; 7]).rates();
    let above = *rates([1_000_000; 7]).rates();
    let tier = holdfast_domain::price::Tier { above_prompt_tokens: 120, rates: above };
    let tiered = Tariff::with_tiers(base, vec![tier]).unwrap();
    let usage = of(40).resolve(&CEILING, |meters| tiered.cost(meters)).unwrap();
    assert_eq!(usage.meters.prompt_tokens(), 140);
}

#[test]
fn a_set_that_no_run_can_have_caused_gives_way_to_one_that_can() {
    let report = UsageReport {
        cached: Count(300_000),
        reasoning: Count(300_000),
        ..report(900_000, 100, Some(1_200_100))
    };
    // The cheaper set is above the context.
    let usage = report.resolve(&CEILING, |meters| tariff().cost(meters)).unwrap();
    assert_eq!(usage.meters.prompt_tokens(), 900_000);
    assert_eq!(usage.meters.completion_tokens(), 300_100);
    let alone = UsageReport { reasoning: Missing, ..report };
    // No other set: the report stands without its total.
    let usage = alone.resolve(&CEILING, |meters| tariff().cost(meters)).unwrap();
    assert_eq!((usage.meters.prompt_tokens(), usage.meters.completion_tokens()), (900_000, 100));
    assert_eq!(usage.reasons, UsageReasons::NONE.with(TotalNotBelieved));
}

#[test]
fn any_other_rest_is_output_within_the_bound_and_is_left_out_above_it() {
    check(report(35, 12, Some(109)), [35, 0, 0, 0, 74, 0, 0], &[RestIsOutput]);
    let bound = CEILING.output_tokens;
    check(report(35, 12, Some(35 + bound)), [35, 0, 0, 0, bound, 0, 0], &[RestIsOutput]);
    check(report(35, 12, Some(36 + bound)), [35, 0, 0, 0, 12, 0, 0], &[TotalNotBelieved]);
    check(report(35, 12, Some(u64::MAX)), [35, 0, 0, 0, 12, 0, 0], &[TotalNotBelieved]);
    // A report that contradicts itself elsewhere is no evidence of hidden output.
    let base = report(35, 12, Some(109));
    let cut = &[PartCut, TotalNotBelieved];
    check(UsageReport { cached: Count(36), ..base }, [0, 35, 0, 0, 12, 0, 0], cut);
    let both = UsageReport { cached: Count(20), written: Count(16), ..base };
    check(both, [0, 20, 15, 0, 12, 0, 0], cut);
    check(UsageReport { audio_in: Count(36), ..base }, [0, 0, 0, 35, 12, 0, 0], cut);
    check(UsageReport { reasoning: Count(13), ..base }, [35, 0, 0, 0, 0, 12, 0], cut);
    check(UsageReport { audio_out: Count(13), ..base }, [35, 0, 0, 0, 0, 0, 12], cut);
    // Audio that reasons is not counted again because of it.
    let both = UsageReport { reasoning: Count(10), audio_out: Count(10), ..base };
    check(both, [35, 0, 0, 0, 62, 10, 2], &[RestIsOutput]);
    // One that fits stays a part.
    let fits = UsageReport { cached: Count(35), reasoning: Count(12), ..base };
    check(fits, [0, 35, 0, 0, 62, 12, 0], &[RestIsOutput]);
}

#[test]
fn parts_are_cut_to_their_whole_in_order() {
    let base = report(100, 50, Some(150));
    let cut = &[PartCut];
    check(UsageReport { cached: Count(101), ..base }, [0, 100, 0, 0, 50, 0, 0], cut);
    check(UsageReport { written: Count(101), ..base }, [0, 0, 100, 0, 50, 0, 0], cut);
    let both = UsageReport { cached: Count(60), written: Count(60), ..base };
    check(both, [0, 60, 40, 0, 50, 0, 0], cut);
    check(UsageReport { audio_in: Count(101), ..base }, [0, 0, 0, 100, 50, 0, 0], cut);
    check(UsageReport { reasoning: Count(51), ..base }, [100, 0, 0, 0, 0, 50, 0], cut);
    check(UsageReport { audio_out: Count(51), ..base }, [100, 0, 0, 0, 0, 0, 50], cut);
    let all = [100, u64::MAX, u64::MAX];
    let [audio_in, cached, reasoning] = all.map(Count);
    check(UsageReport { audio_in, cached, ..base }, [0, 100, 0, 0, 50, 0, 0], cut);
    check(UsageReport { reasoning, audio_out: Count(50), ..base }, [100, 0, 0, 0, 0, 50, 0], cut);
    // Beside its prompt what is written keeps its place, and what is cached is cut to the prompt.
    let beside = UsageReport { cached: Count(110), written: Count(20), total: Count(170), ..base };
    check(beside, [0, 100, 20, 0, 50, 0, 0], &[PartCut, BesideWhole]);
}

#[test]
fn audio_that_is_cached_or_reasoning_is_metered_once_and_contradicts_nothing() {
    let base = report(100, 50, None);
    let heard = UsageReport { cached: Count(70), audio_in: Count(40), ..base };
    check(heard, [0, 70, 0, 30, 50, 0, 0], &[]);
    let said = UsageReport { reasoning: Count(30), audio_out: Count(50), ..base };
    check(said, [100, 0, 0, 0, 0, 30, 20], &[]);
}

#[test]
fn counts_that_are_none_are_left_out_of_details_and_refused_in_wholes() {
    let base = report(100, 50, None);
    let odd = &[PartUnreadable];
    let whole = [100, 0, 0, 0, 50, 0, 0];
    for odd_one in [
        UsageReport { cached: Unreadable, ..base },
        UsageReport { written: Unreadable, ..base },
        UsageReport { audio_in: Unreadable, ..base },
        UsageReport { reasoning: Unreadable, ..base },
        UsageReport { audio_out: Unreadable, ..base },
    ] {
        check(odd_one, whole, odd);
    }
    check(UsageReport { total: Unreadable, ..base }, whole, &[TotalNotBelieved]);
    let refused =
        |report: UsageReport| report.resolve(&CEILING, |meters| tariff().cost(meters)).unwrap_err();
    for (prompt, completion, reason) in [
        (Missing, Count(5), UsageReason::CountMissing),
        (Count(5), Missing, UsageReason::CountMissing),
        (Missing, Missing, UsageReason::CountMissing),
        (Unreadable, Count(5), UsageReason::CountUnreadable),
        (Count(5), Unreadable, UsageReason::CountUnreadable),
        (Missing, Unreadable, UsageReason::CountUnreadable),
    ] {
        assert_eq!(refused(UsageReport { prompt, completion, ..base }), reason);
    }
}

#[test]
fn wholes_are_judged_after_containment() {
    let of = |report: UsageReport| {
        let usage = report.resolve(&CEILING, |meters| tariff().cost(meters))?;
        Ok((usage.meters.prompt_tokens(), usage.meters.completion_tokens()))
    };
    let most = Meters::completion_max(CEILING.output_tokens);
    assert_eq!(of(report(1_000_000, most, None)), Ok((1_000_000, most)));
    assert_eq!(of(report(1_000_001, 7, None)), Err(UsageReason::AboveContext));
    assert_eq!(of(report(7, most + 1, None)), Err(UsageReason::AboveOutput));
    assert_eq!(of(report(u64::MAX, u64::MAX, Some(u64::MAX))), Err(UsageReason::AboveContext));
    let heard = UsageReport { audio_in: Count(5), ..report(999_996, 7, Some(1_000_008)) };
    assert_eq!(of(heard), Ok((999_996, 7)));
    let thought = UsageReport { reasoning: Count(5), ..report(7, most - 4, Some(most + 8)) };
    assert_eq!(of(thought), Ok((7, most - 4)));
    // A part is never held against these.
    let cached = UsageReport { cached: Count(u64::MAX), ..report(7, 7, None) };
    assert_eq!(of(cached), Ok((7, 7)));
}

#[test]
fn text_that_costs_no_token_is_not_accepted() {
    let silent = UsageReport { has_content: false, ..report(10, 0, None) };
    check(silent, [10, 0, 0, 0, 0, 0, 0], &[]);
    let spoken = report(10, 0, Some(10));
    let refused = spoken.resolve(&CEILING, |meters| tariff().cost(meters));
    assert_eq!(refused, Err(UsageReason::TextWithoutTokens));
    // The total may still say what it cost.
    check(report(10, 0, Some(15)), [10, 0, 0, 0, 5, 0, 0], &[RestIsOutput]);
}

#[test]
fn a_number_is_digits_with_or_without_a_zero_fraction() {
    for (spelling, count) in [
        ("0", Count(0)),
        ("7", Count(7)),
        ("7.0", Count(7)),
        ("007", Count(7)),
        ("18446744073709551615", Count(u64::MAX)),
        ("99999999999999999999999", Count(u64::MAX)),
        ("", Unreadable),
        (".0", Unreadable),
        ("-1", Unreadable),
        ("-0", Unreadable),
        ("+7", Unreadable),
        (" 7", Unreadable),
        ("7 ", Unreadable),
        ("7.", Unreadable),
        ("7.5", Unreadable),
        ("7.0.0", Unreadable),
        ("1e3", Unreadable),
        ("1,000", Unreadable),
        ("٧", Unreadable),
        ("NaN", Unreadable),
    ] {
        assert_eq!(ReportedCount::parse(spelling), count, "{spelling}");
    }
}

/// Report that counts after these.
fn latest(reports: &[UsageReport]) -> Option<UsageReport> {
    let mut latest = LatestUsage::new(CEILING);
    reports.iter().for_each(|report| latest.take(*report));
    latest.end(true)
}

#[test]
fn a_later_report_replaces_one_that_it_does_not_contradict() {
    let of = |prompt, completion| report(prompt, completion, None);
    let base = of(11, 7);
    let odd = UsageReport { prompt: Unreadable, ..base };
    for (later, counts) in [
        (of(11, 8), of(11, 8)),
        (of(12, 7), of(12, 7)),
        (of(5, 9), of(5, 9)),
        (of(11, 6), base),
        (of(0, 7), base),
        (of(0, 9), base),
        (of(0, 0), base),
        (UsageReport::default(), base),
        (odd, base),
        (of(1_000_001, 8), base),
        (of(11, 1_000_000), base),
    ] {
        assert_eq!(latest(&[base, later]), Some(counts), "{later:?}");
        assert_eq!(latest(&[base, later, UsageReport::default()]), Some(counts));
        // One that is not accepted never keeps a good one from counting.
        assert_eq!(latest(&[odd, base, later]), Some(counts), "{later:?}");
    }
    assert_eq!(latest(&[]), None);
    assert_eq!(latest(&[of(0, 0), base]), Some(base));
    assert_eq!(latest(&[of(0, 3), of(0, 5)]), Some(of(0, 5)));
    assert_eq!(latest(&[odd, odd]), Some(odd));
}

#[test]
fn counts_that_a_later_report_lacks_stay_while_the_wholes_are_equal() {
    let detailed = UsageReport {
        cached: Count(1),
        written: Count(2),
        audio_in: Count(3),
        reasoning: Count(4),
        audio_out: Count(5),
        ..report(11, 7, Some(22))
    };
    assert_eq!(latest(&[detailed, report(11, 7, None)]), Some(detailed));
    let unreadable = UsageReport { cached: Unreadable, ..report(11, 7, None) };
    assert_eq!(latest(&[detailed, unreadable]), Some(detailed));
    let other = UsageReport { cached: Count(0), ..report(11, 7, None) };
    assert_eq!(latest(&[detailed, other]), Some(UsageReport { cached: Count(0), ..detailed }));
    for grown in [report(11, 8, None), report(12, 7, None)] {
        assert_eq!(latest(&[detailed, grown]), Some(grown));
    }
}

#[test]
fn reasons_keep_their_names_and_their_bits() {
    let names = [
        "not_reported",
        "count_missing",
        "count_unreadable",
        "above_context",
        "above_output",
        "text_without_tokens",
        "part_cut",
        "part_unreadable",
        "beside_whole",
        "rest_is_output",
        "total_not_believed",
        "media_not_counted",
        "charge_too_large",
    ];
    assert_eq!(UsageReason::ALL.map(UsageReason::label), names);
    for (at, reason) in UsageReason::ALL.into_iter().enumerate() {
        let one = UsageReasons::NONE.with(reason);
        assert_eq!(one.bits(), 1 << at, "{reason:?}");
        assert_eq!(UsageReasons::from_bits(one.bits()), one);
    }
    assert_eq!(
        UsageReasons::from_bits(0xe041),
        [UsageReason::NotReported, PartCut].into_iter().collect()
    );
    assert_eq!(UsageReasons::from_bits(0xe041).to_string(), "not_reported,part_cut");
    assert_eq!(UsageReasons::NONE.to_string(), "");
}
