//! State of a job, apart from the job: commands of administration are judged by it, and a job names a row of the trail.

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// No process has claimed it.
    Queued,
    /// A process has claimed it, and may have died since.
    Running,
    /// Ended, with a report.
    Done,
    /// Cannot be done. The report until then is kept.
    Failed,
    /// Taken back before a process claimed it.
    Cancelled,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Cancelled];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}
