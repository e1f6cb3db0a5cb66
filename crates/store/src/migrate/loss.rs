//! Rows that are lost when a migration is taken back: their counts, in words for people.

use std::fmt;

/// Rows that would be deleted for good: those of the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Wallets, whatever is in them.
    pub wallets: i64,
    /// API keys.
    pub api_keys: i64,
    /// Operations.
    pub operations: i64,
}

impl Loss {
    pub(super) const fn is_nothing(self) -> bool {
        self.wallets == 0 && self.api_keys == 0 && self.operations == 0
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: i64, noun| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        };
        let Self { wallets, api_keys, operations } = *self;
        let (wallets, api_keys) = (of(wallets, "wallet"), of(api_keys, "API key"));
        write!(f, "{wallets}, {api_keys}, {} and the book of them", of(operations, "operation"))
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
