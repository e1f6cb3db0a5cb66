//! Official SDKs through a sidecar, with nothing changed but the base URL.

use holdfast_tests::Proxy;
use serde_json::json;

use crate::clients::{NODE, PYTHON, Sdk, world};
use crate::sidecar::{SAID, as_asked};

/// Each script asks four times, all alike.
const CALLS: i64 = 4;

fn check_plain(sdk: &Sdk) {
    let world = world();
    world.upstream.otherwise(as_asked());
    // Behind the sidecar every answer breaks at first, in its head, in a body and in a stream.
    let back = Proxy::start(world.gateway.address());
    back.cut_next(&[100, 900, 1_500, 2_500]);
    let sidecar = world.site.sidecar(back.address(), &[]);
    let through = Proxy::start(sidecar.address());
    let told = world.run_through(&through, sdk, "plain", "");
    assert_eq!(told, json!([SAID, SAID, SAID, SAID]));
    assert!(back.told().len() > 3, "the cuts were met: {:?}", back.told());
    world.check_charges(CALLS);
}

/// The head of the first answer breaks before the SDK: it asks again by itself, and pays once.
fn check_cut_before(sdk: &Sdk) {
    let world = world();
    world.upstream.otherwise(as_asked());
    let sidecar = world.site.sidecar(world.gateway.address(), &[]);
    let front = Proxy::start(sidecar.address());
    front.cut_next(&[50]);
    let told = world.run_through(&front, sdk, "plain", "");
    assert_eq!(told, json!([SAID, SAID, SAID, SAID]));
    world.check_charges(CALLS);
}

#[test]
fn python_needs_nothing_but_the_base_url() {
    check_plain(&PYTHON);
}

#[test]
fn node_needs_nothing_but_the_base_url() {
    check_plain(&NODE);
}

#[test]
fn python_pays_once_where_its_own_connection_breaks() {
    check_cut_before(&PYTHON);
}

#[test]
fn node_pays_once_where_its_own_connection_breaks() {
    check_cut_before(&NODE);
}
