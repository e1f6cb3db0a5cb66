//! Cells: the values that facts and tables show, each with its own spelling.
//!
//! A text that a person chose is escaped in every place. Amounts are decimal units with their currency,
//! and moments are UTC with the exact one beside it for machines.

use askama::Template;
use holdfast_domain::{Currency, Micros, Timestamp};
use holdfast_wire::api::rfc3339;

use crate::kit::moment::second;

/// A value on a page.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "cell.html")]
pub(crate) enum Cell {
    /// A text.
    Text(String),
    /// Text that is copied and compared: an id, a key, a digest.
    Code(String),
    /// A number.
    Number(String),
    /// An amount, with its currency or under a head that has it.
    Money(String),
    /// An amount, and a line below it: what it is a part of.
    Part(String, String),
    /// A moment: as people read it, and as RFC 3339 writes it.
    Moment(String, String),
    /// A moment that leads to what happened then.
    MomentLink(String, String, String),
    /// A text that leads somewhere.
    Link(Link),
    /// A text that leads to the form of an act on the row: its column stands on every screen.
    Action(Link),
    /// A state in one word.
    Badge(String, Tone),
    /// No value, or none that is known.
    Nothing,
    /// Share of a bound that is used, from 0 to 100, and the same in words.
    Meter(u8, String),
}

/// A text and the address that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) href: String,
}

impl Link {
    pub(crate) fn new(text: impl Into<String>, href: impl Into<String>) -> Self {
        Self { text: text.into(), href: href.into() }
    }
}

/// Tone of a badge or a notice, seen before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong, or ended.
    Bad,
    /// Neither good nor bad.
    Plain,
}

impl Tone {
    /// Class of the stylesheet.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An optional text.
    pub(crate) fn some_text(text: Option<&str>) -> Self {
        text.map_or(Self::Nothing, Self::text)
    }

    pub(crate) fn code(code: impl ToString) -> Self {
        Self::Code(code.to_string())
    }

    pub(crate) fn count(count: impl ToString) -> Self {
        Self::Number(grouped(&count.to_string()))
    }

    /// An amount with its currency.
    pub(crate) fn money(amount: Micros, currency: Currency) -> Self {
        Self::Money(money(amount, currency))
    }

    /// A moment in UTC, to the second.
    pub(crate) fn moment(moment: Timestamp) -> Self {
        Self::Moment(second(moment), rfc3339(moment))
    }

    /// An optional moment.
    pub(crate) fn some_moment(moment: Option<Timestamp>) -> Self {
        moment.map_or(Self::Nothing, Self::moment)
    }

    /// A moment that leads to what happened then.
    pub(crate) fn moment_link(moment: Timestamp, href: impl Into<String>) -> Self {
        Self::MomentLink(second(moment), rfc3339(moment), href.into())
    }

    pub(crate) fn link(text: impl Into<String>, href: impl Into<String>) -> Self {
        Self::Link(Link::new(text, href))
    }

    pub(crate) fn action(text: impl Into<String>, href: impl Into<String>) -> Self {
        Self::Action(Link::new(text, href))
    }

    pub(crate) fn badge(text: impl Into<String>, tone: Tone) -> Self {
        Self::Badge(text.into(), tone)
    }

    /// True for what is aligned to the right, below other numbers.
    pub(crate) const fn is_number(&self) -> bool {
        matches!(self, Self::Number(_)) || self.is_money()
    }

    /// True for an amount.
    pub(crate) const fn is_money(&self) -> bool {
        matches!(self, Self::Money(_) | Self::Part(..))
    }

    /// True for a way to act on the row.
    pub(crate) const fn is_action(&self) -> bool {
        matches!(self, Self::Action(_))
    }
}

/// An amount as people read it: `1,250.00 USD`.
pub(crate) fn money(amount: Micros, currency: Currency) -> String {
    format!("{} {currency}", grouped(&amount.to_string()))
}

/// A decimal number with its thousands grouped.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut grouped = String::with_capacity(number.len() + whole.len() / 3 + 1);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{dot}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_grouped_and_say_their_currency() {
        for (micros, shown) in [
            (1_250_000_000, "1,250.00 USD"),
            (-1_000_000_000_015, "-1,000,000.000015 USD"),
            (0, "0.00 USD"),
            (999_000_000, "999.00 USD"),
        ] {
            assert_eq!(money(Micros::new(micros), Currency::USD), shown);
        }
        assert_eq!(Cell::count(1_234_567), Cell::Number("1,234,567".to_owned()));
    }

    #[test]
    fn what_somebody_chose_is_escaped() {
        let shown = Cell::text("<b>\"x\"</b>").to_string();
        assert!(!shown.contains("<b>"), "{shown}");
        let shown = Cell::link("<i>", "/x?a=\"><script>").to_string();
        assert!(!shown.contains("<i>") && !shown.contains("<script>"), "{shown}");
    }
}
