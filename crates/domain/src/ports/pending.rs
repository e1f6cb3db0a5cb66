//! Work that waits in the shared rows, as a heartbeat reports it.
//!
//! A process at rest reads its shared rows once for each heartbeat, in the statement that renews its lease. The tasks
//! that do the work read for themselves only while their kind is reported. A report may name work that does not exist
//! and never leaves out work that does: a store that does not look reports [`PendingWork::ALL`].

/// Kind of work that waits in the shared rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Operations that [`Journal::due`](super::Journal::due) may return.
    Due,
    /// Operations that [`Journal::leased_to`](super::Journal::leased_to) returns for this process.
    Leased,
    /// Events without their deliveries, and deliveries that are due within a lease from now.
    Outbox,
    /// Jobs that any process may claim.
    Job,
}

impl WorkKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Due, Self::Leased, Self::Outbox, Self::Job];

    const fn bit(self) -> u8 {
        match self {
            Self::Due => 1,
            Self::Leased => 2,
            Self::Outbox => 4,
            Self::Job => 8,
        }
    }
}

/// Set of kinds of work that may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingWork(u8);

impl PendingWork {
    /// No work waits.
    pub const NONE: Self = Self(0);
    /// Report of a store that has not looked.
    pub const ALL: Self = Self(
        WorkKind::Due.bit() | WorkKind::Leased.bit() | WorkKind::Outbox.bit() | WorkKind::Job.bit(),
    );

    /// The same, with work of this kind.
    #[must_use]
    pub const fn with(self, kind: WorkKind) -> Self {
        Self(self.0 | kind.bit())
    }

    /// True if work of this kind may wait.
    #[must_use]
    pub const fn has(self, kind: WorkKind) -> bool {
        self.0 & kind.bit() != 0
    }
}
