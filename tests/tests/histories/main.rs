//! Histories of gateways that are killed under load, judged by a checker that knows nothing of them. `cargo xtask
//! chaos --on histories` does the same for as long as one likes.
//!
//! Each gateway with a fault has to be found, by the rule that its fault breaks, and the history of the unbroken one
//! has to be full; else the verdict on that history proves nothing.
#![expect(
    clippy::print_stdout,
    reason = "counts and place of a history, for people who read the run"
)]

use history_checker::{Counts, Report, Rule};
use holdfast_tests::chaos::histories::{FAULTS, Recording, Topology, folder};

/// Any other will do as well; this one makes a failure come back.
const SEED: u64 = 20_261_129;
/// Gateways of a history that are killed.
const KILLS: u32 = 6;
/// The same of nodes: after each kill the others wait for the lease of the dead one.
const NODE_KILLS: u32 = 4;
/// Sizes that the history of an unbroken gateway has at least; a usual one has twice as many. Without them a gateway
/// that turns every request away would be allowed.
const RUNS_MIN: usize = 50;
const CHARGED_MIN: usize = 30;
/// Balances are read at both rests, of each of the five API keys.
const BALANCES_MIN: usize = 10;
/// Faults, and the rules that find them.
const TABLE: &str = include_str!("../../../docs/reference/histories.md");

const fn kills(topology: Topology) -> u32 {
    match topology {
        Topology::File => KILLS,
        Topology::Nodes => NODE_KILLS,
    }
}

/// Records a history and judges it.
fn judged(fault: Option<&'static str>, topology: Topology) -> Report {
    let recording = Recording { seed: SEED, kills: kills(topology), fault, topology };
    let (path, report) = recording.judge_in(&folder());
    println!("{}: {report}: {}", fault.unwrap_or("unbroken"), path.display());
    for violation in report.violations.iter().take(3) {
        println!("{violation}");
    }
    report
}

#[test]
fn histories_of_the_unbroken_gateway_are_allowed() {
    check_allowed(Topology::File);
}

#[test]
fn postgres_histories_of_three_nodes_are_allowed() {
    check_allowed(Topology::Nodes);
}

fn check_allowed(topology: Topology) {
    let Report { counts, violations } = judged(None, topology);
    assert!(violations.is_empty(), "the contract does not allow it");
    let Counts { runs, charged, balances, kills, .. } = counts;
    assert_eq!(u32::try_from(kills), Ok(self::kills(topology)));
    assert!(runs >= RUNS_MIN, "{runs} runs");
    assert!(charged >= CHARGED_MIN, "{charged} keys charged");
    assert!(balances >= BALANCES_MIN, "{balances} balances read");
}

/// A test for each gateway with a fault, and the rule that has to find it.
macro_rules! found {
    ($($test:ident: $fault:literal => $rule:ident),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                let report = judged(Some($fault), Topology::File);
                let is_found = report.violations.iter().any(|it| it.rule == Rule::$rule);
                assert!(is_found, "the rule {} has not noticed", Rule::$rule);
            }
        )+

        #[test]
        fn histories_of_every_fault_are_judged_by_the_rule_of_the_reference() {
            assert_eq!([$($fault),+], FAULTS);
            for (fault, rule) in [$(($fault, Rule::$rule)),+] {
                let (begin, end) = (format!("| `{fault}` |"), format!("| `{rule}` |"));
                let is_row = |line: &str| line.starts_with(&begin) && line.ends_with(&end);
                assert!(TABLE.lines().any(is_row), "{fault}: {rule}");
            }
        }
    };
}

found! {
    histories_find_a_forgotten_fingerprint: "fingerprint_forgotten" => Key,
    histories_find_keys_shared_across_api_keys: "key_shared_across_api_keys" => Key,
    histories_find_a_hold_released_twice: "hold_released_twice" => Wallet,
    histories_find_a_hold_that_is_kept: "hold_kept" => Holds,
    histories_find_another_amount_charged: "other_amount_charged" => Wallet,
    histories_find_an_ignored_cap: "cap_ignored" => Cap,
    histories_find_a_lost_refund: "refund_lost" => Wallet,
    histories_find_a_failure_read_as_not_run: "failure_read_as_not_run" => Key,
    histories_find_a_run_after_a_takeover: "run_again_after_takeover" => Key,
    histories_find_other_bytes_in_a_replay: "other_bytes_replayed" => Key,
    histories_find_an_answer_before_its_commit: "answered_before_commit" => Key,
    histories_find_a_run_before_its_claim: "run_before_claim" => Key,
}
