//! Today: what is held, earned and lost now, and what wants a look. For the holder of a wallet: that wallet.
//!
//! Each number is one query, and leads to the rows behind it. A part that the role has
//! no use case for is left out.

mod holder;
mod watch;

use holdfast_accounts::UsageReport;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageFilter, UsageQuery};
use holdfast_domain::{Currency, Micros, Timestamp};

use crate::failure::Failure;
use crate::kit::address::with_query;
use crate::kit::cell::{Cell, money};
use crate::kit::counting::ReportView;
use crate::kit::moment::{day_of, written};
use crate::kit::page::Page;
use crate::kit::section::Facts;
use crate::kit::visit::Visit;

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    if let Some(wallet) = visit.principal().only_wallet() {
        return holder::page(&visit, wallet).await;
    }
    let today = day_of(visit.accounts().clock().await?);
    let may_verify = visit.may(UseCase::JobCreate);
    let page = Page::new("Today")
        .action(may_verify, "Verify the book", "/jobs/new")
        .section(money_facts(&visit, today).await?);
    watch::sections(&visit).await.map(|sections| sections.into_iter().fold(page, Page::section))
}

async fn money_facts(visit: &Visit, today: Timestamp) -> Result<Facts, Failure> {
    let mut rows: Vec<(String, Cell)> = Vec::new();
    if visit.may(UseCase::OperationRead) {
        let sums = visit.accounts().held(visit.principal()).await?.into_iter().collect();
        let href = "/operations?scope=running";
        for (currency, sum) in or_nothing(sums, None) {
            rows.push(("Held now".to_owned(), Cell::link(amount(sum, currency), href)));
        }
    }
    if visit.may(UseCase::UsageRead) {
        rows.extend(earned(visit, today, None).await?);
    }
    Ok(Facts { title: String::new(), rows })
}

fn add(sums: &mut Vec<(Currency, Micros)>, currency: Currency, amount: Micros) {
    match sums.iter_mut().find(|(known, _)| *known == currency) {
        Some((_, sum)) => *sum = sum.plus(amount).unwrap_or(Micros::MAX),
        None => sums.push((currency, amount)),
    }
}

/// Charges of today, and what was lost to refused operations and unknown outcomes at most. Nothing is of this
/// currency, where one is known.
async fn earned(
    visit: &Visit,
    today: Timestamp,
    nothing: Option<Currency>,
) -> Result<Vec<(String, Cell)>, Failure> {
    let period = Period { from: Some(today), to: None };
    let by = Grouping::by(GroupBy::Day);
    let query = UsageQuery { by, filter: UsageFilter::default(), period, rows_max: None };
    let from = written(today);
    let href = with_query("/usage", &[("first", Some("hour")), ("from", Some(&from))]);
    let report = match visit.desk.usage(&visit.visitor, query).await? {
        ReportView::There(report, _at) => report,
        ReportView::Absent(absence) => {
            return Ok(vec![("Earned today".to_owned(), Cell::link(absence.words(), href))]);
        }
    };
    let UsageReport { rows, shows_costs } = &*report;
    let (mut charges, mut exposures) = (Vec::new(), Vec::new());
    let mut unknown = 0_u64;
    for row in rows {
        add(&mut charges, row.currency, row.totals.charge);
        add(&mut exposures, row.currency, row.totals.exposure);
        unknown = unknown.saturating_add(row.totals.abandoned);
    }
    let mut facts = Vec::new();
    for (currency, sum) in or_nothing(charges, nothing) {
        facts.push(("Earned today".to_owned(), Cell::link(amount(sum, currency), &href)));
    }
    for (currency, sum) in or_nothing(exposures, nothing).into_iter().filter(|_| *shows_costs) {
        let name = "Lost today at most".to_owned();
        facts.push((name, Cell::link(amount(sum, currency), &href)));
    }
    // By the hour too: operations are listed by when they began, and are counted by when they ended.
    facts.push(("Unknown outcomes today".to_owned(), Cell::link(unknown.to_string(), href)));
    Ok(facts)
}

/// The sums, or one of nothing.
fn or_nothing(
    sums: Vec<(Currency, Micros)>,
    nothing: Option<Currency>,
) -> Vec<(Option<Currency>, Micros)> {
    if sums.is_empty() {
        return vec![(nothing, Micros::ZERO)];
    }
    sums.into_iter().map(|(currency, sum)| (Some(currency), sum)).collect()
}

fn amount(sum: Micros, currency: Option<Currency>) -> String {
    currency.map_or_else(|| sum.to_string(), |currency| money(sum, currency))
}
