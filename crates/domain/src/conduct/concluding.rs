//! The owner's last word: brought to the store until it is taken, or until the row proves that it
//! cannot stand any more.

use std::sync::Arc;

use super::Conduct;
use super::offering::{Verdict, applied, shows};
use crate::ClaimId;
use crate::operation::{
    Attempt, Change, Event, Finish, Operation, Phase, ProviderRefusal, Receipt, SealedResult,
    Snapshot, decide,
};
use crate::ports::CommitError;
use crate::usage::Metered;

/// How a run ended, as its owner tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With a result.
    Finished {
        /// What it used up.
        metered: Metered,
        /// The sealed answer.
        result: SealedResult,
    },
    /// No attempt of this generation ran. One whose caller had asked to cancel it is given up all the
    /// same.
    NotRun,
    /// The provider refused the request for good.
    Refused {
        /// What was refused.
        refusal: ProviderRefusal,
        /// The sealed error.
        result: SealedResult,
    },
    /// No result can come any more, and it may have run.
    Unknown,
}

/// How an operation stands after its owner's last word.
#[derive(Debug)]
pub struct Concluded {
    /// What the row says, whoever wrote it: the only source of an answer.
    pub snapshot: Snapshot,
    /// Whether a result came too late to be billed (T8).
    pub late: bool,
    /// Whether it was this ending that brought it there.
    pub moved: bool,
}

impl Conduct<'_> {
    /// Brings an owner's ending to the store and says how the operation stands after it. Offers it
    /// until the store takes it or the row proves that it cannot stand any more.
    /// Not cancel safe: a dropped ending is lost, and the operation is reaped.
    pub async fn conclude(
        &self,
        operation: &Operation,
        ending: &Ending,
        attempts: &[Attempt],
    ) -> Concluded {
        let claim = operation.owner.claim;
        let mut current = operation.clone();
        let mut form = Form::Whole;
        for attempt in 1_u32.. {
            let snapshot = Snapshot {
                operation: Some(current.clone()),
                result: None,
                lease: None,
                now: current.admitted_at,
            };
            let Ok(transition) = decide(&snapshot, ending.event(claim, attempts, form)) else {
                break;
            };
            let change = Arc::new(Change::Operation(transition));
            let Verdict { of_store, was_lost } = self.offer(&change).await;
            match of_store {
                Ok(receipt) => {
                    if let Some(concluded) = concluded(&change, &current, receipt) {
                        return concluded;
                    }
                    break;
                }
                Err(CommitError::Conflict) => match self.load_until(operation.id).await {
                    Snapshot { operation: Some(row), .. }
                        if row.owner.claim == claim && row.phase == Phase::Leased =>
                    {
                        current = row;
                    }
                    snapshot => {
                        let moved = was_lost && shows(&change, Some(&current), &snapshot);
                        return Concluded { moved, ..stands(snapshot, claim, ending) };
                    }
                },
                // The settling half does not go through: keep the result, settle it later.
                Err(
                    CommitError::InsufficientFunds
                    | CommitError::LimitReached(_)
                    | CommitError::Collision,
                ) => {
                    if form == Form::Recorded || !matches!(ending, Ending::Finished { .. }) {
                        self.pause.pause(attempt).await;
                    }
                    form = Form::Recorded;
                }
                Err(
                    CommitError::Overloaded
                    | CommitError::Unavailable(_)
                    | CommitError::Uncertain(_),
                ) => self.pause.pause(attempt).await,
            }
        }
        stands(self.load_until(operation.id).await, claim, ending)
    }
}

/// Whether a result is offered with its settlement or without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Recorded,
}

impl Ending {
    fn event(&self, claim: ClaimId, attempts: &[Attempt], form: Form) -> Event {
        let attempts = attempts.to_vec();
        match self {
            Self::Finished { metered, result } => {
                let finish = Finish { claim, metered: *metered, result: result.clone(), attempts };
                match form {
                    Form::Whole => Event::Finish(finish),
                    Form::Recorded => Event::Record(finish),
                }
            }
            Self::NotRun => Event::NotRun { claim, attempts },
            Self::Refused { refusal, result } => {
                Event::Refuse { claim, refusal: *refusal, result: result.clone(), attempts }
            }
            Self::Unknown => Event::GiveUp { claim, attempts },
        }
    }
}

/// What the row says after this owner's own commit, without reading it again: the commit was the
/// row's compare-and-set.
fn concluded(change: &Change, before: &Operation, receipt: Receipt) -> Option<Concluded> {
    let operation = applied(change, Some(before), receipt)?;
    let result = match change {
        Change::Operation(transition) => transition.result().cloned(),
        Change::Posting(_) => None,
    };
    let snapshot = Snapshot { operation: Some(operation), result, lease: None, now: receipt.at };
    Some(Concluded { snapshot, late: false, moved: true })
}

/// The row decides; a result that it does not show came too late.
fn stands(snapshot: Snapshot, claim: ClaimId, ending: &Ending) -> Concluded {
    let kept = snapshot.operation.as_ref().is_some_and(|operation| {
        operation.owner.claim == claim && operation.phase.usage().is_some()
    });
    let late = matches!(ending, Ending::Finished { .. }) && !kept;
    Concluded { snapshot, late, moved: false }
}
