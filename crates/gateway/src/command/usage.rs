//! `holdfast usage report`: what was used and charged, for whoever sends the bills.
//!
//! A report has one key or two. Each is a column of a table, named by what people call it, and one or
//! two columns of CSV, where ids stand beside names. What is not known is `-`, and never zero.
//!
//! Amounts of two currencies never meet in a row. Tables have decimal units, files integer micros;
//! texts that people chose cannot begin a formula there. Sums are the store's: nothing is added here.

use anyhow::{Context, anyhow};
use holdfast_domain::listing::Period;
use holdfast_domain::report::{
    Group, GroupBy, Grouping, Reports as _, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::usage::MeterKind;
use holdfast_store::Store;
use holdfast_wire::api::{CountsView, UsageApiKey, UsageView, UsageWallet, rfc3339};
use holdfast_wire::csv::{self, CostColumns, group_name};
use serde_json::Value;

use super::sheet::given;
use super::{Desk, key, wallet};
use crate::accounts::{find_api_key, find_wallet};
use crate::cli::{Format, Report, UsageBy};
use crate::failure::CommandFailure;
use crate::output::{self, Output};
use crate::view::{amount, member, text};

/// The names of the sums in a table.
const COUNTS: [&str; 5] = ["completed", "refused", "abandoned", "estimated", "costed"];
const AMOUNTS: [&str; 6] =
    ["charge", "shortfall", "refunded", "provider_cost", "margin", "exposure"];

/// A report over the store, of any period and length.
pub(super) async fn beside(
    output: Output,
    store: &Store,
    report: Report,
) -> Result<(), CommandFailure> {
    let period = report.period.period()?;
    let form = form(output, report.format)?;
    let by = grouping(&report.by)?;
    let filter = filter(store, &report).await?;
    let usages = store.usage(UsageQuery { by, filter, period, rows_max: None }).await;
    let usages = usages.context("usage was not summed")?;
    match form {
        ReportFormat::Csv => {
            note_incomplete(usages.iter().any(|row| row.totals.is_incomplete()));
            output::text(&csv::usage(by, &usages, CostColumns::Shown))
        }
        ReportFormat::Output(output) => {
            let rows: Result<Vec<_>, _> =
                usages.iter().map(view).map(serde_json::to_value).collect();
            print(output, by, &rows.context("the report was not shown")?)
        }
    }
}

/// A report of a server, of whole hours.
pub(super) async fn over_network(desk: &Desk<'_>, report: Report) -> Result<(), CommandFailure> {
    let Period { from, to } = report.period.period()?;
    let form = form(desk.output, report.format)?;
    let by = grouping(&report.by)?;
    let keys: Vec<_> = by.keys().map(member_of).collect();
    let query = [
        ("by", Some(keys.join(","))),
        ("wallet_id", wallet::id_of(desk, report.wallet.as_ref()).await?),
        ("api_key_id", key::id_of(desk, report.key.as_ref()).await?),
        ("model", report.model),
        ("route", report.route),
        ("from", from.map(rfc3339)),
        ("to", to.map(rfc3339)),
    ];
    let nothing = "usage was not summed";
    match form {
        ReportFormat::Csv => {
            let file = desk.door.file("/usage", &given(&query)).await;
            output::text(&file.map_err(|error| error.because(nothing))?)
        }
        ReportFormat::Output(output) => {
            let found = desk.door.get("/usage", &given(&query)).await;
            let found = found.map_err(|error| error.because(nothing))?;
            let rows = member(&found, "data").as_array();
            print(output, by, rows.map(Vec::as_slice).unwrap_or_default())
        }
    }
}

fn print(output: Output, by: Grouping, rows: &[Value]) -> Result<(), CommandFailure> {
    note_incomplete(rows.iter().any(|row| member(row, "incomplete").as_bool() == Some(true)));
    let lines: Vec<_> = rows.iter().map(|usage| row(by, usage)).collect();
    output.list(rows, head(by), &lines)
}

/// Beside the report, which people may pipe elsewhere.
fn note_incomplete(is_incomplete: bool) {
    if is_incomplete {
        output::note(
            "the report is incomplete: rows with \"incomplete\" lack a cost that no run can have caused, or a sum that no number can be",
        );
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
        costs_excluded: totals.costs_excluded,
        incomplete: totals.is_incomplete(),
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

/// Name of a key in the API.
const fn member_of(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Hour => "hour",
        GroupBy::Day => "day",
        GroupBy::Month => "month",
        GroupBy::Model => "model",
        GroupBy::ApiKey => "api_key",
        GroupBy::Wallet => "wallet",
        GroupBy::Route => "route",
    }
}

fn head(by: Grouping) -> Vec<&'static str> {
    let name = |by| if by == GroupBy::ApiKey { "key" } else { member_of(by) };
    let sums = ["currency"].into_iter().chain(COUNTS).chain(MeterKind::ALL.map(MeterKind::label));
    by.keys().map(name).chain(sums).chain(AMOUNTS).collect()
}

fn row(by: Grouping, usage: &Value) -> Vec<String> {
    let groups = by.keys().map(|by| match by {
        GroupBy::ApiKey => text(usage, "api_key_name"),
        GroupBy::Wallet => text(usage, "wallet_name"),
        GroupBy::Hour | GroupBy::Day | GroupBy::Month | GroupBy::Model | GroupBy::Route => {
            text(usage, member_of(by))
        }
    });
    let meters = member(usage, "meters");
    groups
        .chain([text(usage, "currency")])
        .chain(COUNTS.map(|count| text(usage, count)))
        .chain(MeterKind::ALL.map(|kind| text(meters, kind.label())))
        .chain(AMOUNTS.map(|name| amount(usage, &format!("{name}_micros"))))
        .collect()
}
