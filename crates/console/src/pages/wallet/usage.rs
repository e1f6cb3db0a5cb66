//! Recent charges of a wallet by API key: this month's, the days for which its funds last, and a chart.
//!
//! All three are of one report. It may be counted beside the page: then a notice stands in the place of the chart.

use std::sync::Arc;

use holdfast_accounts::UsageReport;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::report::{Group, GroupBy, Grouping, Totals, UsageFilter, UsageRow};
use holdfast_domain::limits::Counter;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Micros, Timestamp};

use crate::failure::Failure;
use crate::kit::moment::{day_of, days_before, moment_after, short};
use crate::kit::{Notice, Section, Step, TimeAxis, Visit, with_query};
use crate::pages::parts::usage::{chart, report, revenue, revenue_name, series, start, sum};

texts! { #[template(path = "pages/wallet.txt")] WalletUsageText<'a> {
    ChartTitle { name: &'a str, currency: &'a str } = "chart_title",
} }

/// Days of the chart, today among them: no month has more.
const DAYS: u32 = 31;
/// Whole days of the pace by which funds are spent.
const PACE_DAYS: u32 = 7;

/// Charges of a wallet by day and API key.
pub(super) struct Spending {
    now: Timestamp,
    report: Result<Arc<UsageReport>, Notice>,
}

impl Spending {
    pub(super) async fn read(visit: &Visit, wallet: &Wallet) -> Result<Self, Failure> {
        let now = visit.accounts().clock().await?;
        let by_day = Grouping::by(GroupBy::Day);
        let by_key = Grouping::by_both(GroupBy::Day, GroupBy::ApiKey).unwrap_or(by_day);
        let filter = UsageFilter { wallet: Some(wallet.id), ..UsageFilter::default() };
        let address = format!("/wallets/{}", wallet.id);
        let (from, until) = (days_before(day_of(now), DAYS - 1), visit.shared.deadline());
        let by = (&[by_key, by_day][..], filter);
        let report = report(visit, ("Recent usage", &address), by, (from, until)).await?;
        Ok(Self { now, report })
    }

    /// Sum of the days from this one on to another.
    fn between(&self, from: Timestamp, to: Timestamp) -> Option<Totals> {
        let rows = &self.report.as_ref().ok()?.rows;
        let is_in = |row: &&UsageRow| start(&row.group).is_some_and(|at| from <= at && at < to);
        Some(sum(&rows.iter().filter(is_in).collect::<Vec<_>>()))
    }

    /// Charges less refunds of this month; none while they are counted.
    pub(super) fn of_month(&self) -> Option<Micros> {
        let month = Counter::SpendMonth.window(self.now);
        self.between(month, moment_after(self.now)).as_ref().map(revenue)
    }

    /// Whole days for which the available funds last at the mean charge of the last whole days; none if no request was
    /// charged.
    pub(super) fn days_left(&self, record: &WalletRecord) -> Option<i64> {
        // Without today, which is not whole: the pace would look slower than it is.
        let today = day_of(self.now);
        let charged = self.between(days_before(today, PACE_DAYS), today)?.charge.get();
        let spans = record.wallet.available.get().saturating_mul(PACE_DAYS.into());
        spans.checked_div(charged)
    }

    /// Chart by API key, or the notice in its place.
    pub(super) fn section(self, visit: &Visit, wallet: &Wallet) -> Section {
        let report = match self.report {
            Ok(report) => report,
            Err(notice) => return notice.into(),
        };
        let rows: Vec<_> = report.rows.iter().collect();
        let first = days_before(day_of(self.now), DAYS - 1);
        let axis = TimeAxis::new(Step::Day, first, moment_after(self.now));
        let key = |group: &Group| match group {
            Group::ApiKey { id, .. } => Some(format!("/keys/{id}")),
            Group::Hour(_) | Group::Day(_) | Group::Month(_) | Group::Model(_) => None,
            Group::Wallet { .. } | Group::Route(_) => None,
        };
        let id = wallet.id.to_string();
        let on = |at| {
            let of = [("wallet", Some(id.as_str())), ("first", Some("api_key"))];
            with_query("/usage", &[of[0], of[1], ("on", Some(&short(at)))])
        };
        let (name, currency) = (revenue_name(visit), wallet.currency.to_string());
        let title = WalletUsageText::ChartTitle { name, currency: &currency }.to_string();
        chart(&title, wallet.currency, &axis, series(&rows, &axis, key), on).into()
    }
}
