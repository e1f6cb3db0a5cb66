//! Faults: the guards of the contract that a build for tests can switch off, one in a process.

use std::fmt;

/// Guard that is switched off, named by what goes wrong without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A key takes every request for the one that it is bound to.
    FingerprintForgotten,
    /// All API keys of a wallet have the request keys of the first one that the process has met.
    KeySharedAcrossApiKeys,
    /// A hold that goes back is added to the wallet twice.
    HoldReleasedTwice,
    /// The hold of a run with an unknown outcome stays held.
    HoldKept,
    /// The wallet pays one micro more than the caller was answered.
    OtherAmountCharged,
    /// No limit of an API key refuses a request.
    CapIgnored,
    /// A refund is written to the ledger, and not to the wallet.
    RefundLost,
    /// A failure without proof is read as proof that the model did not run.
    FailureReadAsNotRun,
    /// An operation whose process died is opened again, as if it had not been sent.
    RunAgainAfterTakeover,
    /// A replay has one byte more than the first answer.
    OtherBytesReplayed,
    /// Every fourth ending is answered, and its transaction rolled back. Only the writer of a SQLite file has this
    /// fault; on PostgreSQL it has no effect.
    AnsweredBeforeCommit,
    /// Every fourth claim is acknowledged, and its transaction rolled back. Only the writer of a SQLite file has this
    /// fault; on PostgreSQL it has no effect.
    RunBeforeClaim,
}

/// Text that names no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a fault")]
pub struct BadFault;

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 12] = [
        Self::FingerprintForgotten,
        Self::KeySharedAcrossApiKeys,
        Self::HoldReleasedTwice,
        Self::HoldKept,
        Self::OtherAmountCharged,
        Self::CapIgnored,
        Self::RefundLost,
        Self::FailureReadAsNotRun,
        Self::RunAgainAfterTakeover,
        Self::OtherBytesReplayed,
        Self::AnsweredBeforeCommit,
        Self::RunBeforeClaim,
    ];

    /// Name in the environment of a process.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::FingerprintForgotten => "fingerprint_forgotten",
            Self::KeySharedAcrossApiKeys => "key_shared_across_api_keys",
            Self::HoldReleasedTwice => "hold_released_twice",
            Self::HoldKept => "hold_kept",
            Self::OtherAmountCharged => "other_amount_charged",
            Self::CapIgnored => "cap_ignored",
            Self::RefundLost => "refund_lost",
            Self::FailureReadAsNotRun => "failure_read_as_not_run",
            Self::RunAgainAfterTakeover => "run_again_after_takeover",
            Self::OtherBytesReplayed => "other_bytes_replayed",
            Self::AnsweredBeforeCommit => "answered_before_commit",
            Self::RunBeforeClaim => "run_before_claim",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl TryFrom<&str> for Fault {
    type Error = BadFault;

    fn try_from(text: &str) -> Result<Self, BadFault> {
        Self::ALL.into_iter().find(|fault| fault.label() == text).ok_or(BadFault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_broken;

    #[test]
    fn every_fault_is_named_and_none_is_there_by_itself() {
        for fault in Fault::ALL {
            assert_eq!(Fault::try_from(fault.label()), Ok(fault));
            assert!(!is_broken(fault), "{fault}");
        }
        assert_eq!(Fault::try_from("none"), Err(BadFault));
    }
}
