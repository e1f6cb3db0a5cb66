//! Costs that no run can have caused, in sums that a version before has made, and in rows that are not summed
//! yet: the command takes them out of both, once, beside a process that sums, and changes no operation.

use std::time::Duration;

use holdfast_domain::billing::COST_MAX;

use super::{Book, sum_all};
use crate::raw::Raw;
use crate::scratch::Home;

impl Book {
    /// Raises the costs of some operations, and the sums of their hours by as much: so a version before
    /// has summed them.
    async fn raise_costs(&mut self, raw: &mut Raw) -> usize {
        let absurd = COST_MAX.get() * 3;
        let those = "provider_cost IS NOT NULL AND finished_at IS NOT NULL AND seq % 2 = 1 \
             AND seq NOT IN (SELECT op_seq FROM excluded_costs)";
        let usual = format!("{those} AND provider_cost <= {}", COST_MAX.get());
        let summed = format!(
            "{usual} AND seq < (SELECT operations_to FROM usage_summed) \
             AND seq NOT IN (SELECT op_seq FROM late_ends)"
        );
        let mut raised = 0;
        for at in 0..self.rows.len() {
            let seq = self.rows[at].seq;
            let is =
                |of: &str| format!("SELECT count(*) FROM operations WHERE seq = {seq} AND {of}");
            if raw.number(&is(&usual)).await == 0 {
                continue;
            }
            if raw.number(&is(&summed)).await == 1 {
                let row = &self.rows[at];
                let (wallet, key) = &self.owners[row.owner];
                let (wallet, key) = (self.blob(wallet.id.to_bytes()), self.blob(key.id.to_bytes()));
                let (hour, model) = (row.finished / super::HOUR * super::HOUR, row.model);
                let route = row.attempts.1.replace('\'', "''");
                raw.run(&format!(
                    "UPDATE usage_hours SET provider_cost = provider_cost + {absurd},
                     margin = margin - {absurd} WHERE wallet_id = {wallet} AND hour = {hour}
                     AND api_key_id = {key} AND model = '{model}' AND route = '{route}'"
                ))
                .await;
            }
            raw.run(&format!(
                "UPDATE operations SET provider_cost = provider_cost + {absurd} WHERE seq = {seq}"
            ))
            .await;
            self.rows[at].cost = self.rows[at].cost.map(|cost| cost + absurd);
            raised += 1;
        }
        raised
    }
}

async fn absurd_costs_are_taken_out_of_sums_that_have_them(home: &impl Home) {
    let mut book = Book::new(home, 38).await;
    let store = home.store();
    book.add(80).await;
    book.go_on().await;
    sum_all(store).await;
    book.go_on().await;
    book.add(40).await;
    let mut raw = Raw::reckless(home).await;
    let raised = book.raise_costs(&mut raw).await;
    assert!(raised > 10, "{raised}");
    let found = store.verify().await.unwrap().mismatches;
    let usage: Vec<_> = found.iter().filter(|it| it.sentence.starts_with("its usage")).collect();
    assert!(usage.is_empty(), "what is summed is not judged again: {usage:?}");
    let absurd = store.absurd_costs().await.unwrap().unwrap();
    assert!(absurd.operations >= u64::try_from(raised).unwrap(), "{absurd:?}");
    let rows = "SELECT CAST(sum(provider_cost / 1000) AS bigint) FROM operations";
    let (rows_before, steps) = (raw.number(rows).await, "SELECT steps FROM usage_summed");
    let before = raw.number(steps).await;
    assert_eq!(store.exclude_costs().await.unwrap(), absurd.operations);
    assert_eq!(raw.number(steps).await, before + 1, "it counts as a step");
    book.check(store, "taken out").await;
    assert_eq!(store.absurd_costs().await.unwrap(), None);
    assert_eq!(store.exclude_costs().await.unwrap(), 0, "a second time");
    assert_eq!(raw.number(rows).await, rows_before, "operations stay as they are");
    sum_all(store).await;
    book.check(store, "summed after it").await;
}

async fn an_exclusion_and_a_summing_at_once_lose_nothing(home: &impl Home) {
    let mut book = Book::new(home, 83).await;
    let other = home.again().await;
    book.add(150).await;
    while home.store().sum_usage_older_than(Duration::ZERO).await.unwrap()
        == holdfast_store::usage::SummingProgress::Step
    {}
    book.add(100).await;
    book.go_on().await;
    let mut raw = Raw::reckless(home).await;
    book.raise_costs(&mut raw).await;
    let (_steps, first, second) =
        tokio::join!(sum_all(home.store()), other.exclude_costs(), home.store().exclude_costs());
    assert!(first.unwrap() + second.unwrap() > 10);
    book.check(home.store(), "at once").await;
    other.close().await.unwrap();
}

crate::scratch::on_every_store! {
    absurd_costs_are_taken_out_of_sums_that_have_them,
    an_exclusion_and_a_summing_at_once_lose_nothing,
}
