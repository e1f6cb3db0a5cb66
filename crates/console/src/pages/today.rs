//! Home: what needs attention, today's figures against yesterday's, the last 30 days by model and the largest
//! customers of the month. For the holder of a wallet: that wallet.
//!
//! Each number leads to the rows behind it. A part that the role has no use case for is left out.
//!
//! All reports of the page share one deadline. One that is late, or has too many groups, has a notice in its place, and
//! the others are shown: a part that is missing must not take the page with it, nor read as zero.

mod holder;
mod watch;

use std::collections::BTreeMap;

use holdfast_accounts::{AttemptSums, UsageReport};
use holdfast_domain::admin::listing::{
    ApiKeyFilter, OperationFilter, Order, PageRequest, Period, WalletFilter,
};
use holdfast_domain::admin::report::{GroupBy, Grouping, Totals, UsageFilter, UsageRow};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter, UseCase};
use holdfast_domain::limits::Counter;
use holdfast_domain::{Currency, Micros, Timestamp};

use crate::failure::Failure;
use crate::kit::moment::{day_of, days_before, hour_of, moment_after, short};
use crate::kit::shell::PLAYGROUND;
use crate::kit::{
    Checklist, Link, Notice, Page, Ranking, RankingEntry, Section, Step, Tile, Tiles, TimeAxis,
    Tone, Unit, Visit, cents, difference, grouped, money, with_query,
};
use crate::pages::parts::route;
use crate::pages::parts::usage::{
    self, ReportOrNotice, by_currency, chart, counted, margin_share, margin_tile, report, requests,
    revenue, series, start, sum,
};

texts! { #[template(path = "pages/home.txt")] TodayText<'a> {
    Until { before: &'a str, until: &'a str } = "until",
    Against { change: &'a str, until: &'a str } = "against",
    Revenue = "revenue",
    Ranking = "ranking",
    NoRequest = "no_request",
    Chart { of: &'a str, currency: Currency } = "chart",
    Customers = "customers",
    Refused = "refused",
    NoCustomer = "no_customer",
    Models = "models",
    Wallet = "wallet",
    ApiKey = "api_key",
    Request = "request",
} }

/// Days of the chart and of the sparklines, today among them.
const DAYS: u32 = 30;
/// Customers of the ranking.
const CUSTOMERS: usize = 5;
/// Codes of refused requests.
const REFUSALS: usize = 5;

/// Reports of the page, each of all currencies.
struct Figures {
    now: Timestamp,
    /// By the hour, from yesterday on.
    hours: ReportOrNotice,
    /// By day and model, or by day if there are too many models.
    models: ReportOrNotice,
    /// By wallet, of this month.
    customers: ReportOrNotice,
    /// Amounts that running operations hold.
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
    let errors = match visit.may(UseCase::RouteRead) {
        true => Some(error_rate(&visit).await?),
        false => None,
    };
    let alone = |page: Page, errors: Option<Tile>| {
        errors.into_iter().map(Tiles::from).fold(page, Page::section)
    };
    if !visit.may(UseCase::UsageRead) {
        return Ok(alone(page, errors));
    }
    if let Some(checklist) = checklist(&visit).await? {
        return Ok(alone(page, errors).section(checklist));
    }
    let figures = Figures::read(&visit).await?;
    let page = figures.sections(errors).into_iter().fold(page, Page::section);
    Ok(refused(&visit).await?.into_iter().fold(page, Page::section).section(counted()))
}

/// Refused requests of today by their codes, if there are any.
async fn refused(visit: &Visit) -> Result<Option<Ranking>, Failure> {
    if !visit.may(UseCase::RefusalRead) {
        return Ok(None);
    }
    let today = day_of(visit.accounts().clock().await?);
    let period = Period { from: Some(today), to: None };
    let filter = RefusalFilter { period, ..RefusalFilter::default() };
    let mut codes: BTreeMap<String, i64> = BTreeMap::new();
    for HourlyRefusals { code, count, .. } in
        visit.accounts().refusal_hours(visit.principal(), filter).await?
    {
        let sum = codes.entry(code).or_insert(0);
        // Values of charts are millionths.
        let count = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        *sum = sum.saturating_add(count);
    }
    let entry = |(code, value): (String, i64)| {
        let of = [("scope", Some("refused")), ("period", Some("today")), ("code", Some(&*code))];
        RankingEntry { href: Some(with_query("/operations", &of)), name: code, value }
    };
    let all: Vec<_> = codes.into_iter().map(entry).collect();
    let title = TodayText::Refused.to_string();
    Ok((!all.is_empty()).then(|| Ranking::new(&title, Unit::Count, REFUSALS, all)))
}

/// First steps of an installation without a request, for those who may take them.
async fn checklist(visit: &Visit) -> Result<Option<Checklist>, Failure> {
    let steps = [UseCase::ModelRead, UseCase::WalletCreate, UseCase::ApiKeyIssue];
    let may_see = visit.may(UseCase::OperationRead) && visit.may(UseCase::ApiKeyRead);
    if !may_see || !steps.into_iter().all(|step| visit.may(step)) {
        return Ok(None);
    }
    let (accounts, principal) = (visit.accounts(), visit.principal());
    let one = || PageRequest::first(Order::Newest, 1);
    let requests = accounts.operations(principal, OperationFilter::default(), one()).await?;
    if !requests.rows.is_empty() {
        return Ok(None);
    }
    let wallets = accounts.wallets(principal, WalletFilter::default(), one()).await?;
    let keys = accounts.api_keys(principal, ApiKeyFilter::default(), one()).await?;
    let has_models = !accounts.models(principal)?.models.is_empty();
    let step = |text: TodayText<'_>, href: &str, is_done: bool| {
        (Link::new(text.to_string(), href), is_done)
    };
    // Without a playground the examples are on the page of the API key.
    let send = if visit.shared.options.playground.is_some() { PLAYGROUND } else { "/keys" };
    let steps = vec![
        step(TodayText::Models, "/models", has_models),
        step(TodayText::Wallet, "/wallets/new", !wallets.rows.is_empty()),
        step(TodayText::ApiKey, "/keys/new", !keys.rows.is_empty()),
        step(TodayText::Request, send, false),
    ];
    Ok(Some(Checklist { title: "First steps".to_owned(), steps }))
}

/// Share of failed attempts of today, and that of yesterday by this hour.
async fn error_rate(visit: &Visit) -> Result<Tile, Failure> {
    let now = visit.accounts().clock().await?;
    let (today, hour) = (day_of(now), hour_of(now));
    let hours = visit.accounts().attempts(visit.principal(), days_before(today, 1)).await?;
    let share = |from: Timestamp, to: Timestamp| {
        let rows = hours.iter().filter(|row| from <= row.hour && row.hour < to);
        AttemptSums::of(rows).failed_per_mille()
    };
    let of_today = share(today, Timestamp::from_micros(i64::MAX));
    let value = of_today.map_or_else(|| "–".to_owned(), route::percent);
    let until = short(hour).chars().skip(11).collect::<String>();
    let before = share(days_before(today, 1), days_before(hour, 1)).map(route::percent);
    let note = before
        .map(|before| TodayText::Until { before: &before, until: &until }.to_string())
        .unwrap_or_default();
    Ok(Tile::new("Error rate today", value).link("/routes").note(note))
}

impl Figures {
    async fn read(visit: &Visit) -> Result<Self, Failure> {
        let now = visit.accounts().clock().await?;
        let (today, month) = (day_of(now), Counter::SpendMonth.window(now));
        // One wait for all reports of the page.
        let until = visit.shared.deadline();
        let by_day = Grouping::by(GroupBy::Day);
        let by_model = Grouping::by_both(GroupBy::Day, GroupBy::Model).unwrap_or(by_day);
        let (yesterday, first) = (days_before(today, 1), days_before(today, DAYS - 1));
        let (by_hour, by_wallet) = (Grouping::by(GroupBy::Hour), Grouping::by(GroupBy::Wallet));
        let all = UsageFilter::default;
        let hours = ("Today's revenue", "/");
        let hours = report(visit, hours, (&[by_hour], all()), (yesterday, until)).await?;
        let models = TodayText::Revenue.to_string();
        let models =
            report(visit, (&models, "/"), (&[by_model, by_day], all()), (first, until)).await?;
        let customers = TodayText::Ranking.to_string();
        let customers =
            report(visit, (&customers, "/"), (&[by_wallet], all()), (month, until)).await?;
        let held = match visit.may(UseCase::OperationRead) {
            true => visit.accounts().held(visit.principal()).await?,
            false => BTreeMap::new(),
        };
        Ok(Self { now, hours, models, customers, held })
    }

    /// Sections of the figures, with the tile of errors in the first row of tiles.
    fn sections(&self, errors: Option<Tile>) -> Vec<Section> {
        let mut currencies = self.currencies();
        // A currency whose first request still runs has funds on hold and no row.
        let held = self.held.keys().filter(|it| !currencies.contains(it)).copied();
        currencies.extend(held.collect::<Vec<_>>());
        let is_one = currencies.len() == 1;
        let Some(main) = currencies.first().copied() else {
            // No row may also mean no report: its notice is shown then, and not that there is no
            // request.
            let missing = [&self.hours, &self.models, &self.customers];
            let missing: Vec<_> =
                missing.into_iter().filter_map(|it| it.as_ref().err()).cloned().collect();
            let text = TodayText::NoRequest.to_string();
            let all =
                if missing.is_empty() { vec![Notice::new(Tone::Plain, text)] } else { missing };
            let alone = errors.map(Tiles::from).map(Section::from);
            return alone.into_iter().chain(all.into_iter().map(Section::from)).collect();
        };
        let mut rows: Vec<Tiles> = match &self.hours {
            Ok(hours) => currencies.iter().map(|it| self.tiles(hours, *it, is_one)).collect(),
            Err(_notice) => vec![Tiles { title: String::new(), tiles: Vec::new() }],
        };
        if let Some(first) = rows.first_mut() {
            first.tiles.extend(errors);
        }
        let has_tiles = |row: &Tiles| !row.tiles.is_empty();
        let mut sections: Vec<Section> =
            rows.into_iter().filter(has_tiles).map(Section::from).collect();
        sections.extend(self.hours.as_ref().err().cloned().map(Section::from));
        sections.push(match &self.models {
            Ok(models) => self.chart(models, main, is_one),
            Err(notice) => notice.clone().into(),
        });
        sections.push(match &self.customers {
            Ok(customers) => ranking(customers, main, is_one),
            Err(notice) => notice.clone().into(),
        });
        sections
    }

    /// Currencies of the longest report that was read, the one with the most volume first.
    fn currencies(&self) -> Vec<Currency> {
        let longest = [&self.models, &self.customers, &self.hours];
        let report = longest.into_iter().find_map(|it| it.as_ref().ok());
        let rows = report.map_or(&[][..], |report| &report.rows);
        by_currency(rows).iter().map(|it| it.currency).collect()
    }

    fn tiles(&self, hours: &UsageReport, currency: Currency, is_one: bool) -> Tiles {
        let shows_costs = hours.shows_costs;
        let own = |report: &'_ UsageReport| -> Vec<UsageRow> {
            report.rows.iter().filter(|row| row.currency == currency).cloned().collect()
        };
        let (today, hour) = (day_of(self.now), hour_of(self.now));
        let hours = own(hours);
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
            change
                .map(|it| TodayText::Against { change: &it, until: &until }.to_string())
                .unwrap_or_default()
        };
        let yesterday = between(days_before(today, 1), today);
        let all_of_yesterday = |amount: Micros| format!("yesterday {}", cents(amount, currency));
        let axis = self.axis();
        let days = self.models.as_ref().map_or_else(|_absent| Vec::new(), |models| own(models));
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
            amount("Revenue today", revenue(&total))
                .note(against(&earned))
                .note(all_of_yesterday(revenue(&yesterday)))
                .spark(&spark(&earned)),
            count("Requests today", requests(&total))
                .note(against(&served))
                .note(format!("yesterday {}", grouped(&requests(&yesterday).to_string())))
                .spark(&spark(&served)),
        ];
        if shows_costs {
            let margin = margin_tile("Margin today", &total, currency).link(&href);
            let before = margin_share(&yesterday, currency).map(|it| format!("yesterday {it}"));
            tiles.insert(1, before.into_iter().fold(margin, Tile::note));
            tiles.push(
                amount("At risk today", total.exposure).note(against(&risk)).spark(&spark(&risk)),
            );
        }
        tiles.push(count("Outcome unknown today", total.abandoned));
        let held = self.held.get(&currency).copied().unwrap_or(Micros::ZERO);
        tiles.push(amount("On hold now", held).link("/operations?scope=running"));
        let title = if is_one { String::new() } else { format!("Today, {currency}") };
        Tiles { title, tiles }
    }

    fn axis(&self) -> TimeAxis {
        let today = day_of(self.now);
        TimeAxis::new(Step::Day, days_before(today, DAYS - 1), moment_after(self.now))
    }

    fn chart(&self, models: &UsageReport, currency: Currency, is_one: bool) -> Section {
        let rows: Vec<_> = models.rows.iter().filter(|it| it.currency == currency).collect();
        let axis = self.axis();
        let report = |name: &str, id: &str| address_of(&[(name, id)], currency, is_one);
        let all = series(&rows, &axis, |group| usage::address(group, report));
        let of = if rows.iter().any(|row| row.second.is_some()) {
            "Revenue by model"
        } else {
            "Revenue"
        };
        let title = TodayText::Chart { of, currency }.to_string();
        let on = |at| address_of(&[("on", &short(at))], currency, is_one);
        chart(&title, currency, &axis, all, on).into()
    }
}

fn ranking(customers: &UsageReport, currency: Currency, is_one: bool) -> Section {
    let of_currency = customers.rows.iter().filter(|row| row.currency == currency);
    let customer = |row: &UsageRow| RankingEntry {
        name: holdfast_wire::file::group_name(&row.group),
        href: usage::wallet(&row.group).map(|id| {
            address_of(&[("period", "month"), ("wallet", &id.to_string())], currency, is_one)
        }),
        value: revenue(&row.totals).get(),
    };
    let all = of_currency.map(customer).collect();
    let ranking = Ranking::new(&TodayText::Customers.to_string(), currency, CUSTOMERS, all);
    ranking.empty(&TodayText::NoCustomer.to_string()).into()
}

/// Address of a report of usage; of this currency, if there are several.
fn address_of(with: &[(&str, &str)], currency: Currency, is_one: bool) -> String {
    let code = currency.to_string();
    let mut params: Vec<_> = with.iter().map(|(name, value)| (*name, Some(*value))).collect();
    params.push(("currency", Some(code.as_str()).filter(|_| !is_one)));
    with_query("/usage", &params)
}
