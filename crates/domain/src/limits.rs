//! Limits of an API key: counters by window, reserved with the claim and corrected with the ending,
//! in the same transactions, so that they are exact across nodes.
//!
//! | | requests | tokens | concurrency | spend |
//! |---|---|---|---|---|
//! | T1, T7 reserve | +1 | + bound | +1 | + hold |
//! | T2, T2b settle | stays | := metered | −1 | := charge |
//! | T3 not run | −1 in generation 1, else stays | − bound | −1 | − hold |
//! | T4, T5, T6 release | stays | stays | −1 | − hold |
//!
//! A run that may have happened stays counted: a refused, abandoned or cancelled run is free for its caller,
//! and may cost the operator its whole hold. If its request and tokens were given back, no limit by the minute
//! would bound how much of that one key can cause. Only proof that there was no run gives them back, and the
//! request only once for an operation: each reopening writes rows for ever.
//!
//! A correction goes to the window of the admission, also after that window has passed. Never: an
//! ending that is refused for a counter; only reservations have a bound.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::limits::{Counter, Limits};
//! use holdfast_domain::Micros;
//!
//! let limits = Limits { requests_per_minute: Some(60), concurrency: Some(4), ..Limits::default() };
//! let reserved = limits.reservations(Micros::new(5_000), 1_200);
//! let reserved: Vec<_> = reserved.iter().map(|it| (it.counter, it.amount, it.bound)).collect();
//! assert_eq!(reserved, [(Counter::Requests, 1, Some(60)), (Counter::Concurrency, 1, Some(4))]);
//! ```

mod reservation;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use self::reservation::Reservation;
use crate::{Micros, Timestamp};

/// The limits of an API key; `None` for an absent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Runs a minute, those that were refused, abandoned or cancelled among them.
    pub requests_per_minute: Option<u64>,
    /// Prompt and completion tokens a minute.
    pub tokens_per_minute: Option<u64>,
    /// Operations that run at once.
    pub concurrency: Option<u64>,
    /// Spend within a window.
    pub spend: Option<SpendLimit>,
}

/// Bound on the spend of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendLimit {
    /// Most that may be spent, holds included, in the wallet's currency.
    pub micros: Micros,
    /// Window that the spend is summed over.
    pub window: SpendWindow,
}

/// Window over which spend is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendWindow {
    /// For ever.
    Total,
    /// A UTC day.
    Day,
    /// A UTC month.
    Month,
}

impl SpendWindow {
    /// Every window.
    pub const ALL: [Self; 3] = [Self::Total, Self::Day, Self::Month];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Counter that sums it.
    #[must_use]
    pub const fn counter(self) -> Counter {
        match self {
            Self::Total => Counter::SpendTotal,
            Self::Day => Counter::SpendDay,
            Self::Month => Counter::SpendMonth,
        }
    }
}

/// Limit that is counted in whole numbers, beside the bound on spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountLimit {
    /// [`Limits::requests_per_minute`].
    RequestsPerMinute,
    /// [`Limits::tokens_per_minute`].
    TokensPerMinute,
    /// [`Limits::concurrency`].
    Concurrency,
}

/// Words of a counted limit, and its counter.
#[derive(Debug, Clone, Copy)]
pub struct CountLimitRow {
    /// Member in bodies, answers and rows.
    pub member: &'static str,
    /// Counter that is compared with it.
    pub counter: Counter,
    /// Label behind its number, at the command line.
    pub label: &'static str,
    /// Title of its field, in forms.
    pub title: &'static str,
    /// Title of its counter's reading, on pages.
    pub reading: &'static str,
}

impl CountLimit {
    /// Every counted limit, in the order of answers. The first that is reached is the one that a refusal names.
    pub const ALL: [Self; 3] = [Self::RequestsPerMinute, Self::TokensPerMinute, Self::Concurrency];

    /// Words and counter.
    #[must_use]
    pub const fn row(self) -> CountLimitRow {
        match self {
            Self::RequestsPerMinute => CountLimitRow {
                member: "requests_per_minute",
                counter: Counter::Requests,
                label: "rpm",
                title: "Requests per minute",
                reading: "Requests this minute",
            },
            Self::TokensPerMinute => CountLimitRow {
                member: "tokens_per_minute",
                counter: Counter::Tokens,
                label: "tpm",
                title: "Tokens per minute",
                reading: "Tokens this minute",
            },
            Self::Concurrency => CountLimitRow {
                member: "concurrency",
                counter: Counter::Concurrency,
                label: "at once",
                title: "Operations at once",
                reading: "At once",
            },
        }
    }
}

/// Counter of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Runs in a UTC minute.
    Requests,
    /// Tokens in a UTC minute.
    Tokens,
    /// Operations that run now.
    Concurrency,
    /// Spend for ever.
    SpendTotal,
    /// Spend in a UTC day.
    SpendDay,
    /// Spend in a UTC month.
    SpendMonth,
}

impl Counter {
    /// Every counter. Rows keep reservations as bits in this order: a new counter goes to the end, and
    /// none ever moves. A row has bits for seven: the eighth is [`Reservation::CANCELLED_OPEN`].
    pub const ALL: [Self; 6] = [
        Self::Requests,
        Self::Tokens,
        Self::Concurrency,
        Self::SpendTotal,
        Self::SpendDay,
        Self::SpendMonth,
    ];

    /// Name in rows and answers, unit, and span of the window. Endings, seeds and audits follow from the unit.
    const fn row(self) -> (&'static str, Unit, Span) {
        match self {
            Self::Requests => ("requests", Unit::Requests, Span::Minute),
            Self::Tokens => ("tokens", Unit::Tokens, Span::Minute),
            Self::Concurrency => ("concurrency", Unit::Running, Span::Ever),
            Self::SpendTotal => ("spend_total", Unit::Micros, Span::Ever),
            Self::SpendDay => ("spend_day", Unit::Micros, Span::Day),
            Self::SpendMonth => ("spend_month", Unit::Micros, Span::Month),
        }
    }

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.row().0
    }

    /// Unit that it counts.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.row().1
    }

    /// Span of its window.
    #[must_use]
    pub const fn span(self) -> Span {
        self.row().2
    }

    /// The start of the window that a moment falls into; the epoch for counters without one.
    #[must_use]
    pub fn window(self, at: Timestamp) -> Timestamp {
        // Microseconds. The Euclidean remainder floors moments before 1970 as well.
        const MINUTE: i64 = 60_000_000;
        const DAY: i64 = 86_400_000_000;
        let micros = at.as_micros();
        let floor = |span: i64| micros.saturating_sub(micros.rem_euclid(span));
        Timestamp::from_micros(match self.span() {
            // One row for ever: it has no window that could begin anew.
            Span::Ever => 0,
            Span::Minute => floor(MINUTE),
            Span::Day => floor(DAY),
            Span::Month => {
                // The first of the month, as a whole day since the epoch, back in microseconds.
                let day = micros.div_euclid(DAY);
                day.saturating_sub(day_of_month(day)).saturating_mul(DAY)
            }
        })
    }

    /// The end of the window that a moment falls into; `None` for counters without one.
    #[must_use]
    pub fn window_end(self, at: Timestamp) -> Option<Timestamp> {
        const DAY: Duration = Duration::from_secs(86_400);
        let start = self.window(at);
        match self.span() {
            Span::Ever => None,
            Span::Minute => Some(start.after(Duration::from_secs(60))),
            Span::Day => Some(start.after(DAY)),
            // From the first of a month, 31 days are the next month or its first days.
            Span::Month => Some(self.window(start.after(DAY.saturating_mul(31)))),
        }
    }

    /// Place in [`Self::ALL`], which is its number in rows.
    #[must_use]
    pub const fn index(self) -> u8 {
        match self {
            Self::Requests => 0,
            Self::Tokens => 1,
            Self::Concurrency => 2,
            Self::SpendTotal => 3,
            Self::SpendDay => 4,
            Self::SpendMonth => 5,
        }
    }
}

/// Unit that a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Runs.
    Requests,
    /// Prompt and completion tokens.
    Tokens,
    /// Operations that run now.
    Running,
    /// Micros of the wallet's currency.
    Micros,
}

/// Span of a counter's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// For ever.
    Ever,
    /// A UTC minute.
    Minute,
    /// A UTC day.
    Day,
    /// A UTC month.
    Month,
}

/// Days since the first of the month, from days since 1970-01-01, in the proleptic Gregorian
/// calendar: eras of 400 years that begin on the first of March, so that a leap day is the last day
/// of its year and moves no other day of it.
fn day_of_month(day: i64) -> i64 {
    // 719,468 days from 0000-03-01 to the epoch; 146,097 days in an era, 36,524 in its centuries,
    // 1,460 in four years without their leap day.
    let day_of_era = day.saturating_add(719_468).rem_euclid(146_097);
    let leap_days = |n: i64, every: i64| n.div_euclid(every);
    let year_of_era = day_of_era
        .saturating_sub(leap_days(day_of_era, 1_460))
        .saturating_add(leap_days(day_of_era, 36_524))
        .saturating_sub(leap_days(day_of_era, 146_096))
        .div_euclid(365);
    let year_start = year_of_era
        .saturating_mul(365)
        .saturating_add(year_of_era.div_euclid(4))
        .saturating_sub(year_of_era.div_euclid(100));
    let day_of_year = day_of_era.saturating_sub(year_start);
    // March is month 0. Five months from March or August on have 153 days: (153 m + 2) / 5 is the
    // day of the year on which month m begins.
    let month = day_of_year.saturating_mul(5).saturating_add(2).div_euclid(153);
    day_of_year.saturating_sub(month.saturating_mul(153).saturating_add(2).div_euclid(5))
}

/// Change of one counter. With a bound it is a reservation, refused when the bound would be passed;
/// without one it is a correction, which is never refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterMove {
    /// The counter.
    pub counter: Counter,
    /// Amount that is added: requests, tokens, operations or micros.
    pub amount: i64,
    /// Most that the counter may reach.
    pub bound: Option<i64>,
}

/// Readings of an API key's counters, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterReadings {
    /// Bits of the known ones, in the order of [`Counter::ALL`], the first the lowest.
    known: u8,
    used: [i64; Counter::ALL.len()],
}

impl CounterReadings {
    /// Reading of a counter; `None` if it is not known.
    #[must_use]
    pub fn used(&self, counter: Counter) -> Option<i64> {
        let is_known = self.known & Reservation::bit(counter) != 0;
        self.used.get(usize::from(counter.index())).copied().filter(|_used| is_known)
    }

    /// Readings with this counter at so much.
    #[must_use]
    pub fn with(mut self, counter: Counter, used: i64) -> Self {
        if let Some(place) = self.used.get_mut(usize::from(counter.index())) {
            *place = used;
            self.known |= Reservation::bit(counter);
        }
        self
    }

    /// Readings after these corrections; what is not known stays so.
    #[must_use]
    pub fn with_moves(self, moves: &[CounterMove]) -> Self {
        moves.iter().fold(self, |tally, moved| match tally.used(moved.counter) {
            // Never below zero: a correction may meet a counter that began anew.
            Some(used) => tally.with(moved.counter, used.saturating_add(moved.amount).max(0)),
            None => tally,
        })
    }
}

impl FromIterator<(Counter, i64)> for CounterReadings {
    fn from_iter<I: IntoIterator<Item = (Counter, i64)>>(counters: I) -> Self {
        let with = |tally: Self, (counter, used)| tally.with(counter, used);
        counters.into_iter().fold(Self::default(), with)
    }
}

impl fmt::Debug for CounterReadings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Counter::ALL.into_iter().filter_map(|c| Some((c, self.used(c)?)));
        f.debug_map().entries(known).finish()
    }
}

/// Limit that a claim would have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedLimit {
    /// The counter.
    pub counter: Counter,
    /// Amount that the claim would have added to it.
    pub amount: i64,
    /// Most that it may reach.
    pub bound: i64,
    /// Readings of the counters that the claim reserves of.
    pub counters: CounterReadings,
    /// The database's clock.
    pub at: Timestamp,
}

impl ReachedLimit {
    /// Rest of the counter; zero if its reading is not known.
    #[must_use]
    pub fn remaining(&self) -> i64 {
        // Unknown is taken for full: nobody is told of room that may not be there.
        let used = self.counters.used(self.counter).unwrap_or(self.bound);
        self.bound.saturating_sub(used).max(0)
    }

    /// True if the same claim fits as soon as no other request is counted: waiting may help.
    #[must_use]
    pub const fn may_fit_later(&self) -> bool {
        self.amount <= self.bound
    }

    /// Time until the counter begins anew; `None` if it never does.
    #[must_use]
    pub fn resets_in(&self) -> Option<Duration> {
        self.counter.window_end(self.at).map(|end| end.since(self.at))
    }
}

impl Limits {
    /// Bound of a counted limit; `None` if there is none.
    #[must_use]
    pub const fn count(&self, limit: CountLimit) -> Option<u64> {
        match limit {
            CountLimit::RequestsPerMinute => self.requests_per_minute,
            CountLimit::TokensPerMinute => self.tokens_per_minute,
            CountLimit::Concurrency => self.concurrency,
        }
    }

    /// Bounds of all counted limits.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<CountLimit, Option<u64>> {
        CountLimit::ALL.into_iter().map(|limit| (limit, self.count(limit))).collect()
    }

    /// Limits with this bound of a counted limit.
    #[must_use]
    pub const fn with_count(self, limit: CountLimit, bound: Option<u64>) -> Self {
        match limit {
            CountLimit::RequestsPerMinute => Self { requests_per_minute: bound, ..self },
            CountLimit::TokensPerMinute => Self { tokens_per_minute: bound, ..self },
            CountLimit::Concurrency => Self { concurrency: bound, ..self },
        }
    }

    /// Counters that begin to count with an edit of `before` into these limits: they are seeded with the sums
    /// of the key's operations in their windows, under any earlier limits.
    #[must_use]
    pub fn seeded_since(&self, before: &Self) -> Vec<Counter> {
        let counted = |limit: CountLimit| {
            let (counter, [was, is]) =
                (limit.row().counter, [before, self].map(|it| it.count(limit)));
            let is_seeded = match counter.unit() {
                // A limit in force has counted earlier generations too, which rows do not tell.
                Unit::Requests | Unit::Tokens => was.is_none(),
                Unit::Running | Unit::Micros => was != is,
            };
            (is.is_some() && is_seeded).then_some(counter)
        };
        let spend = self.spend.filter(|_limit| before.spend != self.spend);
        let spend = spend.map(|limit| limit.window.counter());
        CountLimit::ALL.into_iter().filter_map(counted).chain(spend).collect()
    }

    /// Reservations of a claim under these limits, each with its bound.
    #[must_use]
    pub fn reservations(&self, hold: Micros, tokens: u64) -> Vec<CounterMove> {
        let reserve = |counter: Counter, bound| {
            let amount = match counter.unit() {
                Unit::Requests | Unit::Running => 1,
                Unit::Tokens => amount(tokens),
                Unit::Micros => hold.get(),
            };
            CounterMove { counter, amount, bound: Some(bound) }
        };
        let counted = |limit: CountLimit| {
            self.count(limit).map(|most| reserve(limit.row().counter, amount(most)))
        };
        let spend = self.spend.map(|limit| reserve(limit.window.counter(), limit.micros.get()));
        CountLimit::ALL.into_iter().filter_map(counted).chain(spend).collect()
    }
}

fn amount(count: u64) -> i64 {
    // A limit beyond the signed range is one that nothing reaches.
    i64::try_from(count).unwrap_or(i64::MAX)
}
