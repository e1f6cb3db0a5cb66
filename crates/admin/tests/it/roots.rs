//! Roots of the ledger over the API: listed as they were signed, and followed by a verifier from a receipt.

use holdfast_domain::admin::{Reach, Role};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{Journal as _, Micros, Timestamp};
use holdfast_receipts::DocumentKind;
use holdfast_receipts::charge::Charge;
use holdfast_receipts::key::Signer;
use holdfast_receipts::verification::{TrustedKeys, check_inclusion};
use holdfast_store::RootBounds;

use crate::operations::completed;
use crate::world::{Call, World, reach};

#[tokio::test]
async fn a_proof_of_the_api_is_verified_with_a_receipt_and_roots_are_listed() {
    let world = World::new().await;
    let wallet = world.wallet("acme", 1_000).await;
    let api_key = world.api_key(&wallet).await;
    let operation = completed(&world, &wallet, &api_key, 20).await;
    let path = format!("/operations/{}/proof", operation.id);
    world.get(&path).await.is_error(404, "not_found");
    assert_eq!(world.get("/receipts/roots").await.json()["data"], serde_json::json!([]));

    let signer = ServerSecret::new(&[7; 32]).unwrap().receipt_key();
    let signer = Signer::new(&signer, &[], &[]).unwrap();
    let now = world.store.clock().await.unwrap();
    let until = Some(Timestamp::from_micros(now.as_micros() + 1));
    let all = RootBounds { until, operations: i64::MAX };
    assert!(world.store.sign_root_within(&signer, all).await.unwrap());

    let trusted = TrustedKeys::of(signer.keys());
    let listed = world.get("/receipts/roots").await.json();
    let root = trusted.verify(DocumentKind::Root, &listed["data"][0]).unwrap();
    assert_eq!((&root["number"], &root["leaves"]), (&"1".into(), &"2".into()));
    let proof = world.get(&path).await.json();
    assert_eq!(trusted.verify(DocumentKind::Root, &proof).unwrap(), root);
    let receipt = Charge::of(&operation).unwrap().receipt(Micros::ZERO, now);
    check_inclusion(&receipt, root, &proof).unwrap();

    let (_id, holder) = world.admin_key(Role::HolderAdmin, reach(&wallet)).await;
    let (_id, auditor) = world.admin_key(Role::Auditor, Reach::All).await;
    for path in ["/receipts/roots", &path] {
        world.send(Call::get(path).bearer(&holder)).await.is_error(403, "forbidden");
        assert_eq!(world.send(Call::get(path).bearer(&auditor)).await.status, 200);
    }
}
