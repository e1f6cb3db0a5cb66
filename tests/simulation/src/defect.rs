//! Defects: promises that a run breaks on purpose, by which a test shows that the checks would notice.
//!
//! Those of the store are in this crate. Those of the engine are [`Fault`]s, which hold for the life of a process.

use std::fmt;

use holdfast_failpoint::{Fault, break_guard};

/// Broken promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Every eighth claim is acknowledged and not stored.
    ClaimForgotten,
    /// Every eighth ending is acknowledged and not stored.
    EndingForgotten,
    /// Changes are written without a comparison of version and claim.
    FencingForgotten,
    /// A failover loses operations that were acknowledged.
    AsynchronousFailover,
    /// A purge deletes rows with their results.
    RowPurged,
    /// A hold that goes back is paid to the wallet once more.
    HoldPaidTwice,
    /// The hold of a run with an unknown outcome stays held.
    HoldKept,
    /// The wallet pays one micro more than its row says.
    OtherAmountCharged,
    /// A node reads an upstream's failure as proof that the model did not run.
    FailureAsProof,
    /// A guard of the engine, for the life of the process.
    Engine(Fault),
}

impl Defect {
    /// Defects of the store and of the network.
    pub const OWN: [Self; 9] = [
        Self::ClaimForgotten,
        Self::EndingForgotten,
        Self::FencingForgotten,
        Self::AsynchronousFailover,
        Self::RowPurged,
        Self::HoldPaidTwice,
        Self::HoldKept,
        Self::OtherAmountCharged,
        Self::FailureAsProof,
    ];

    /// Defects of the engine that a simulation without HTTP and SQL can meet.
    pub const ENGINE: [Self; 5] = [
        Self::Engine(Fault::FingerprintForgotten),
        Self::Engine(Fault::KeySharedAcrossApiKeys),
        Self::Engine(Fault::FailureReadAsNotRun),
        Self::Engine(Fault::RunAgainAfterTakeover),
        Self::Engine(Fault::OtherBytesReplayed),
    ];

    /// Name on the command line.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ClaimForgotten => "claim_forgotten",
            Self::EndingForgotten => "ending_forgotten",
            Self::FencingForgotten => "fencing_forgotten",
            Self::AsynchronousFailover => "asynchronous_failover",
            Self::RowPurged => "row_purged",
            Self::HoldPaidTwice => "hold_paid_twice",
            Self::HoldKept => "hold_kept",
            Self::OtherAmountCharged => "other_amount_charged",
            Self::FailureAsProof => "failure_as_proof",
            Self::Engine(fault) => fault.label(),
        }
    }

    /// Every defect.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OWN.into_iter().chain(Self::ENGINE)
    }

    /// Finds a defect by its name.
    #[must_use]
    pub fn find(label: &str) -> Option<Self> {
        Self::all().find(|defect| defect.label() == label)
    }

    /// Breaks the engine's guard, if it is one. The process stays broken.
    pub fn arm(self) {
        if let Self::Engine(fault) = self {
            break_guard(fault);
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
