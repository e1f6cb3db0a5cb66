//! The order of a wallet's entries: each balance of a statement is one that the wallet had, whatever the clock did
//! while they were written.
//!
//! Clocks are set by hand: the moments of what was just written are moved to where a clock would have had them.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    DayMovement, MovementKind, Reports as _, Statement, StatementBalance, StatementEntry,
};
use holdfast_domain::admin::{AccountAction, NewPosting, PostingDetails};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::{Event, Journal as _, Micros, OperationId, Timestamp};
use holdfast_testkit::Dice;
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, record, refuse};
use holdfast_testkit::sample;

use crate::administration::{act, available, deposit, make_wallet};
use crate::exports::exported;
use crate::raw::Raw;
use crate::scratch::Home;
use crate::server::Server;

const HOUR: i64 = 3_600_000_000;

/// A clock that is set between two steps.
struct MovedClock {
    raw: Raw,
    /// Micros by which it is ahead.
    ahead: i64,
}

impl MovedClock {
    async fn of(home: &impl Home) -> Self {
        let mut raw = Raw::reckless(home).await;
        raw.run("CREATE TABLE seen_transfers AS SELECT op_seq, leg FROM transfers").await;
        raw.run("CREATE TABLE seen_postings AS SELECT seq FROM postings").await;
        Self { raw, ahead: 0 }
    }

    /// Moves all that was written since the last call.
    async fn pass(&mut self) {
        let ahead = self.ahead;
        self.raw
            .run(&format!(
                "UPDATE transfers SET created_at = created_at + {ahead}
                 WHERE NOT EXISTS (SELECT 1 FROM seen_transfers AS s
                     WHERE s.op_seq = transfers.op_seq AND s.leg = transfers.leg);
                 UPDATE postings SET created_at = created_at + {ahead}
                 WHERE seq NOT IN (SELECT s.seq FROM seen_postings AS s);
                 DELETE FROM seen_transfers;
                 DELETE FROM seen_postings;
                 INSERT INTO seen_transfers SELECT op_seq, leg FROM transfers;
                 INSERT INTO seen_postings SELECT seq FROM postings"
            ))
            .await;
    }
}

fn amounts(balance: StatementBalance) -> (i64, i64) {
    (balance.available.get(), balance.held.get())
}

/// The statement, which is also that of an export.
async fn read(home: &impl Home, tenant: &Tenant<'_>, period: Period) -> Statement {
    let statement = home.store().statement(tenant.wallet, period, u32::MAX).await.unwrap();
    assert_eq!(exported(home, tenant.wallet, period).await, statement);
    check_days(home, tenant, period, &statement).await;
    statement
}

/// The statement by day has the same balances, and the same entries added up.
async fn check_days(home: &impl Home, tenant: &Tenant<'_>, period: Period, statement: &Statement) {
    let daily = home.store().daily_statement(tenant.wallet, period, 100).await.unwrap();
    assert_eq!((daily.opening, daily.closing), (statement.opening, statement.closing));
    let mut expected = BTreeMap::new();
    let mut funds = statement.opening.funds().unwrap();
    for entry in &statement.entries {
        let after = entry.after.funds().unwrap();
        let kind = entry.posted.as_ref().map_or(MovementKind::Charge, kind_of);
        if entry.posted.is_some() || entry.transfer.kind == "settle" {
            let at = entry.transfer.at.as_micros().min(period.bounds().1 - 1);
            let sums = expected.entry((at - at.rem_euclid(24 * HOUR), kind)).or_insert((0, 0));
            *sums = (sums.0 + 1, sums.1 + after.get() - funds.get());
        }
        funds = after;
    }
    let movement = |it: &DayMovement| ((it.day.as_micros(), it.kind), (it.count, it.amount.get()));
    let shown: Vec<_> = daily.movements.iter().map(movement).collect();
    assert_eq!(shown, expected.into_iter().collect::<Vec<_>>());
}

fn kind_of(posted: &PostingKind) -> MovementKind {
    match posted {
        PostingKind::Deposit => MovementKind::Deposit,
        PostingKind::Refund(_) => MovementKind::Refund,
        PostingKind::Adjustment(_) => MovementKind::Adjustment,
    }
}

/// The balances that the wallet had between two commits: a settlement and the rest of its hold are one.
fn committed(entries: &[StatementEntry]) -> Vec<(i64, i64)> {
    let is_half = |at: usize| {
        let next = entries.get(at + 1).map(|next| next.transfer.kind);
        entries[at].transfer.kind == "settle" && next == Some("rest")
    };
    let whole = entries.iter().enumerate().filter(|(at, _)| !is_half(*at));
    whole.map(|(_, entry)| amounts(entry.after)).collect()
}

/// Every statement of a period shows a part of the whole one, and two that meet show all of it.
async fn check_periods(home: &impl Home, tenant: &Tenant<'_>, seen: &[(i64, i64)]) {
    let whole = read(home, tenant, Period::default()).await;
    assert_eq!(amounts(whole.opening), (0, 0));
    assert_eq!(committed(&whole.entries), seen, "the wallet had these balances, in this order");
    let mut balances = vec![(0, 0)];
    balances.extend(whole.entries.iter().map(|entry| amounts(entry.after)));
    assert!(balances.iter().all(|(available, held)| *available >= 0 && *held >= 0), "{balances:?}");
    let mut moments: Vec<i64> =
        whole.entries.iter().map(|entry| entry.transfer.at.as_micros()).collect();
    moments.extend(moments.clone().into_iter().map(|at| at + 1));
    moments.sort_unstable();
    moments.dedup();
    let mut passed = 0;
    for bound in moments.into_iter().map(Timestamp::from_micros) {
        let before = read(home, tenant, Period { from: None, to: Some(bound) }).await;
        let after = read(home, tenant, Period { from: Some(bound), to: None }).await;
        let count = before.entries.len();
        assert!(count >= passed, "a later bound has no fewer entries before it");
        passed = count;
        assert_eq!(before.entries, whole.entries[..count]);
        assert_eq!(after.entries, whole.entries[count..]);
        assert_eq!(amounts(before.closing), balances[count]);
        assert_eq!(amounts(after.opening), balances[count]);
        let last = whole.entries.iter().rposition(|entry| entry.transfer.at < bound);
        assert_eq!(count, last.map_or(0, |last| last + 1), "it ends with the last one before it");
        let between = Period {
            from: Some(bound),
            to: Some(Timestamp::from_micros(bound.as_micros() + HOUR)),
        };
        let between = read(home, tenant, between).await;
        assert_eq!(between.entries, whole.entries[count..count + between.entries.len()]);
        assert_eq!(amounts(between.closing), balances[count + between.entries.len()]);
    }
}

async fn a_statement_shows_no_balance_that_was_not_there_after_the_clock_was_set_back(
    home: &impl Home,
) {
    let tenant = Tenant::new(home, 1_000).await;
    let mut clock = MovedClock::of(home).await;
    let mut seen = vec![tenant.balances().await];
    clock.ahead = -2 * HOUR;
    for _run in 0..3 {
        let operation = tenant.admit(&tenant.claim().hold(300).build()).await;
        clock.pass().await;
        seen.push(tenant.balances().await);
        tenant.step(operation.id, finish(&operation, 20, 10)).await;
        clock.pass().await;
        seen.push(tenant.balances().await);
    }
    check_periods(home, &tenant, &seen).await;
}

/// A random change of the tenant's; none if nothing was moved.
async fn step(tenant: &Tenant<'_>, dice: &mut Dice, running: &mut Vec<OperationId>) {
    let amount = i64::try_from(dice.roll(300)).unwrap() + 1;
    match (dice.roll(6), running.is_empty()) {
        (0, _) => drop(tenant.post(PostingKind::Deposit, amount).await),
        (1, _) => {
            let reason = PostingKind::Adjustment("drift".to_owned());
            drop(tenant.post(reason, 100 - amount).await);
        }
        (2 | 3, _) | (_, true) => {
            let claim = tenant.claim().hold(amount).build();
            if tenant.offer(&claim).await.is_ok() {
                running.push(OperationId::of(claim.api_key, claim.request_key));
            }
        }
        (_, false) => {
            let at = usize::try_from(dice.roll(u64::try_from(running.len()).unwrap())).unwrap();
            let id = running.remove(at);
            let operation = tenant.load(id).await.operation.unwrap();
            let event: Event = match dice.roll(5) {
                0 => refuse(&operation),
                1 => not_run(&operation),
                2 => give_up(&operation),
                3 => record(&operation, 7, 0),
                _ => finish(&operation, 20, 10),
            };
            tenant.step(id, event).await;
        }
    }
}

async fn every_period_shows_balances_that_were_there_whatever_the_clock_did(home: &impl Home) {
    for seed in 1..=3 {
        let tenant = Tenant::new(home, 1_000).await;
        let mut raw = Raw::reckless(home).await;
        raw.run("DROP TABLE IF EXISTS seen_transfers; DROP TABLE IF EXISTS seen_postings").await;
        let mut clock = MovedClock::of(home).await;
        let (mut dice, mut running) = (Dice::new(seed), Vec::new());
        let mut seen = vec![tenant.balances().await];
        for _ in 0..25 {
            if dice.roll(3) == 0 {
                let hours = i64::try_from(dice.roll(9)).unwrap() - 4;
                clock.ahead = hours * HOUR;
            }
            step(&tenant, &mut dice, &mut running).await;
            clock.pass().await;
            let balances = tenant.balances().await;
            if seen.last() != Some(&balances) {
                seen.push(balances);
            }
        }
        check_periods(home, &tenant, &seen).await;
    }
}

async fn pages_of_a_statement_have_each_entry_once_whatever_the_clock_did(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let mut clock = MovedClock::of(home).await;
    for ahead in [0, 5, -3, -3, 700, 0, -1] {
        clock.ahead = ahead * HOUR;
        let operation = tenant.admit(&tenant.claim().hold(100).build()).await;
        clock.pass().await;
        tenant.step(operation.id, finish(&operation, 20, 10)).await;
        clock.pass().await;
    }
    let whole = read(home, &tenant, Period::default()).await;
    for limit in [1, 2, 5] {
        let mut entries: Vec<StatementEntry> = Vec::new();
        let mut closing = whole.closing;
        loop {
            let (store, period) = (home.store(), Period::default());
            let page = match entries.first() {
                Some(first) => {
                    store.statement_before(tenant.wallet, period, first.place, limit).await
                }
                None => store.statement(tenant.wallet, period, limit).await,
            };
            let page = page.unwrap();
            assert_eq!(page.closing, closing);
            closing = page.opening;
            entries.splice(0..0, page.entries);
            if page.omitted == 0 {
                break;
            }
        }
        assert_eq!(entries, whole.entries, "pages of {limit}");
        assert_eq!(closing, whole.opening);
    }
}

async fn entries_of_one_batch_stand_in_the_order_in_which_they_passed(home: &impl Home) {
    let tenant = Tenant::new(home, 1).await;
    for _round in 0..12 {
        // They arrive together, and each hold is of what the deposit before it brings.
        let claims: Vec<_> = (0..6).map(|_| tenant.claim().hold(100).build()).collect();
        join_all(claims.iter().map(async |claim| {
            let (posted, offered) = tokio::join!(
                tenant.post(PostingKind::Deposit, 100),
                home.store().commit(sample::admission(claim))
            );
            posted.unwrap();
            offered.is_ok()
        }))
        .await;
        let debit = PostingKind::Adjustment("spent".to_owned());
        let left = tenant.balances().await.0 - 1;
        if left > 0 {
            tenant.post(debit, -left).await.unwrap();
        }
    }
    let whole = read(home, &tenant, Period::default()).await;
    let below = whole.entries.iter().filter(|entry| entry.after.available.get() < 0).count();
    assert_eq!(below, 0, "{:#?}", whole.entries);
}

async fn a_deposit_of_administration_is_the_next_entry(home: &impl Home) {
    let wallet = make_wallet(home.store(), "acme").await;
    let mut clock = MovedClock::of(home).await;
    for (ahead, amount) in [(0, 100), (-2, -60), (-1, 50), (-9, -90)] {
        clock.ahead = ahead * HOUR;
        let action = if amount > 0 {
            deposit(sample::fresh(), wallet, amount)
        } else {
            let kind = PostingKind::Adjustment("drift".to_owned());
            let posting = Posting::new(sample::fresh(), wallet, kind, Micros::new(amount));
            let (posting, details) = (posting.unwrap(), PostingDetails::default());
            AccountAction::Post(NewPosting { posting, details, currency: None, allowance: None })
        };
        act(home.store(), action).await.unwrap();
        clock.pass().await;
    }
    assert_eq!(available(home.store(), wallet).await, 0);
    let statement = home.store().statement(wallet, Period::default(), 9).await.unwrap();
    let after: Vec<i64> = statement.entries.iter().map(|it| it.after.available.get()).collect();
    assert_eq!(after, [100, 40, 90, 0]);
}

/// A ledger of the schema before: no entry has a number until one is written.
async fn entries_without_a_number_come_first_and_stand_by_their_moments(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let mut seen = vec![tenant.balances().await];
    let mut clock = MovedClock::of(home).await;
    let run = async |clock: &mut MovedClock, seen: &mut Vec<_>| {
        let operation = tenant.admit(&tenant.claim().hold(300).build()).await;
        clock.pass().await;
        seen.push(tenant.balances().await);
        tenant.step(operation.id, finish(&operation, 20, 10)).await;
        clock.pass().await;
        seen.push(tenant.balances().await);
    };
    run(&mut clock, &mut seen).await;
    run(&mut clock, &mut seen).await;
    clock.raw.run("UPDATE transfers SET number = NULL").await;
    clock.raw.run("UPDATE postings SET number = NULL").await;
    check_periods(home, &tenant, &seen).await;
    clock.ahead = -2 * HOUR;
    run(&mut clock, &mut seen).await;
    check_periods(home, &tenant, &seen).await;
}

#[tokio::test]
async fn postgres_a_node_of_the_schema_before_numbers_its_entries() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    tenant.admit(&tenant.claim().hold(700).build()).await;
    // As its statement is: it knows of no number, and its clock is behind.
    let mut raw = Raw::open(&server).await;
    raw.run(
        "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, reason, created_at)
         SELECT randomblob(16), id, 'deposit', NULL, 500, NULL, 0 FROM wallets;
         UPDATE wallets SET available = available + 500",
    )
    .await;
    tenant.admit(&tenant.claim().hold(800).build()).await;
    let whole = read(&server, &tenant, Period::default()).await;
    let after: Vec<_> = whole.entries.iter().map(|entry| amounts(entry.after)).collect();
    assert_eq!(after, [(1_000, 0), (300, 700), (800, 700), (0, 1_500)]);
}

crate::scratch::on_every_store! {
    a_statement_shows_no_balance_that_was_not_there_after_the_clock_was_set_back,
    every_period_shows_balances_that_were_there_whatever_the_clock_did,
    pages_of_a_statement_have_each_entry_once_whatever_the_clock_did,
    entries_of_one_batch_stand_in_the_order_in_which_they_passed,
    a_deposit_of_administration_is_the_next_entry,
    entries_without_a_number_come_first_and_stand_by_their_moments,
}
