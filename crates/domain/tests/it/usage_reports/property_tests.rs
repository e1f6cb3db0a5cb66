//! Laws of usage reports, for all reports and prices: meters are disjoint, and the charge ends at the hold.

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use holdfast_domain::Micros;

use super::*;

/// A count: often one of few, so that sums meet; sometimes absurd or none.
fn any_count() -> impl Strategy<Value = ReportedCount> {
    prop_oneof![
        3 => Just(Missing),
        8 => (0_u64..40).prop_map(Count),
        4 => (0_u64..2_000).prop_map(Count),
        1 => any::<u64>().prop_map(Count),
        1 => Just(Unreadable),
    ]
}

fn any_report() -> impl Strategy<Value = UsageReport> {
    let whole = || prop_oneof![9 => (0_u64..100).prop_map(Count), 1 => any_count()];
    let details = [any_count(), any_count(), any_count(), any_count(), any_count()];
    (whole(), whole(), any_count(), details, any::<bool>(), 0_u64..100).prop_map(
        |(prompt, completion, total, details, has_content, more)| {
            let [cached, written, audio_in, reasoning, audio_out] = details;
            // As a rule near the wholes: else no set would ever be the rest.
            let wholes = prompt.or_zero().saturating_add(completion.or_zero());
            let total = match total {
                Count(some) if some % 2 == 0 => Count(wholes.saturating_add(more)),
                other @ (Missing | Count(_) | Unreadable) => other,
            };
            UsageReport {
                prompt,
                completion,
                total,
                cached,
                written,
                audio_in,
                reasoning,
                audio_out,
                has_content,
            }
        },
    )
}

fn any_tariff() -> impl Strategy<Value = Tariff> {
    proptest::array::uniform7(0_u64..20_000_000).prop_map(rates)
}

const SMALL: UsageCeiling = UsageCeiling { context_tokens: 1_000, output_tokens: 100 };

/// Exact cost in millionths, without its rounding.
fn cost(meters: &Meters, tariff: &Tariff) -> u128 {
    tariff.rates().lines(meters).map(|line| line.millionths()).sum()
}

/// Difference of the dearest and the cheapest price among these kinds.
fn span(tariff: &Tariff, kinds: &[MeterKind]) -> u128 {
    let rates = || kinds.iter().map(|kind| u128::from(tariff.rates().rate(*kind)));
    rates().max().unwrap() - rates().min().unwrap()
}

const PROMPT: [MeterKind; 4] =
    [MeterKind::Input, MeterKind::CachedInput, MeterKind::CacheWrite, MeterKind::AudioInput];
const COMPLETION: [MeterKind; 3] =
    [MeterKind::Output, MeterKind::Reasoning, MeterKind::AudioOutput];

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2_000))]

    /// Whatever is reported: each token is in one meter, none is invented, and the charge ends at the
    /// hold.
    #[test]
    fn meters_are_disjoint_and_the_charge_ends_at_the_hold(
        report in any_report(),
        tariff in any_tariff(),
        hold in 0_i64..100_000,
    ) {
        let resolved = report.resolve(&SMALL, |meters| tariff.cost(meters));
        prop_assert_eq!(resolved.is_ok(), report.resolve(&SMALL, |_| Micros::ZERO).is_ok());
        let Ok(ResolvedUsage { meters, reasons }) = resolved else { return Ok(()) };
        let (prompt, completion) = (report.prompt.or_zero(), report.completion.or_zero());
        let (in_all, out_all) = (meters.prompt_tokens(), meters.completion_tokens());
        let contains = |reason| reasons.iter().any(|other| other == reason);
        if contains(BesideWhole) || contains(RestIsOutput) {
            prop_assert_eq!(Count(in_all + out_all), report.total);
            prop_assert!(in_all >= prompt && out_all >= completion);
        } else {
            prop_assert_eq!((in_all, out_all), (prompt, completion));
        }
        if contains(RestIsOutput) {
            prop_assert!(in_all == prompt && out_all <= SMALL.output_tokens);
        }
        prop_assert!(in_all <= SMALL.context_tokens);
        prop_assert!(out_all <= Meters::completion_max(SMALL.output_tokens));
        prop_assert!(out_all > 0 || !report.has_content);
        for (kind, told) in [
            (MeterKind::CachedInput, report.cached),
            (MeterKind::CacheWrite, report.written),
            (MeterKind::AudioInput, report.audio_in),
            (MeterKind::Reasoning, report.reasoning),
            (MeterKind::AudioOutput, report.audio_out),
        ] {
            prop_assert!(meters.count(kind) <= told.or_zero());
        }
        let price = PriceVersion { tariff, ..sample::price() };
        let source = MetersSource::Reported;
        let metered = MeterReading { meters, source, reasons, provider_cost: None };
        let record = UsageRecord::of(metered, &price, Micros::new(hold));
        prop_assert!(record.charge <= Micros::new(hold));
        prop_assert_eq!(record.charge.plus(record.shortfall), Some(price.tariff.cost(&meters)));
    }

    /// A detail moves the charge by no more than its own tokens at another price of its side.
    #[test]
    fn a_contradicting_detail_costs_no_more_than_its_own_price_difference(
        report in any_report(),
        tariff in any_tariff(),
        which in 0_usize..5,
    ) {
        let wholes = report.prompt.or_zero().saturating_add(report.completion.or_zero());
        // Where the total leaves a rest, a detail may explain it: that is the next property's.
        let total = report.total.count().filter(|total| *total <= wholes).map_or(Missing, Count);
        let report = UsageReport { total, ..report };
        let mut without = report;
        let (detail, kinds, kind) = match which {
            0 => (&mut without.cached, &PROMPT[..], MeterKind::CachedInput),
            1 => (&mut without.written, &PROMPT[..], MeterKind::CacheWrite),
            2 => (&mut without.audio_in, &PROMPT[..], MeterKind::AudioInput),
            3 => (&mut without.reasoning, &COMPLETION[..], MeterKind::Reasoning),
            4.. => (&mut without.audio_out, &COMPLETION[..], MeterKind::AudioOutput),
        };
        *detail = Missing;
        let (with, without) = (report.resolve(&SMALL, |meters| tariff.cost(meters)), without.resolve(&SMALL, |meters| tariff.cost(meters)));
        prop_assert_eq!(with.is_ok(), without.is_ok());
        let (Ok(with), Ok(without)) = (with, without) else { return Ok(()) };
        let difference = cost(&with.meters, &tariff).abs_diff(cost(&without.meters, &tariff));
        prop_assert!(difference <= u128::from(with.meters.count(kind)) * span(&tariff, kinds));
    }

    /// A total raises the charge by nothing but the rest that a row of the table names.
    #[test]
    fn a_total_raises_the_charge_by_the_rest_at_most(
        report in any_report(),
        tariff in any_tariff(),
    ) {
        let plain = UsageReport { total: Missing, ..report };
        let (with, without) = (report.resolve(&SMALL, |meters| tariff.cost(meters)), plain.resolve(&SMALL, |meters| tariff.cost(meters)));
        let (Ok(with), Ok(without)) = (with, without) else { return Ok(()) };
        let contains = |reason| with.reasons.iter().any(|other| other == reason);
        let (with_cost, without_cost) =
            (cost(&with.meters, &tariff), cost(&without.meters, &tariff));
        if contains(RestIsOutput) {
            let rest = with.meters.completion_tokens() - report.completion.or_zero();
            let more = u128::from(rest) * u128::from(tariff.rates().rate(MeterKind::Output));
            prop_assert_eq!(with_cost, without_cost + more);
        } else if contains(BesideWhole) {
            let rest = report.total.or_zero()
                - report.prompt.or_zero() - report.completion.or_zero();
            let kinds: Vec<_> = PROMPT.into_iter().chain(COMPLETION).collect();
            let dearest = kinds.iter().map(|kind| u128::from(tariff.rates().rate(*kind))).max();
            prop_assert!(with_cost <= without_cost + u128::from(rest) * dearest.unwrap());
        } else {
            prop_assert_eq!(with.meters, without.meters);
        }
    }
}
