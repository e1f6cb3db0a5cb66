//! Usage: what finished in a period, as a total, a chart over time, a ranking, a table and a file, in one currency.
//!
//! A cost that is not known is shown as such, and never as zero: a margin has its revenue beside it.
//! A role without costs has no column of them. A table shows a part of the rows at a time; its sums are those of all.
//!
//! The address is the whole state: period, groups, filters, currency, order and page. So a report can be kept and
//! shared, and a group or a period leads to a finer report under the same filters.
//!
//! Never: a sum over two currencies.

mod view;

use axum::response::Response;
use holdfast_admin::usage_file;
use holdfast_domain::admin::listing::{PageCursor, Period};
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageFilter, UsageQuery};
use holdfast_domain::{Currency, Timestamp};
use holdfast_wire::file::FileFormat;

use self::view::{drawn, sorted, table, tiles};
use crate::failure::{Failure, FieldRefusal};
use crate::kit::counting::{self, ReportView};
use crate::kit::moment;
use crate::kit::period::{FROM, ON, PRESET, PeriodChoice, TO, altered};
use crate::kit::sorting::SORT;
use crate::kit::{
    Choice, Choices, FieldKind, Filter, FormField, Link, Page, Pages, Section, SentFields, Step,
    Visit, with_query,
};
use crate::pages::parts::operation::{ROUTE, model_field, read_model, route_field};
use crate::pages::parts::reference::{self, api_key_field, wallet_field};
use crate::pages::parts::usage::{CurrencyRows, by_currency, counted};

texts! { #[template(path = "pages/usage.txt")] UsageText {
    Rows { first: usize, end: usize, all: usize } = "rows",
} }

/// Reports are of the last 30 days if their address names no period.
const PERIOD: PeriodChoice = PeriodChoice { path: "/usage", default: "30d" };
const FIRST: &str = "first";
const SECOND: &str = "second";
const CURRENCY: &str = "currency";
const AFTER: &str = "after";
/// Rows of a page: those of two dimensions and all columns are the widest of all lists, and a page has 50 KB.
const ROWS: usize = 25;

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let now = visit.accounts().clock().await?;
    let found = found(&visit, now).await;
    let page = Page::new("Usage").section(counted()).section(PERIOD.links(&visit.query));
    page.narrowed(filter(&visit, now).await?, found)
}

async fn found(visit: &Visit, now: Timestamp) -> Result<Vec<Section>, Failure> {
    let period = PERIOD.read(&visit.query, now)?;
    let step = Step::of_period(period, now);
    let by = grouping(&visit.query, step)?;
    let chosen: Option<Currency> = visit.query.read(CURRENCY)?;
    let asked = asked(visit, by, period).await?;
    let address = address("/usage", &visit.query);
    // One wait for both reports of the page.
    let until = visit.shared.deadline();
    let (report, at) = match visit.shared.usage(&visit.visitor, asked.clone(), until).await? {
        ReportView::There(report, at) => (report, at),
        ReportView::Absent(absence) => {
            return Ok(vec![absence.notice("This report", &address).into()]);
        }
    };
    let mut sections: Vec<Section> = Vec::new();
    sections.extend(counting::of_moment(at, &address).map(Section::from));
    let currencies = by_currency(&report.rows);
    let rows = currencies.iter().find(|it| chosen.is_none_or(|code| it.currency == code));
    let shown_currency = rows.map(|rows| rows.currency);
    sections.extend(choices(&currencies, shown_currency, &visit.query).map(Section::from));
    let Some(rows) = rows else {
        sections.push(view::nothing(chosen.filter(|_code| !currencies.is_empty())).into());
        return Ok(sections);
    };
    sections.push(tiles(visit, rows, report.shows_costs).into());
    sections.extend(drawn(visit, asked, (step, now, until), rows.currency).await?);
    sections.push(shown(visit, by, rows, report.shows_costs)?);
    Ok(sections)
}

/// Links to the other currencies of a report.
fn choices(
    all: &[CurrencyRows<'_>],
    shown: Option<Currency>,
    query: &SentFields,
) -> Option<Choices> {
    let link = |it: &CurrencyRows<'_>| {
        let code = it.currency.to_string();
        let href = address_with(query, &[CURRENCY, AFTER], &[(CURRENCY, &code)]);
        (Link::new(code, href), Some(it.currency) == shown)
    };
    let links = all.iter().map(link).collect();
    let is_needed = all.len() > 1 || (shown.is_none() && !all.is_empty());
    is_needed.then(|| Choices { label: "Currency".to_owned(), links })
}

/// A part of the rows, with the sums of all.
fn shown(
    visit: &Visit,
    by: Grouping,
    rows: &CurrencyRows<'_>,
    shows_costs: bool,
) -> Result<Section, Failure> {
    let pages = Pages::new(visit, "/usage", &visit.query);
    let all = sorted(&rows.rows, &visit.query);
    let passed = pages.request()?.after.map_or(0, |PageCursor(rows)| rows);
    // The report may be read anew between two pages, and have fewer rows then.
    let passed = usize::try_from(passed).unwrap_or(0).min(all.len());
    let shown = all.get(passed..all.len().min(passed + ROWS)).unwrap_or(&[]);
    let end = passed + shown.len();
    let next = i64::try_from(end).ok().filter(|_| end < all.len()).map(PageCursor);
    let title = if all.len() > ROWS {
        UsageText::Rows { first: passed + 1, end, all: all.len() }.to_string()
    } else {
        "Breakdown".to_owned()
    };
    let table = table(&title, by, (shown, rows), (&visit.query, shows_costs));
    let file = Link::new("Rows as CSV", address("/usage.csv", &visit.query));
    Ok(table.next(pages.next(next)?).link(file).into())
}

/// The same report as a file, in all currencies, as it is read.
pub(crate) async fn download(visit: Visit) -> Result<Response, Failure> {
    let now = visit.accounts().clock().await?;
    let period = PERIOD.read(&visit.query, now)?;
    let step = Step::of_period(period, now);
    let by = grouping(&visit.query, step)?;
    let asked = asked(&visit, by, period).await?;
    let file = visit.accounts().export_usage(visit.principal(), asked).await?;
    Ok(usage_file(file, FileFormat::Csv))
}

async fn asked(visit: &Visit, by: Grouping, period: Period) -> Result<UsageQuery, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let filter = UsageFilter {
        wallet,
        api_key: reference::api_key(visit, &visit.query, wallet).await?,
        model: read_model(&visit.query)?.map(|id| id.to_string()),
        route: visit.query.get(ROUTE).map(str::to_owned),
    };
    Ok(UsageQuery { by, filter, period, rows_max: None })
}

/// Groups of the table: those of the address, or the periods of the chart.
fn grouping(query: &SentFields, step: Step) -> Result<Grouping, Failure> {
    let first = query.choice(FIRST, dimension)?.unwrap_or(step.group_by());
    match query.choice(SECOND, dimension)? {
        None => Ok(Grouping::by(first)),
        Some(second) => Grouping::by_both(first, second)
            .ok_or_else(|| Failure::field(SECOND, FieldRefusal::SameDimensions)),
    }
}

/// Dimensions as addresses have them, and as pages name them.
const DIMENSIONS: [(GroupBy, &str, &str); 7] = [
    (GroupBy::Hour, "hour", "Hour"),
    (GroupBy::Day, "day", "Day"),
    (GroupBy::Month, "month", "Month"),
    (GroupBy::Model, "model", "Model"),
    (GroupBy::ApiKey, "api_key", "API key"),
    (GroupBy::Wallet, "wallet", "Wallet"),
    (GroupBy::Route, "route", "Route"),
];

fn dimension(text: &str) -> Option<GroupBy> {
    DIMENSIONS.iter().find(|(_, name, _)| *name == text).map(|(by, ..)| *by)
}

/// Name of a dimension in addresses and on pages.
fn names(by: GroupBy) -> (&'static str, &'static str) {
    let found = DIMENSIONS.iter().find(|(known, ..)| *known == by);
    found.map_or(("", ""), |(_, name, label)| (*name, *label))
}

/// Name of a dimension on pages.
fn label(by: GroupBy) -> &'static str {
    names(by).1
}

async fn filter(visit: &Visit, now: Timestamp) -> Result<Filter, Failure> {
    let seen = DIMENSIONS.iter().filter(|(by, ..)| match by {
        GroupBy::Route => visit.principal().sees_routes(),
        GroupBy::Wallet => visit.principal().only_wallet().is_none(),
        GroupBy::Hour | GroupBy::Day | GroupBy::Month | GroupBy::Model | GroupBy::ApiKey => true,
    });
    let choices: Vec<_> = seen.map(|(_, name, label)| Choice::new(*name, *label)).collect();
    let second = std::iter::once(Choice::new("", "None")).chain(choices.iter().cloned());
    let second = FieldKind::Select(second.collect());
    // A field of a moment is empty in a browser unless its value has a time of day.
    let bound = |name, label| {
        let field = FormField::sought(name, label, FieldKind::Moment, &visit.query);
        match moment::read(&visit.query, name) {
            Ok(Some(at)) => field.value(moment::written(at)),
            Ok(None) | Err(Failure { .. }) => field,
        }
    };
    let period = PERIOD.read(&visit.query, now);
    let step = period.map_or(Step::Month, |period| Step::of_period(period, now));
    let first = visit.query.get(FIRST).unwrap_or(names(step.group_by()).0);
    let mut fields = vec![
        FormField::new(FIRST, "By", FieldKind::Select(choices)).value(first),
        FormField::sought(SECOND, "And by", second, &visit.query),
    ];
    fields.extend(wallet_field(visit).await?);
    fields.extend([api_key_field(visit).await?, model_field(visit)?]);
    if visit.principal().sees_routes() {
        fields.push(route_field(visit)?);
    }
    fields.extend([bound(FROM, "Finished from (UTC)"), bound(TO, "Before (UTC)")]);
    // A form sends its own fields only: without these, *Apply* would drop the period, the
    // currency or the order that a click has chosen.
    fields.extend(FormField::carried(&visit.query, &[PRESET, ON, CURRENCY, SORT]));
    Ok(Filter { submit: "Apply".to_owned(), ..Filter::new("/usage", fields) })
}

/// The same query at this path.
fn address(path: &str, query: &SentFields) -> String {
    let params: Vec<_> = query.iter().map(|(name, value)| (name, Some(value))).collect();
    with_query(path, &params)
}

/// The query of a report without these parameters, and with others.
fn address_with(query: &SentFields, without: &[&str], with: &[(&str, &str)]) -> String {
    altered(PERIOD.path, query, without, with)
}
