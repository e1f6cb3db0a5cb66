//! Home: what needs attention, today's figures against yesterday's, the last 30 days by model and the largest
//! customers of the month. For the holder of a wallet: that wallet.
//!
//! Each number leads to the rows behind it. A part that the role has no use case for is left out.

mod holder;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_accounts::UsageReport;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    GroupBy, Grouping, Totals, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::limits::Counter;
use holdfast_domain::{Currency, Micros, Timestamp};

use crate::failure::Failure;
use crate::kit::address::with_query;
use crate::kit::amount::{cents, difference};
use crate::kit::cell::{Tone, grouped, money};
use crate::kit::counting::{Absence, ReportView};
use crate::kit::moment::{day_of, days_before, hour_of, moment_after, short};
use crate::kit::page::Page;
use crate::kit::ranking::{Ranking, RankingEntry};
use crate::kit::section::{Notice, Section};
use crate::kit::tile::{Tile, Tiles};
use crate::kit::time_axis::{Step, TimeAxis};
use crate::kit::visit::Visit;
use crate::pages::parts::usage::{
    self, by_currency, chart, margin_tile, requests, revenue, series, start, sum,
};

/// Days of the chart and of the sparklines, today among them.
const DAYS: u32 = 30;
/// Customers of the ranking.
const CUSTOMERS: usize = 5;

/// Reports of the page, each of all currencies.
struct Figures {
    now: Timestamp,
    /// By the hour, from yesterday on.
    hours: Arc<UsageReport>,
    /// By day and model.
    models: Arc<UsageReport>,
    /// By wallet, of this month.
    customers: Arc<UsageReport>,
    /// What running operations hold.
    held: BTreeMap<Currency, Micros>,
}

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    if let Some(wallet) = visit.principal().only_wallet() {
        return holder::page(&visit, wallet).await;
    }
    let mut page = Page::new("Home");
    for section in watch::sections(&visit).await? {
        page = page.section(section);
    }
    if !visit.may(UseCase::UsageRead) {
        return Ok(page);
    }
    Ok(match Figures::read(&visit).await? {
        Ok(figures) => figures.sections().into_iter().fold(page, Page::section),
        Err(absence) => page.section(absence.notice("Revenue", "/")),
    })
}

impl Figures {
    async fn read(visit: &Visit) -> Result<Result<Self, Absence>, Failure> {
        let now = visit.accounts().clock().await?;
        let (today, month) = (day_of(now), Counter::SpendMonth.window(now));
        let by_day = Grouping::by(GroupBy::Day);
        let by_model = Grouping::by_both(GroupBy::Day, GroupBy::Model).unwrap_or(by_day);
        let mut reports = Vec::new();
        for (by, from) in [
            (Grouping::by(GroupBy::Hour), days_before(today, 1)),
            (by_model, days_before(today, DAYS - 1)),
            (Grouping::by(GroupBy::Wallet), month),
        ] {
            let period = Period { from: Some(from), to: None };
            let query = UsageQuery { by, filter: UsageFilter::default(), period, rows_max: None };
            match visit.desk.usage(&visit.visitor, query).await? {
                ReportView::There(report, _at) => reports.push(report),
                ReportView::Absent(absence) => return Ok(Err(absence)),
            }
        }
        let held = match visit.may(UseCase::OperationRead) {
            true => visit.accounts().held(visit.principal()).await?,
            false => BTreeMap::new(),
        };
        let Ok([hours, models, customers]) = <[_; 3]>::try_from(reports) else {
            return Ok(Err(Absence::Failed));
        };
        Ok(Ok(Self { now, hours, models, customers, held }))
    }

    fn sections(&self) -> Vec<Section> {
        let all = by_currency(&self.models.rows);
        let mut currencies: Vec<_> = all.iter().map(|it| it.currency).collect();
        let held = self.held.keys().filter(|it| !currencies.contains(it)).copied();
        currencies.extend(held.collect::<Vec<_>>());
        let Some(main) = currencies.first().copied() else {
            let text = "No request has ended in the last 30 days.";
            return vec![Notice::new(Tone::Plain, text).into()];
        };
        let is_one = currencies.len() == 1;
        let mut sections: Vec<Section> =
            currencies.iter().map(|it| self.tiles(*it, is_one).into()).collect();
        sections.push(self.chart(main, is_one));
        sections.push(self.ranking(main));
        sections
    }

    fn tiles(&self, currency: Currency, is_one: bool) -> Tiles {
        let own = |report: &'_ UsageReport| -> Vec<UsageRow> {
            report.rows.iter().filter(|row| row.currency == currency).cloned().collect()
        };
        let (today, hour) = (day_of(self.now), hour_of(self.now));
        let hours = own(&self.hours);
        let between = |from: Timestamp, to: Timestamp| {
            let is_in = |row: &&UsageRow| start(&row.group).is_some_and(|at| from <= at && at < to);
            sum(&hours.iter().filter(is_in).collect::<Vec<_>>())
        };
        let total = between(today, Timestamp::from_micros(i64::MAX));
        // Whole hours on both sides: an hour that has just begun is compared with no whole one.
        let now = between(today, hour);
        let before = between(days_before(today, 1), days_before(hour, 1));
        let against = |of: &dyn Fn(&Totals) -> i64| {
            let until = short(hour).chars().skip(11).collect::<String>();
            let change = difference(of(&now), of(&before));
            change.map(|it| format!("{it} vs. yesterday by {until}")).unwrap_or_default()
        };
        let axis = self.axis();
        let days = own(&self.models);
        let spark = |of: &dyn Fn(&Totals) -> i64| {
            let mut values = vec![0_i64; axis.len()];
            for row in &days {
                let index = start(&row.group).and_then(|at| axis.index(at));
                if let Some(value) = index.and_then(|index| values.get_mut(index)) {
                    *value = value.saturating_add(of(&row.totals));
                }
            }
            values
        };
        let href = address_of(&[("period", "today")], currency, is_one);
        let amount = |label, amount: Micros| {
            Tile::new(label, cents(amount, currency)).exact(money(amount, currency)).link(&href)
        };
        let count = |label, count: u64| Tile::new(label, grouped(&count.to_string())).link(&href);
        let earned = |it: &Totals| revenue(it).get();
        let served = |it: &Totals| i64::try_from(requests(it)).unwrap_or(i64::MAX);
        let risk = |it: &Totals| it.exposure.get();
        let mut tiles = vec![
            amount("Revenue today", revenue(&total)).note(against(&earned)).spark(&spark(&earned)),
            count("Requests today", requests(&total)).note(against(&served)).spark(&spark(&served)),
        ];
        if self.hours.shows_costs {
            tiles.insert(1, margin_tile("Margin today", &total, currency).link(&href));
            tiles.push(
                amount("At risk today", total.exposure).note(against(&risk)).spark(&spark(&risk)),
            );
        }
        tiles.push(count("Unconfirmed requests today", total.abandoned));
        let held = self.held.get(&currency).copied().unwrap_or(Micros::ZERO);
        tiles.push(amount("On hold now", held).link("/operations?scope=running"));
        let title = if is_one { String::new() } else { format!("Today, {currency}") };
        Tiles { title, tiles }
    }

    fn axis(&self) -> TimeAxis {
        let today = day_of(self.now);
        TimeAxis::new(Step::Day, days_before(today, DAYS - 1), moment_after(self.now))
    }

    fn chart(&self, currency: Currency, is_one: bool) -> Section {
        let rows: Vec<_> = self.models.rows.iter().filter(|it| it.currency == currency).collect();
        let axis = self.axis();
        let report = |name: &str, id: &str| address_of(&[(name, id)], currency, is_one);
        let all = series(&rows, &axis, |group| usage::address(group, report));
        let title = format!("Revenue by model, {currency} per day");
        let on = |at| address_of(&[("on", &short(at))], currency, is_one);
        chart(&title, currency, &axis, all, on).into()
    }

    fn ranking(&self, currency: Currency) -> Section {
        let of_currency = self.customers.rows.iter().filter(|row| row.currency == currency);
        let customer = |row: &UsageRow| RankingEntry {
            name: holdfast_wire::csv::group_name(&row.group),
            href: usage::address(&row.group, |_, _| String::new()),
            value: revenue(&row.totals).get(),
        };
        let all = of_currency.map(customer).collect();
        let title = "Largest customers this month";
        let ranking = Ranking::new(title, currency, CUSTOMERS, all);
        ranking.empty("No request has ended this month.").into()
    }
}

/// Address of a report of usage; of this currency, if there are several.
fn address_of(with: &[(&str, &str)], currency: Currency, is_one: bool) -> String {
    let code = currency.to_string();
    let mut params: Vec<_> = with.iter().map(|(name, value)| (*name, Some(*value))).collect();
    params.push(("currency", Some(code.as_str()).filter(|_| !is_one)));
    with_query("/usage", &params)
}
