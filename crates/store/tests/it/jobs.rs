//! Jobs: one process at a time does one, and another goes on where it was kept.

use std::time::Duration;

use holdfast_domain::admin::Jobs;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{JobEnding, JobKind, JobState, JobStep};
use holdfast_domain::admin::listing::{Order, PageRequest};
use holdfast_domain::operation::Node;
use holdfast_domain::{JobId, NodeName};
use holdfast_store::verify::{Mismatch, Subject, Verification};
use holdfast_testkit::join::join_all;
use holdfast_testkit::sample;

use crate::raw::Raw;
use crate::scratch::Home;

const LEASE: Duration = Duration::from_secs(60);

fn node(name: &str) -> Node {
    Node { name: NodeName::try_from(name).unwrap(), incarnation: sample::fresh() }
}

fn step(done: u64) -> JobStep {
    let (place, report) = (Some(format!("part:{done}").into()), Some("{}".into()));
    JobStep { done, of: 9, place, report }
}

fn page(limit: u32) -> PageRequest {
    PageRequest::first(Order::Newest, limit)
}

async fn start(home: &impl Home) -> JobId {
    let id = sample::fresh();
    home.store().start(id, JobKind::Verification, None).await.unwrap();
    id
}

async fn a_job_is_queued_once(home: &impl Home) {
    let (store, id) = (home.store(), sample::fresh());
    let job = store.start(id, JobKind::Verification, None).await.unwrap();
    assert_eq!((job.id, job.state, job.step.clone()), (id, JobState::Queued, JobStep::default()));
    assert_eq!((job.lease.clone(), job.started_at, job.finished_at), (None, None, None));
    let owner = node("one");
    let claimed = store.claim(&owner, LEASE).await.unwrap().unwrap();
    assert_eq!(store.start(id, JobKind::Verification, None).await.unwrap(), claimed);
    assert_eq!(store.jobs(page(9)).await.unwrap().rows, [claimed]);
    assert_eq!(store.job(sample::fresh()).await.unwrap(), None);
    let since = Some(TrailHead { seq: 7, mac: [9; 32] });
    let another = store.start(sample::fresh(), JobKind::Verification, since).await.unwrap();
    assert_eq!((another.since, store.job(another.id).await.unwrap()), (since, Some(another)));
}

async fn jobs_are_claimed_in_their_order_and_once(home: &impl Home) {
    let store = home.store();
    let ids = [start(home).await, start(home).await, start(home).await];
    let owners = [(); 4].map(|()| node("one"));
    let claims = owners.iter().map(|owner| store.claim(owner, LEASE));
    let mut claimed: Vec<_> =
        join_all(claims).await.into_iter().filter_map(|claim| claim.unwrap()).collect();
    claimed.sort_by_key(|job| ids.iter().position(|id| *id == job.id));
    assert_eq!(claimed.iter().map(|job| job.id).collect::<Vec<_>>(), ids);
    for job in &claimed {
        assert_eq!(job.state, JobState::Running);
        let lease = job.lease.as_ref().unwrap();
        assert!(owners.contains(&lease.owner));
        assert_eq!(lease.ends_at, job.started_at.unwrap().after(LEASE));
    }
    let newest: Vec<_> =
        store.jobs(page(2)).await.unwrap().rows.into_iter().map(|job| job.id).collect();
    assert_eq!(newest, [ids[2], ids[1]]);
    let next = store.jobs(page(2)).await.unwrap().next;
    let rest = store.jobs(PageRequest { after: next, ..page(2) }).await.unwrap();
    assert_eq!((rest.rows.len(), rest.rows[0].id, rest.next), (1, ids[0], None));
}

async fn a_job_goes_on_with_another_owner_when_the_lease_has_ended(home: &impl Home) {
    let (store, id) = (home.store(), start(home).await);
    let (first, second) = (node("one"), node("two"));
    let begun = store.claim(&first, LEASE).await.unwrap().unwrap();
    assert_eq!(store.claim(&second, LEASE).await.unwrap(), None, "it has an owner");
    // A renewal of no time ends the lease at once.
    let kept = store.keep(id, &first, &step(3), Duration::ZERO).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.step), (JobState::Running, step(3)));
    let other = home.again().await;
    let taken = other.claim(&second, LEASE).await.unwrap().unwrap();
    assert_eq!((taken.id, taken.step), (id, step(3)));
    assert_eq!(taken.started_at, begun.started_at, "of the first claim");
    assert_eq!(taken.lease.unwrap().owner, second);
    other.close().await.unwrap();
    // Whoever lost it writes nothing more, also under the same name.
    let successor = Node { incarnation: sample::fresh(), ..second.clone() };
    for stranger in [first, successor] {
        assert_eq!(store.keep(id, &stranger, &step(4), LEASE).await.unwrap(), None);
        let ended = store.finish(id, &stranger, &step(4), JobEnding::Done).await;
        assert_eq!(ended.unwrap(), None);
    }
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.step), (JobState::Running, step(3)));
}

async fn a_lease_that_has_ended_is_renewed_by_its_owner_alone(home: &impl Home) {
    let (store, id, owner) = (home.store(), start(home).await, node("one"));
    store.claim(&owner, Duration::ZERO).await.unwrap().unwrap();
    let kept = store.keep(id, &owner, &step(1), LEASE).await.unwrap().unwrap();
    assert!(kept.lease.unwrap().ends_at > kept.started_at.unwrap());
    assert_eq!(store.claim(&node("two"), LEASE).await.unwrap(), None);
}

async fn a_job_that_has_ended_stays_so(home: &impl Home) {
    let store = home.store();
    for (ending, state) in
        [(JobEnding::Done, JobState::Done), (JobEnding::Failed, JobState::Failed)]
    {
        let (id, owner) = (start(home).await, node("one"));
        store.claim(&owner, Duration::ZERO).await.unwrap().unwrap();
        let ended = store.finish(id, &owner, &step(9), ending).await.unwrap().unwrap();
        assert_eq!((ended.state, ended.step.clone(), ended.lease.clone()), (state, step(9), None));
        assert!(ended.finished_at >= ended.started_at);
        assert_eq!(store.claim(&owner, LEASE).await.unwrap(), None);
        assert_eq!(store.keep(id, &owner, &step(1), LEASE).await.unwrap(), None);
        assert_eq!(store.finish(id, &owner, &step(1), JobEnding::Done).await.unwrap(), None);
        assert_eq!(store.job(id).await.unwrap(), Some(ended));
    }
}

async fn a_verification_that_was_done_elsewhere_is_a_job_that_is_done(home: &impl Home) {
    let (store, id) = (home.store(), sample::fresh());
    let queued = start(home).await;
    let since = Some(TrailHead { seq: 7, mac: [9; 32] });
    let mismatch = Mismatch { subject: Subject::Ledger, sentence: "it is torn".to_owned() };
    let found = Verification {
        operations: 3,
        mismatches: vec![mismatch],
        unlisted: 4,
        ..Verification::default()
    };
    store.record_verification(id, since, &found, LEASE).await.unwrap();
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.since, job.lease, job.step.done), (JobState::Done, since, None, 3));
    assert_eq!(job.started_at.map(|at| at.after(LEASE)), job.finished_at);
    assert_eq!(job.created_at, job.started_at.unwrap());
    assert_eq!(job.step.report.as_deref(), Some(&*found.to_json()));
    let last = store.facts().await.unwrap().verification.unwrap();
    assert_eq!((Some(last.finished_at), last.mismatches), (job.finished_at, 5));
    let claimed = store.claim(&node("one"), LEASE).await.unwrap().unwrap();
    assert_eq!(claimed.id, queued, "the other is not to do");
    assert_eq!(store.claim(&node("two"), LEASE).await.unwrap(), None);
}

async fn jobs_of_kinds_that_are_not_known_are_left_alone(home: &impl Home) {
    let id = start(home).await;
    Raw::open(home).await.run("UPDATE jobs SET kind = 'later'").await;
    assert_eq!(home.store().claim(&node("one"), LEASE).await.unwrap(), None);
    home.store().job(id).await.unwrap_err();
}

/// Jobs of long ago: some have ended, and the first has not.
const OLD: &str = "
    INSERT INTO jobs (seq, id, kind, state, created_at, started_at, finished_at)
        WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
        SELECT i, randomblob(16), 'verification', 'done', 0, 0, 0 FROM n";

async fn old_jobs_go_when_a_new_one_comes(home: &impl Home) {
    start(home).await;
    let mut raw = Raw::open(home).await;
    raw.run(OLD).await;
    let sql = "SELECT count(*) FROM jobs";
    assert_eq!(raw.number(sql).await, 1_100);
    if let Raw::Server(_) = raw {
        raw.run("ALTER TABLE jobs ALTER COLUMN seq RESTART WITH 1101").await;
    }
    let newest = start(home).await;
    assert_eq!(raw.number(sql).await, 1_000 + 2, "the queued one, and the new one");
    assert_eq!(raw.number("SELECT min(seq) FROM jobs WHERE seq > 1").await, 101);
    assert_eq!(home.store().jobs(page(1)).await.unwrap().rows[0].id, newest);
}

async fn a_row_that_makes_no_sense_is_refused(home: &impl Home) {
    let mut raw = Raw::open(home).await;
    start(home).await;
    for sql in [
        "UPDATE jobs SET state = 'gone'",
        "UPDATE jobs SET state = 'running', started_at = 1",
        "UPDATE jobs SET state = 'done', started_at = 1",
        "UPDATE jobs SET owner = 'one'",
        "UPDATE jobs SET finished_at = 1",
        "UPDATE jobs SET step_done = -1",
    ] {
        assert!(raw.try_run(sql).await.is_err(), "{sql}");
    }
}

crate::scratch::on_every_store! {
    a_job_is_queued_once,
    jobs_are_claimed_in_their_order_and_once,
    a_job_goes_on_with_another_owner_when_the_lease_has_ended,
    a_lease_that_has_ended_is_renewed_by_its_owner_alone,
    a_job_that_has_ended_stays_so,
    a_verification_that_was_done_elsewhere_is_a_job_that_is_done,
    jobs_of_kinds_that_are_not_known_are_left_alone,
    old_jobs_go_when_a_new_one_comes,
    a_row_that_makes_no_sense_is_refused,
}
