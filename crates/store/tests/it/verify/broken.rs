//! Books of which one statement breaks a rule after the other, each mended before the next.

use crate::raw::Raw;
use crate::scratch::Home;

/// Statement, and the begin and a part of what is said of whom.
pub(super) type BrokenRow = (&'static str, &'static str, &'static str);

/// Breaks a book with each statement alone, and expects what is said of it. Of `tables` each comes before those whose
/// rows belong to it; `names` stand for texts in the statements.
pub(super) async fn finds_each(
    home: &impl Home,
    tables: &[&str],
    names: &[(&str, &str)],
    broken: &[BrokenRow],
) {
    assert_eq!(home.store().verify().await.unwrap().mismatches, [], "as it was written");
    let mut raw = Raw::reckless(home).await;
    for table in tables {
        raw.run(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
    }
    for (sql, subject, sentence) in broken {
        let named = |sql: String, (name, text): &(&str, &str)| sql.replace(name, text);
        let sql = names.iter().fold((*sql).to_owned(), named);
        assert!(raw.try_run(&sql).await.unwrap() > 0, "{sql}");
        let found = home.store().verify().await.unwrap().mismatches;
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        let is_told = told.iter().any(|it| it.starts_with(subject) && it.contains(sentence));
        assert!(is_told, "{sql}: {sentence}: {told:#?}");
        for table in tables {
            raw.run(&format!("DELETE FROM {table}")).await;
            raw.run(&format!("INSERT INTO {table} SELECT * FROM kept_{table}")).await;
        }
    }
    assert_eq!(home.store().verify().await.unwrap().mismatches, [], "as it was written");
}
