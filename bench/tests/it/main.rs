//! The benchmark still runs, whole, against the real binary. Nothing here looks at a time.

use std::path::PathBuf;

use holdfast_bench::bench::{Plan, figures};

#[test]
fn every_usual_scenario_is_measured_and_the_book_adds_up_after_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_holdfast-bench"));
    let plan = Plan { folder, rounds: 1, millis: 100, streams: 20, ..Plan::usual(program) };
    let told = figures(&plan);
    let lines = told["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 8 * 3 + 3, "{told}");
    assert_eq!(lines[2]["figures"]["rows_per_1000_requests"], ROWS_MAX, "{told}");
    for line in lines {
        let figures = &line["figures"];
        assert!(figures["latency_us"]["count"].as_u64().unwrap() > 0, "{line}");
        let scenario = line["scenario"].as_str().unwrap();
        let is_streamed = ["streams", "chunks", "readers"].contains(&scenario);
        let heard = figures["streams_us"]["delay"]["count"].as_u64().unwrap();
        assert_eq!(heard > 0, is_streamed, "{line}");
        let is_fresh = !["replay", "overload", "readers"].contains(&scenario);
        if is_fresh && line["target"] == "gateway" {
            let rows = figures["rows_per_1000_requests"].as_u64().unwrap();
            assert!((ROWS_MIN..=ROWS_MAX).contains(&rows), "{line}");
        }
    }
    assert_eq!(told["by_hand"].as_array().unwrap().len(), 3);
    assert_eq!(told["goals"].as_array().unwrap().len(), 15, "{told}");
}

/// An operation, its end, its result and three transfers.
const ROWS_MIN: u64 = 6_000;
/// The wallet is written once by each transaction: twice a request at most.
const ROWS_MAX: u64 = 8_000;

#[test]
fn a_store_is_filled_before_it_is_measured() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_holdfast-bench"));
    let usual = Plan::usual(program);
    let plan = Plan { folder, rounds: 1, millis: 100, stored: 1_000, ..usual };
    let told = figures(&plan);
    assert_eq!(told["stored"], 1_000);
    assert_eq!(told["lines"].as_array().unwrap().len(), 3, "{told}");
}
