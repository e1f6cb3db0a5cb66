//! `holdfast usage report`: usage and charges, for invoices.
//!
//! A report has one key or two. Each is a column of a table, with the name for people, and one or two columns of
//! CSV, with ids and names. An unknown value is `-`, and never zero.
//!
//! Amounts of two currencies never meet in a row. Tables have decimal units, files integer micros; texts that
//! people chose cannot begin a formula there. Sums are the store's: they are not added up here.

use anyhow::anyhow;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{GroupBy, Grouping};
use holdfast_domain::usage::MeterKind;
use holdfast_wire::api::rfc3339;
use holdfast_wire::file::FileFormat;
use serde_json::Value;

use super::resource_view::given;
use super::{CommandContext, key, wallet};
use crate::admin_client::AdminClientError;
use crate::arguments::{Format, Report, UsageBy};
use crate::failure::{CommandFailure, Result};
use crate::file_output::FileOutput;
use crate::output::{self, Output};
use crate::table::{Column, Table};
use crate::view::{amount, member, text};

/// The names of the sums in a table.
const COUNTS: [&str; 5] = ["completed", "refused", "abandoned", "estimated", "costed"];
const AMOUNTS: [&str; 6] = [
    "charge_micros",
    "shortfall_micros",
    "refunded_micros",
    "provider_cost_micros",
    "margin_micros",
    "exposure_micros",
];

/// Prints a report. That of a server is of whole hours.
pub(super) async fn run(context: &CommandContext<'_>, report: Report) -> Result {
    let Period { from, to } = report.period.period()?;
    let by = grouping(&report.by)?;
    let form = match format(context.output, report.format, report.output.is_some())? {
        WrittenFormat::File(format) if report.columns.is_default() => ReportFormat::File(format),
        WrittenFormat::File(_) => {
            return Err(CommandFailure::Usage(anyhow!(
                "a file has every column: leave --columns and --wide out"
            )));
        }
        WrittenFormat::Table(output) => {
            ReportFormat::Table(Table::new(output, &report.columns, &columns(by))?)
        }
    };
    let keys: Vec<_> = by.keys().map(member_of).collect();
    let query = [
        ("by", Some(keys.join(","))),
        ("wallet_id", wallet::id_of(context, report.wallet.as_ref()).await?),
        ("api_key_id", key::id_of(context, report.key.as_ref()).await?),
        ("model", report.model),
        ("route", report.route),
        ("from", from.map(rfc3339)),
        ("to", to.map(rfc3339)),
    ];
    let nothing = "usage was not summed";
    match form {
        ReportFormat::File(format) => {
            let file = FileOutput::create(report.output.as_deref(), format)?;
            let is_incomplete =
                context.client.download(("/usage", &given(&query)), file, nothing).await?;
            note_incomplete(is_incomplete);
            Ok(())
        }
        ReportFormat::Table(table) => {
            let found = context.client.get("/usage", &given(&query)).await;
            let found = found.map_err(|error| error.because(nothing))?;
            let rows = member(&found, "data").as_array().ok_or(AdminClientError::NotTheApi);
            print(&table, by, rows.map_err(|error| error.because(nothing))?)
        }
    }
}

fn print(table: &Table, by: Grouping, rows: &[Value]) -> Result {
    note_incomplete(rows.iter().any(|row| member(row, "incomplete").as_bool() == Some(true)));
    table.print(&rows, rows, |usage, name| cell(by, usage, name))
}

/// Beside the report, which people may pipe elsewhere.
fn note_incomplete(is_incomplete: bool) {
    if is_incomplete {
        output::note(
            "the report is incomplete: rows with \"incomplete\" lack a cost that no run can have caused, or a sum that no number can be",
        );
    }
}

fn grouping(by: &[UsageBy]) -> Result<Grouping> {
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

/// Form of a report: a file, or one of the formats that every command has.
enum ReportFormat {
    File(FileFormat),
    Table(Table),
}

/// Format by the options.
enum WrittenFormat {
    File(FileFormat),
    Table(Output),
}

fn format(output: Output, format: Option<Format>, has_file: bool) -> Result<WrittenFormat> {
    let is_json = matches!(output, Output::Json);
    let usage = |message| Err(CommandFailure::Usage(anyhow!("{message}")));
    Ok(match format {
        Some(Format::Csv | Format::Jsonl | Format::Table) if is_json => {
            return usage("--json prints JSON: leave it out or leave --format out");
        }
        None if is_json && has_file => {
            return usage("--json prints JSON: leave it out or leave --output out");
        }
        Some(Format::Table | Format::Json) if has_file => {
            return usage("--output writes CSV or JSON lines: --format takes csv or jsonl with it");
        }
        None if has_file => WrittenFormat::File(FileFormat::Csv),
        None => WrittenFormat::Table(output),
        Some(Format::Csv) => WrittenFormat::File(FileFormat::Csv),
        Some(Format::Jsonl) => WrittenFormat::File(FileFormat::JsonLines),
        Some(Format::Json) => WrittenFormat::Table(Output::Json),
        Some(Format::Table) => WrittenFormat::Table(Output::Table),
    })
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

/// Groups, the charge and the margin in every table; the rest as the terminal has room.
fn columns(by: Grouping) -> Vec<Column> {
    let meters = MeterKind::ALL.map(|kind| Column::number(kind.label()).third());
    let counts = COUNTS.map(Column::number);
    let [completed, refused, abandoned, estimated, costed] = counts;
    let [charge, shortfall, refunded, cost, margin, exposure] = AMOUNTS.map(Column::number);
    by.keys()
        .map(|by| Column::text(if by == GroupBy::ApiKey { "key" } else { member_of(by) }))
        .chain([Column::text("currency"), completed, refused.second(), abandoned.second()])
        .chain([estimated.third(), costed.third()])
        .chain(meters)
        .chain([charge, shortfall.third(), refunded.second(), cost.second(), margin])
        .chain([exposure.third()])
        .collect()
}

fn cell(by: Grouping, usage: &Value, name: &'static str) -> String {
    let group = |key: GroupBy| member_of(key) == name || (key == GroupBy::ApiKey && name == "key");
    match by.keys().find(|key| group(*key)) {
        Some(GroupBy::ApiKey) => text(usage, "api_key_name"),
        Some(GroupBy::Wallet) => text(usage, "wallet_name"),
        Some(_) | None if AMOUNTS.contains(&name) => amount(usage, name),
        Some(_) | None if MeterKind::ALL.iter().any(|kind| kind.label() == name) => {
            text(member(usage, "meters"), name)
        }
        Some(_) | None => text(usage, name),
    }
}
