//! Meaning of the answers of a gateway behind this one: the one place that turns each into an answer, a proof,
//! a refusal, an unknown outcome, or one more attempt.
//!
//! An error is the gateway's own only if it echoes the key: a proxy that answers in its place does not know it.
//! The source of each row is the gateway's own table of errors (`docs/reference/errors.md`): its column *key* has the
//! state of the key.
//!
//! | outcome of the attempt | at the first one | at a later one |
//! |---|---|---|
//! | a whole answer | answered (T2) | the same |
//! | no byte was sent | not run (T3) | again: an earlier request may be running |
//! | broken off, unreadable, no echo | again | again |
//! | turned away before the key was bound, with the mark of the engine | not run (T3) | again if that may pass, else unknown (T5) |
//! | the same without the mark | again if that may pass, else unknown (T5) | the same |
//! | `insufficient_funds` with `x-should-retry: true` | with the mark not run (T3), else again | again |
//! | `invalid_api_key` | not run (T3): no other check precedes it | unknown (T5) |
//! | the request is refused | refused (T4) | unknown (T5): an earlier request may be running |
//! | `provider_refused`, `context_length_exceeded`: bound | refused (T4) | the same |
//! | `outcome_unknown`, the answer is gone, another request has the key | unknown (T5) | the same |
//! | `draining`, `too_many_operations`, anything else that a retry may mend | again | again |
//!
//! A node that drains refuses before it looks for the key, which may be running at another node or in another
//! try of a proxy in between; and `too_many_operations` is also the answer for a bound key. Neither proves that
//! there was no run, and the next attempt finds another node or a place.
//!
//! Never: not run after an attempt whose outcome is uncertain. That request may still be on its way, and would
//! run after the operation was given back.

use NotRunProof::{Account, Overloaded, RateLimited};
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{CallFailure, NotRunProof, UnknownReason};
use holdfast_wire::error::Code;

/// Place of an attempt among those of one generation under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// No request was sent before.
    First,
    /// An earlier attempt has an uncertain outcome.
    Again,
}

/// Echo of the key in an answer's head: how much of it the gateway itself must have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Echo {
    /// None, or of another key: the answer of any server.
    Absent,
    /// Echo of the key, through a proxy that may have sent the request twice.
    Relayed,
    /// Echo of the key.
    Key,
    /// Echo of the key, with `idempotent-replayed: false`: the gateway's engine has judged the
    /// request, and it was new.
    Judged,
}

/// Outcome of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskOutcome {
    /// A whole answer of the model.
    Completion,
    /// No byte of the request has left.
    Unsent,
    /// No answer, or one that breaks off or cannot be read.
    Lost(UnknownReason),
    /// An answer that contradicts what the caller has had of it.
    Contradiction,
    /// An error, by the code in its body.
    Error(Option<Code>, Echo),
    /// `insufficient_funds` that may pass by itself: runs under way hold what is missing there.
    FundsHeld(Echo),
}

impl AskOutcome {
    pub(super) const LOST: Self = Self::Lost(UnknownReason::Broken);

    /// Outcome of a success that was none.
    pub(super) const fn of_failure(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Unknown(why) => Self::Lost(why),
            // No other comes of a success; if one did, it would be no proof.
            CallFailure::NotRun(_) | CallFailure::Refused(_) => Self::LOST,
        }
    }

    pub(super) fn is_conflict(self) -> bool {
        matches!(self, Self::Error(Some(Code::IdempotencyKeyConflict), echo) if echo != Echo::Absent)
    }
}

/// Consequence of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// T2.
    Answered,
    /// T3, T4 or T5, by what is proven.
    Ended(CallFailure),
    /// The outcome is uncertain, and a repetition under the key may resolve it. T5 if it cannot be repeated.
    AskAgain(UnknownReason),
}

const UNKNOWN: Verdict = Verdict::Ended(CallFailure::Unknown(UnknownReason::Status));
const AGAIN: Verdict = Verdict::AskAgain(UnknownReason::Status);

/// Judges the outcome of an attempt.
pub(crate) fn judge(ask: Ask, outcome: AskOutcome) -> Verdict {
    match (ask, outcome) {
        (_, AskOutcome::Completion) => Verdict::Answered,
        (Ask::First, AskOutcome::Unsent) => {
            Verdict::Ended(CallFailure::NotRun(NotRunProof::Connect))
        }
        (Ask::Again, AskOutcome::Unsent) => Verdict::AskAgain(UnknownReason::Broken),
        (_, AskOutcome::Lost(why)) => Verdict::AskAgain(why),
        (_, AskOutcome::Contradiction) => {
            Verdict::Ended(CallFailure::Unknown(UnknownReason::Broken))
        }
        (_, AskOutcome::Error(_, Echo::Absent) | AskOutcome::Error(None, _)) => AGAIN,
        (ask, AskOutcome::Error(Some(code), echo)) => judge_code(ask, code, echo),
        // The account there is right, so that its route is only left alone for the time that it asks for.
        (ask, AskOutcome::FundsHeld(echo)) => not_run(ask, echo, RateLimited).unwrap_or(AGAIN),
    }
}

/// Judges an error that echoes the key.
fn judge_code(ask: Ask, code: Code, echo: Echo) -> Verdict {
    let refused = |refusal| Verdict::Ended(CallFailure::Refused(refusal));
    match code {
        Code::ContextLengthExceeded => refused(ProviderRefusal::ContextLength),
        Code::ProviderRefused => refused(ProviderRefusal::Request),
        Code::InvalidJson
        | Code::InvalidValue
        | Code::UnknownParameter
        | Code::UnsupportedParameter
        | Code::RequestTooLarge => match ask {
            Ask::First => refused(ProviderRefusal::Request),
            Ask::Again => UNKNOWN,
        },
        Code::InsufficientFunds
        | Code::SpendLimitExceeded
        | Code::ChargeLimitExceeded
        | Code::ApiKeySuspended
        | Code::WalletSuspended
        | Code::ModelNotAllowed
        | Code::ModelNotFound => not_run(ask, echo, Account).unwrap_or(UNKNOWN),
        // The gateway asks who calls before it reads the key, so no engine marks this answer.
        Code::InvalidApiKey => match (ask, echo) {
            (Ask::First, Echo::Key | Echo::Judged) => Verdict::Ended(CallFailure::NotRun(Account)),
            (Ask::First, Echo::Absent | Echo::Relayed) | (Ask::Again, _) => UNKNOWN,
        },
        Code::RateLimitExceeded => not_run(ask, echo, RateLimited).unwrap_or(AGAIN),
        // At the first attempt the key is as new as it looks there.
        Code::UpstreamUnavailable | Code::Overloaded | Code::LedgerRestored => {
            not_run(ask, echo, Overloaded).unwrap_or(AGAIN)
        }
        Code::Draining
        | Code::TooManyOperations
        | Code::RequestTimeout
        | Code::OperationInProgress
        | Code::InternalError
        | Code::StorageUnavailable
        | Code::GatewayUnreachable => AGAIN,
        Code::OutcomeUnknown
        | Code::ResultExpired
        | Code::ResultSealed
        | Code::IdempotencyKeyConflict
        | Code::IdempotencyKeyRequired
        | Code::IdempotencyKeyMalformed
        | Code::NotFound
        | Code::MethodNotAllowed
        | Code::UnsupportedMediaType
        | Code::HeadersTooLarge => UNKNOWN,
    }
}

/// A proof counts only at the first attempt, and with the mark of the engine.
fn not_run(ask: Ask, echo: Echo, proof: NotRunProof) -> Option<Verdict> {
    match (ask, echo) {
        (Ask::First, Echo::Judged) => Some(Verdict::Ended(CallFailure::NotRun(proof))),
        (Ask::First, Echo::Absent | Echo::Relayed | Echo::Key) | (Ask::Again, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class of a verdict, as the table above has it.
    fn class(verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Answered => "T2",
            Verdict::Ended(CallFailure::NotRun(_)) => "T3",
            Verdict::Ended(CallFailure::Refused(_)) => "T4",
            Verdict::Ended(CallFailure::Unknown(_)) => "T5",
            Verdict::AskAgain(_) => "again",
        }
    }

    /// Verdicts at the first ask and at a later one.
    #[track_caller]
    fn check(outcome: AskOutcome, expected: [&str; 2]) {
        let found = [Ask::First, Ask::Again].map(|ask| class(judge(ask, outcome)));
        assert_eq!(found, expected, "{outcome:?}");
    }

    #[test]
    fn what_is_no_word_of_the_gateway_is_uncertain() {
        check(AskOutcome::Completion, ["T2", "T2"]);
        check(AskOutcome::Unsent, ["T3", "again"]);
        check(AskOutcome::Lost(UnknownReason::Broken), ["again", "again"]);
        check(AskOutcome::Contradiction, ["T5", "T5"]);
        for code in Code::ALL.map(Some).into_iter().chain([None]) {
            check(AskOutcome::Error(code, Echo::Absent), ["again", "again"]);
        }
        check(AskOutcome::Error(None, Echo::Judged), ["again", "again"]);
    }

    #[test]
    fn funds_that_runs_hold_are_not_a_wrong_account() {
        let first = judge(Ask::First, AskOutcome::FundsHeld(Echo::Judged));
        assert_eq!(first, Verdict::Ended(CallFailure::NotRun(RateLimited)));
        check(AskOutcome::FundsHeld(Echo::Judged), ["T3", "again"]);
        for echo in [Echo::Absent, Echo::Relayed, Echo::Key] {
            check(AskOutcome::FundsHeld(echo), ["again", "again"]);
        }
    }

    #[test]
    fn a_conflict_is_the_gateways_own_word_on_the_key() {
        let is = |code, echo| AskOutcome::Error(Some(code), echo).is_conflict();
        for echo in [Echo::Relayed, Echo::Key, Echo::Judged] {
            assert!(is(Code::IdempotencyKeyConflict, echo));
            assert!(!is(Code::OperationInProgress, echo));
        }
        assert!(!is(Code::IdempotencyKeyConflict, Echo::Absent));
        assert!(!AskOutcome::Contradiction.is_conflict());
    }

    #[test]
    fn each_error_that_echoes_the_key_has_one_meaning() {
        let expected = |code| match code {
            Code::InsufficientFunds
            | Code::SpendLimitExceeded
            | Code::ChargeLimitExceeded
            | Code::ApiKeySuspended
            | Code::WalletSuspended
            | Code::ModelNotAllowed
            | Code::ModelNotFound
            | Code::InvalidApiKey => ["T3", "T5"],
            Code::RateLimitExceeded
            | Code::UpstreamUnavailable
            | Code::Overloaded
            | Code::LedgerRestored => ["T3", "again"],
            Code::ContextLengthExceeded | Code::ProviderRefused => ["T4", "T4"],
            Code::InvalidJson
            | Code::InvalidValue
            | Code::UnknownParameter
            | Code::UnsupportedParameter
            | Code::RequestTooLarge => ["T4", "T5"],
            Code::Draining
            | Code::TooManyOperations
            | Code::RequestTimeout
            | Code::OperationInProgress
            | Code::InternalError
            | Code::StorageUnavailable
            | Code::GatewayUnreachable => ["again", "again"],
            Code::OutcomeUnknown
            | Code::ResultExpired
            | Code::ResultSealed
            | Code::IdempotencyKeyConflict
            | Code::IdempotencyKeyRequired
            | Code::IdempotencyKeyMalformed
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::UnsupportedMediaType
            | Code::HeadersTooLarge => ["T5", "T5"],
        };
        for code in Code::ALL {
            check(AskOutcome::Error(Some(code), Echo::Judged), expected(code));
        }
    }

    #[test]
    fn a_proof_needs_the_mark_of_the_engine_and_a_way_that_asks_once() {
        for code in Code::ALL {
            for echo in [Echo::Key, Echo::Relayed] {
                let verdict = class(judge(Ask::First, AskOutcome::Error(Some(code), echo)));
                let is_proof = (code, echo) == (Code::InvalidApiKey, Echo::Key);
                assert_eq!(verdict == "T3", is_proof, "{code:?} {echo:?}");
            }
        }
    }
}
