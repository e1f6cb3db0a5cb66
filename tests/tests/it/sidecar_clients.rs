//! Official SDKs through a sidecar, with nothing changed but the base URL.

use holdfast_tests::Proxy;
use serde_json::json;

use crate::clients::{NODE, PYTHON, Sdk, world};
use crate::sidecar::{SAID, as_asked};

/// Each script asks four times, all alike.
const CALLS: i64 = 4;

/// The head of the first answer breaks before the SDK: it asks again by itself, and pays once.
fn check_cut_before(sdk: &Sdk) {
    let world = world();
    world.upstream.otherwise(as_asked());
    let front = Proxy::start(world.gateway.address());
    let name = front.address().to_string();
    let sidecar = world.site.sidecar(world.gateway.address(), &["--allow-host", &name]);
    front.turn_to(sidecar.address());
    front.cut_next(&[50]);
    let told = world.run_through(&front, sdk, "plain", "");
    assert_eq!(told, json!([SAID, SAID, SAID, SAID]));
    world.check_charges(CALLS);
}

#[test]
fn python_pays_once_where_its_own_connection_breaks() {
    check_cut_before(&PYTHON);
}

#[test]
fn node_pays_once_where_its_own_connection_breaks() {
    check_cut_before(&NODE);
}
