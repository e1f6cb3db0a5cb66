//! Rows of operations and refunds that were changed by hand after they were summed: what nothing else in the
//! book says a second time, the sums do.

use super::{Book, sum_all};
use crate::raw::Raw;
use crate::scratch::Home;

/// Mismatches of usage, as they are told.
async fn told(home: &impl Home) -> Vec<String> {
    let found = home.store().verify().await.unwrap().mismatches;
    let usage = found.into_iter().filter(|it| it.sentence.starts_with("its usage"));
    usage.map(|it| it.sentence).collect()
}

async fn what_an_operation_says_once_is_compared_with_its_hour(home: &impl Home) {
    let mut book = Book::new(home, 12).await;
    book.add(60).await;
    book.go_on().await;
    sum_all(home.store()).await;
    let mut raw = Raw::reckless(home).await;
    let first = "SELECT min(seq) FROM operations WHERE phase = 'completed' \
         AND provider_cost IS NOT NULL AND meters_source = 'reported' AND attempts <> '[]' \
         AND seq NOT IN (SELECT op_seq FROM late_ends)";
    let first = raw.number(first).await;
    let refund = "id = (SELECT id FROM postings WHERE kind = 'refund' ORDER BY seq LIMIT 1)";
    let refunded = format!(
        "SELECT o.seq FROM operations AS o JOIN postings AS t \
         ON t.operation_id = o.id WHERE t.{refund}"
    );
    let refunded = raw.number(&refunded).await;
    let operation = |set: &str| format!("UPDATE operations SET {set} WHERE seq = {first}");
    let moved = |seq: i64| {
        format!(
            "UPDATE postings SET operation_id = (SELECT id FROM operations WHERE seq = {seq})
             WHERE {refund}"
        )
    };
    let attempts = raw.text(&format!("SELECT attempts FROM operations WHERE seq = {first}")).await;
    let released = "SELECT min(seq) FROM operations WHERE phase = 'abandoned' \
         AND seq NOT IN (SELECT op_seq FROM late_ends)";
    let released = raw.number(released).await;
    assert_ne!(first, refunded);
    for (broken, mended, sentence) in [
        (
            operation("meters_source = 'estimated'"),
            operation("meters_source = 'reported'"),
            "estimated -1",
        ),
        (
            operation("provider_cost = provider_cost + 2"),
            operation("provider_cost = provider_cost - 2"),
            "provider_cost -2",
        ),
        (
            operation("finished_at = finished_at + 3600000000"),
            operation("finished_at = finished_at - 3600000000"),
            "completed",
        ),
        (moved(first), moved(refunded), "refunded"),
        (
            operation("attempts = '[]'"),
            operation(&format!("attempts = '{attempts}'")),
            "under other keys",
        ),
        (
            format!(
                "UPDATE operations SET hold = hold + 3 WHERE seq = {released};
                 UPDATE transfers SET amount = amount + 3 WHERE op_seq = {released}"
            ),
            format!("UPDATE operations SET hold = hold - 3 WHERE seq = {released}"),
            "exposure -3",
        ),
        // Whatever became of its money: on no database is it needed that a number is missing.
        (format!("DELETE FROM operations WHERE seq = {first}"), String::new(), "completed +1"),
    ] {
        assert_eq!(told(home).await, Vec::<String>::new(), "before {broken}");
        raw.run(&broken).await;
        let told = told(home).await;
        assert!(told.iter().any(|it| it.contains(sentence)), "{broken}: {told:?}");
        if !mended.is_empty() {
            raw.run(&mended).await;
        }
    }
}

crate::scratch::on_every_store! {
    what_an_operation_says_once_is_compared_with_its_hour,
}
