//! Rows that are lost when a migration is taken back: their counts, in words for people.

use std::fmt;

/// Rows of one table that taking a migration back deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostTable {
    pub(crate) table: &'static str,
    /// One row in words, and several.
    pub(crate) nouns: [&'static str; 2],
}

/// Rows that would be deleted for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss(pub(crate) Vec<(i64, LostTable)>);

impl Loss {
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.iter().all(|(count, _)| *count == 0)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.0.iter().map(|(count, LostTable { nouns: [one, several], .. })| {
            if *count == 1 { format!("1 {one}") } else { format!("{count} {several}") }
        });
        let counted: Vec<_> = counted.collect();
        match counted.split_last() {
            Some((last, [])) => f.write_str(last),
            Some((last, others)) => write!(f, "{} and {last}", others.join(", ")),
            None => f.write_str("nothing"),
        }
    }
}

/// Choice for rows that taking a migration back would delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfFilled {
    /// Rows stay, and so does the migration: it is refused with their counts.
    Refuse,
    /// Rows are deleted for good.
    Delete,
}
