//! Exports: whole over many parts of the tables, in the order of the ledger, bounded, and few at once.

use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    EXPORT_ROWS_MAX, ExportError, ExportPages, GroupBy, Grouping, LedgerQuery, LedgerRow,
    Reports as _, Statement, UsageQuery, UsageRow,
};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::{Event, Micros, Timestamp, WalletId};
use holdfast_testkit::Dice;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, refuse};

use crate::filled::fill;
use crate::raw::Raw;
use crate::scratch::Home;
use crate::usage_sums::steps::sum_all;

/// Operations of a filled book: of its first wallet there are two parts, of all wallets three.
const FILLED: i64 = 14_000;
const ALWAYS: LedgerQuery = LedgerQuery {
    wallet: None,
    from: Timestamp::from_micros(i64::MIN),
    to: Timestamp::from_micros(i64::MAX),
};

async fn rows<T>(mut pages: Box<dyn ExportPages<T>>) -> Vec<T> {
    let mut rows = Vec::new();
    while let Some(page) = pages.next_page().await.unwrap() {
        assert!(!page.is_empty() && page.len() <= 20_000, "{}", page.len());
        rows.extend(page);
    }
    rows
}

/// The statement that an export comes to.
pub(crate) async fn exported(home: &impl Home, wallet: WalletId, period: Period) -> Statement {
    let export = home.store().export_statement(wallet, period, EXPORT_ROWS_MAX).await.unwrap();
    let (opening, closing, count) = (export.opening, export.closing, export.rows);
    let entries = rows(export.pages).await;
    assert_eq!(u64::try_from(entries.len()).unwrap(), count);
    Statement { opening, entries, omitted: 0, closing }
}

async fn ledger(home: &impl Home, query: LedgerQuery) -> Vec<LedgerRow> {
    rows(home.store().export_ledger(query, EXPORT_ROWS_MAX).await.unwrap().pages).await
}

/// Gives each operation of a filled book its hold, charge and rest. One of 997 ends after thousands of others have
/// begun.
async fn add_transfers(raw: &mut Raw) {
    let late = "(CASE seq % 997 WHEN 0 THEN 60005 ELSE 31 END)";
    let ended = format!(
        "(created_at + CASE seq % 997 WHEN 0 THEN {} ELSE 2000000 END)",
        6_000 * (30 * 86_400_000_000 / FILLED)
    );
    raw.run(&format!(
        "INSERT INTO transfers (op_seq, leg, amount, created_at, number)
         SELECT seq, 8, 5000, created_at, seq * 10 FROM operations
         UNION ALL SELECT seq, 9, charge, {ended}, seq * 10 + {late} FROM operations WHERE charge > 0
         UNION ALL SELECT seq, 10, 5000 - charge, {ended}, seq * 10 + {late} + 1 FROM operations"
    ))
    .await;
    raw.run("UPDATE postings SET number = seq * 10 + 7").await;
}

async fn an_export_over_many_parts_is_the_statement_in_one(home: &impl Home) {
    let mut raw = Raw::reckless(home).await;
    fill(&mut raw, FILLED).await;
    add_transfers(&mut raw).await;
    let wallet = WalletId::from_bytes(*b"w000000000000000");
    let begin = raw.number("SELECT min(created_at) FROM operations").await;
    let moment = |days: i64| Some(Timestamp::from_micros(begin + days * 86_400_000_000));
    for period in [
        Period::default(),
        Period { from: moment(3), to: moment(4) },
        Period { from: moment(10), to: None },
        Period { from: None, to: moment(29) },
    ] {
        let statement = home.store().statement(wallet, period, u32::MAX).await.unwrap();
        assert!(statement.entries.len() > 500, "{}", statement.entries.len());
        let export = exported(home, wallet, period).await;
        assert!(export == statement, "an export of {period:?} is another statement");
    }
    let whole = exported(home, wallet, Period::default()).await;
    assert!(whole.entries.len() > 20_000, "it has more than a page: {}", whole.entries.len());
}

async fn the_ledger_has_each_payment_and_each_charge_once(home: &impl Home) {
    let mut raw = Raw::reckless(home).await;
    fill(&mut raw, FILLED).await;
    add_transfers(&mut raw).await;
    let all = ledger(home, ALWAYS).await;
    let charges = raw.number("SELECT count(*) FROM transfers WHERE leg & 7 = 1").await;
    let postings = raw.number("SELECT count(*) FROM postings").await;
    assert_eq!(i64::try_from(all.len()).unwrap(), charges + postings);
    let (refunds, charges): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.posting.is_some());
    let sum = |rows: &[&LedgerRow]| rows.iter().map(|row| row.amount.get()).sum::<i64>();
    let charged = "SELECT CAST(sum(amount) AS bigint) FROM transfers WHERE leg & 7 = 1";
    assert_eq!(-sum(&charges), raw.number(charged).await);
    let refunded = "SELECT CAST(sum(amount) AS bigint) FROM postings";
    assert_eq!(sum(&refunds), raw.number(refunded).await);
    let named = all.iter().filter_map(|row| row.operation.as_ref()?.api_key_name.as_deref());
    assert_eq!(named.count(), all.len(), "each charge and each refund names its key");
    let one = Some(WalletId::from_bytes(*b"w000000000000000"));
    let of_one = ledger(home, LedgerQuery { wallet: one, ..ALWAYS }).await;
    let own: Vec<_> = all.into_iter().filter(|row| Some(row.wallet.id) == one).collect();
    assert!(of_one == own, "the rows of one wallet are those of all wallets that are its own");
}

/// Days meet without a gap: what ends one begins the other.
async fn days_of_the_ledger_add_up_to_all_of_it(home: &impl Home) {
    let mut raw = Raw::reckless(home).await;
    fill(&mut raw, FILLED).await;
    add_transfers(&mut raw).await;
    let begin = raw.number("SELECT min(created_at) FROM postings").await;
    let mut count = 0;
    for day in 0..46 {
        let bound = |day: i64| Timestamp::from_micros(begin + day * 86_400_000_000);
        count += ledger(home, LedgerQuery { wallet: None, from: bound(day), to: bound(day + 1) })
            .await
            .len();
    }
    assert_eq!(count, ledger(home, ALWAYS).await.len());
}

async fn an_export_beyond_the_bound_is_refused_with_its_rows(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 20, 10)).await;
    let store = home.store();
    let usage =
        |rows_max| store.export_usage(UsageQuery::all(Grouping::by(GroupBy::Day)), rows_max);
    let refused = usage(0).await;
    assert!(matches!(refused.err(), Some(ExportError::TooManyRows { rows: 1, rows_max: 0 })));
    drop(usage(1).await.unwrap());
    // Deposit, hold, charge and rest; deposit and charge.
    let statement = store.export_statement(tenant.wallet, Period::default(), 3).await;
    assert!(matches!(statement.err(), Some(ExportError::TooManyRows { rows: 4, rows_max: 3 })));
    let ledger_file = store.export_ledger(ALWAYS, 1).await;
    assert!(matches!(ledger_file.err(), Some(ExportError::TooManyRows { rows: 2, rows_max: 1 })));
    assert_eq!(exported(home, tenant.wallet, Period::default()).await.entries.len(), 4);
    assert_eq!(ledger(home, ALWAYS).await.len(), 2);
}

async fn a_third_export_is_refused_until_one_is_dropped(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let begin = || home.store().export_statement(tenant.wallet, Period::default(), EXPORT_ROWS_MAX);
    let first = begin().await.unwrap();
    let second = home.store().export_ledger(ALWAYS, EXPORT_ROWS_MAX).await.unwrap();
    assert!(matches!(begin().await, Err(ExportError::Busy)));
    drop(first);
    let third = begin().await.unwrap();
    assert!(matches!(begin().await, Err(ExportError::Busy)));
    drop((second, third));
    begin().await.unwrap();
}

/// Rows of an export, sorted as a report is.
async fn exported_usage(home: &impl Home, query: UsageQuery) -> Vec<UsageRow> {
    let export = home.store().export_usage(query, EXPORT_ROWS_MAX).await.unwrap();
    let mut all = rows(export.pages).await;
    all.sort_by(|a, b| (&a.group, &a.second, a.currency).cmp(&(&b.group, &b.second, b.currency)));
    all
}

/// Groups of hours and API keys, more of them than a page has, before and after they are summed.
async fn an_export_of_usage_is_the_report_in_one(home: &impl Home) {
    use GroupBy::{ApiKey, Day, Hour, Model, Month, Wallet};
    let mut raw = Raw::reckless(home).await;
    fill(&mut raw, FILLED).await;
    add_transfers(&mut raw).await;
    let begin = raw.number("SELECT min(created_at) FROM operations").await;
    let moment = |days: i64| Some(Timestamp::from_micros(begin + days * 86_400_000_000 + 1_700));
    let groupings = [
        Grouping::by(Hour),
        Grouping::by(Wallet),
        Grouping::by_both(Hour, ApiKey).unwrap(),
        Grouping::by_both(Day, Wallet).unwrap(),
        Grouping::by_both(Month, Model).unwrap(),
        Grouping::by_both(ApiKey, Model).unwrap(),
    ];
    for state in 0..3 {
        for by in groupings {
            for period in [Period::default(), Period { from: moment(3), to: moment(17) }] {
                let query = UsageQuery { period, ..UsageQuery::all(by) };
                let report = home.store().usage(query.clone()).await.unwrap();
                assert!(!report.is_empty());
                let export = exported_usage(home, query).await;
                assert!(export == report, "an export by {by:?} of {period:?} is another report");
            }
        }
        match state {
            0 => drop(sum_all(home.store()).await),
            _ => multiply_hours(&mut raw, state).await,
        }
    }
    let by = Grouping::by_both(Hour, ApiKey).unwrap();
    assert!(exported_usage(home, UsageQuery::all(by)).await.len() > 20_000);
}

/// Copies the summed rows into later hours.
async fn multiply_hours(raw: &mut Raw, times: i64) {
    let columns = "api_key_id, model, route, completed, refused, abandoned, estimated, input, cached_input,
        cache_write, audio_input, output, reasoning, audio_output, request, image, charge, shortfall, refunded,
        exposure, costs_excluded, costed, provider_cost, margin";
    raw.run(&format!(
        "INSERT INTO usage_hours (wallet_id, hour, {columns})
         SELECT wallet_id, hour + 3600000000 * 1500 * {times}, {columns} FROM usage_hours"
    ))
    .await;
}

/// What is booked after the beginning is in no page, and changes no balance of one.
async fn an_export_is_of_its_beginning(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let running = tenant.admit(&tenant.claim().build()).await;
    let store = home.store();
    let export = store.export_statement(tenant.wallet, Period::default(), 9).await.unwrap();
    tenant.step(running.id, finish(&running, 20, 10)).await;
    tenant.admit(&tenant.claim().build()).await;
    tenant.post(PostingKind::Deposit, 7).await.unwrap();
    let (closing, entries) = (export.closing, rows(export.pages).await);
    let kinds: Vec<_> = entries.iter().map(|entry| entry.transfer.kind).collect();
    assert_eq!(kinds, ["deposit", "hold"]);
    assert_eq!(entries.last().unwrap().after, closing);
}

/// Charges of all hours are the charges of the ledger, and refunds likewise, over a book of random ends.
async fn revenue_of_all_hours_is_that_of_the_ledger(home: &impl Home) {
    let tenants = [Tenant::new(home, 90_000).await, Tenant::new(home, 90_000).await];
    let mut dice = Dice::new(7);
    for round in 0..120_i64 {
        let tenant = &tenants[usize::try_from(round % 2).unwrap()];
        let operation = tenant.admit(&tenant.claim().build()).await;
        let charge = i64::try_from(dice.roll(90)).unwrap();
        let end: Event = match dice.roll(5) {
            0 => refuse(&operation),
            1 => not_run(&operation),
            2 => give_up(&operation),
            _ => finish(&operation, charge.unsigned_abs() + 1, 0),
        };
        tenant.step(operation.id, end).await;
        if round % 3 == 0 {
            drop(tenant.post(PostingKind::Refund(operation.id), 1 + charge % 5).await);
        }
    }
    let usage = UsageQuery::all(Grouping::by(GroupBy::Hour));
    let hours = home.store().usage(usage).await.unwrap();
    let of_hours = |of: fn(&holdfast_domain::admin::report::Totals) -> Micros| {
        hours.iter().map(|row| of(&row.totals).get()).sum::<i64>()
    };
    let rows = ledger(home, ALWAYS).await;
    let of_ledger = |is_one: fn(&LedgerRow) -> bool| {
        rows.iter().filter(|row| is_one(row)).map(|row| row.amount.get()).sum::<i64>()
    };
    let charged = of_ledger(|row| row.posting.is_none());
    let is_refund = |row: &LedgerRow| {
        row.posting.as_ref().is_some_and(|it| matches!(it.kind, PostingKind::Refund(_)))
    };
    assert!(charged < 0);
    assert_eq!(of_hours(|totals| totals.charge), -charged);
    assert_eq!(of_hours(|totals| totals.refunded), of_ledger(is_refund));
}

crate::scratch::on_every_store! {
    an_export_over_many_parts_is_the_statement_in_one,
    the_ledger_has_each_payment_and_each_charge_once,
    days_of_the_ledger_add_up_to_all_of_it,
    an_export_beyond_the_bound_is_refused_with_its_rows,
    a_third_export_is_refused_until_one_is_dropped,
    an_export_is_of_its_beginning,
    an_export_of_usage_is_the_report_in_one,
    revenue_of_all_hours_is_that_of_the_ledger,
}
