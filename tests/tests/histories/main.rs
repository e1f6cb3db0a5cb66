//! Histories of gateways that are killed under load, judged by a checker that knows nothing of them. `cargo xtask
//! chaos --on histories` does the same for as long as one likes.
//!
//! Each gateway with a fault has to be found; else what the checker says of the unbroken one proves nothing.
#![expect(
    clippy::print_stdout,
    reason = "counts and place of a history, for people who read the run"
)]

use holdfast_tests::chaos::histories::{Recording, folder};

/// Any other will do as well; this one makes a failure come back.
const SEED: u64 = 20_261_129;
/// Gateways of a history that are killed.
const KILLS: u32 = 6;

/// Records a history and judges it; whether the contract allows it.
fn is_allowed(fault: Option<&'static str>) -> bool {
    let recording = Recording { seed: SEED, kills: KILLS, fault };
    let (path, report) = recording.judge_in(&folder());
    println!("{}: {report}: {}", fault.unwrap_or("unbroken"), path.display());
    for violation in report.violations.iter().take(3) {
        println!("{violation}");
    }
    report.violations.is_empty()
}

#[test]
fn histories_of_the_unbroken_gateway_are_allowed() {
    assert!(is_allowed(None));
}

/// A test for each gateway with a fault.
macro_rules! found {
    ($($test:ident: $fault:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                assert!(!is_allowed(Some($fault)), "the checker has not noticed");
            }
        )+

        #[test]
        fn histories_of_every_fault_are_judged() {
            assert_eq!([$($fault),+], holdfast_tests::chaos::histories::FAULTS);
        }
    };
}

found! {
    histories_find_a_forgotten_fingerprint: "fingerprint_forgotten",
    histories_find_keys_shared_across_api_keys: "key_shared_across_api_keys",
    histories_find_a_hold_released_twice: "hold_released_twice",
    histories_find_a_hold_that_is_kept: "hold_kept",
    histories_find_another_amount_charged: "other_amount_charged",
    histories_find_an_ignored_cap: "cap_ignored",
    histories_find_a_lost_refund: "refund_lost",
    histories_find_a_failure_read_as_not_run: "failure_read_as_not_run",
    histories_find_a_run_after_a_takeover: "run_again_after_takeover",
    histories_find_other_bytes_in_a_replay: "other_bytes_replayed",
    histories_find_an_answer_before_its_commit: "answered_before_commit",
    histories_find_a_run_before_its_claim: "run_before_claim",
}
