//! Refused requests: a holder sees and finds those of their own wallet, and no other.

use std::sync::Arc;

use holdfast_domain::admin::Role;
use holdfast_domain::statistics::{
    RefusalBatch, RefusalCount, RefusalHour, RefusedRequest, hour_of,
};
use holdfast_domain::{RequestId, Statistics, Timestamp};
use serde_json::Value;

use crate::world::{Call, World, reach};

/// A refused request of a new API key of this wallet.
async fn refused(world: &World, wallet: &str, number: u128) -> RefusedRequest {
    let request = RefusedRequest {
        id: RequestId::from_u128(number),
        at: Timestamp::from_micros(1_767_225_600_000_000),
        api_key: world.api_key(wallet).await.parse().unwrap(),
        wallet: wallet.parse().unwrap(),
        code: "overloaded".into(),
        status: 503,
        model: None,
        shortage: None,
    };
    let of = RefusalHour {
        hour: hour_of(request.at),
        wallet: request.wallet,
        api_key: request.api_key,
        code: request.code.clone(),
    };
    let batch =
        RefusalBatch { counts: vec![RefusalCount { of, count: 1 }], listed: vec![request.clone()] };
    world.store.add_refusals(Arc::new(batch)).await.unwrap();
    request
}

#[tokio::test]
async fn holder_sees_refused_requests_of_their_wallet_only() {
    let world = World::new().await;
    let (own, other) = (world.wallet("own", 0).await, world.wallet("other", 0).await);
    let mine = refused(&world, &own, 1).await;
    let theirs = refused(&world, &other, 2).await;
    let (_, holder) = world.admin_key(Role::HolderAdmin, reach(&own)).await;
    let rows = async |bearer: &str, path: &str| -> Vec<Value> {
        let listed = world.send(Call::get(path).bearer(bearer)).await.json();
        listed["data"].as_array().unwrap_or_else(|| panic!("{path}: {listed}")).clone()
    };
    let ids = async |bearer: &str, path: &str| -> Vec<String> {
        let of_row = |row: &Value| row["request_id"].as_str().unwrap().to_owned();
        rows(bearer, path).await.iter().map(of_row).collect()
    };
    let (mine_id, theirs_id) = (mine.id.to_string(), theirs.id.to_string());
    assert_eq!(ids(&world.owner, "/refusals").await.len(), 2);
    for path in ["/refusals".to_owned(), format!("/refusals?request_id={mine_id}")] {
        assert_eq!(ids(&holder, &path).await, [mine_id.as_str()], "{path}");
    }
    for filter in [
        format!("request_id={theirs_id}"),
        format!("wallet_id={other}"),
        format!("api_key_id={}", theirs.api_key),
    ] {
        let path = format!("/refusals?{filter}");
        assert_eq!(ids(&world.owner, &path).await, [theirs_id.as_str()], "{path}");
        assert_eq!(ids(&holder, &path).await, [""; 0], "{path}");
    }
    let counts = async |bearer: &str, path: &str| -> Vec<Value> {
        rows(bearer, path).await.iter().map(|row| row["count"].clone()).collect()
    };
    assert_eq!(counts(&world.owner, "/refusals/hours").await, [2]);
    assert_eq!(counts(&holder, "/refusals/hours").await, [1]);
    for filter in [format!("wallet_id={other}"), format!("api_key_id={}", theirs.api_key)] {
        let path = format!("/refusals/hours?{filter}");
        assert_eq!(counts(&world.owner, &path).await, [1], "{path}");
        assert_eq!(counts(&holder, &path).await, [0; 0], "{path}");
    }
}
