//! `holdfast usage report`: what was used and charged, for whoever sends the bills.

use anyhow::{Context, anyhow};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Micros, Timestamp};
use holdfast_store::Store;
use holdfast_store::usage::{Group, GroupBy, Totals, UsageRow};
use holdfast_wire::api::{CountsView, UsageOwner, UsageView, rfc3339};

use crate::cli::{Format, Report, UsageBy};
use crate::csv;
use crate::failure::CommandFailure;
use crate::output::{self, Output};

/// The names of the sums in a table, and of those that are amounts in CSV.
const COUNTS: [&str; 5] = ["completed", "refused", "abandoned", "estimated", "costed"];
const AMOUNTS: [&str; 6] =
    ["charge", "shortfall", "refunded", "provider_cost", "margin", "exposure"];

pub(super) async fn report(
    output: Output,
    store: &Store,
    report: Report,
) -> Result<(), CommandFailure> {
    let period = report.period.period()?;
    let form = form(output, report.format)?;
    let by = match report.by {
        UsageBy::Day => GroupBy::Day,
        UsageBy::Model => GroupBy::Model,
        UsageBy::Key => GroupBy::ApiKey,
        UsageBy::Wallet => GroupBy::Wallet,
    };
    let usages = store.usage(by, period).await.context("usage was not summed")?;
    match form {
        ReportFormat::Csv => output::text(&spell_csv(by, &usages)),
        ReportFormat::Output(output) => {
            let views: Vec<_> = usages.iter().map(view).collect();
            let rows: Vec<_> = usages.iter().map(row).collect();
            output.list(&views, head(by), &rows)
        }
    }
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
    let UsageRow { group, currency, totals } = usage;
    let (mut day, mut model, mut owner) = (None, None, None);
    match group {
        Group::Day(moment) => day = Some(date(*moment)),
        Group::Model(id) => model = Some(id.clone()),
        Group::ApiKey { name, id } => {
            let (api_key_id, api_key_name) = (id.to_string(), name.clone());
            owner = Some(UsageOwner::ApiKey { api_key_id, api_key_name });
        }
        Group::Wallet { name, id } => {
            let (wallet_id, wallet_name) = (id.to_string(), name.clone());
            owner = Some(UsageOwner::Wallet { wallet_id, wallet_name });
        }
    }
    UsageView {
        day,
        model,
        owner,
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
        provider_cost_micros: totals.provider_cost.get(),
        margin_micros: totals.margin.get(),
    }
}

fn head(by: GroupBy) -> [&'static str; COLUMNS] {
    let group = match by {
        GroupBy::Day => "day",
        GroupBy::Model => "model",
        GroupBy::ApiKey => "key",
        GroupBy::Wallet => "wallet",
    };
    let mut names = [group, "currency"]
        .into_iter()
        .chain(COUNTS)
        .chain(MeterKind::ALL.map(MeterKind::label))
        .chain(AMOUNTS);
    std::array::from_fn(|_column| names.next().unwrap_or_default())
}

/// A group, a currency, counts, meters and amounts.
const COLUMNS: usize = 2 + COUNTS.len() + MeterKind::COUNT + AMOUNTS.len();

fn row(usage: &UsageRow) -> [String; COLUMNS] {
    let UsageRow { group, currency, totals } = usage;
    let group = match group {
        Group::Day(moment) => date(*moment),
        Group::Model(id) => id.clone(),
        Group::ApiKey { name, .. } | Group::Wallet { name, .. } => name.clone(),
    };
    let mut cells = [group, currency.to_string()]
        .into_iter()
        .chain(counts(usage).map(|count| count.to_string()))
        .chain(amounts(totals).map(|amount| amount.to_string()));
    std::array::from_fn(|_column| cells.next().unwrap_or_default())
}

/// Operations by their outcome, then meters.
fn counts(usage: &UsageRow) -> impl Iterator<Item = u64> {
    let totals = usage.totals;
    [totals.completed, totals.refused, totals.abandoned, totals.estimated, totals.costed]
        .into_iter()
        .chain(totals.meters)
}

/// In the order of [`AMOUNTS`].
const fn amounts(totals: &Totals) -> [Micros; AMOUNTS.len()] {
    let Totals { charge, shortfall, refunded, provider_cost, margin, exposure, .. } = *totals;
    [charge, shortfall, refunded, provider_cost, margin, exposure]
}

fn spell_csv(by: GroupBy, usages: &[UsageRow]) -> String {
    let group: &[&str] = match by {
        GroupBy::Day => &["day"],
        GroupBy::Model => &["model"],
        // The id beside the name, whose spelling `csv::chosen` may change.
        GroupBy::ApiKey => &["api_key_id", "api_key_name"],
        GroupBy::Wallet => &["wallet_id", "wallet_name"],
    };
    let amount_names = AMOUNTS.map(|name| format!("{name}_micros"));
    let names = group.iter().copied().chain(["currency"]).chain(COUNTS);
    let names = names
        .chain(MeterKind::ALL.map(MeterKind::label))
        .chain(amount_names.iter().map(String::as_str));
    let mut text = csv::record(names);
    for usage in usages {
        let UsageRow { group, currency, totals } = usage;
        let mut fields = match group {
            Group::Day(moment) => vec![date(*moment)],
            Group::Model(id) => vec![id.clone()],
            Group::ApiKey { name, id } => vec![id.to_string(), csv::chosen(name)],
            Group::Wallet { name, id } => vec![id.to_string(), csv::chosen(name)],
        };
        fields.push(currency.to_string());
        fields.extend(counts(usage).map(|count| count.to_string()));
        // In micros: a spreadsheet would round a decimal of six places to what its column shows.
        fields.extend(amounts(totals).map(|amount| amount.get().to_string()));
        text.push_str(&csv::record(fields.iter().map(String::as_str)));
    }
    text
}

/// The day that begins at a moment.
fn date(moment: Timestamp) -> String {
    let moment = rfc3339(moment);
    moment.split_once('T').map_or_else(|| moment.clone(), |(date, _time)| date.to_owned())
}
