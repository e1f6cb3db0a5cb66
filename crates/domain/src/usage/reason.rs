//! Reasons for which the usage of a run is not as its provider reported it. A closed set: each reason
//! has one label in metrics, log lines and views, and one bit in the row of its operation.

use std::fmt;

/// Way in which the usage of a run differs from its provider's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageReason {
    /// The answer came without a report.
    NotReported,
    /// The report lacks the prompt's count or the completion's.
    CountMissing,
    /// The prompt's count or the completion's is negative, fractional or not a number.
    CountUnreadable,
    /// The prompt is longer than the model's context.
    AboveContext,
    /// The output is above [`Meters::completion_max`](super::Meters::completion_max).
    AboveOutput,
    /// The answer has text, and the report counts no output.
    TextWithoutTokens,
    /// A detail exceeds its whole, and was cut to it.
    PartCut,
    /// A detail is negative, fractional or not a number, and was left out.
    PartUnreadable,
    /// The total shows that a detail is not a part of its whole, and it was added.
    BesideWhole,
    /// The total exceeds prompt and completion, and the rest was added to the output.
    RestIsOutput,
    /// The total is not a count, or no reading of the report explains it, and it was left out.
    TotalNotBelieved,
    /// An estimate leaves out images, files or audio for which the model has no figure.
    MediaNotCounted,
    /// The gateway behind reports a charge above [`charge_max`](crate::billing::charge_max), and the cost
    /// is not known.
    ChargeTooLarge,
}

impl UsageReason {
    /// Number of reasons.
    pub const COUNT: usize = 13;

    /// Every reason, in the order of its bits.
    // Rows hold the bits: a new reason goes to the end, and none ever moves.
    pub const ALL: [Self; Self::COUNT] = [
        Self::NotReported,
        Self::CountMissing,
        Self::CountUnreadable,
        Self::AboveContext,
        Self::AboveOutput,
        Self::TextWithoutTokens,
        Self::PartCut,
        Self::PartUnreadable,
        Self::BesideWhole,
        Self::RestIsOutput,
        Self::TotalNotBelieved,
        Self::MediaNotCounted,
        Self::ChargeTooLarge,
    ];

    /// The name in metrics, log lines and views.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotReported => "not_reported",
            Self::CountMissing => "count_missing",
            Self::CountUnreadable => "count_unreadable",
            Self::AboveContext => "above_context",
            Self::AboveOutput => "above_output",
            Self::TextWithoutTokens => "text_without_tokens",
            Self::PartCut => "part_cut",
            Self::PartUnreadable => "part_unreadable",
            Self::BesideWhole => "beside_whole",
            Self::RestIsOutput => "rest_is_output",
            Self::TotalNotBelieved => "total_not_believed",
            Self::MediaNotCounted => "media_not_counted",
            Self::ChargeTooLarge => "charge_too_large",
        }
    }

    const fn bit(self) -> u16 {
        match self {
            Self::NotReported => 1,
            Self::CountMissing => 1 << 1,
            Self::CountUnreadable => 1 << 2,
            Self::AboveContext => 1 << 3,
            Self::AboveOutput => 1 << 4,
            Self::TextWithoutTokens => 1 << 5,
            Self::PartCut => 1 << 6,
            Self::PartUnreadable => 1 << 7,
            Self::BesideWhole => 1 << 8,
            Self::RestIsOutput => 1 << 9,
            Self::TotalNotBelieved => 1 << 10,
            Self::MediaNotCounted => 1 << 11,
            Self::ChargeTooLarge => 1 << 12,
        }
    }
}

/// Set of reasons; empty if the usage is as reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UsageReasons(u16);

impl UsageReasons {
    /// No reason: the usage is as reported.
    pub const NONE: Self = Self(0);

    /// The set with one more reason.
    #[must_use]
    pub const fn with(self, reason: UsageReason) -> Self {
        Self(self.0 | reason.bit())
    }

    /// The set with one more reason if the condition holds.
    #[must_use]
    pub const fn with_if(self, condition: bool, reason: UsageReason) -> Self {
        if condition { self.with(reason) } else { self }
    }

    /// True if no reason is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Reasons in the set, in the order of [`UsageReason::ALL`].
    pub fn iter(self) -> impl Iterator<Item = UsageReason> {
        UsageReason::ALL.into_iter().filter(move |reason| self.0 & reason.bit() != 0)
    }

    /// Number of the set in a row.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Set of a row. Bits of reasons that a later release knows are left out.
    // A node of the release before reads rows of the one after it: they must not look broken.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        let known = UsageReason::ALL.into_iter().filter(|reason| bits & reason.bit() != 0);
        known.collect()
    }
}

impl FromIterator<UsageReason> for UsageReasons {
    fn from_iter<I: IntoIterator<Item = UsageReason>>(reasons: I) -> Self {
        reasons.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for UsageReasons {
    /// Labels with commas between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, reason) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            f.write_str(reason.label())?;
        }
        Ok(())
    }
}
