//! Fallback: the one place that decides whether the next route may be tried after a call has failed.
//!
//! | failure | next step |
//! |---|---|
//! | refused | the operation ends: refused |
//! | not run: proven | the next route |
//! | unknown, under `one-run` | the operation ends: unknown |
//! | unknown, under `one-charge` | the next route: the operator pays for what may have run |
//! | unknown, under either, after a chunk has gone out | ends: unknown, because two answers are not one |
//! | unknown, under either, of a provider that repeats the call under its key | ends: unknown |
//!
//! The last row is an upstream gateway. It may have run the key and charged it, and got requests under that key for
//! as long as the operation might send. Another route would run and charge it once more.

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{CallFailure, NotRunProof};
use holdfast_failpoint::{Fault, is_broken};

use crate::catalogue::Guarantee;

/// Facts of a call by which an unknown outcome is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnknownTerms {
    /// Guarantee of the model.
    pub(super) guarantee: Guarantee,
    /// A chunk has gone out.
    pub(super) is_sent: bool,
    /// The provider repeats a call under its key.
    pub(super) repeats_calls: bool,
}

/// Step of an operation after a call has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// The next route may be tried, by this proof; without one the call may have run.
    NextRoute(Option<NotRunProof>),
    /// The operation ends refused.
    EndRefused(ProviderRefusal),
    /// The operation ends with an unknown outcome.
    EndUnknown,
}

/// Decides what follows a failed call.
pub(super) fn after_failure(failure: CallFailure, terms: UnknownTerms) -> NextStep {
    match failure {
        CallFailure::Refused(refusal) => NextStep::EndRefused(refusal),
        CallFailure::NotRun(proof) => NextStep::NextRoute(Some(proof)),
        CallFailure::Unknown(_) if is_broken(Fault::FailureReadAsNotRun) => {
            NextStep::NextRoute(Some(NotRunProof::Connect))
        }
        CallFailure::Unknown(_) if terms.is_sent || terms.repeats_calls => NextStep::EndUnknown,
        CallFailure::Unknown(_) => match terms.guarantee {
            Guarantee::OneRun => NextStep::EndUnknown,
            Guarantee::OneCharge => NextStep::NextRoute(None),
        },
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::ports::UnknownReason;

    use super::*;

    /// Each guarantee, with and without a sent chunk, with and without repetitions.
    fn all_terms() -> impl Iterator<Item = UnknownTerms> {
        let with_and_without_text = |guarantee| [false, true].map(|is_sent| (guarantee, is_sent));
        [Guarantee::OneRun, Guarantee::OneCharge]
            .into_iter()
            .flat_map(with_and_without_text)
            .flat_map(|(guarantee, is_sent)| {
                [false, true].map(|repeats_calls| UnknownTerms {
                    guarantee,
                    is_sent,
                    repeats_calls,
                })
            })
    }

    #[test]
    fn an_unknown_outcome_goes_on_under_one_charge_alone_and_never_from_another_gateway() {
        for why in [UnknownReason::Status, UnknownReason::Timeout, UnknownReason::Cut] {
            let next = |terms| after_failure(CallFailure::Unknown(why), terms);
            let goes_on = all_terms().filter(|terms| next(*terms) != NextStep::EndUnknown);
            let goes_on: Vec<_> = goes_on.collect();
            let [only] = &*goes_on else { panic!("{goes_on:?} is not one row") };
            assert_eq!(only.guarantee, Guarantee::OneCharge);
            assert!(!only.is_sent && !only.repeats_calls);
            assert_eq!(next(*only), NextStep::NextRoute(None));
        }
    }

    #[test]
    fn proofs_and_refusals_depend_on_nothing_else() {
        let (proof, refusal) = (NotRunProof::Connect, ProviderRefusal::Request);
        for terms in all_terms() {
            let not_run = after_failure(CallFailure::NotRun(proof), terms);
            assert_eq!(not_run, NextStep::NextRoute(Some(proof)));
            let refused = after_failure(CallFailure::Refused(refusal), terms);
            assert_eq!(refused, NextStep::EndRefused(refusal));
        }
    }
}
