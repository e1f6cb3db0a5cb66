//! What a node's row says of its settings: what its own process has told last, and nothing of another one.

use holdfast_domain::Nodes;
use holdfast_domain::admin::Directory;
use holdfast_domain::admin::listing::NodeListing;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::secret::SettingsDigest;
use holdfast_testkit::sample;

use crate::scratch::Home;

async fn listed(home: &impl Home, node: &Node) -> Option<NodeListing> {
    let nodes = home.store().nodes().await.unwrap();
    nodes.into_iter().find(|it| it.lease.node.name == node.name)
}

async fn settings_are_those_of_the_process_that_has_the_name(home: &impl Home) {
    let (store, first) = (home.store(), sample::node("settings"));
    let second = Node { incarnation: sample::fresh(), ..first.clone() };
    let [one, other] = [1, 2].map(|byte| SettingsDigest::from_bytes([byte; 32]));
    let take = async |node| store.heartbeat(node, sample::LEASE, LeaseMode::Take).await.unwrap();
    let told = async || listed(home, &first).await.unwrap().settings;
    drop(take(&first).await);
    assert_eq!(told().await, None);
    store.note_settings(&first, one).await.unwrap();
    // Told by whoever does not have the name: not kept.
    store.note_settings(&second, other).await.unwrap();
    assert_eq!(told().await, Some(one));
    store.heartbeat(&first, sample::LEASE, LeaseMode::Renew).await.unwrap();
    store.note_settings(&first, other).await.unwrap();
    assert_eq!(told().await, Some(other), "the last one, which a heartbeat leaves alone");
    drop(take(&second).await);
    assert_eq!(told().await, None, "not what its name's last owner told");
    store.note_settings(&first, one).await.unwrap();
    assert_eq!(told().await, None);
    store.leave(&second).await.unwrap();
    assert_eq!(listed(home, &first).await, None);
}

crate::scratch::on_every_store! {
    settings_are_those_of_the_process_that_has_the_name,
}
