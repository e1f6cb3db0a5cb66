//! Statements add up, wherever they are cut.

use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{DayMovement, Reports as _, Statement, StatementBalance};
use holdfast_domain::admin::{AccountAction, DepositReference, NewPosting, PostingDetails};
use holdfast_domain::ledger::{Account, Posting, PostingKind};
use holdfast_domain::ports::{LedgerEntry, LedgerSource};
use holdfast_domain::{Event, Micros, Operation, Timestamp};
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, record, refuse};
use holdfast_testkit::sample;

use crate::administration::{act, make_wallet};
use crate::exports::exported;
use crate::scratch::Home;

const WHOLE: Period = Period { from: None, to: None };

/// A bit of everything, on two wallets in turns.
async fn live(tenant: &Tenant<'_>, other: &Tenant<'_>) {
    let ends: [fn(&Operation) -> Event; 5] =
        [|o| finish(o, 20, 10), refuse, not_run, give_up, |o| record(o, 7, 0)];
    for end in ends {
        for tenant in [tenant, other] {
            let operation = tenant.admit(&tenant.claim().build()).await;
            tenant.step(operation.id, end(&operation)).await;
        }
    }
    let again = tenant.claim();
    let first = tenant.admit(&again.clone().hold(50).build()).await;
    tenant.step(first.id, not_run(&first)).await;
    tenant.post(PostingKind::Adjustment("drift".to_owned()), -40).await.unwrap();
    let again = again.claim_id(sample::fresh()).hold(60).build();
    let second = tenant.step(first.id, Event::Claim(Box::new(again))).await;
    tenant.step(second.id, finish(&second, 500, 0)).await;
    tenant.post(PostingKind::Refund(second.id), 25).await.unwrap();
    tenant.post(PostingKind::Adjustment("goodwill".to_owned()), 3).await.unwrap();
    other.post(PostingKind::Deposit, 1).await.unwrap();
    tenant.admit(&tenant.claim().hold(11).build()).await;
}

/// What these transfers come to, added up one by one.
fn sum<'e>(entries: impl IntoIterator<Item = &'e LedgerEntry>) -> (i64, i64) {
    let mut sums = (0, 0);
    for entry in entries {
        for (account, amount) in
            [(entry.debit, -entry.amount.get()), (entry.credit, entry.amount.get())]
        {
            match account {
                Account::Available => sums.0 += amount,
                Account::Held => sums.1 += amount,
                Account::Funding | Account::Revenue | Account::Adjustments => {}
            }
        }
    }
    sums
}

fn amounts(balance: StatementBalance) -> (i64, i64) {
    (balance.available.get(), balance.held.get())
}

/// It shows `all[first..end]` of the whole book, of which `from` is the first of the period.
fn check(statement: &Statement, all: &[LedgerEntry], from: usize, first: usize, end: usize) {
    assert_eq!(amounts(statement.opening), sum(all.iter().take(first)));
    assert_eq!(amounts(statement.closing), sum(all.iter().take(end)));
    assert_eq!(statement.omitted, u64::try_from(first - from).unwrap());
    assert_eq!(statement.entries.len(), end - first);
    for (at, (entry, transfer)) in statement.entries.iter().zip(all.iter().skip(first)).enumerate()
    {
        assert_eq!(entry.transfer, *transfer);
        assert_eq!(amounts(entry.after), sum(all.iter().take(first + at + 1)));
    }
}

async fn opening_entries_and_closing_add_up_for_every_period_and_limit(home: &impl Home) {
    let (tenant, other) = (Tenant::new(home, 1_000).await, Tenant::new(home, 5_000).await);
    live(&tenant, &other).await;
    let all = tenant.entries().await;
    assert_eq!(all.len(), 19, "{all:#?}");
    let read = async |from: Option<Timestamp>, to: Option<Timestamp>, limit| {
        let period = Period { from, to };
        let statement = home.store().statement(tenant.wallet, period, limit).await.unwrap();
        if statement.omitted == 0 {
            assert_eq!(exported(home, tenant.wallet, period).await, statement);
        }
        statement
    };
    let mut bounds: Vec<_> = all.iter().map(|entry| Some(entry.at)).collect();
    bounds.dedup();
    bounds.insert(0, None);
    for from in &bounds {
        for to in &bounds {
            let first = all.iter().position(|e| Some(e.at) >= *from).unwrap();
            let end = all.iter().position(|e| to.is_some_and(|to| e.at >= to)).unwrap_or(all.len());
            let statement = read(*from, *to, 1_000).await;
            if from.is_none() || to.is_none() || from < to {
                check(&statement, &all, first, first, end);
            } else {
                assert_eq!(statement.entries, [], "an empty period has no entries");
                assert_eq!(amounts(statement.closing), sum(&all[..end]));
            }
        }
    }
    for limit in 0..=all.len() {
        let statement = read(None, None, u32::try_from(limit).unwrap()).await;
        check(&statement, &all, 0, all.len() - limit, all.len());
    }
    let whole = read(None, None, u32::MAX).await;
    assert_eq!(amounts(whole.opening), (0, 0));
    assert_eq!(amounts(whole.closing), tenant.balances().await);
}

async fn a_posting_says_what_it_was_for_and_nothing_else_does(home: &impl Home) {
    let (tenant, other) = (Tenant::new(home, 1_000).await, Tenant::new(home, 5_000).await);
    live(&tenant, &other).await;
    let statement = home.store().statement(tenant.wallet, WHOLE, 1_000).await.unwrap();
    let mut reasons = Vec::new();
    for entry in &statement.entries {
        let is_posting = matches!(entry.transfer.source, LedgerSource::Posting(_));
        assert_eq!(entry.posted.is_some(), is_posting, "{entry:?}");
        match &entry.posted {
            Some(PostingKind::Adjustment(reason)) => reasons.push(reason.as_str()),
            Some(PostingKind::Refund(operation)) => {
                assert_eq!(tenant.load(*operation).await.operation.unwrap().generation, 2);
            }
            Some(PostingKind::Deposit) | None => {}
        }
    }
    assert_eq!(reasons, ["drift", "goodwill"]);
    let nobody = home.store().statement(sample::fresh(), WHOLE, 9).await.unwrap();
    assert_eq!((amounts(nobody.opening), amounts(nobody.closing)), ((0, 0), (0, 0)));
    assert_eq!(nobody.entries, []);
}

async fn payments_with_a_reference_stand_alone_while_they_are_few(home: &impl Home) {
    let wallet = make_wallet(home.store(), "acme").await;
    for (reference, amount) in [(Some("pi_1"), 500), (None, 20), (Some("pi_2"), 700), (None, 3)] {
        let kind = PostingKind::Deposit;
        let posting = Posting::new(sample::fresh(), wallet, kind, Micros::new(amount));
        let reference = reference.map(|id| DepositReference::new("stripe", id));
        let details = PostingDetails { reference, ..PostingDetails::default() };
        let posting = posting.unwrap();
        let new = NewPosting { posting, details, currency: None, allowance: None };
        act(home.store(), AccountAction::Post(new)).await.unwrap();
    }
    let read = async |most| {
        let daily = home.store().daily_statement(wallet, WHOLE, most).await.unwrap();
        assert_eq!((amounts(daily.opening), amounts(daily.closing)), ((0, 0), (1_223, 0)));
        let id = |it: &DepositReference| it.external_reference.clone();
        let movement = |it: DayMovement| (it.reference.as_ref().map(id), it.count, it.amount.get());
        let mut all: Vec<_> = daily.movements.into_iter().map(movement).collect();
        all.sort();
        all
    };
    let [one, two] = ["pi_1", "pi_2"].map(|id| Some(id.to_owned()));
    assert_eq!(read(3).await, [(None, 2, 23), (one, 1, 500), (two, 1, 700)]);
    assert_eq!(read(2).await, [(None, 4, 1_223)]);
}

crate::scratch::on_every_store! {
    payments_with_a_reference_stand_alone_while_they_are_few,
    opening_entries_and_closing_add_up_for_every_period_and_limit,
    a_posting_says_what_it_was_for_and_nothing_else_does,
}
