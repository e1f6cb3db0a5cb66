//! Usage: what finished in a period, summed by one or two dimensions, as a chart, a table and a file.
//!
//! A cost that is not known is said to be so, and is never zero. Who sees no costs has no column of them.
//! A table shows a part of the rows at a time; its sums are always those of all rows.

mod view;

use axum::response::Response;
use holdfast_accounts::UsageReport;
use holdfast_domain::admin::listing::{PageCursor, Period};
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageFilter, UsageQuery};
use holdfast_wire::csv::{self, CostColumns};

use self::view::{charts, sums, table};
use crate::failure::Failure;
use crate::kit::address::with_query;
use crate::kit::ask::SentFields;
use crate::kit::cell::Link;
use crate::kit::counting::{self, ReportView};
use crate::kit::field::{Choice, FieldKind, FormField};
use crate::kit::moment;
use crate::kit::page::Page;
use crate::kit::paging::Pages;
use crate::kit::report_file::report_file;
use crate::kit::section::{Filter, Section};
use crate::kit::visit::Visit;
use crate::pages::parts::operation::read_model;
use crate::pages::parts::reference::{self, api_key_field, wallet_field};

const FIRST: &str = "first";
const SECOND: &str = "second";
const MODEL: &str = "model";
const ROUTE: &str = "route";
const FROM: &str = "from";
const TO: &str = "to";
/// Rows of a page: those of two dimensions and all columns are the widest of all lists, and a page has 50 KB.
const ROWS: usize = 40;

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let found = found(&visit).await;
    Page::new("Usage").narrowed(filter(&visit), found)
}

async fn found(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let by = grouping(&visit.query)?;
    let asked = asked(visit, by).await?;
    let address = address("/usage", &visit.query);
    let (report, at) = match visit.desk.usage(&visit.visitor, asked).await? {
        ReportView::There(report, at) => (report, at),
        ReportView::Absent(absence) => {
            return Ok(vec![absence.notice("This report", &address).into()]);
        }
    };
    let mut sections: Vec<Section> = Vec::new();
    sections.extend(counting::of_moment(at, &address).map(Section::from));
    let pages = Pages::new(visit, "/usage", &visit.query);
    sections.extend(shown((&visit.query, by), &pages, &report)?);
    Ok(sections)
}

/// A part of the rows, with the sums and the charts of all.
fn shown(
    (query, by): (&SentFields, Grouping),
    pages: &Pages<'_>,
    UsageReport { rows, shows_costs }: &UsageReport,
) -> Result<Vec<Section>, Failure> {
    let mut sections: Vec<Section> = Vec::new();
    let passed = pages.request()?.after.map_or(0, |PageCursor(rows)| rows);
    let passed = usize::try_from(passed).unwrap_or(0).min(rows.len());
    let shown: Vec<_> = rows.iter().skip(passed).take(ROWS).collect();
    let end = passed + shown.len();
    let next = i64::try_from(end).ok().filter(|_| end < rows.len()).map(PageCursor);
    if !rows.is_empty() {
        sections.extend(charts(rows).into_iter().map(Section::from));
        sections.push(sums(rows, *shows_costs).into());
    }
    let title = if rows.len() > ROWS {
        format!("Rows {} to {end} of {}", passed + 1, rows.len())
    } else {
        "By group".to_owned()
    };
    let mut table = table(&title, by, &shown, (query, *shows_costs));
    table = table.next(pages.next(next)?);
    if !rows.is_empty() {
        table = table.link(Link::new("All rows as CSV", address("/usage.csv", query)));
    }
    sections.push(table.into());
    Ok(sections)
}

/// The same report as a file.
pub(crate) async fn download(visit: Visit) -> Result<Response, Failure> {
    let by = grouping(&visit.query)?;
    let _place = visit.desk.begin_report(&visit.visitor)?;
    let asked = asked(&visit, by).await?;
    let UsageReport { rows, shows_costs } =
        visit.accounts().usage(visit.principal(), asked).await?;
    let costs = if shows_costs { CostColumns::Shown } else { CostColumns::Hidden };
    let csv_type = "text/csv; charset=utf-8; header=present";
    report_file("usage.csv", csv_type, move || csv::usage(by, &rows, costs)).await
}

async fn asked(visit: &Visit, by: Grouping) -> Result<UsageQuery, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let filter = UsageFilter {
        wallet,
        api_key: reference::api_key(visit, &visit.query, wallet).await?,
        model: read_model(&visit.query)?.map(|id| id.to_string()),
        route: visit.query.get(ROUTE).map(str::to_owned),
    };
    let period =
        Period { from: moment::read(&visit.query, FROM)?, to: moment::read(&visit.query, TO)? };
    Ok(UsageQuery { by, filter, period, rows_max: None })
}

fn grouping(query: &SentFields) -> Result<Grouping, Failure> {
    let read = |name: &str| {
        let bad = || Failure::field(name, "There is no such dimension.");
        query.get(name).map(|text| dimension(text).ok_or_else(bad)).transpose()
    };
    let first = read(FIRST)?.unwrap_or(GroupBy::Day);
    match read(SECOND)? {
        None => Ok(Grouping::by(first)),
        Some(second) => Grouping::by_both(first, second)
            .ok_or_else(|| Failure::field(SECOND, "The two dimensions must differ.")),
    }
}

fn dimension(text: &str) -> Option<GroupBy> {
    GroupBy::ALL.into_iter().find(|by| name(*by) == text)
}

const fn name(by: GroupBy) -> &'static str {
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

/// Name of a dimension on pages.
const fn label(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Hour => "Hour",
        GroupBy::Day => "Day",
        GroupBy::Month => "Month",
        GroupBy::Model => "Model",
        GroupBy::ApiKey => "API key",
        GroupBy::Wallet => "Wallet",
        GroupBy::Route => "Route",
    }
}

fn filter(visit: &Visit) -> Filter {
    let seen = GroupBy::ALL.into_iter().filter(|by| match by {
        GroupBy::Route => visit.principal().sees_routes(),
        GroupBy::Wallet => visit.principal().only_wallet().is_none(),
        GroupBy::Hour | GroupBy::Day | GroupBy::Month | GroupBy::Model | GroupBy::ApiKey => true,
    });
    let choices: Vec<_> = seen.map(|by| Choice::new(name(by), label(by))).collect();
    let mut second = vec![Choice::new("", "Nothing else")];
    second.extend(choices.iter().cloned());
    let held = |field: FormField| {
        let value = visit.query.raw(field.name).to_owned();
        field.value(value)
    };
    let first = visit.query.get(FIRST).unwrap_or(name(GroupBy::Day));
    let mut fields = vec![
        FormField::new(FIRST, "By", FieldKind::Select(choices)).value(first),
        held(FormField::optional(SECOND, "And by", FieldKind::Select(second))),
    ];
    fields.extend(wallet_field(visit));
    fields.extend([
        api_key_field(&visit.query),
        held(FormField::optional(MODEL, "Model", FieldKind::Text)),
    ]);
    if visit.principal().sees_routes() {
        fields.push(held(FormField::optional(ROUTE, "Route", FieldKind::Text)));
    }
    fields.extend([
        held(FormField::optional(FROM, "Finished from (UTC)", FieldKind::Moment)),
        held(FormField::optional(TO, "Before (UTC)", FieldKind::Moment)),
    ]);
    Filter { action: "/usage".to_owned(), fields, submit: "Sum up".to_owned() }
}

/// The same query at this path.
fn address(path: &str, query: &SentFields) -> String {
    let params: Vec<_> = query.iter().map(|(name, value)| (name, Some(value))).collect();
    with_query(path, &params)
}
