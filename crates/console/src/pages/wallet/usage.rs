//! Usage of a wallet of late, by day and model: the newest rows of a report that has a page of its own.

use askama::Template;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{Group, GroupBy, Grouping, UsageFilter, UsageQuery, UsageRow};
use holdfast_wire::file::group_name;

use crate::failure::Failure;
use crate::kit::address::with_query;
use crate::kit::cell::{Cell, Link};
use crate::kit::counting::ReportView;
use crate::kit::moment::{day_after, day_of, days_before, written};
use crate::kit::section::{Section, Table};
use crate::kit::visit::Visit;

/// Texts of the page.
#[derive(Debug, Template)]
#[template(path = "pages/wallet.txt")]
enum WalletUsageText {
    #[template(block = "no_usage")]
    NoUsage,
    #[template(block = "usage_title")]
    UsageTitle { last: Option<usize> },
}

/// Days that the report is of, today among them.
const DAYS: u32 = 7;
/// Rows on the page.
const ROWS: usize = 14;

/// Whole days of the pace by which funds are spent.
const PACE_DAYS: u32 = 7;

/// Whole days for which the available funds last at the mean charge of the last whole days; `None` while no request is
/// charged, or while it is counted.
pub(super) async fn days_left(
    visit: &Visit,
    record: &WalletRecord,
) -> Result<Option<i64>, Failure> {
    let today = day_of(visit.accounts().clock().await?);
    let query = UsageQuery {
        by: Grouping::by(GroupBy::Wallet),
        filter: UsageFilter { wallet: Some(record.wallet.id), ..UsageFilter::default() },
        // Without today, which is not whole: the pace would look slower than it is.
        period: Period { from: Some(days_before(today, PACE_DAYS)), to: Some(today) },
        rows_max: None,
    };
    let ReportView::There(report, _at) =
        visit.shared.usage(&visit.visitor, query, visit.shared.deadline()).await?
    else {
        return Ok(None);
    };
    // A wallet has one currency.
    let charged = report.rows.first().map_or(0, |row| row.totals.charge.get());
    let spans = record.wallet.available.get().saturating_mul(PACE_DAYS.into());
    Ok(spans.checked_div(charged))
}

pub(super) async fn section(visit: &Visit, record: &WalletRecord) -> Result<Section, Failure> {
    let wallet = record.wallet.id.to_string();
    let first = days_before(day_of(visit.accounts().clock().await?), DAYS - 1);
    let query = UsageQuery {
        by: Grouping::by_both(GroupBy::Day, GroupBy::Model).unwrap_or(Grouping::by(GroupBy::Day)),
        filter: UsageFilter { wallet: Some(record.wallet.id), ..UsageFilter::default() },
        period: Period { from: Some(first), to: None },
        rows_max: None,
    };
    let report = match visit.shared.usage(&visit.visitor, query, visit.shared.deadline()).await? {
        ReportView::There(report, _at) => report,
        ReportView::Absent(absence) => {
            return Ok(absence.notice("Recent usage", &format!("/wallets/{wallet}")).into());
        }
    };
    let rows = report.rows.iter().rev().take(ROWS).map(|usage| row(usage, &wallet)).collect();
    let head = ["Day", "Model", "Completed", "Refused", "Abandoned", "Charge", "Refunded"];
    let empty = &WalletUsageText::NoUsage.to_string();
    let from = written(first);
    let of = [
        ("wallet", Some(wallet.as_str())),
        ("first", Some("day")),
        ("second", Some("model")),
        ("from", Some(from.as_str())),
    ];
    let last = (report.rows.len() > ROWS).then_some(ROWS);
    let title = WalletUsageText::UsageTitle { last }.to_string();
    let all = Link::new("Last seven days", with_query("/usage", &of));
    let all_time = [of[0], of[1], of[2], ("period", Some("all"))];
    let ever = Link::new("All usage", with_query("/usage", &all_time));
    Ok(Table::new(&title, &head, rows, empty).link(all).link(ever).into())
}

/// A row, whose day leads to its hours.
fn row(usage: &UsageRow, wallet: &str) -> Vec<Cell> {
    let model = usage.second.as_ref().map(group_name);
    let of = [("wallet", Some(wallet)), ("model", model.as_deref())];
    let name = group_name(&usage.group);
    let day = if let Group::Day(start) = usage.group {
        Cell::link(name, hours(start, of))
    } else {
        Cell::text(name)
    };
    let (totals, currency) = (&usage.totals, usage.currency);
    vec![
        day,
        Cell::some_text(model.as_deref()),
        Cell::count(totals.completed),
        Cell::count(totals.refused),
        Cell::count(totals.abandoned),
        Cell::money(totals.charge, currency),
        Cell::money(totals.refunded, currency),
    ]
}

/// Address of the hours of a day.
fn hours(start: Timestamp, [wallet, model]: [(&str, Option<&str>); 2]) -> String {
    let (from, to) = (written(start), written(day_after(start)));
    let span = [("from", Some(from.as_str())), ("to", Some(to.as_str()))];
    with_query("/usage", &[("first", Some("hour")), wallet, model, span[0], span[1]])
}
