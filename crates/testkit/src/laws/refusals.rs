//! Laws of refused requests: the rings of API keys, the counts of hours, and their lists.
//!
//! Additions of several processes add up, also those that race. A ring has the newest requests of its API key and the
//! newest of each code; counts have all. A purge takes old hours and leaves the rings.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::refusals};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! refusals::additions_of_processes_add_up(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::listing::{Order, PageRequest, Period};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter};
use holdfast_domain::statistics::ring::{NEWEST, OF_CODE};
use holdfast_domain::statistics::{
    RefusalBatch, RefusalCount, RefusalHour, RefusedRequest, Shortage, hour_of,
};
use holdfast_domain::{ApiKeyId, Micros, RequestId, WalletId};
use uuid::Uuid;

use super::Stores;
use crate::join::join_all;
use crate::sample;

const HOUR: Duration = Duration::from_secs(3_600);

/// A ring has the newest requests of its API key, and of each code the newest.
pub async fn a_ring_has_the_newest_of_its_key_and_of_each_code(stores: &dyn Stores) {
    let api_key = ApiKeyId::from(Uuid::new_v4());
    let all: Vec<RefusedRequest> = (0..260)
        .map(|n| {
            request(api_key, if n < 15 { "model_not_found" } else { "rate_limit_exceeded" }, n)
        })
        .collect();
    for part in all.chunks(40) {
        add(stores, part).await;
    }
    let listed =
        listed(stores, RefusalFilter { api_key: Some(api_key), ..all_refusals() }, 70).await;
    let newest = all.iter().rev().take(NEWEST);
    let rare = all.iter().take(15).rev().take(OF_CODE);
    let expected: Vec<RefusedRequest> = newest.chain(rare).cloned().collect();
    assert_eq!(listed, expected);
    // A batch that comes again lists no request twice.
    add(stores, all.split_at(250).1).await;
    let again = RefusalFilter { api_key: Some(api_key), ..all_refusals() };
    let again = self::listed(stores, again, 500).await;
    let ids: BTreeSet<_> = again.iter().map(|it| it.id).collect();
    assert_eq!(ids.len(), again.len());
}

/// Counts are sums of all additions, also of those that race, and no request of them is lost.
pub async fn additions_of_processes_add_up(stores: &dyn Stores) {
    let [one, other] = [ApiKeyId::from(Uuid::new_v4()), ApiKeyId::from(Uuid::new_v4())];
    let batches: Vec<Vec<RefusedRequest>> = (0..6)
        .map(|process: u32| {
            let code = if process.is_multiple_of(2) { "overloaded" } else { "draining" };
            (0..5)
                .map(|n| request(if n < 3 { one } else { other }, code, process * 10 + n))
                .collect()
        })
        .collect();
    join_all(batches.iter().map(|batch| add(stores, batch))).await;
    let of_one = RefusalFilter { api_key: Some(one), ..all_refusals() };
    assert_eq!(
        hours(stores, of_one.clone()).await,
        [("draining".into(), 9), ("overloaded".into(), 9)]
    );
    assert_eq!(
        hours(stores, RefusalFilter { code: Some("draining".into()), ..all_refusals() }).await,
        [("draining".into(), 15)]
    );
    assert_eq!(listed(stores, of_one, 500).await.len(), 18);
}

/// A purge deletes hours that began long enough ago, up to its limit, and no listed request.
pub async fn a_purge_takes_old_hours_and_no_listed_request(stores: &dyn Stores) {
    let api_key = ApiKeyId::from(Uuid::new_v4());
    let now = stores.journal().clock().await.unwrap();
    let refused: Vec<RefusedRequest> = (1..=4)
        .map(|hours| RefusedRequest {
            at: now.before(HOUR * hours * 10),
            ..request(api_key, "overloaded", hours)
        })
        .collect();
    add(stores, &refused).await;
    let statistics = stores.statistics().unwrap();
    assert_eq!(statistics.purge_hours(HOUR * 15, 2).await.unwrap(), 2);
    assert_eq!(statistics.purge_hours(HOUR * 15, 2).await.unwrap(), 1);
    assert_eq!(statistics.purge_hours(HOUR * 15, 2).await.unwrap(), 0);
    let of_key = RefusalFilter { api_key: Some(api_key), ..all_refusals() };
    assert_eq!(hours(stores, of_key.clone()).await, [("overloaded".into(), 1)]);
    assert_eq!(listed(stores, of_key, 10).await.len(), 4);
}

/// A refused request is found by its id, and lists and counts are filtered.
pub async fn refused_requests_are_found_and_filtered(stores: &dyn Stores) {
    let api_key = ApiKeyId::from(Uuid::new_v4());
    let wallet = WalletId::from(Uuid::new_v4());
    let shortage = Shortage { wanted: Micros::new(120), available: Some(Micros::new(7)) };
    let mut mine = request(api_key, "insufficient_funds", 1);
    (mine.wallet, mine.status, mine.shortage, mine.model) =
        (wallet, 402, Some(shortage), Some(sample::model()));
    let unread = Shortage { available: None, ..shortage };
    let unread =
        RefusedRequest { shortage: Some(unread), ..request(api_key, "insufficient_funds", 2) };
    let mut late = request(ApiKeyId::from(Uuid::new_v4()), "overloaded", 3);
    late.at = late.at.after(HOUR * 2);
    add(stores, &[mine.clone(), unread.clone(), late.clone()]).await;
    let read = stores.refused_requests().unwrap();
    for known in [&mine, &unread, &late] {
        assert_eq!(read.refused_request(known.id).await.unwrap().as_ref(), Some(known));
    }
    assert_eq!(read.refused_request(RequestId::from(Uuid::new_v4())).await.unwrap(), None);
    let of_wallet = RefusalFilter { wallet: Some(wallet), ..all_refusals() };
    assert_eq!(listed(stores, of_wallet.clone(), 5).await, std::slice::from_ref(&mine));
    assert_eq!(hours(stores, of_wallet).await, [("insufficient_funds".into(), 1)]);
    let period = Period { from: Some(late.at), to: Some(late.at.after(HOUR)) };
    let later = RefusalFilter { period, ..all_refusals() };
    assert_eq!(listed(stores, later, 5).await, std::slice::from_ref(&late));
    let of_code = RefusalFilter { code: Some("insufficient_funds".into()), ..all_refusals() };
    assert_eq!(listed(stores, of_code, 1).await, [unread, mine]);
}

fn all_refusals() -> RefusalFilter {
    RefusalFilter::default()
}

fn request(api_key: ApiKeyId, code: &'static str, n: u32) -> RefusedRequest {
    RefusedRequest {
        id: RequestId::from(Uuid::new_v4()),
        at: sample::NOW.after(Duration::from_micros(n.into())),
        api_key,
        wallet: sample::WALLET,
        code: code.into(),
        status: 429,
        model: None,
        shortage: None,
    }
}

/// Adds requests, each listed and counted.
async fn add(stores: &dyn Stores, requests: &[RefusedRequest]) {
    let mut counts: BTreeMap<RefusalHour, u64> = BTreeMap::new();
    for RefusedRequest { at, wallet, api_key, code, .. } in requests {
        let (wallet, api_key) = (*wallet, *api_key);
        let of = RefusalHour { hour: hour_of(*at), wallet, api_key, code: code.clone() };
        let count = counts.entry(of).or_default();
        *count = count.saturating_add(1);
    }
    let counts = counts.into_iter().map(|(of, count)| RefusalCount { of, count }).collect();
    let batch = RefusalBatch { counts, listed: requests.to_vec() };
    stores.statistics().unwrap().add_refusals(Arc::new(batch)).await.unwrap();
}

/// The whole list, newest first, by pages of so many.
async fn listed(stores: &dyn Stores, filter: RefusalFilter, limit: u32) -> Vec<RefusedRequest> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest { order: Order::Newest, after, limit };
        let read = stores.refused_requests().unwrap();
        let page = read.refused_requests(filter.clone(), request).await.unwrap();
        found.extend(page.rows);
        if page.next.is_none() {
            return found;
        }
        after = page.next;
    }
}

/// Codes and numbers of the hours.
async fn hours(stores: &dyn Stores, filter: RefusalFilter) -> Vec<(String, u64)> {
    let found: Vec<HourlyRefusals> =
        stores.refused_requests().unwrap().refusal_hours(filter, 100).await.unwrap();
    found.into_iter().map(|it| (it.code, it.count)).collect()
}
