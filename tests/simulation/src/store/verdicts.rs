//! Verdicts of commits: the step of `operation.md` that a judged change was, for the counts of a run.

use std::collections::BTreeSet;

use holdfast_domain::ledger::Funds;
use holdfast_domain::operation::{Effect, Lease, Node, Operation, Phase, Receipt, Transition};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{ClaimId, Timestamp};

use crate::recorder::TracedChange;
use crate::step::Step;

/// True for T1 and T7.
pub(super) const fn is_claim(change: &Transition) -> bool {
    matches!(change.effect, Effect::Admit(_) | Effect::Reopen(_))
}

/// True for an ending by an owner or a reaper.
pub(super) const fn is_ending(change: &Transition) -> bool {
    match change.effect {
        Effect::Complete { .. }
        | Effect::Record { .. }
        | Effect::Open { .. }
        | Effect::Refuse { .. }
        | Effect::Abandon { .. } => true,
        Effect::Admit(_)
        | Effect::Reopen(_)
        | Effect::Settle
        | Effect::AskCancel
        | Effect::Cancel => false,
    }
}

/// Name of a change in the trace.
pub(super) const fn label(change: &Transition) -> &'static str {
    match change.effect {
        Effect::Admit(_) => "claim",
        Effect::Reopen(_) => "reopen",
        Effect::Complete { .. } => "complete",
        Effect::Record { .. } => "record",
        Effect::Settle => "settle",
        Effect::AskCancel => "ask cancel",
        Effect::Cancel => "cancel",
        Effect::Open { .. } => "open",
        Effect::Refuse { .. } => "refuse",
        Effect::Abandon { .. } => "abandon",
    }
}

/// Facts of a judged change.
pub(super) struct WriteFacts<'a> {
    pub(super) change: &'a Transition,
    pub(super) before: Option<&'a Operation>,
    pub(super) after: Option<&'a Operation>,
    /// Row of the owner's node name before the change.
    pub(super) lease: Option<&'a Lease>,
    pub(super) writer: &'a Node,
    pub(super) now: Timestamp,
    pub(super) killed: &'a BTreeSet<ClaimId>,
}

impl WriteFacts<'_> {
    /// Outcome in the trace.
    pub(super) fn outcome(&self, verdict: &Result<Receipt, CommitError>) -> String {
        match (verdict, self.after) {
            (Ok(receipt), Some(row)) => {
                format!("-> {} v{} g{}", row.phase.label(), receipt.version.get(), row.generation)
            }
            (Ok(_), None) => "-> no row".to_owned(),
            (Err(error), _) => format!("refused: {error}"),
        }
    }

    /// Steps that it was.
    pub(super) fn steps(&self, verdict: &Result<Receipt, CommitError>) -> Vec<Step> {
        match verdict {
            Ok(_) => vec![self.transition()],
            Err(CommitError::Conflict) => self.conflict(),
            Err(CommitError::InsufficientFunds | CommitError::FundsHeld { .. })
                if is_claim(self.change) =>
            {
                vec![Step::FundsShort]
            }
            Err(CommitError::LimitReached(_)) => vec![Step::LimitReached],
            Err(
                CommitError::LimitsEdited
                | CommitError::InsufficientFunds
                | CommitError::FundsHeld { .. }
                | CommitError::Collision
                | CommitError::TooLarge
                | CommitError::Overloaded
                | CommitError::Unavailable(_)
                | CommitError::Uncertain(_),
            ) => Vec::new(),
        }
    }

    /// The change as the trace of its operation keeps it; `None` if it was not written.
    pub(super) fn traced(&self, verdict: &Result<Receipt, CommitError>) -> Option<TracedChange> {
        let (receipt, row) = (verdict.as_ref().ok()?, self.after?);
        let owner = self.before.map(|before| before.owner.claim);
        Some(TracedChange {
            step: self.transition(),
            is_owners: owner.is_some() && owner == self.change.claim,
            phase: row.phase.label(),
            version: receipt.version.get().into(),
            generation: row.generation.into(),
        })
    }

    fn transition(&self) -> Step {
        match &self.change.effect {
            Effect::Admit(_) => Step::Claim,
            Effect::Reopen(_) => Step::Reopen,
            Effect::Complete { .. } => Step::Finish,
            Effect::Record { .. } => Step::Record,
            Effect::Settle => Step::Settle,
            Effect::AskCancel => Step::Cancel,
            Effect::Cancel => Step::CancelOpen,
            Effect::Open { .. } if self.is_disown() => Step::DisownUnsent,
            Effect::Open { .. } => Step::NotRun,
            Effect::Refuse { .. } => Step::Refuse,
            Effect::Abandon { .. } if matches!(self.change.funds, Funds::Release(_)) => {
                Step::NotRunCancelled
            }
            Effect::Abandon { attempts } => {
                if self.is_disown() {
                    Step::DisownSent
                } else if attempts.is_empty() {
                    self.reap().unwrap_or(Step::GiveUp)
                } else {
                    Step::GiveUp
                }
            }
        }
    }

    /// Reason of a reap; `None` for an owner's own word.
    fn reap(&self) -> Option<Step> {
        let row = self.before?;
        let owner = &row.owner.node;
        match self.lease {
            None => Some(Step::ReapMissingRow),
            Some(lease) if lease.node.incarnation != owner.incarnation => {
                Some(Step::ReapSuperseded)
            }
            Some(lease) if lease.ends_at <= self.now => Some(Step::ReapDeadLease),
            Some(_) if row.deadline < self.now => Some(Step::ReapDeadline),
            Some(_) => None,
        }
    }

    /// True if the process of a claim gives it up because its task is dead.
    fn is_disown(&self) -> bool {
        self.before.is_some_and(|row| {
            row.owner.node == *self.writer && self.killed.contains(&row.owner.claim)
        })
    }

    fn conflict(&self) -> Vec<Step> {
        let phase = self.before.map(|row| &row.phase);
        let is_mine = self.before.is_some_and(|row| Some(row.owner.claim) == self.change.claim);
        let has_landed =
            is_mine && self.before.is_some_and(|row| row.version == self.change.version());
        match &self.change.effect {
            Effect::Admit(_) => vec![Step::ClaimRace],
            Effect::Reopen(_) => vec![Step::ReopenRace],
            Effect::Settle => vec![Step::SettleRace],
            Effect::Cancel if phase == Some(&Phase::Leased) => vec![Step::CancelReopenRace],
            Effect::Cancel | Effect::AskCancel => vec![Step::CancelRace],
            Effect::Complete { .. }
            | Effect::Record { .. }
            | Effect::Refuse { .. }
            | Effect::Open { .. }
            | Effect::Abandon { .. }
                if is_mine && phase == Some(&Phase::Leased) =>
            {
                vec![Step::FinishCancelRace]
            }
            Effect::Complete { .. } | Effect::Record { .. } => {
                let is_own =
                    has_landed && self.before.is_some_and(|row| row.phase.usage().is_some());
                vec![if is_own { Step::FoundOwnEnding } else { Step::LateResult }]
            }
            Effect::Refuse { .. } | Effect::Open { .. } if has_landed => vec![Step::FoundOwnEnding],
            Effect::Refuse { .. } | Effect::Open { .. } | Effect::Abandon { .. } => {
                vec![Step::ReapRace]
            }
        }
    }
}
