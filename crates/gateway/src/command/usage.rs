//! `holdfast usage report`: what was used and charged, for whoever sends the bills.
//!
//! A report has one key or two. Each is a column of a table, named by what people call it, and one or
//! two columns of CSV, where ids stand beside names. What is not known is `-`, and never zero.
//!
//! Amounts of two currencies never meet in a row. Tables have decimal units, files integer micros;
//! texts that people chose cannot begin a formula there. Sums are the store's: nothing is added here.

use anyhow::{Context, anyhow};
use holdfast_domain::Micros;
use holdfast_domain::report::{
    Group, GroupBy, Grouping, KnownCost, Reports as _, Totals, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::usage::MeterKind;
use holdfast_store::Store;
use holdfast_wire::api::{CountsView, UsageApiKey, UsageView, UsageWallet};
use holdfast_wire::csv::{self, CostColumns, group_name};

use crate::accounts::{find_api_key, find_wallet};
use crate::cli::{Format, Report, UsageBy};
use crate::failure::CommandFailure;
use crate::output::{self, Output};

/// The names of the sums in a table.
const COUNTS: [&str; 5] = ["completed", "refused", "abandoned", "estimated", "costed"];
const AMOUNTS: [&str; 6] =
    ["charge", "shortfall", "refunded", "provider_cost", "margin", "exposure"];

/// Stands for what is not known, or is none.
const DASH: &str = "-";

pub(super) async fn report(
    output: Output,
    store: &Store,
    report: Report,
) -> Result<(), CommandFailure> {
    let period = report.period.period()?;
    let form = form(output, report.format)?;
    let by = grouping(&report.by)?;
    let filter = filter(store, &report).await?;
    let usages = store.usage(UsageQuery { by, filter, period }).await;
    let usages = usages.context("usage was not summed")?;
    match form {
        ReportFormat::Csv => output::text(&csv::usage(by, &usages, CostColumns::Shown)),
        ReportFormat::Output(output) => {
            let views: Vec<_> = usages.iter().map(view).collect();
            let rows: Vec<_> = usages.iter().map(row).collect();
            output.list(&views, head(by), &rows)
        }
    }
}

fn grouping(by: &[UsageBy]) -> Result<Grouping, CommandFailure> {
    let grouping = match *by {
        [one] => Some(Grouping::by(key_of(one))),
        [first, second] => Grouping::by_both(key_of(first), key_of(second)),
        [] | [_, _, _, ..] => None,
    };
    grouping.ok_or_else(|| {
        CommandFailure::Usage(anyhow!("--by takes one key, or two that differ, like day,model"))
    })
}

const fn key_of(by: UsageBy) -> GroupBy {
    match by {
        UsageBy::Hour => GroupBy::Hour,
        UsageBy::Day => GroupBy::Day,
        UsageBy::Month => GroupBy::Month,
        UsageBy::Model => GroupBy::Model,
        UsageBy::Key => GroupBy::ApiKey,
        UsageBy::Wallet => GroupBy::Wallet,
        UsageBy::Route => GroupBy::Route,
    }
}

async fn filter(store: &Store, report: &Report) -> Result<UsageFilter, CommandFailure> {
    let wallet = match &report.wallet {
        Some(reference) => Some(find_wallet(store, reference).await?.wallet.id),
        None => None,
    };
    let api_key = match &report.key {
        Some(reference) => Some(find_api_key(store, reference).await?.id),
        None => None,
    };
    let (model, route) = (report.model.clone(), report.route.clone());
    Ok(UsageFilter { wallet, api_key, model, route })
}

/// Format of a report: CSV, or one of the formats that every command has.
enum ReportFormat {
    Csv,
    Output(Output),
}

fn form(output: Output, format: Option<Format>) -> Result<ReportFormat, CommandFailure> {
    match (format, output) {
        (None, output) => Ok(ReportFormat::Output(output)),
        (Some(Format::Json), _) => Ok(ReportFormat::Output(Output::Json)),
        (Some(Format::Csv | Format::Table), Output::Json) => Err(CommandFailure::Usage(anyhow!(
            "--json prints JSON: leave it out or leave --format out"
        ))),
        (Some(Format::Csv), Output::Table | Output::Plain) => Ok(ReportFormat::Csv),
        (Some(Format::Table), Output::Table | Output::Plain) => {
            Ok(ReportFormat::Output(Output::Table))
        }
    }
}

fn view(usage: &UsageRow) -> UsageView {
    let UsageRow { group, second, currency, totals } = usage;
    let known = totals.known();
    let mut view = UsageView {
        hour: None,
        day: None,
        month: None,
        model: None,
        api_key: None,
        wallet: None,
        route: None,
        currency: currency.to_string(),
        completed: totals.completed,
        refused: totals.refused,
        abandoned: totals.abandoned,
        estimated: totals.estimated,
        meters: CountsView(totals.meters),
        charge_micros: totals.charge.get(),
        shortfall_micros: totals.shortfall.get(),
        refunded_micros: totals.refunded.get(),
        exposure_micros: totals.exposure.get(),
        costed: totals.costed,
        provider_cost_micros: known.map(|it| it.provider_cost.get()),
        margin_micros: known.map(|it| it.margin.get()),
    };
    for group in std::iter::once(group).chain(second) {
        match group {
            Group::Hour(_) => view.hour = Some(group_name(group)),
            Group::Day(_) => view.day = Some(group_name(group)),
            Group::Month(_) => view.month = Some(group_name(group)),
            Group::Model(id) => view.model = Some(id.clone()),
            Group::Route(route) => view.route = Some(route.clone()),
            Group::ApiKey { name, id } => {
                let (api_key_id, api_key_name) = (id.to_string(), name.clone());
                view.api_key = Some(UsageApiKey { api_key_id, api_key_name });
            }
            Group::Wallet { name, id } => {
                let (wallet_id, wallet_name) = (id.to_string(), name.clone());
                view.wallet = Some(UsageWallet { wallet_id, wallet_name });
            }
        }
    }
    view
}

fn head(by: Grouping) -> Vec<&'static str> {
    let name = |by| match by {
        GroupBy::Hour => "hour",
        GroupBy::Day => "day",
        GroupBy::Month => "month",
        GroupBy::Model => "model",
        GroupBy::ApiKey => "key",
        GroupBy::Wallet => "wallet",
        GroupBy::Route => "route",
    };
    let sums = ["currency"].into_iter().chain(COUNTS).chain(MeterKind::ALL.map(MeterKind::label));
    by.keys().map(name).chain(sums).chain(AMOUNTS).collect()
}

fn row(usage: &UsageRow) -> Vec<String> {
    let UsageRow { group, second, currency, totals } = usage;
    std::iter::once(group)
        .chain(second)
        .map(group_name)
        .chain([currency.to_string()])
        .chain(counts(usage).map(|count| count.to_string()))
        .chain(amounts(totals).map(|amount| spelled(amount, |amount| amount.to_string())))
        .collect()
}

/// Operations by their outcome, then meters.
fn counts(usage: &UsageRow) -> impl Iterator<Item = u64> {
    let totals = usage.totals;
    [totals.completed, totals.refused, totals.abandoned, totals.estimated, totals.costed]
        .into_iter()
        .chain(totals.meters)
}

/// In the order of [`AMOUNTS`]; nothing where it is not known.
fn amounts(totals: &Totals) -> [Option<Micros>; AMOUNTS.len()] {
    let Totals { charge, shortfall, refunded, exposure, .. } = *totals;
    let known = totals.known();
    let cost = known.map(|KnownCost { provider_cost, .. }| provider_cost);
    let margin = known.map(|KnownCost { margin, .. }| margin);
    [Some(charge), Some(shortfall), Some(refunded), cost, margin, Some(exposure)]
}

fn spelled(amount: Option<Micros>, spell: impl FnOnce(Micros) -> String) -> String {
    amount.map_or_else(|| DASH.to_owned(), spell)
}
