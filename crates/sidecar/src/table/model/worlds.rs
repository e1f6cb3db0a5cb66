//! Worlds of calls that are explored, and the rules that broken tables break in them.

use stateright::{Checker, HasDiscoveries, Model};

use super::{Calls, Ending, Mutant};

const MARKED: &[bool] = &[true, true];
const UNMARKED: &[bool] = &[false, false];
/// A caller whose SDK marks its retries, and one that marks none.
const MIXED: &[bool] = &[true, false];

fn two(marks: &'static [bool]) -> Calls {
    Calls { marks, tries: 2, crashes: 1, endings: &[], mutant: None }
}

/// Long enough for an error, a refusal and an answer.
fn one(marks: &'static [bool]) -> Calls {
    let endings = &[Ending::Doubt, Ending::Failure, Ending::Unread];
    Calls { tries: 3, endings, ..two(marks) }
}

/// Two, of which each may fail or die with its answer unread.
fn two_with(endings: &'static [Ending]) -> Calls {
    Calls { endings, crashes: 0, ..two(MIXED) }
}

#[track_caller]
fn check(calls: Calls, states_min: usize) {
    let checker = calls.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let broken: Vec<_> = checker
        .discoveries()
        .into_iter()
        .filter(|(name, _)| name.starts_with("no "))
        .map(|(name, path)| (name, path.into_actions()))
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    checker.assert_any_discovery("all are served");
    // Fewer were a model in which some case cannot occur any more.
    let states = checker.unique_state_count();
    assert!(states >= states_min, "{states} states, of {states_min} at least");
}

#[track_caller]
fn breaks(mutant: Mutant, model: Calls) {
    let model = Calls { mutant: Some(mutant), ..model };
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery("no second run").is_some(), "{mutant:?} breaks nothing");
}

#[test]
fn marked_retries_never_run_twice_and_no_answer_is_withheld() {
    check(two(MARKED), 90_000);
}

#[test]
fn unmarked_retries_never_run_twice_before_the_answer_was_read() {
    check(two(UNMARKED), 69_000);
}

#[test]
fn marked_and_unmarked_callers_beside_each_other_never_run_twice() {
    check(two(MIXED), 69_000);
}

#[test]
fn one_that_is_tried_three_times_runs_once_however_each_try_ends() {
    check(one(&[true]), 340);
    check(one(&[false]), 340);
}

#[test]
fn answers_that_were_taken_and_never_read_are_not_run_again() {
    check(two_with(&[Ending::Unread]), 10_000);
}

#[test]
fn final_errors_are_not_run_again() {
    check(two_with(&[Ending::Failure]), 10_000);
}

#[test]
fn three_at_once_have_three_answers() {
    check(Calls { tries: 1, crashes: 0, ..two(&[false; 3]) }, 310_000);
}

#[test]
fn a_twin_that_looks_at_no_socket_runs_a_retry_twice() {
    breaks(Mutant::LooksAtNothing, two(UNMARKED));
}

#[test]
fn a_key_that_the_journal_has_not_got_runs_twice() {
    breaks(Mutant::AsksBeforeTheJournal, two(MARKED));
}

#[test]
fn a_caller_that_went_is_not_one_that_was_served() {
    breaks(Mutant::TakesGoneForDelivered, two(UNMARKED));
}

#[test]
fn a_refusal_after_a_cut_proves_nothing() {
    breaks(Mutant::ForgetsCuts, two(MARKED));
}

#[test]
fn a_refusal_after_nobody_knew_proves_nothing() {
    breaks(Mutant::TakesUnsureForUntouched, one(&[false]));
}

#[test]
fn no_replay_of_what_was_delivered_runs_a_marked_retry_twice() {
    breaks(Mutant::ForgetsDeliveries, one(&[true]));
}

#[test]
fn a_final_error_that_is_not_repeated_runs_twice() {
    breaks(Mutant::ForgetsFailures, one(&[false]));
}

#[test]
fn a_reset_that_is_not_noticed_runs_an_unread_answer_again() {
    breaks(Mutant::IgnoresResets, one(&[false]));
}
