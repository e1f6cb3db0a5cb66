//! Search over resources: by the first digits of an id, by a part of a name, by ids that were derived.
//!
//! A match is a candidate: the use cases judge whether the caller may read it. So a match names its wallet, and
//! no other part of the resource.
//!
//! ```
//! use holdfast_domain::WalletId;
//! use holdfast_domain::admin::search::IdPrefix;
//!
//! let prefix = IdPrefix::parse("0192f0c1-5b").unwrap();
//! let id = "0192f0c1-5b7d-7c3e-9a51-0f8e6d2b4c11".parse::<WalletId>()?.to_bytes();
//! assert!((prefix.first()..=prefix.last()).contains(&id));
//! assert!(IdPrefix::parse("0192f").is_none(), "five digits would match by chance");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::ResourceId;
use crate::WalletId;

/// Hexadecimal digits of an id.
const DIGITS: usize = 32;

/// Ids that begin with the same hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdPrefix {
    first: [u8; 16],
    last: [u8; 16],
}

impl IdPrefix {
    /// Fewest digits of a prefix: fewer would match by chance.
    pub const DIGITS_MIN: usize = 6;

    /// Reads 6 to 32 hexadecimal digits, with hyphens or without.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|it| *it != '-').collect();
        let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
        if !is_hex || !(Self::DIGITS_MIN..=DIGITS).contains(&digits.len()) {
            return None;
        }
        let filled = |with: char| {
            let rest = std::iter::repeat_n(with, DIGITS.saturating_sub(digits.len()));
            let all: String = digits.chars().chain(rest).collect();
            // Only digits come here: Rust would read a `+` in front as a part of the number.
            u128::from_str_radix(&all, 16).ok().map(u128::to_be_bytes)
        };
        Some(Self { first: filled('0')?, last: filled('f')? })
    }

    /// The least id with these digits.
    #[must_use]
    pub const fn first(self) -> [u8; 16] {
        self.first
    }

    /// The greatest id with these digits.
    #[must_use]
    pub const fn last(self) -> [u8; 16] {
        self.last
    }
}

/// Resource that a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceMatch {
    /// The resource.
    pub thing: ResourceId,
    /// Wallet that it belongs to; `None` for a resource of the operator.
    pub wallet: Option<WalletId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_span_all_ids_that_begin_with_them() {
        let whole = "0192f0c1-5b7d-7c3e-9a51-0f8e6d2b4c11";
        let one = IdPrefix::parse(whole).unwrap();
        assert_eq!(one.first(), one.last());
        let some = IdPrefix::parse("0192F0c").unwrap();
        assert!(some.first() <= one.first() && one.last() <= some.last());
        assert_eq!(some.first()[3], 0xc0);
        assert_eq!(some.last()[3], 0xcf);
        let longer = format!("{whole}0");
        for none in ["", "0192f", "-----", "wallet", "0192f0%", "éééééé", longer.as_str()] {
            assert_eq!(IdPrefix::parse(none), None, "{none}");
        }
    }
}
