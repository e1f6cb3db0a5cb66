//! Rolling updates through the balancer that is shipped: `cargo xtask chaos --on balancer` does more of them.

use std::sync::atomic::Ordering;

use holdfast_tests::rolling::roll;

#[test]
fn postgres_haproxy_gateways_are_replaced_under_load_and_nobody_is_refused_or_cut() {
    let met = roll(2, |_round, _met| {});
    let [answers, streams] = [&met.answers, &met.streams].map(|it| it.load(Ordering::Relaxed));
    assert!(answers > 20 && streams > 20, "hardly any load: {met:?}");
}
