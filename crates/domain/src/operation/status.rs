//! The status of an operation: its phase without what the phase carries, for filters and labels.

/// Status of an operation: which phase it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationStatus {
    /// A node owns it.
    Leased,
    /// The answer is kept, and is to be settled.
    Recorded,
    /// The run has ended without an answer, and may be repeated once more.
    Open,
    /// Answered, and paid for.
    Completed,
    /// Answered with an error.
    Refused,
    /// The usage of its run is unknown.
    Abandoned,
}

impl OperationStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Leased, Self::Recorded, Self::Open, Self::Completed, Self::Refused, Self::Abandoned];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::Recorded => "recorded",
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Refused => "refused",
            Self::Abandoned => "abandoned",
        }
    }
}
