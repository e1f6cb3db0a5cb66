//! The official SDKs' helpers for structured answers and tools: what they give back is appended to the
//! conversation with all that they keep beside it, and the next turn works.

use holdfast_tests::{Config, Reply, Site, Upstream};
use serde_json::json;

use crate::clients::{NODE, PYTHON, Sdk, World};

fn check_second_turns(sdk: &Sdk) {
    let upstream = Upstream::start(Reply::obeying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let world = World { upstream, site, account, gateway };
    let told = world.run(sdk, "second_turn");
    let conversation = json!({"zips": ["1"], "names": ["Ada", "Ada"]});
    assert_eq!(told, json!([conversation, conversation]));
    world.check_charges(6);
    for arrived in world.upstream.arrived() {
        assert!(!arrived.body.contains("parsed"), "{}", arrived.body);
    }
}

#[test]
fn python_appends_what_its_helpers_give_back() {
    check_second_turns(&PYTHON);
}

#[test]
fn node_appends_what_its_helpers_give_back() {
    check_second_turns(&NODE);
}
