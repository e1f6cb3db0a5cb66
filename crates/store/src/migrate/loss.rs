//! What goes when a migration is taken back, in words for whoever asks for it.

use std::fmt;

/// What would be deleted for good: the book itself, or what one of its columns says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Wallets, whatever is in them.
    pub wallets: i64,
    /// API keys.
    pub api_keys: i64,
    /// Operations.
    pub operations: i64,
    /// Price versions whose tiers would go: the prices of long prompts.
    pub tiered_prices: i64,
    /// Operations of which it would be forgotten what they cost the operator.
    pub provider_costs: i64,
}

impl Loss {
    pub(super) const fn is_nothing(self) -> bool {
        self.is_no_book() && self.tiered_prices == 0 && self.provider_costs == 0
    }

    const fn is_no_book(self) -> bool {
        self.wallets == 0 && self.api_keys == 0 && self.operations == 0
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: i64, noun| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        };
        let Self { wallets, api_keys, operations, tiered_prices, provider_costs } = *self;
        if self.is_no_book() {
            let tiered = of(tiered_prices, "price version");
            let costs = of(provider_costs, "operation");
            return write!(f, "the tiers of {tiered} and the provider costs of {costs}");
        }
        let (wallets, api_keys) = (of(wallets, "wallet"), of(api_keys, "API key"));
        write!(f, "{wallets}, {api_keys}, {} and the book of them", of(operations, "operation"))
    }
}

/// What becomes of rows that taking a migration back would delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfFilled {
    /// They stay, and so does the migration.
    Refuse,
    /// They go.
    Delete,
}
