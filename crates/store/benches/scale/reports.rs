//! Reports over hours that are summed: of one customer by every two keys, and of everybody.

use std::time::{Duration, Instant};

use holdfast_domain::WalletId;
use holdfast_domain::admin::report::{GroupBy, Grouping, Reports as _, UsageFilter, UsageQuery};
use holdfast_store::Store;
use holdfast_store::usage::SummingProgress;

use crate::book::{Book, id};
use crate::say;

/// Longest time of a report for one customer.
const CUSTOMER: Duration = Duration::from_millis(300);

/// Times of five, the fastest first.
async fn times(store: &Store, query: &UsageQuery) -> (usize, Vec<Duration>) {
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..5 {
        let begun = Instant::now();
        rows = store.usage(query.clone()).await.unwrap().len();
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    (rows, times)
}

/// Sums all hours.
pub(crate) async fn sum(book: &mut Book) {
    let (begun, mut steps, mut longest) = (Instant::now(), 0_u32, Duration::ZERO);
    loop {
        let step = Instant::now();
        if book.store.sum_usage().await.unwrap() == SummingProgress::Done {
            break;
        }
        longest = longest.max(step.elapsed());
        steps += 1;
    }
    let rows = book.number("SELECT count(*) FROM usage_hours").await;
    let all = begun.elapsed();
    say(&format!("summed in {steps} steps, {all:.0?}, the longest {longest:.1?}: {rows} rows"));
}

/// Reads reports; those of a customer that take too long.
pub(crate) async fn read(store: &Store) -> Vec<String> {
    let filter =
        UsageFilter { wallet: Some(WalletId::from_bytes(id('w', 0))), ..UsageFilter::default() };
    let mut slow = Vec::new();
    say("the large customer by two keys: fastest to slowest of five");
    for (at, first) in GroupBy::ALL.into_iter().enumerate() {
        for second in GroupBy::ALL.into_iter().skip(at + 1) {
            let by = Grouping::by_both(first, second).unwrap();
            let query = UsageQuery { filter: filter.clone(), ..UsageQuery::all(by) };
            let (rows, times) = times(store, &query).await;
            say(&format!(
                "  {first:?} and {second:?}: {:.0?} to {:.0?} ({rows} rows)",
                times[0], times[4]
            ));
            slow.extend((times[2] > CUSTOMER).then(|| {
                format!("a customer by {first:?} and {second:?} in {CUSTOMER:?}: {:.0?}", times[2])
            }));
        }
    }
    for (first, second) in [(GroupBy::Day, GroupBy::Model), (GroupBy::Route, GroupBy::Model)] {
        let query = UsageQuery::all(Grouping::by_both(first, second).unwrap());
        let (rows, times) = times(store, &query).await;
        let [least, most] = [times[0], times[4]];
        say(&format!(
            "everybody by {first:?} and {second:?}: {least:.0?} to {most:.0?} ({rows} rows)"
        ));
    }
    slow
}
