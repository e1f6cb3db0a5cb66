//! Usage of a run, counted by disjoint kinds. Never any content.
//!
//! Many providers report nested counts (cached tokens within prompt tokens, reasoning within
//! completion tokens). A [`UsageReport`] holds them as they were sent, and its rule takes them apart,
//! so that every token is in one kind and priced once. A report that no run can have caused is not
//! accepted: the charge then rests on an own count from the text.

mod reason;
mod report;

pub use self::reason::{UsageReason, UsageReasons};
pub use self::report::{LatestUsage, ReportedCount, ResolvedUsage, UsageCeiling, UsageReport};
use crate::Micros;

/// Kind of metered unit. The kinds are disjoint: a cached input token is not also an input token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeterKind {
    /// Prompt tokens that were read anew.
    Input,
    /// Prompt tokens served from the provider's cache.
    CachedInput,
    /// Prompt tokens written to the provider's cache.
    CacheWrite,
    /// Prompt tokens of audio.
    AudioInput,
    /// Completion tokens.
    Output,
    /// Completion tokens spent on reasoning.
    Reasoning,
    /// Completion tokens of audio.
    AudioOutput,
    /// Requests: always one for a run.
    Request,
    /// Images in the prompt that are priced each. Providers do not report them: they are the request's own
    /// count, added to the meters when a run is metered.
    Image,
}

impl MeterKind {
    /// Number of kinds.
    pub const COUNT: usize = 9;

    /// Units of any kind that is no token, such as seconds, bytes or pages: priced by the million, as
    /// [`Self::Input`] is kept.
    pub const UNIT: Self = Self::Input;

    /// Units that are priced each, as [`Self::Request`] is kept.
    pub const THING: Self = Self::Request;

    /// Every kind, in the order in which rows and answers list them.
    // Tiers are stored as numbers in this order, without names: another order needs a migration.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Input,
        Self::CachedInput,
        Self::CacheWrite,
        Self::AudioInput,
        Self::Output,
        Self::Reasoning,
        Self::AudioOutput,
        Self::Request,
        Self::Image,
    ];

    /// The name in configuration, columns and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::CachedInput => "cached_input",
            Self::CacheWrite => "cache_write",
            Self::AudioInput => "audio_input",
            Self::Output => "output",
            Self::Reasoning => "reasoning",
            Self::AudioOutput => "audio_output",
            Self::Request => "request",
            Self::Image => "image",
        }
    }

    /// True if the price is for a million of it (tokens), false if it is for each.
    #[must_use]
    pub const fn per_million(self) -> bool {
        match self {
            Self::Input
            | Self::CachedInput
            | Self::CacheWrite
            | Self::AudioInput
            | Self::Output
            | Self::Reasoning
            | Self::AudioOutput => true,
            Self::Request | Self::Image => false,
        }
    }
}

/// Count of each kind.
///
/// ```
/// use holdfast_domain::usage::{MeterKind, Meters};
///
/// // Work that is no chat: one unit, and its measured minutes.
/// let minutes = Meters::text(90, 0).unwrap();
/// assert_eq!((minutes.count(MeterKind::Request), minutes.count(MeterKind::Input)), (1, 90));
/// ```
///
/// No count exceeds [`Meters::COUNT_MAX`]: a larger report is absurd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meters([u64; MeterKind::COUNT]);

impl Meters {
    /// Largest count that is believed: about 1.1 × 10^12.
    pub const COUNT_MAX: u64 = 1 << 40;
    /// Completion tokens that are believed beyond twice the requested number.
    const COMPLETION_SLACK: u64 = 1_024;

    /// Meters of these counts.
    ///
    /// # Errors
    ///
    /// [`BadCount`] for a count above [`Meters::COUNT_MAX`].
    pub fn from_fn(count: impl Fn(MeterKind) -> u64) -> Result<Self, BadCount> {
        let counts = MeterKind::ALL.map(count);
        let is_believed = counts.iter().all(|count| *count <= Self::COUNT_MAX);
        if is_believed { Ok(Self(counts)) } else { Err(BadCount) }
    }

    /// Meters of a request with this much prompt and completion.
    ///
    /// # Errors
    ///
    /// [`BadCount`] for a count above [`Meters::COUNT_MAX`].
    pub fn text(input: u64, output: u64) -> Result<Self, BadCount> {
        let is_believed = input.max(output) <= Self::COUNT_MAX;
        if is_believed { Ok(Self::estimated(input, output)) } else { Err(BadCount) }
    }

    /// Meters of an own count, which ends at the largest that is believed.
    #[must_use]
    pub fn estimated(input: u64, output: u64) -> Self {
        Self(MeterKind::ALL.map(|kind| match kind {
            // All as plain text: a count of our own cannot tell what a cache served or was thought.
            MeterKind::Input => input.min(Self::COUNT_MAX),
            MeterKind::Output => output.min(Self::COUNT_MAX),
            MeterKind::Request => 1,
            MeterKind::CachedInput
            | MeterKind::CacheWrite
            | MeterKind::AudioInput
            | MeterKind::Reasoning
            | MeterKind::AudioOutput
            | MeterKind::Image => 0,
        }))
    }

    /// Meters of a count of one, without token units.
    #[must_use]
    pub fn thing() -> Self {
        Self::estimated(0, 0)
    }

    /// Meters of a count of one with so many units, which end at the largest count that is believed.
    #[must_use]
    pub fn units(units: u64) -> Self {
        Self::estimated(units, 0)
    }

    /// Meters with another count of one kind.
    ///
    /// # Errors
    ///
    /// [`BadCount`] for a count above [`Meters::COUNT_MAX`].
    pub fn with(&self, kind: MeterKind, count: u64) -> Result<Self, BadCount> {
        Self::from_fn(|other| if other == kind { count } else { self.count(other) })
    }

    /// Count of one kind.
    #[must_use]
    pub fn count(&self, kind: MeterKind) -> u64 {
        MeterKind::ALL.iter().zip(self.0).find_map(|(k, n)| (*k == kind).then_some(n)).unwrap_or(0)
    }

    /// Each kind with its count, in the order of [`MeterKind::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (MeterKind, u64)> {
        MeterKind::ALL.into_iter().zip(self.0)
    }

    /// All prompt tokens.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.sum(&[
            MeterKind::Input,
            MeterKind::CachedInput,
            MeterKind::CacheWrite,
            MeterKind::AudioInput,
        ])
    }

    /// All completion tokens.
    #[must_use]
    pub fn completion_tokens(&self) -> u64 {
        self.sum(&[MeterKind::Output, MeterKind::Reasoning, MeterKind::AudioOutput])
    }

    /// Most completion tokens that are believed of a run with this requested bound: twice as many and 1,024.
    #[must_use]
    pub const fn completion_max(asked_for: u64) -> u64 {
        // The slack is for small bounds: twice 16 tokens would not believe a short thought.
        asked_for.saturating_mul(2).saturating_add(Self::COMPLETION_SLACK)
    }

    /// Sum of these kinds. Nine counts of at most 2^40 cannot overflow.
    fn sum(&self, kinds: &[MeterKind]) -> u64 {
        kinds.iter().fold(0, |sum: u64, kind| sum.saturating_add(self.count(*kind)))
    }
}

/// A count that no run is believed to have caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a count is at most {}", Meters::COUNT_MAX)]
pub struct BadCount;

/// Source of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetersSource {
    /// The provider reported it.
    Reported,
    /// The provider reported no believable count: counted from the text.
    Estimated,
}

impl MetersSource {
    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Estimated => "estimated",
        }
    }
}

/// Meters with their source and their cost to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterReading {
    /// Counts by kind.
    pub meters: Meters,
    /// Source of the counts.
    pub source: MetersSource,
    /// Differences between the meters and the provider's report.
    pub reasons: UsageReasons,
    /// Cost of the run at the provider, in the wallet's currency; `None` if it was not reported. No charge is
    /// made of it, and it moves no money.
    pub provider_cost: Option<Micros>,
}
