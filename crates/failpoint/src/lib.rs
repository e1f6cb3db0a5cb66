//! Failpoints: the steps of a request at which a test stops a process, to kill it exactly there or to stop it
//! for longer than others wait for it. A failpoint changes and decides no outcome: a thread that reaches the
//! armed step continues when a named file exists, and without a name never.
//!
//! Each [`Step`] lies between two effects, at a point at which a crash leaves a state of its own behind: a
//! claim without a run, a run without an ending, an ending that no caller has received. One step is armed in a
//! process, for its whole life; the test reads `failpoint <step> reached` on its standard error.
//!
//! Steps exist in builds with debug assertions, so that tests drive one binary. Without them, as in every build for
//! release, [`reach`] is empty and no step can be armed: such a build cannot be stopped from outside.
//!
//! Apart from the steps, a build with debug assertions can switch off one guard of the contract, a [`Fault`]: a gateway
//! that is broken on purpose, by which a checker of histories shows that it would notice.

mod fault;

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Moment between two effects, at which a crash leaves a state of its own behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The claim is about to be offered: no row is durable.
    ClaimOffered,
    /// The claim is durable and no byte was sent.
    ClaimCommitted,
    /// The provider is about to be called, and no evidence would show that it was not.
    Sending,
    /// The provider has answered and only this process knows.
    Answered,
    /// The ending is sealed and about to be offered.
    SettlementOffered,
    /// The ending is durable and the caller has no answer yet.
    SettlementCommitted,
    /// The store's writer has begun a transaction and read what it touches.
    BatchBegun,
    /// Everything is written but for COMMIT.
    BatchWritten,
    /// COMMIT has come back and no caller is answered yet.
    BatchCommitted,
    /// A command of administration has its locks and its verdict, and has written no row.
    CommandJudged,
    /// All of a command is written but for COMMIT.
    CommandWritten,
    /// COMMIT of a command has come back and its caller is not answered yet.
    CommandCommitted,
}

impl Step {
    /// Every step, in the order of a request; the writer's come twice in each. A command's own are
    /// last.
    pub const ALL: [Self; 12] = [
        Self::ClaimOffered,
        Self::ClaimCommitted,
        Self::Sending,
        Self::Answered,
        Self::SettlementOffered,
        Self::SettlementCommitted,
        Self::BatchBegun,
        Self::BatchWritten,
        Self::BatchCommitted,
        Self::CommandJudged,
        Self::CommandWritten,
        Self::CommandCommitted,
    ];

    /// Name in a failpoint's text and on standard error.
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
            Self::CommandJudged => "command_judged",
            Self::CommandWritten => "command_written",
            Self::CommandCommitted => "command_committed",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Arrival at a step that is stopped, written `<step>:<nth>` or `<step>:<nth>:<file>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failpoint {
    /// Step that stops a thread.
    pub step: Step,
    /// Number of the arrival, the first being one.
    pub nth: NonZeroU64,
    /// File that lets the thread go on as soon as it is there; `None`: never.
    pub until: Option<PathBuf>,
}

/// Text that names no failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write <step>:<nth> or <step>:<nth>:<file>, as in claim_committed:1")]
pub struct BadFailpoint;

impl TryFrom<&str> for Failpoint {
    type Error = BadFailpoint;

    fn try_from(text: &str) -> Result<Self, BadFailpoint> {
        let (label, arrival) = text.split_once(':').ok_or(BadFailpoint)?;
        let step = Step::ALL.into_iter().find(|step| step.label() == label);
        let (nth, until) = match arrival.split_once(':') {
            // A file without a name would never be there, and look like one that is waited for.
            Some((_nth, "")) => return Err(BadFailpoint),
            Some((nth, file)) => (nth, Some(PathBuf::from(file))),
            None => (arrival, None),
        };
        let nth = nth.parse().map_err(|_malformed| BadFailpoint)?;
        Ok(Self { step: step.ok_or(BadFailpoint)?, nth, until })
    }
}

/// True in builds whose steps can be armed.
pub const ENABLED: bool = cfg!(debug_assertions);

#[cfg(not(debug_assertions))]
mod inner {
    //! Steps and faults of a build for release: free, and never armed.

    use super::{Failpoint, Fault, Step};

    /// No effect in this build.
    #[inline(always)]
    pub fn reach(_step: Step) {}

    /// No effect in this build.
    pub fn arm(_failpoint: Failpoint) {}

    /// Never, in this build.
    #[inline(always)]
    #[must_use]
    pub const fn is_broken(_fault: Fault) -> bool {
        false
    }

    /// No effect in this build.
    pub fn break_guard(_fault: Fault) {}

    /// None, in this build.
    #[must_use]
    pub const fn armed_step() -> Option<Step> {
        None
    }

    /// None, in this build.
    #[must_use]
    pub const fn broken_guard() -> Option<Fault> {
        None
    }
}

#[cfg(debug_assertions)]
mod inner {
    //! The armed step and the broken guard of a process, one of each for its whole life.

    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Failpoint, Fault, Step};

    /// Time between two looks of a stopped thread at its file.
    const LOOK: Duration = Duration::from_millis(5);

    static ARMED: OnceLock<(Failpoint, AtomicU64)> = OnceLock::new();
    static BROKEN: OnceLock<Fault> = OnceLock::new();

    /// Stops this thread if `step` is armed and this is the arrival that was named.
    pub fn reach(step: Step) {
        let Some((armed, left)) = ARMED.get() else { return };
        // Counted down by all threads: exactly one arrival finds 1. Later ones wrap below zero, and
        // would need 2^64 of them to meet it again.
        if armed.step != step || left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // A closed standard error has no reader that could wait for this line.
        drop(writeln!(std::io::stderr(), "failpoint {step} reached"));
        while !armed.until.as_ref().is_some_and(|file| file.exists()) {
            std::thread::sleep(LOOK);
        }
    }

    /// Arms a step. A second call has no effect.
    pub fn arm(failpoint: Failpoint) {
        let left = AtomicU64::new(failpoint.nth.get());
        // The first one stays: threads may have counted arrivals down already, and a new count
        // would stop another arrival than the one that was named.
        ARMED.get_or_init(|| (failpoint, left));
    }

    /// True if this guard is switched off.
    #[must_use]
    pub fn is_broken(fault: Fault) -> bool {
        BROKEN.get() == Some(&fault)
    }

    /// Switches off a guard, for the life of the process. A second call has no effect.
    pub fn break_guard(fault: Fault) {
        BROKEN.get_or_init(|| fault);
    }

    /// Step that is armed in this process.
    #[must_use]
    pub fn armed_step() -> Option<Step> {
        ARMED.get().map(|(armed, _left)| armed.step)
    }

    /// Guard that is switched off in this process.
    #[must_use]
    pub fn broken_guard() -> Option<Fault> {
        BROKEN.get().copied()
    }
}

pub use self::fault::{BadFault, Fault};
pub use self::inner::{arm, armed_step, break_guard, broken_guard, is_broken, reach};

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
        assert_eq!((armed_step(), broken_guard()), (None, None));
    }
}
