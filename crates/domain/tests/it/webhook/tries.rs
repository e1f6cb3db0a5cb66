//! Tries: their pauses, and what each result leads to.

use std::time::Duration;

use holdfast_domain::admin::webhook::{
    DeliveryHistory, DisableReason, FollowUp, TRIES_MAX, TryResult, follow_up, pause_after,
};
use proptest::prelude::{any, proptest};

/// Before the first try, the second, and so on.
const PAUSES_S: [u64; 10] = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// A result of every kind, its label, and whether it may be tried again.
const RESULTS: [(TryResult, &str, bool); 21] = [
    (TryResult::Answered(200), "delivered", false),
    (TryResult::Answered(204), "delivered", false),
    (TryResult::Answered(299), "delivered", false),
    (TryResult::Answered(410), "gone", false),
    (TryResult::Answered(199), "unknown_status", true),
    (TryResult::Answered(300), "redirect", true),
    (TryResult::Answered(301), "redirect", true),
    (TryResult::Answered(399), "redirect", true),
    (TryResult::Answered(400), "client_error", true),
    (TryResult::Answered(404), "client_error", true),
    (TryResult::Answered(429), "client_error", true),
    (TryResult::Answered(500), "server_error", true),
    (TryResult::Answered(599), "server_error", true),
    (TryResult::Answered(600), "unknown_status", true),
    (TryResult::UrlRefused, "url_refused", true),
    (TryResult::HostNotFound, "host_not_found", true),
    (TryResult::AddressRefused, "address_refused", true),
    (TryResult::Unreached, "unreached", true),
    (TryResult::TlsFailed, "tls_failed", true),
    (TryResult::Broken, "broken", true),
    (TryResult::TimedOut, "timed_out", true),
];

const fn history(tries_failed: u32, dead_in_a_row: u32) -> DeliveryHistory {
    DeliveryHistory { tries_failed, dead_in_a_row }
}

#[test]
fn pauses_are_those_of_the_schedule() {
    let pauses: Vec<_> = (0..).map_while(|failed| pause_after(failed, 0)).collect();
    assert_eq!(pauses, PAUSES_S.map(Duration::from_secs));
    assert_eq!(pauses.len(), TRIES_MAX);
    assert_eq!(pause_after(u32::MAX, 0), None);
}

#[test]
fn chance_adds_a_fifth_at_most() {
    assert_eq!(pause_after(1, u32::MAX / 2 + 1), Some(Duration::from_millis(5_500)));
    assert_eq!(pause_after(1, u32::MAX), Some(Duration::from_millis(5_999)));
    assert_eq!(pause_after(9, u32::MAX), Some(Duration::from_millis(103_679_999)));
    assert_eq!(pause_after(0, u32::MAX), Some(Duration::ZERO));
}

proptest! {
    #[test]
    fn pauses_stay_within_their_bounds(failed in 0_u32..12, random in any::<u32>()) {
        let scheduled = PAUSES_S.get(usize::try_from(failed).unwrap());
        let scheduled = scheduled.map(|seconds| Duration::from_secs(*seconds));
        let pause = pause_after(failed, random);
        assert_eq!(pause.is_some(), scheduled.is_some());
        if let (Some(pause), Some(scheduled)) = (pause, scheduled) {
            assert!(scheduled <= pause && pause <= scheduled * 6 / 5, "{pause:?}");
        }
    }
}

#[test]
fn each_result_leads_to_what_the_table_says() {
    for (result, label, may_retry) in RESULTS {
        assert_eq!(result.label(), label);
        let [first, ninth, tenth, tenth_dead] =
            [history(0, 0), history(8, 9), history(9, 8), history(9, 9)]
                .map(|history| follow_up(result, history, 0));
        if may_retry {
            assert_eq!(first, FollowUp::Retry(Duration::from_secs(5)), "{label}");
            assert_eq!(ninth, FollowUp::Retry(Duration::from_secs(86_400)), "{label}");
            assert_eq!(tenth, FollowUp::Dead, "{label}");
            assert_eq!(tenth_dead, FollowUp::Disable(DisableReason::DeadInARow), "{label}");
        } else {
            let expected = match label {
                "gone" => FollowUp::Disable(DisableReason::Gone),
                _ => FollowUp::Delivered,
            };
            assert_eq!([first, ninth, tenth, tenth_dead], [expected; 4], "{label}");
        }
    }
}

#[test]
fn only_an_answer_has_a_status() {
    for (result, label, _) in RESULTS {
        let expected = if let TryResult::Answered(status) = result { Some(status) } else { None };
        assert_eq!(result.status(), expected, "{label}");
    }
    let reasons = [DisableReason::Gone, DisableReason::DeadInARow];
    assert_eq!(reasons.map(DisableReason::label), ["gone", "dead_in_a_row"]);
}

#[test]
fn chance_reaches_the_retry() {
    let late = follow_up(TryResult::TimedOut, history(1, 0), u32::MAX);
    assert_eq!(late, FollowUp::Retry(pause_after(2, u32::MAX).unwrap()));
}
