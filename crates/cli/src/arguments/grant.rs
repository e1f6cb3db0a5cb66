//! Arguments that describe an API key: its end, its models, its rate limits and its spend limit.
//!
//! Each type is read from one argument by `FromStr`, so that clap refuses a bad one before the command runs, with
//! the argument's name. Its error describes the valid form, because a user sees only that line.
//!
//! Ends and spans stay as they were typed: a span from now is computed by the database's clock, not by this
//! machine's, and a repeated command must have the same digest.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use holdfast_accounts::fields;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::Role;
use holdfast_domain::credential::{BalanceVisibility, UsageScope};
use holdfast_domain::limits::SpendLimit;
use holdfast_domain::model::ModelPattern;

use super::value::{Amount, BadAmount, PeriodBound};

/// Largest limit.
const COUNT_MAX: u64 = *fields::LIMIT.end();
/// No span is longer: a hundred years.
const SPAN_MAX: Duration = Duration::from_secs(*fields::SPAN_SECONDS.end());

/// Reads a count limit: at least one, because zero would let no request run.
pub fn count(text: &str) -> Result<u64, BadCount> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let count = is_number.then(|| text.parse().ok()).flatten();
    count.filter(|count| fields::LIMIT.contains(count)).ok_or(BadCount)
}

/// A text that is not a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no limit: write a whole number from 1 to {COUNT_MAX}, like 5000; without the option there is none"
)]
pub struct BadCount;

/// Change of a limit: to a number, or to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Option<u64>);

/// Reads a change of a limit that is counted.
pub fn limit(text: &str) -> Result<Limit, BadCount> {
    if text == "none" { Ok(Limit(None)) } else { count(text).map(Some).map(Limit) }
}

/// Reads a role.
pub fn role(text: &str) -> Result<Role, BadRole> {
    Role::from_label(text).ok_or(BadRole)
}

/// A text that is not a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no role: write owner, operator, finance, support or auditor, or for one wallet holder_admin, \
     holder_developer or holder_viewer"
)]
pub struct BadRole;

/// Reads a scope of usage reports.
pub fn usage(text: &str) -> Result<UsageScope, BadUsageScope> {
    UsageScope::ALL.into_iter().find(|scope| scope.label() == text).ok_or(BadUsageScope)
}

/// A text that is not a scope of usage reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no scope: write key, for the key's own usage, or wallet, for that of all keys of its wallet"
)]
pub struct BadUsageScope;

/// Reads whether a balance is shown.
pub fn balance(text: &str) -> Result<BalanceVisibility, BadBalance> {
    BalanceVisibility::ALL.into_iter().find(|balance| balance.label() == text).ok_or(BadBalance)
}

/// A text that is not a visibility of the balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither: write shown or hidden")]
pub struct BadBalance;

/// A span of time: a whole number and `s`, `m`, `h` or `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(Duration);

impl Span {
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
        let seconds = units.into_iter().find_map(|(unit, seconds)| {
            let digits = text.strip_suffix(unit)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let count: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
            count.checked_mul(seconds)
        });
        let span = seconds.map(Duration::from_secs).filter(|span| *span <= SPAN_MAX);
        span.map(Self).ok_or(BadSpan)
    }
}

/// A text that is not a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a span of time up to a hundred years: write a whole number with s, m, h or d, like 24h"
)]
pub struct BadSpan;

/// End of an API key: a moment, or a span from its issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// At this moment.
    At(Timestamp),
    /// So long after it is issued.
    After(Duration),
}

impl FromStr for Expiry {
    type Err = BadExpiry;

    fn from_str(text: &str) -> Result<Self, BadExpiry> {
        // A span first: no date and no moment ends in a unit after only digits.
        if let Ok(Span(span)) = text.parse() {
            return if span.is_zero() { Err(BadExpiry) } else { Ok(Self::After(span)) };
        }
        let moment: PeriodBound = text.parse().map_err(|_unreadable| BadExpiry)?;
        Ok(Self::At(moment.at()))
    }
}

/// A text that is not an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an end: write a date like 2027-01-31, a moment like 2027-01-31T09:30:00Z, or a span from now \
     like 30d or 24h"
)]
pub struct BadExpiry;

/// An allow-list: public model ids, or `publisher/*`, with commas between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models(BTreeSet<ModelPattern>);

impl Models {
    pub const fn entries(&self) -> &BTreeSet<ModelPattern> {
        &self.0
    }
}

impl FromStr for Models {
    type Err = BadModels;

    fn from_str(text: &str) -> Result<Self, BadModels> {
        let entry =
            |text: &str| ModelPattern::try_from(text).map_err(|_bad| BadModels(text.to_owned()));
        text.split(',').map(|text| entry(text.trim())).collect::<Result<_, _>>().map(Self)
    }
}

/// An entry of an allow-list that is neither a public model id nor `publisher/*`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a model's public id: write ids like openai/gpt-4o-mini, or openai/* for every model of a publisher, with commas \
     between"
)]
pub struct BadModels(String);

/// A spend limit: an amount, a slash and its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendCap(SpendLimit);

impl SpendCap {
    pub const fn limit(self) -> SpendLimit {
        self.0
    }
}

impl FromStr for SpendCap {
    type Err = BadSpendCap;

    fn from_str(text: &str) -> Result<Self, BadSpendCap> {
        let (amount, label) = text.rsplit_once('/').ok_or(BadSpendCap::Window)?;
        let window = fields::window(label).ok_or(BadSpendCap::Window)?;
        let amount: Amount = amount.parse().map_err(BadSpendCap::Amount)?;
        Ok(Self(SpendLimit { micros: amount.micros(), window }))
    }
}

/// Failure to read a spend limit: its amount, or its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSpendCap {
    #[error("{0}")]
    Amount(BadAmount),
    #[error("write AMOUNT/total, AMOUNT/day or AMOUNT/month, like 25.00/month")]
    Window,
}

#[cfg(test)]
mod tests {
    use holdfast_domain::Micros;

    use holdfast_domain::limits::SpendWindow;

    use super::*;

    #[test]
    fn a_span_is_a_whole_number_and_a_unit() {
        for (text, seconds) in
            [("0s", 0), ("90s", 90), ("5m", 300), ("24h", 86_400), ("30d", 2_592_000)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
        for bad in
            ["", "d", "30", "1.5h", "-1d", "+1d", "1w", "1 d", "36526d", "99999999999999999999s"]
        {
            assert_eq!(bad.parse::<Span>(), Err(BadSpan), "{bad}");
        }
    }

    #[test]
    fn an_end_is_a_moment_or_a_span() {
        let at = |micros| Ok(Expiry::At(Timestamp::from_micros(micros)));
        assert_eq!("1970-01-01T00:00:01Z".parse(), at(1_000_000));
        assert_eq!("1970-01-01T01:00:00.0000015+01:00".parse(), at(2));
        assert_eq!("1970-01-02".parse(), at(86_400_000_000));
        assert_eq!("30d".parse(), Ok(Expiry::After(Duration::from_secs(2_592_000))));
        for bad in ["", "0s", "tomorrow", "2027-02-30", "2027-02-30T00:00:00Z", "30"] {
            assert_eq!(bad.parse::<Expiry>(), Err(BadExpiry), "{bad}");
        }
    }

    #[test]
    fn an_allow_list_has_public_ids_once_each() {
        let ids = |text: &str| text.parse::<Models>().map(|models| models.0.len());
        assert_eq!(ids("a/b"), Ok(1));
        assert_eq!(ids("a/b, c/d,a/b"), Ok(2));
        assert_eq!(ids("a/*,a/b"), Ok(2));
        for (list, bad) in
            [("", ""), ("a/b,", ""), ("a", "a"), ("a/b,A/b", "A/b"), ("*", "*"), ("a/b*", "a/b*")]
        {
            assert_eq!(ids(list), Err(BadModels(bad.to_owned())), "{list}");
        }
    }

    #[test]
    fn a_spend_limit_has_an_amount_and_a_window() {
        let micros = Micros::new(25_000_000);
        for (text, window) in [
            ("25.00/total", SpendWindow::Total),
            ("25/day", SpendWindow::Day),
            ("25.000000/month", SpendWindow::Month),
        ] {
            assert_eq!(text.parse(), Ok(SpendCap(SpendLimit { micros, window })), "{text}");
        }
        for bad in ["25", "25/week", "25/", "/day", "0/day", "-1/day", "1.0000001/day", "1 /day"] {
            assert!(bad.parse::<SpendCap>().is_err(), "{bad}");
        }
    }
}
