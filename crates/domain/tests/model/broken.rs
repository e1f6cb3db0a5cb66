//! The rules, each broken: which invariant falls, or what covers it.
//!
//! Redundant guards, found here and kept as a second line:
//! - the loop's own look at the row's claim and phase, and those of `decide`: one of them is enough;
//! - the phase guard of T5, and the permanent id of the lapse: one of them is enough. Its owner says one
//!   thing only, so it can meet no other row of its own than a reaped one, which lapsed too. T3 has no
//!   such cover: a release is another line than a lapse;
//! - the phase guard of T2b, and the permanent id of the settlement: one of them is enough;
//! - the claim guard of T2 and T5: whoever has something else to say than *not run* was not taken over;
//! - disowning, where there is a deadline: it is sooner, and knows what was not sent;
//! - a second look before disowning: a claim is registered before it is offered;
//! - the refusal of a claim id that was used before: a task that lives is not disowned.
//!
//! That a live owner is not reaped, and that a process asks for its own lease before it claims, carry
//! no safety at all: a deadline may pass here at any moment, and processes believe in their leases for
//! ever.

use crate::check::{breaks, breaks_nothing};
use crate::configuration::{Configuration, May, Spec};
use crate::mutants::Mutant;

const ONE: Spec = Spec::FIRST;

/// Three callers of one key on one process.
fn callers() -> Configuration {
    let may = [May::LoseCommits, May::Die, May::PassDeadline];
    Configuration::new(&[ONE, ONE, ONE], &may)
}

/// Two processes, and whatever happens to processes.
fn processes() -> Configuration {
    let may = [May::Die, May::Crash, May::Expire, May::Leave];
    Configuration::new(&[ONE, ONE.process(1), ONE], &may).processes(&[0, 1])
}

/// Two operations on one wallet.
fn wallet() -> Configuration {
    let may = [May::LoseCommits, May::PassDeadline, May::Break];
    Configuration::new(&[ONE, ONE.operation(1)], &may)
}

#[test]
fn send_before_the_claim_is_committed() {
    breaks(&[Mutant::SendsBeforeCommit], &callers(), "I1");
}

#[test]
fn ownership_by_node_and_number() {
    breaks(&[Mutant::OwnsByNodeAndNumber], &callers(), "I1");
}

#[test]
fn redispatch_after_a_lost_lease() {
    breaks(&[Mutant::RedispatchesAfterLostLease], &processes(), "I1");
}

#[test]
fn reopen_because_the_provider_has_no_record() {
    breaks(&[Mutant::ReopensWithoutProviderRecord], &processes(), "I1");
}

#[test]
fn a_reap_read_as_not_run() {
    breaks(&[Mutant::ReapReadAsNotRun], &processes(), "I1");
}

#[test]
fn next_route_after_an_unknown_outcome() {
    breaks(&[Mutant::NextRouteAfterUnknown], &callers().routes(2), "I1");
}

#[test]
fn next_route_after_an_uncertain_not_run() {
    breaks(&[Mutant::NextRouteAfterUncertainNotRun], &callers().routes(2), "I1");
}

#[test]
fn not_run_after_an_unknown_outcome() {
    breaks(&[Mutant::NotRunAfterUnknown], &callers(), "I1");
}

#[test]
fn a_hold_with_its_own_timeout() {
    breaks(&[Mutant::HoldTimesOut], &callers(), "I3");
}

#[test]
fn a_loser_that_releases_the_shared_hold() {
    breaks(&[Mutant::LoserReleasesSharedHold], &callers(), "I3");
}

#[test]
fn not_run_for_another_claim() {
    breaks(&[Mutant::NotRunWithoutClaim, Mutant::LoopDoesNotLook], &callers(), "I1");
}

#[test]
fn a_reopening_that_keeps_the_claim() {
    breaks(&[Mutant::ReopenKeepsClaim], &callers(), "I1");
}

#[test]
fn a_reap_of_a_recorded_result() {
    breaks(&[Mutant::ReapFromRecorded], &wallet(), "I9");
}

#[test]
fn an_answer_while_the_settlement_is_uncertain() {
    breaks(&[Mutant::AnswersWhileUncertain], &callers(), "I6");
}

#[test]
fn a_loser_that_answers_its_own_result() {
    breaks(&[Mutant::LoserAnswersItsResult], &callers(), "I6");
}

#[test]
fn neither_disowning_nor_a_deadline() {
    breaks(&[Mutant::NoDisown, Mutant::NoDeadline], &callers(), "L1");
    // A dead task is disowned, a hung one is not.
    breaks(&[Mutant::NoDeadline], &callers(), "L1");
    breaks_nothing(&[Mutant::NoDisown], &callers());
}

#[test]
fn settling_for_dead_nodes_only() {
    breaks(&[Mutant::SettleForDeadNodesOnly], &wallet(), "L1");
}

#[test]
fn a_purged_row_that_ignores_claims() {
    let configuration = Configuration::new(&[ONE, ONE], &[May::Purge]);
    breaks(&[Mutant::PurgedRowIgnoresClaims], &configuration, "I1");
}

#[test]
fn a_successor_that_disowns_what_it_never_knew() {
    breaks(&[Mutant::DisownByName], &processes().processes(&[0, 0]), "I1");
}

#[test]
fn a_result_without_the_phase_guard() {
    breaks(&[Mutant::FinishWithoutPhase, Mutant::LoopDoesNotLook], &callers(), "I2");
}

/// A release and a lapse have ids of their own: only the phase keeps one from following the other.
/// Where the wallet holds nothing else its bounds stop that, here it is another's hold that goes.
#[test]
fn not_run_without_the_phase_guard() {
    breaks(&[Mutant::NotRunWithoutPhase, Mutant::LoopDoesNotLook], &wallet(), "I5");
}

/// Covered by the permanent id of the lapse.
#[test]
fn giving_up_without_the_phase_guard() {
    let mutants = [Mutant::GiveUpWithoutPhase, Mutant::LoopDoesNotLook];
    breaks_nothing(&mutants, &wallet());
    breaks_nothing(&mutants, &callers());
    breaks(&[mutants[0], mutants[1], Mutant::StoreIgnoresPermanentIds], &wallet(), "I5");
    breaks_nothing(&[Mutant::StoreIgnoresPermanentIds], &wallet());
}

/// Covered by the permanent id of the settlement.
#[test]
fn settling_without_the_phase_guard() {
    breaks_nothing(&[Mutant::SettleWithoutPhase], &wallet());
    breaks(&[Mutant::SettleWithoutPhase, Mutant::StoreIgnoresPermanentIds], &wallet(), "I2");
}

#[test]
fn results_and_giving_up_for_another_claim() {
    for guard in [Mutant::FinishWithoutClaim, Mutant::GiveUpWithoutClaim] {
        breaks_nothing(&[guard, Mutant::LoopDoesNotLook], &callers());
    }
}

#[test]
fn a_claim_id_that_is_offered_again() {
    breaks_nothing(&[Mutant::ClaimMayRepeat], &callers());
    breaks_nothing(&[Mutant::ClaimMayRepeat], &processes());
}

/// The loop looks at the row before it offers its word again, and `decide` judges it all the same.
#[test]
fn the_loop_and_decide_guard_the_same_thing() {
    breaks_nothing(&[Mutant::LoopDoesNotLook], &callers());
    for guard in [
        Mutant::FinishWithoutPhase,
        Mutant::NotRunWithoutPhase,
        Mutant::GiveUpWithoutPhase,
        Mutant::NotRunWithoutClaim,
    ] {
        breaks_nothing(&[guard], &callers());
    }
}

#[test]
fn a_store_that_ignores_versions() {
    breaks(&[Mutant::StoreIgnoresVersions], &callers(), "I2");
}

#[test]
fn a_store_that_ignores_bounds() {
    breaks(&[Mutant::StoreIgnoresBounds], &wallet().funds(2), "I5");
}

/// Four callers of one key, two requests a minute.
fn minutes() -> Configuration {
    let tasks = [ONE, ONE, ONE, ONE];
    Configuration::new(&tasks, &[May::Tick]).requests_per_minute(2)
}

#[test]
fn giving_up_that_gives_the_request_back() {
    breaks(&[Mutant::GiveUpGivesBack], &minutes(), "minutes");
}

#[test]
fn a_second_generation_that_gives_its_request_back() {
    breaks(&[Mutant::NotRunGivesBackAgain], &minutes(), "minutes");
}

#[test]
fn a_reopening_before_its_time() {
    breaks(&[Mutant::ReopenAtOnce], &minutes(), "haste");
}

#[test]
fn a_store_that_lets_more_run_in_a_minute() {
    let configuration = Configuration::new(&[ONE, ONE.operation(1)], &[May::Tick]);
    let configuration = configuration.requests_per_minute(1);
    breaks(&[Mutant::StoreIgnoresBounds], &configuration, "limit");
}

#[test]
fn a_cancel_of_an_open_operation_that_gives_back_twice() {
    let configuration = Configuration::new(&[ONE], &[May::Cancel]);
    breaks(&[Mutant::CancelGivesBackAgain], &configuration, "counters");
}

#[test]
fn a_cancel_of_an_open_operation_that_overwrites_its_next_run() {
    let configuration = Configuration::new(&[ONE, ONE], &[May::Cancel]);
    breaks(&[Mutant::CancelOverwritesTheRun], &configuration, "I3");
}

#[test]
fn not_run_although_a_cancel_was_asked_for() {
    let configuration = Configuration::new(&[ONE], &[May::Cancel]);
    breaks(&[Mutant::NotRunForgetsTheCancel], &configuration, "cancelled");
}
