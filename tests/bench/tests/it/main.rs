//! The benchmark still runs, whole, against the real binary. Nothing here looks at a time.

use std::path::PathBuf;

use holdfast_bench::bench::{Plan, figures};
use holdfast_bench::instructions;
use holdfast_bench::scenario::Engine;

#[test]
fn every_usual_scenario_is_measured_and_the_book_adds_up_after_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_holdfast-bench"));
    let plan = Plan { folder, rounds: 1, millis: 100, streams: 20, ..Plan::usual(program) };
    let told = figures(&plan);
    let lines = told["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 11 * 3 + 3, "{told}");
    assert_eq!(lines[2]["figures"]["rows_per_1000_requests"], ROWS_MAX, "{told}");
    for line in lines {
        let figures = &line["figures"];
        assert!(figures["latency_us"]["count"].as_u64().unwrap() > 0, "{line}");
        let scenario = line["scenario"].as_str().unwrap();
        let is_streamed = ["streams", "chunks", "readers", "sidecar-streams"].contains(&scenario);
        let heard = figures["streams_us"]["delay"]["count"].as_u64().unwrap();
        assert_eq!(heard > 0, is_streamed, "{line}");
        let is_fresh = !["replay", "overload", "readers"].contains(&scenario);
        if is_fresh && line["target"] == "gateway" {
            let rows = figures["rows_per_1000_requests"].as_u64().unwrap();
            assert!((ROWS_MIN..=ROWS_MAX).contains(&rows), "{line}");
        }
    }
    assert_eq!(told["by_hand"].as_array().unwrap().len(), 3);
    assert_eq!(told["goals"].as_array().unwrap().len(), 18, "{told}");
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

#[test]
fn gateways_are_measured_whose_collector_works_is_gone_or_says_nothing() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_holdfast-bench"));
    let only = ["traced", "traced-gone", "traced-silent"].map(str::to_owned).to_vec();
    let plan = Plan { folder, rounds: 1, millis: 100, only, ..Plan::usual(program) };
    let told = figures(&plan);
    assert_eq!(told["lines"].as_array().unwrap().len(), 3 * 3, "{told}");
    assert_eq!(told["goals"].as_array().unwrap().len(), 2, "{told}");
}

#[test]
fn valgrind_counts_the_instructions_of_every_kind_of_request() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let usual = instructions::Plan::usual(env!("CARGO_BIN_EXE_holdfast-bench").into());
    let widths = vec![8];
    let counts = instructions::count(&instructions::Plan {
        folder,
        warm_up: 10,
        requests: 50,
        widths,
        has_threshold: true,
        share: Some("1"),
        ..usual
    });
    let [plain, low, replay, streamed, refused, wide, low_wide] = &counts[..] else {
        panic!("{counts:?}")
    };
    assert!(refused.instructions > 0, "{counts:?}");
    assert!(refused.instructions < replay.instructions, "{counts:?}");
    for writing in [plain, low, streamed, wide, low_wide] {
        assert!(replay.instructions < writing.instructions, "{counts:?}");
        assert!(0 < writing.writer && writing.writer < writing.instructions, "{counts:?}");
        // Less than one change of one commit is none: the counters would be those of another part.
        assert!(writing.batch >= 1_000, "{counts:?}");
    }
    for reading in [replay, refused] {
        assert!(reading.writer < plain.writer / 2, "{counts:?}");
    }
    assert!(plain.batch < wide.batch, "callers at once share a commit: {counts:?}");
    assert!(wide.row.ends_with("×8"), "{counts:?}");
}

/// A change of an operation is one of a batch, and a request has two.
const CHANGES: u64 = 2;

#[test]
fn postgres_gateways_the_store_and_the_plain_loop_are_measured_on_one_server() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_holdfast-bench"));
    let only = ["32-wallets", "nodes"].map(str::to_owned).to_vec();
    let plan = Plan {
        folder,
        rounds: 1,
        millis: 100,
        engine: Engine::Postgres,
        only,
        ..Plan::usual(program)
    };
    let told = figures(&plan);
    assert!(told["database"].as_str().unwrap().starts_with("PostgreSQL "), "{told}");
    let lines = told["lines"].as_array().unwrap();
    let targets: Vec<_> = lines.iter().map(|line| line["target"].as_str().unwrap()).collect();
    let each = ["plain loop", "store alone", "gateway"];
    assert_eq!(targets, [each, each].concat());
    for line in lines {
        let figures = &line["figures"];
        let number = |name: &str| figures[name].as_u64().unwrap();
        assert!(figures["latency_us"]["count"].as_u64().unwrap() > 0, "{line}");
        assert_eq!(number("other_answers"), 0, "{line}");
        assert!(number("server_bytes_logged_per_request") > 0, "{line}");
        let changes = number("changes_per_1000_transactions")
            * number("transactions_per_1000_requests")
            / 1_000_000;
        let is_counted = line["target"] == "gateway";
        assert!((changes == CHANGES || changes == CHANGES - 1) == is_counted, "{line}");
    }
}
