//! Rolling updates through the balancer that is shipped: `cargo xtask chaos --on balancer` does more of them.

use std::sync::atomic::Ordering;

use holdfast_tests::deployment::Source;
use holdfast_tests::rolling::roll;

/// One round, under load.
fn check(source: Source) {
    let met = roll(&[source], 1, |_round, _source, _met| {}).remove(0);
    let [answers, streams, slow] =
        [&met.answers, &met.streams, &met.slow_streams].map(|count| count.load(Ordering::Relaxed));
    assert!(answers > 20 && streams > 20 && slow > 0, "hardly any load: {met:?}");
}

#[test]
fn postgres_haproxy_helm_gateways_are_replaced_under_load_and_nobody_is_refused_or_cut() {
    // Less than the chart's own, which the long run has; the probe takes 2 s to see it.
    let chart = Source::Chart(&["--set", "drain.delaySeconds=4"]);
    std::thread::scope(|scope| {
        for source in [Source::Compose, chart] {
            scope.spawn(move || check(source));
        }
    });
}
