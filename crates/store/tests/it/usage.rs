//! Reports of usage are the sums of the rows, whatever they are grouped by.

use std::collections::BTreeMap;

use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::listing::{OperationFilter, Order};
use holdfast_domain::admin::report::{
    Group, GroupBy, Grouping, Reports as _, Totals, UsageError, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::CostNote;
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Event, Journal as _, Micros, Operation, Phase, Timestamp, WalletId};
use holdfast_store::Store;
use holdfast_testkit::laws::Stores;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, record, refuse};
use holdfast_testkit::sample;

use crate::list;
use crate::raw::Raw;
use crate::scratch::Home;
use crate::usage_sums::sum_all;

const DAY: i64 = 86_400_000_000;
pub(crate) const NOTHING: Totals = Totals {
    completed: 0,
    refused: 0,
    abandoned: 0,
    estimated: 0,
    meters: [0; MeterKind::COUNT],
    charge: Micros::ZERO,
    shortfall: Micros::ZERO,
    refunded: Micros::ZERO,
    exposure: Micros::ZERO,
    costs_excluded: 0,
    costed: 0,
    provider_cost: Micros::ZERO,
    margin: Micros::ZERO,
    is_saturated: false,
};

/// Two wallets with two API keys each, one wallet of another currency, operations that ended in every
/// way; one refund.
async fn fill(opened: &dyn Stores) {
    for _ in 0..2 {
        let mut tenant = Tenant::new(opened, 10_000).await;
        live(&tenant).await;
        tenant.api_key = tenant.another_api_key().await;
        live(&tenant).await;
    }
    let mut euros = Tenant::new(opened, 0).await;
    euros.wallet = sample::fresh::<WalletId>();
    let euro = "EUR".parse().unwrap();
    opened.commands().create_wallet(euros.wallet, "=euros", euro).await.unwrap();
    euros.api_key = euros.another_api_key().await;
    euros.post(PostingKind::Deposit, 1_000).await.unwrap();
    let id = PriceVersionId::from_stored("a/b/EUR/2026-01-01T00:00:00Z");
    let price = PriceVersion { id, currency: "EUR".parse().unwrap(), ..sample::price() };
    let operation = euros.admit(&euros.claim().price(price).build()).await;
    euros.step(operation.id, finish(&operation, 9, 0)).await;
}

/// The same over three days, far apart in the table.
async fn furnish(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE operations SET seq = seq * 7001").await;
    raw.run(&format!(
        "UPDATE operations SET finished_at = {DAY} * (20000 + seq % 3)
        WHERE finished_at IS NOT NULL AND seq % 4 <> 0"
    ))
    .await;
    raw.run(&format!(
        "UPDATE operations SET finished_at = {DAY} * 20001 - 1
        WHERE finished_at IS NOT NULL AND seq % 4 = 0"
    ))
    .await;
    raw.run(
        "UPDATE operations SET meters_source = 'estimated' WHERE seq % 5 = 0
        AND meters_source IS NOT NULL",
    )
    .await;
    // The last one of a page of the report.
    raw.run(
        "UPDATE operations SET seq = 20000
        WHERE seq = (SELECT max(seq) FROM operations WHERE phase = 'completed')",
    )
    .await;
}

async fn live(tenant: &Tenant<'_>) {
    tenant.admit(&tenant.claim().build()).await;
    let ends: [fn(&Operation) -> Event; 6] = [
        |o| finish(o, 21, 10),
        |o| finish(o, 500, 0),
        |o| record(o, 1, 1),
        refuse,
        not_run,
        give_up,
    ];
    for end in ends {
        let operation = tenant.admit(&tenant.claim().build()).await;
        let ended = tenant.step(operation.id, end(&operation)).await;
        if matches!(ended.phase, Phase::Completed { .. }) {
            tenant.post(PostingKind::Refund(ended.id), 5).await.unwrap();
            tenant.post(PostingKind::Refund(ended.id), 2).await.unwrap();
        }
    }
}

/// What a finished operation adds.
async fn totals(store: &Store, operation: &Operation) -> Totals {
    match &operation.phase {
        Phase::Completed { usage, .. } => {
            let refunded = store.refunded(operation.id).await.unwrap();
            let cost = usage.metered.provider_cost;
            let margin = |cost| usage.charge.minus(refunded).unwrap().minus(cost).unwrap();
            Totals {
                completed: 1,
                estimated: u64::from(usage.metered.source.label() == "estimated"),
                meters: MeterKind::ALL.map(|kind| usage.metered.meters.count(kind)),
                charge: usage.charge,
                shortfall: usage.shortfall,
                refunded,
                costed: u64::from(cost.is_some()),
                provider_cost: cost.unwrap_or(Micros::ZERO),
                margin: cost.map_or(Micros::ZERO, margin),
                ..NOTHING
            }
        }
        Phase::Refused { .. } => Totals { refused: 1, exposure: operation.hold, ..NOTHING },
        Phase::Abandoned { .. } => Totals { abandoned: 1, exposure: operation.hold, ..NOTHING },
        Phase::Leased | Phase::Recorded(_) | Phase::Open => NOTHING,
    }
}

pub(crate) fn plus(a: &Totals, b: &Totals) -> Totals {
    let sum = |a: Micros, b: Micros| a.plus(b).unwrap();
    let mut meters = a.meters;
    meters.iter_mut().zip(b.meters).for_each(|(count, more)| *count += more);
    Totals {
        completed: a.completed + b.completed,
        refused: a.refused + b.refused,
        abandoned: a.abandoned + b.abandoned,
        estimated: a.estimated + b.estimated,
        meters,
        charge: sum(a.charge, b.charge),
        shortfall: sum(a.shortfall, b.shortfall),
        refunded: sum(a.refunded, b.refunded),
        exposure: sum(a.exposure, b.exposure),
        costs_excluded: a.costs_excluded + b.costs_excluded,
        costed: a.costed + b.costed,
        provider_cost: sum(a.provider_cost, b.provider_cost),
        margin: sum(a.margin, b.margin),
        is_saturated: a.is_saturated || b.is_saturated,
    }
}

/// The report as it should be, from the rows one by one.
async fn expected(
    opened: &dyn Stores,
    store: &Store,
    by: GroupBy,
    period: Period,
) -> Vec<UsageRow> {
    let all = OperationFilter::default();
    let page = |request| store.operations(all.clone(), request);
    let wallets = opened.lists().unwrap().all_wallets().await;
    let keys = opened.lists().unwrap().all_api_keys().await;
    let mut sums = BTreeMap::new();
    for listed in list::whole(Order::Newest, page).await {
        let operation = listed.operation;
        let Some(finished_at) = operation.phase.finished_at() else { continue };
        if period.from.is_some_and(|from| finished_at < from)
            || period.to.is_some_and(|to| finished_at >= to)
        {
            continue;
        }
        let group = match by {
            GroupBy::Day => Group::Day(Timestamp::from_micros(finished_at.as_micros() / DAY * DAY)),
            // Not asked for here: a report by one of these would not be empty, as this is.
            GroupBy::Hour | GroupBy::Month | GroupBy::Route => continue,
            GroupBy::Model => Group::Model(operation.model.to_string()),
            GroupBy::ApiKey => {
                let key = keys.iter().find(|key| key.id == operation.api_key).unwrap();
                Group::ApiKey { name: key.name.clone(), id: key.id }
            }
            GroupBy::Wallet => {
                let wallet = wallets.iter().find(|it| it.id == operation.wallet).unwrap();
                Group::Wallet { name: wallet.name.clone(), id: wallet.id }
            }
        };
        let sum = sums.entry((group, operation.price.currency)).or_insert(NOTHING);
        *sum = plus(sum, &totals(store, &operation).await);
    }
    let usage = |((group, currency), totals)| UsageRow { group, second: None, currency, totals };
    sums.into_iter().map(usage).collect()
}

fn query(by: GroupBy, period: Period) -> UsageQuery {
    UsageQuery { by: Grouping::by(by), filter: UsageFilter::default(), period, rows_max: None }
}

async fn a_report_sums_what_finished_in_its_period(home: &impl Home) {
    furnish(home).await;
    let at = |micros| Some(Timestamp::from_micros(micros));
    let day = 20_001 * DAY;
    let mut lengths = Vec::new();
    for by in [GroupBy::Day, GroupBy::Model, GroupBy::ApiKey, GroupBy::Wallet] {
        for (from, to) in [
            (None, None),
            (at(day), None),
            (None, at(day)),
            (at(day - 1), at(day)),
            (at(day), at(day + 1)),
            (at(day + DAY), at(day + DAY + 1)),
            (at(day + 9 * DAY), None),
        ] {
            let period = Period { from, to };
            let usages = home.store().usage(query(by, period)).await.unwrap();
            assert_eq!(usages, expected(home, home.store(), by, period).await, "{by:?} {period:?}");
            lengths.push(usages.len());
        }
    }
    let whole = home.store().usage(query(GroupBy::Wallet, Period::default())).await.unwrap();
    let some_cost = |usage: &UsageRow| (1..usage.totals.completed).contains(&usage.totals.costed);
    assert!(whole.iter().any(some_cost), "costs of some and not of all: {whole:?}");
    // By day: two currencies on one of three days. One model, two currencies. Five keys, three wallets.
    let whole: Vec<_> = lengths.iter().step_by(7).copied().collect();
    assert_eq!(whole, [4, 2, 5, 3]);
}

async fn a_report_that_is_too_long_is_an_error_and_not_a_part_of_it(home: &impl Home) {
    use GroupBy::{ApiKey, Day, Hour, Model, Month, Wallet};
    furnish(home).await;
    let mut groupings: Vec<_> = [Day, Month, Model, ApiKey, Wallet].map(Grouping::by).into();
    groupings.extend(Grouping::by_both(Month, ApiKey));
    groupings.extend(Grouping::by_both(Hour, Model));
    // Before and after they are summed beforehand.
    for _ in 0..2 {
        for by in &groupings {
            let rows = home.store().usage(UsageQuery::all(*by)).await.unwrap();
            let most = u32::try_from(rows.len()).unwrap();
            let bounded = |most| UsageQuery { rows_max: Some(most), ..UsageQuery::all(*by) };
            assert_eq!(home.store().usage(bounded(most)).await.unwrap(), rows, "{by:?}");
            for less in 0..most {
                let refused = home.store().usage(bounded(less)).await;
                let is_typed = matches!(refused, Err(UsageError::TooManyRows(it)) if it == less);
                assert!(is_typed, "{by:?} of {most}, at most {less}: {refused:?}");
            }
        }
        sum_all(home.store()).await;
    }
}

async fn a_sum_that_does_not_fit_is_marked_and_stops_no_report(home: &impl Home) {
    furnish(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE operations SET charge = 9223372036854775807 WHERE charge IS NOT NULL").await;
    for _ in 0..2 {
        let rows = home.store().usage(query(GroupBy::Model, Period::default())).await.unwrap();
        assert!(!rows.is_empty());
        for UsageRow { totals, .. } in rows {
            assert_eq!((totals.charge, totals.is_saturated), (Micros::MAX, true), "{totals:?}");
            assert!(totals.is_incomplete() && totals.completed > 0 && totals.meters[0] < 10_000);
        }
        sum_all(home.store()).await;
    }
}

/// Operations with a cost, the costs, the margins, the exposure of a report over everything.
async fn all_costs(store: &Store) -> [i64; 4] {
    let mut all = [0; 4];
    for row in store.usage(query(GroupBy::Model, Period::default())).await.unwrap() {
        let Totals { costed, provider_cost, margin, exposure, .. } = row.totals;
        let costed = i64::try_from(costed).unwrap();
        let more = [costed, provider_cost.get(), margin.get(), exposure.get()];
        all.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    all
}

async fn a_late_cost_is_added_once_and_is_exposure_until_then(home: &impl Home) {
    furnish(home).await;
    let store = home.store();
    let page = |request| store.operations(OperationFilter::default(), request);
    let rows = list::whole(Order::Newest, page).await;
    let mut rows = rows.into_iter().map(|listed| listed.operation);
    let has_no_cost = |it: &Operation| {
        it.phase.usage().is_some_and(|usage| usage.metered.provider_cost.is_none())
    };
    let is_completed = |it: &Operation| matches!(it.phase, Phase::Completed { .. });
    let completed = rows.find(|it| is_completed(it) && has_no_cost(it)).unwrap();
    let abandoned = rows.find(|it| matches!(it.phase, Phase::Abandoned { .. })).unwrap();
    // Refunds are of the margin once there is a cost.
    let refunded = totals(store, &completed).await.refunded.get();
    let note = |of: &Operation, cost: Option<i64>| CostNote {
        operation: of.id,
        generation: of.generation,
        cost: cost.map(Micros::new),
    };
    let before = all_costs(store).await;
    let change = |after: [i64; 4]| std::array::from_fn::<i64, 4, _>(|at| after[at] - before[at]);
    let charge = completed.phase.usage().unwrap().charge.get() - refunded;
    let (hold, freed) = (completed.hold.get(), abandoned.hold.get());
    let mut noted = (abandoned.id, false);
    for (of, cost, expected) in [
        (&completed, None, [0, 0, 0, hold]),
        (&completed, None, [0, 0, 0, hold]),
        (&completed, Some(7), [1, 7, charge - 7, 0]),
        (&completed, Some(9), [1, 7, charge - 7, 0]),
        (&abandoned, Some(5), [1, 12, charge - 12, -freed]),
    ] {
        let is_new = store.note_cost(note(of, cost)).await.unwrap();
        assert_eq!(
            is_new,
            std::mem::replace(&mut noted, (of.id, cost.is_some())) != (of.id, cost.is_some())
        );
        assert_eq!(change(all_costs(store).await), expected, "{cost:?}");
    }
    let other = CostNote { generation: abandoned.generation + 1, ..note(&abandoned, Some(5)) };
    store.note_cost(other).await.unwrap();
    sum_all(store).await;
    assert_eq!(change(all_costs(store).await), [1, 12, charge - 12, -freed], "summed or not");
}

crate::scratch::on_every_store! {
    a_report_sums_what_finished_in_its_period,
    a_report_that_is_too_long_is_an_error_and_not_a_part_of_it,
    a_sum_that_does_not_fit_is_marked_and_stops_no_report,
    a_late_cost_is_added_once_and_is_exposure_until_then,
}
