//! Jobs: started once for a request key, with a row of the audit log, and shown with what they found.

use std::time::Duration;

use holdfast_domain::JobId;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{JobEnding, JobStep};
use holdfast_domain::admin::{Administration, Jobs};
use holdfast_domain::admin::{Reach, Role};
use holdfast_testkit::sample;
use serde_json::json;

use crate::world::{Call, World, key};

const FOUND: &str = r#"{"wallets":1,"operations":2,"transfers":3,"unlisted":0,
    "mismatches":[{"subject":"book","id":null,"sentence":"it is torn"}]}"#;

#[tokio::test]
async fn an_auditor_starts_a_verification_once_and_the_trail_says_so() {
    let world = World::new().await;
    let (_, auditor) = world.admin_key(Role::Auditor, Reach::All).await;
    let head = world.store.trail_head().await.unwrap();
    let body = json!({ "kind": "verification", "since": head.to_string() });
    let ask = Call::post("/jobs", &body).bearer(&auditor).key(&key());
    let first = world.send(ask.clone()).await;
    assert_eq!(first.status, 201, "{first:?}");
    let job = first.json();
    assert_eq!((&job["state"], &job["ok"]), (&json!("queued"), &json!(null)), "{job}");
    let again = world.send(ask).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.json(), job);
    let trail = world.store.trail_head().await.unwrap();
    assert_eq!(trail.seq, head.seq + 1, "one row for one job");
    let listed = world.get("/jobs").await.json();
    assert_eq!(listed["data"], json!([job]));
    let kept =
        world.store.job(job["id"].as_str().unwrap().parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(kept.since, Some(head), "what it starts from");
}

#[tokio::test]
async fn a_head_that_is_none_is_refused_and_starts_nothing() {
    let world = World::new().await;
    for since in ["", "7", "7:zz", "seven"] {
        let body = json!({ "kind": "verification", "since": since });
        world.post("/jobs", body).await.is_about(400, "invalid_value", "since");
    }
    world.post("/jobs", json!({ "kind": "repair" })).await.is_about(400, "invalid_value", "kind");
    assert_eq!(world.get("/jobs").await.json()["data"], json!([]));
    assert!(TrailHead::EMPTY.to_string().parse::<TrailHead>().is_ok());
}

#[tokio::test]
async fn a_job_says_how_far_it_is_and_in_the_end_whether_all_is_well() {
    let world = World::new().await;
    let job = world.post("/jobs", json!({ "kind": "verification" })).await.json();
    let path = format!("/jobs/{}", job["id"].as_str().unwrap());
    let id: JobId = job["id"].as_str().unwrap().parse().unwrap();
    let node = sample::node("a");
    world.store.claim(&node, Duration::from_secs(60)).await.unwrap().unwrap();
    let step = JobStep { done: 5, of: 9, place: None, report: Some(FOUND.into()) };
    world.store.keep(id, &node, &step, Duration::from_secs(60)).await.unwrap().unwrap();
    let running = world.get(&path).await.json();
    assert_eq!((&running["done"], &running["of"]), (&json!(5), &json!(9)), "{running}");
    assert_eq!((&running["node"], &running["ok"]), (&json!("a"), &json!(null)), "{running}");
    assert_eq!(running["report"]["mismatches"][0]["sentence"], "it is torn");
    world.store.finish(id, &node, &step, JobEnding::Done).await.unwrap().unwrap();
    let done = world.get(&path).await.json();
    assert_eq!((&done["state"], &done["ok"]), (&json!("done"), &json!(false)), "{done}");
    let listed = world.get("/jobs").await.json();
    assert_eq!(listed["data"][0]["report"], json!(null), "a list has no reports");
    world.get(&format!("/jobs/{}", key())).await.is_error(404, "not_found");
}
