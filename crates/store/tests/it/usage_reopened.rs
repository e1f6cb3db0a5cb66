//! An operation that is reopened, or cancelled while it is open, is noted at once, whether or not the summing has
//! passed its number.

use holdfast_domain::admin::report::Reports as _;
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageQuery};
use holdfast_domain::{Event, Micros};
use holdfast_store::usage::SummingProgress;
use holdfast_testkit::laws::tenant::{Tenant, finish, not_run};
use holdfast_testkit::sample;

use crate::scratch::Home;
use crate::usage_sums::sum_all;

async fn what_is_reopened_before_its_page_is_summed_once(home: &impl Home) {
    let (tenant, store) = (Tenant::new(home, 10_000).await, home.store());
    let claim = tenant.claim();
    let first = tenant.admit(&claim.clone().build()).await;
    tenant.step(first.id, not_run(&first)).await;
    let again = claim.claim_id(sample::fresh()).build();
    let second = tenant.step(first.id, Event::Claim(Box::new(again))).await;
    tenant.step(second.id, finish(&second, 20, 10)).await;
    // Its note is there since it was reopened, and its number is too young to be passed.
    assert_eq!(store.sum_usage().await.unwrap(), SummingProgress::Done);
    assert!(sum_all(store).await > 0);
    assert_eq!(store.verify().await.unwrap().mismatches, []);
}

async fn what_is_cancelled_while_it_is_open_is_summed_once(home: &impl Home) {
    let (tenant, store) = (Tenant::new(home, 10_000).await, home.store());
    for is_passed in [false, true] {
        let first = tenant.admit(&tenant.claim().build()).await;
        tenant.step(first.id, not_run(&first)).await;
        if is_passed {
            sum_all(store).await;
        }
        tenant.step(first.id, Event::AskCancel).await;
        sum_all(store).await;
        assert_eq!(store.verify().await.unwrap().mismatches, [], "passed while open: {is_passed}");
    }
    let all = store.usage(UsageQuery::all(Grouping::by(GroupBy::Wallet))).await.unwrap();
    let exposures: Vec<_> =
        all.iter().map(|usage| (usage.totals.abandoned, usage.totals.exposure)).collect();
    assert_eq!(exposures, [(2, Micros::ZERO)]);
}

crate::scratch::on_every_store! {
    what_is_cancelled_while_it_is_open_is_summed_once,
    what_is_reopened_before_its_page_is_summed_once,
}
