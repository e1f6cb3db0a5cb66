//! Lists by pages: every row once and in order, whatever the filter and however few fit on a page.

use std::collections::BTreeSet;

use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{
    ApiKeyFilter, ApiKeyState, ChargeRange, OperationFilter, Order, PAGE_MAX, Page, PageRequest,
    Period, ROWS_READ_MAX, SCATTERED_ROWS_READ_MAX, Scope, WalletFilter,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::credential::Grant;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::model::{ModelPattern, PublicModelId};
use holdfast_domain::operation::OperationStatus;
use holdfast_domain::ports::{NewApiKey, Unavailable};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, Operation, OperationId, Timestamp};
use holdfast_store::Store;
use holdfast_testkit::laws::tenant::{Tenant, credential, finish, refuse};
use holdfast_testkit::sample;

use crate::filled::fill;
use crate::raw::Raw;
use crate::scratch::Home;

/// Every API key, the oldest first.
pub(crate) async fn all_api_keys(store: &Store) -> Vec<ApiKey> {
    let page = |request| store.api_keys(ApiKeyFilter::default(), request);
    let listed = whole(Order::Oldest, page).await;
    listed.into_iter().map(|listed| listed.api_key).collect()
}

/// Every wallet, the oldest first.
pub(crate) async fn all_wallets(store: &Store) -> Vec<Wallet> {
    let listed =
        whole(Order::Oldest, |request| store.wallets(WalletFilter::default(), request)).await;
    listed.into_iter().map(|listed| listed.wallet).collect()
}

/// All of a list, by pages of two.
pub(crate) async fn whole<T, F>(order: Order, page: impl Fn(PageRequest) -> F) -> Vec<T>
where
    F: Future<Output = Result<Page<T>, Unavailable>>,
{
    let mut rows = Vec::new();
    let mut request = PageRequest::first(order, 2);
    loop {
        let found = page(request).await.unwrap();
        assert!(found.rows.len() <= 2);
        rows.extend(found.rows);
        request.after = found.next;
        if found.next.is_none() {
            return rows;
        }
    }
}

async fn operations(home: &impl Home, filter: OperationFilter, order: Order) -> Vec<OperationId> {
    let page = |request| home.store().operations(filter.clone(), request);
    let listed = whole(order, page).await;
    listed.into_iter().map(|listed| listed.operation.id).collect()
}

async fn check(home: &impl Home, filter: OperationFilter, mut expected: Vec<OperationId>) {
    assert_eq!(operations(home, filter.clone(), Order::Oldest).await, expected, "{filter:?}");
    expected.reverse();
    assert_eq!(operations(home, filter.clone(), Order::Newest).await, expected, "{filter:?}");
}

const ALL: OperationFilter = OperationFilter {
    scope: Scope::All,
    wallet: None,
    api_key: None,
    created: Period { from: None, to: None },
    model: None,
    status: None,
    charge: ChargeRange { from: None, to: None },
};

async fn operations_are_filtered_by_wallet_and_api_key(home: &impl Home) {
    let tenants = [Tenant::new(home, 1_000).await, Tenant::new(home, 1_000).await];
    let other_key = tenants[0].another_api_key().await;
    let mut rows = Vec::new();
    for n in 0..9 {
        let tenant = &tenants[n % 2];
        let claim = tenant.claim();
        let claim = if n % 4 == 0 { claim.api_key(other_key) } else { claim };
        rows.push(tenant.admit(&claim.build()).await);
    }
    let ids = |is: &dyn Fn(&Operation) -> bool| -> Vec<_> {
        rows.iter().filter(|row| is(row)).map(|row| row.id).collect()
    };
    check(home, ALL, ids(&|_row| true)).await;
    for tenant in &tenants {
        let wallet = Some(tenant.wallet);
        let of_wallet = ids(&|row| row.wallet == tenant.wallet);
        assert!(of_wallet.len() > 2);
        check(home, OperationFilter { wallet, ..ALL }, of_wallet).await;
        let running = OperationFilter { scope: Scope::Running, wallet, ..ALL };
        check(home, running, ids(&|row| row.wallet == tenant.wallet)).await;
        for key in [tenant.api_key, other_key] {
            let api_key = Some(key);
            check(home, OperationFilter { api_key, ..ALL }, ids(&|row| row.api_key == key)).await;
            let both = ids(&|row| row.api_key == key && row.wallet == tenant.wallet);
            check(home, OperationFilter { api_key, wallet, ..ALL }, both).await;
        }
    }
    let names = home.store().operations(ALL, PageRequest::first(Order::Newest, 1)).await.unwrap();
    let key = home.store().api_key(rows[8].api_key).await.unwrap().unwrap();
    assert_eq!(names.rows[0].api_key_name, Some(key.name));
}

async fn operations_are_filtered_by_time_though_their_numbers_are_not_quite_in_its_order(
    home: &impl Home,
) {
    const MINUTE: i64 = 60_000_000;
    let tenant = Tenant::new(home, 10_000).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(tenant.admit(&tenant.claim().build()).await.id);
    }
    // A row a minute, and every fourth one 20 seconds before its predecessor.
    let moment = |n: i64| n * MINUTE - if n % 4 == 0 { 80_000_000 } else { 0 };
    let mut raw = Raw::reckless(home).await;
    raw.run(
        "UPDATE operations SET created_at = seq * 60000000
            - CASE WHEN seq % 4 = 0 THEN 80000000 ELSE 0 END",
    )
    .await;
    // Numbers of a server need not begin with one, nor be without gaps.
    raw.run("UPDATE operations SET seq = seq + 1000 WHERE seq > 10").await;
    let at = |micros: i64| Some(Timestamp::from_micros(micros));
    for from in [None, at(0), at(3 * MINUTE), at(10 * MINUTE), at(21 * MINUTE)] {
        for to in [None, at(0), at(7 * MINUTE), at(12 * MINUTE), at(21 * MINUTE)] {
            let created = Period { from, to };
            let is_in = |n: i64| {
                let moment = Timestamp::from_micros(moment(n));
                from.is_none_or(|from| moment >= from) && to.is_none_or(|to| moment < to)
            };
            let expected = (1..).zip(&ids).filter(|(n, _)| is_in(*n)).map(|(_, id)| *id);
            check(home, OperationFilter { created, ..ALL }, expected.collect()).await;
        }
    }
}

async fn operations_from_a_clock_that_was_ahead_are_found_by_time_and_hide_no_others(
    home: &impl Home,
) {
    const HOUR: i64 = 3_600_000_000;
    let tenant = Tenant::new(home, 10_000).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(tenant.admit(&tenant.claim().build()).await.id);
    }
    let now = tenant.load(ids[0]).await.operation.unwrap().created_at.as_micros();
    // Rows of hours ago, and in their midst three of a month ahead.
    let mut raw = Raw::reckless(home).await;
    raw.run(&format!(
        "UPDATE operations SET created_at = CASE WHEN seq BETWEEN 9 AND 11 THEN {now} + 720 * {HOUR}
            ELSE {now} - (40 - seq) * {HOUR} END"
    ))
    .await;
    let at = |hours: i64| Some(Timestamp::from_micros(now + hours * HOUR));
    let tomorrow = Period { from: at(24), to: None };
    let past = Period { from: at(-29), to: at(-24) };
    for (created, rows) in [(tomorrow, 9..12), (past, 11..16)] {
        let is_ahead = |n: &i64| created != past || *n > 11;
        let expected = (1..).zip(&ids).filter(|(n, _)| rows.contains(n) && is_ahead(n));
        let expected = expected.map(|(_, id)| *id).collect();
        check(home, OperationFilter { created, ..ALL }, expected).await;
    }
}

async fn operations_are_filtered_by_model_status_and_charge(home: &impl Home) {
    let tenant = Tenant::new(home, 10_000).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(tenant.admit(&tenant.claim().build()).await);
    }
    for (operation, input) in [(&ids[0], 10), (&ids[1], 30)] {
        tenant.step(operation.id, finish(operation, input, 0)).await;
    }
    tenant.step(ids[2].id, refuse(&ids[2])).await;
    let [cheap, dear, refused, running] = [0, 1, 2, 3].map(|n: usize| ids[n].id);
    let charge = async |id| tenant.load(id).await.operation.unwrap().phase.charge().unwrap();
    let dearer = charge(dear).await;
    assert!(charge(cheap).await < dearer);
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE operations SET model = 'other/model' WHERE seq % 2 = 0").await;
    let wallet = Some(tenant.wallet);
    for wallet in [None, wallet] {
        let all = OperationFilter { wallet, ..ALL };
        for (status, expected) in [
            (OperationStatus::Completed, vec![cheap, dear]),
            (OperationStatus::Refused, vec![refused]),
            (OperationStatus::Leased, vec![running]),
            (OperationStatus::Abandoned, vec![]),
        ] {
            check(home, OperationFilter { status: Some(status), ..all.clone() }, expected).await;
        }
        let model = Some(PublicModelId::try_from("other/model").unwrap());
        let of_model = OperationFilter { model, ..all.clone() };
        check(home, of_model.clone(), vec![dear, running]).await;
        let at_least = ChargeRange { from: Some(dearer), to: None };
        check(home, OperationFilter { charge: at_least, ..of_model }, vec![dear]).await;
        let below = ChargeRange { from: None, to: Some(dearer) };
        check(home, OperationFilter { charge: below, ..all }, vec![cheap]).await;
    }
}

async fn a_page_reads_no_more_rows_than_it_may_and_leads_on(home: &impl Home) {
    let mut raw = Raw::reckless(home).await;
    fill(&mut raw, i64::from(ROWS_READ_MAX) + 5_000).await;
    let tenant = Tenant::new(home, 10_000_000).await;
    let oldest = tenant.admit(&tenant.claim().hold(5_000_000).build()).await;
    tenant.step(oldest.id, finish(&oldest, 1_000_000, 0)).await;
    let paid = tenant.load(oldest.id).await.operation.unwrap().phase.charge();
    raw.run("UPDATE operations SET seq = 0 WHERE seq = (SELECT max(seq) FROM operations)").await;
    let filter = OperationFilter { charge: ChargeRange { from: paid, to: None }, ..ALL };
    let first = PageRequest::first(Order::Newest, 9);
    let page = async |filter| home.store().operations(filter, first).await.unwrap();
    let found = page(filter.clone()).await;
    assert!(found.rows.is_empty() && found.next.is_some(), "{found:?}");
    check(home, filter.clone(), vec![oldest.id]).await;
    // A window is of the rows that an index leads to: the wallet has one, and so has the key.
    let of_wallet = OperationFilter { wallet: Some(tenant.wallet), ..filter.clone() };
    let of_key = OperationFilter { api_key: Some(tenant.api_key), ..filter };
    for filter in [of_wallet.clone(), of_key.clone()] {
        let found = page(filter).await;
        assert_eq!((found.rows.len(), found.next), (1, None));
    }
    // Theirs are scattered among those of all others, so a page reads fewer of them.
    raw.run(&format!(
        "UPDATE operations SET wallet_id = own.wallet_id, api_key_id = own.api_key_id
         FROM (SELECT wallet_id, api_key_id FROM operations WHERE seq = 0) AS own
         WHERE seq > (SELECT max(seq) FROM operations) - {SCATTERED_ROWS_READ_MAX}"
    ))
    .await;
    for filter in [of_wallet, of_key] {
        let found = page(filter.clone()).await;
        assert!(found.rows.is_empty() && found.next.is_some(), "{found:?}");
        check(home, filter, vec![oldest.id]).await;
    }
}

async fn a_page_has_a_limit_and_what_is_added_moves_no_other_page(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(tenant.admit(&tenant.claim().build()).await.id);
    }
    let page = async |request| home.store().operations(ALL, request).await.unwrap();
    for limit in [PAGE_MAX, u32::MAX] {
        let found = page(PageRequest::first(Order::Newest, limit)).await;
        assert_eq!((found.rows.len(), found.next), (4, None));
    }
    assert_eq!(page(PageRequest::first(Order::Newest, 0)).await.rows.len(), 1, "a page leads on");
    let first = page(PageRequest::first(Order::Newest, 2)).await;
    tenant.admit(&tenant.claim().build()).await;
    let after = PageRequest { after: first.next, ..PageRequest::first(Order::Newest, 2) };
    let second = page(after).await;
    let rows = first.rows.iter().chain(&second.rows).map(|it| it.operation.id);
    assert_eq!(rows.collect::<Vec<_>>(), ids.into_iter().rev().collect::<Vec<_>>());
    assert_eq!(second.next, None);
}

async fn api_keys_are_filtered_by_wallet_and_state_and_found_by_id_and_name(home: &impl Home) {
    let tenants = [Tenant::new(home, 0).await, Tenant::new(home, 0).await];
    let ended = tenants[0].ended_api_key().await;
    let revoked = tenants[1].another_api_key().await;
    let ended_and_revoked = tenants[1].ended_api_key().await;
    let in_force = tenants[1].another_api_key().await;
    for key in [revoked, ended_and_revoked] {
        home.commands().revoke(key).await.unwrap();
    }
    let list = async |filter: ApiKeyFilter, order| {
        let page = |request| home.store().api_keys(filter.clone(), request);
        let keys = whole(order, page).await;
        keys.into_iter().map(|it| it.api_key.id).collect::<Vec<_>>()
    };
    let check = async |wallet, state, mut expected: Vec<ApiKeyId>| {
        let filter = ApiKeyFilter { wallet, state, ..ApiKeyFilter::default() };
        assert_eq!(list(filter.clone(), Order::Oldest).await, expected, "{filter:?}");
        expected.reverse();
        assert_eq!(list(filter.clone(), Order::Newest).await, expected, "{filter:?}");
    };
    let [first, second] = [tenants[0].api_key, tenants[1].api_key];
    let all = vec![first, second, ended, revoked, ended_and_revoked, in_force];
    check(None, None, all).await;
    check(Some(tenants[0].wallet), None, vec![first, ended]).await;
    let revoked_ones = vec![revoked, ended_and_revoked];
    check(None, Some(ApiKeyState::Revoked), revoked_ones).await;
    check(None, Some(ApiKeyState::Ended), vec![ended]).await;
    check(None, Some(ApiKeyState::InForce), vec![first, second, in_force]).await;
    check(None, Some(ApiKeyState::Suspended), vec![]).await;
    let of_second = Some(tenants[1].wallet);
    check(of_second, Some(ApiKeyState::InForce), vec![second, in_force]).await;
    let nobody = Some(sample::fresh());
    check(nobody, None, vec![]).await;

    let store = home.store();
    let ended = store.api_key(ended).await.unwrap().filter(|key| key.id == ended).unwrap();
    assert_eq!(store.api_keys_named(&ended.name, None).await.unwrap(), [ended]);
    assert_eq!(store.api_key(sample::fresh()).await.unwrap(), None);
    assert_eq!(store.api_keys_named("of nobody", None).await.unwrap(), []);
    let wallet = home.wallets().find(tenants[1].wallet).await.unwrap().unwrap();
    let named = store.wallet_named(&wallet.name).await.unwrap();
    assert_eq!(named.map(|record| record.wallet), Some(wallet));
    assert_eq!(store.wallet_named("of nobody").await.unwrap(), None);
}

async fn api_keys_are_filtered_by_a_model_that_they_may_use(home: &impl Home) {
    let tenant = Tenant::new(home, 0).await;
    let model = |id: &str| PublicModelId::try_from(id).unwrap();
    let issue = async |models: &[&str]| {
        let id: ApiKeyId = sample::fresh();
        let entry = |text: &&str| ModelPattern::try_from(*text).unwrap();
        let models = Some(models.iter().map(entry).collect());
        let grant = Grant { models, ..Grant::default() };
        let (wallet, name) = (tenant.wallet, format!("of {id}"));
        let key = NewApiKey { id, wallet, name, external_id: None, grant };
        home.commands().issue(&key, &credential(id)).await.unwrap();
        id
    };
    let (one, two) = (issue(&["a/b"]).await, issue(&["a/b", "c/d"]).await);
    let longer = issue(&["a/bc"]).await;
    let of_publisher = issue(&["a/*"]).await;
    let all = tenant.api_key;
    for (id, expected) in [
        ("a/b", vec![all, one, two, of_publisher]),
        ("c/d", vec![all, two]),
        ("a/bc", vec![all, longer, of_publisher]),
        ("a/x", vec![all, of_publisher]),
        ("aa/b", vec![all]),
    ] {
        let filter = ApiKeyFilter { model: Some(model(id)), ..ApiKeyFilter::default() };
        let page = |request| home.store().api_keys(filter.clone(), request);
        let found = whole(Order::Oldest, page).await;
        let ids: Vec<_> = found.into_iter().map(|it| it.api_key.id).collect();
        assert_eq!(ids, expected, "{id}");
    }
}

async fn credentials_in_force_are_listed_with_their_api_key(home: &impl Home) {
    let tenant = Tenant::new(home, 0).await;
    let other_key = tenant.another_api_key().await;
    let page = |request| home.store().api_keys(ApiKeyFilter::default(), request);
    let listed = whole(Order::Oldest, page).await;
    let live = home.store().live_credentials().await.unwrap();
    assert!(live.len() >= 2);
    let of = |key| live.iter().filter(|it| it.api_key == key).copied().collect::<Vec<_>>();
    for one in &listed {
        assert_eq!(one.credentials, of(one.api_key.id));
    }
    home.commands().revoke(other_key).await.unwrap();
    let with_some: BTreeSet<_> = whole(Order::Newest, page)
        .await
        .into_iter()
        .filter(|it| !it.credentials.is_empty())
        .map(|it| it.api_key.id)
        .collect();
    assert!(with_some.contains(&tenant.api_key) && !with_some.contains(&other_key));
}

async fn a_page_of_operations_shows_what_was_refunded(home: &impl Home) {
    let tenant = Tenant::new(home, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await;
    tenant.step(operation.id, finish(&operation, 30, 0)).await;
    let kind = PostingKind::Refund(operation.id);
    tenant.post(kind, 7).await.unwrap();
    let first = PageRequest::first(Order::Newest, 1);
    let listed = home.store().operations(ALL, first).await.unwrap().rows;
    assert_eq!(listed[0].refunded.get(), 7);
}

crate::scratch::on_every_store! {
    operations_are_filtered_by_wallet_and_api_key,
    operations_are_filtered_by_time_though_their_numbers_are_not_quite_in_its_order,
    operations_are_filtered_by_model_status_and_charge,
    operations_from_a_clock_that_was_ahead_are_found_by_time_and_hide_no_others,
    a_page_reads_no_more_rows_than_it_may_and_leads_on,
    a_page_has_a_limit_and_what_is_added_moves_no_other_page,
    api_keys_are_filtered_by_wallet_and_state_and_found_by_id_and_name,
    api_keys_are_filtered_by_a_model_that_they_may_use,
    credentials_in_force_are_listed_with_their_api_key,
    a_page_of_operations_shows_what_was_refunded,
}
