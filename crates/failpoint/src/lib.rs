//! Where it may die: the steps of a request at which a test stops a process, to kill it exactly there
//! or to stop it for longer than others wait for it. It changes nothing and decides nothing: a thread
//! that reaches the armed step goes on when a named file is there, and without a name never.
//!
//! Without the feature `armed`, [`reach`] is empty and no step can be armed.

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// A moment between two effects, where a crash leaves something of its own behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing is durable: the claim is about to be offered.
    ClaimOffered,
    /// The claim is durable and nothing was sent.
    ClaimCommitted,
    /// The provider is about to be called, and nobody could tell that it was not.
    Sending,
    /// The provider has answered and only this process knows.
    Answered,
    /// The ending is sealed and about to be offered.
    SettlementOffered,
    /// The ending is durable and the caller was not told.
    SettlementCommitted,
    /// The store's writer has begun a transaction and read what it touches.
    BatchBegun,
    /// Everything is written but for COMMIT.
    BatchWritten,
    /// COMMIT has come back and nobody was answered.
    BatchCommitted,
}

impl Step {
    /// Every step, in the order of a request; the writer's come twice in each.
    pub const ALL: [Self; 9] = [
        Self::ClaimOffered,
        Self::ClaimCommitted,
        Self::Sending,
        Self::Answered,
        Self::SettlementOffered,
        Self::SettlementCommitted,
        Self::BatchBegun,
        Self::BatchWritten,
        Self::BatchCommitted,
    ];

    /// Its name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ClaimOffered => "claim_offered",
            Self::ClaimCommitted => "claim_committed",
            Self::Sending => "sending",
            Self::Answered => "answered",
            Self::SettlementOffered => "settlement_offered",
            Self::SettlementCommitted => "settlement_committed",
            Self::BatchBegun => "batch_begun",
            Self::BatchWritten => "batch_written",
            Self::BatchCommitted => "batch_committed",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Which arrival at which step is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failpoint {
    /// Where.
    pub step: Step,
    /// The first arrival is number one.
    pub nth: NonZeroU64,
    /// It goes on as soon as this file is there; never where none is named.
    pub until: Option<PathBuf>,
}

/// Why a text names no failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write <step>:<nth> or <step>:<nth>:<file>, as in claim_committed:1")]
pub struct BadFailpoint;

impl TryFrom<&str> for Failpoint {
    type Error = BadFailpoint;

    fn try_from(text: &str) -> Result<Self, BadFailpoint> {
        let (label, arrival) = text.split_once(':').ok_or(BadFailpoint)?;
        let step = Step::ALL.into_iter().find(|step| step.label() == label);
        let (nth, until) = match arrival.split_once(':') {
            Some((_nth, "")) => return Err(BadFailpoint),
            Some((nth, file)) => (nth, Some(PathBuf::from(file))),
            None => (arrival, None),
        };
        let nth = nth.parse().map_err(|_malformed| BadFailpoint)?;
        Ok(Self { step: step.ok_or(BadFailpoint)?, nth, until })
    }
}

/// Whether this build has steps.
pub const ENABLED: bool = cfg!(feature = "armed");

#[cfg(not(feature = "armed"))]
mod inner {
    //! Nothing.

    use super::{Failpoint, Step};

    /// Does nothing in this build.
    #[inline(always)]
    pub fn reach(_step: Step) {}

    /// Does nothing in this build.
    pub fn arm(_failpoint: Failpoint) {}
}

#[cfg(feature = "armed")]
mod inner {
    //! One armed step a process, for its whole life.

    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Failpoint, Step};

    /// How often a stopped thread looks whether it may go on.
    const LOOK: Duration = Duration::from_millis(5);

    static ARMED: OnceLock<(Failpoint, AtomicU64)> = OnceLock::new();

    /// Stops this thread where `step` is armed and this is the arrival that was named.
    pub fn reach(step: Step) {
        let Some((armed, left)) = ARMED.get() else { return };
        if armed.step != step || left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // Where nobody reads it, nobody waits for it either.
        drop(writeln!(std::io::stderr(), "failpoint {step} reached"));
        while !armed.until.as_ref().is_some_and(|file| file.exists()) {
            std::thread::sleep(LOOK);
        }
    }

    /// Arms a step. A second call changes nothing.
    pub fn arm(failpoint: Failpoint) {
        let left = AtomicU64::new(failpoint.nth.get());
        ARMED.get_or_init(|| (failpoint, left));
    }
}

pub use self::inner::{arm, reach};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_armed_by_its_own_name() {
        for step in Step::ALL {
            let text = format!("{step}:3");
            let armed = Failpoint::try_from(text.as_str()).unwrap();
            assert_eq!((armed.step, armed.nth.get(), armed.until), (step, 3, None));
        }
        let until = Failpoint::try_from("sending:1:/a:b/c").unwrap().until;
        assert_eq!(until, Some(PathBuf::from("/a:b/c")));
        for text in
            ["", "sending", "sending:", "sending:0", "sending:-1", "sent:1", ":1", "sending:1:"]
        {
            assert_eq!(Failpoint::try_from(text), Err(BadFailpoint), "{text}");
        }
    }

    #[test]
    fn a_step_that_is_not_armed_is_passed() {
        for step in Step::ALL {
            reach(step);
        }
    }
}
