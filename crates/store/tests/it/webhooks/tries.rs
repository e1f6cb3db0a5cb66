//! Results of tries that are kept together: each is judged by what the one before it has left, and two
//! processes that keep theirs at once do not stop each other.

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::ports::DueDelivery;
use holdfast_domain::admin::webhook::{
    DeliveryRoom, DisableReason, FinishedTry, FollowUp, TryResult,
};
use holdfast_domain::admin::{Deliveries as _, Webhooks as _};
use holdfast_testkit::join::join_all;
use holdfast_testkit::sample;

use super::{LEASE, create, happen, lease, node, roomy};
use crate::raw::Raw;
use crate::scratch::{Home, on_every_store};

async fn tries_that_end_together_are_judged_one_after_the_other(home: &impl Home) {
    let (webhook, other) = (create(home, None, None).await, create(home, None, None).await);
    let (mut raw, owner) = (Raw::open(home).await, node("one"));
    for _ in 0..12 {
        happen(&mut raw, EventKind::WalletLow, None).await;
    }
    home.store().fan_out(99).await.unwrap();
    // The last try of each of the first webhook's deliveries, and the first try of the other's.
    let last = "UPDATE deliveries SET tries = 9 WHERE webhook_id = (SELECT id FROM webhooks WHERE seq = 1)";
    raw.run(last).await;
    let due = lease(home, &owner).await;
    assert_eq!(due.len(), 24);
    let result = |it: &DueDelivery| if it.webhook.id == webhook { 503 } else { 204 };
    let mut finished: Vec<_> = due
        .iter()
        .map(|it| {
            let (result, event) = (TryResult::Answered(result(it)), sample::fresh());
            FinishedTry { delivery: it.number, result, random: 0, event }
        })
        .collect();
    finished.push(finished[0]);
    let stranger = home.store().finish_tries(&node("two"), &finished).await.unwrap();
    assert_eq!(stranger, [None; 25]);
    let told = home.store().finish_tries(&owner, &finished).await.unwrap();
    assert_eq!(told[24], None, "a result counts once");
    let of = |id| {
        let all = due.iter().zip(&told).filter(move |(it, _)| it.webhook.id == id);
        all.map(|(_, next)| next.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of(other), [FollowUp::Delivered; 12]);
    let (dead, disable) = (FollowUp::Dead, FollowUp::Disable(DisableReason::DeadInARow));
    let expected: Vec<_> = [dead; 9].into_iter().chain([disable; 3]).collect();
    assert_eq!(of(webhook), expected, "nine are dead, and the tenth disables it");
    let record = home.store().webhook(webhook).await.unwrap().unwrap();
    assert_eq!((record.disabled.unwrap().1, record.edited), (DisableReason::DeadInARow, 1));
    assert_eq!(home.store().webhook(other).await.unwrap().unwrap().disabled, None);
    let sql = "SELECT count(*) FROM events WHERE kind = 'webhook.disabled'";
    assert_eq!(raw.number(sql).await, 1, "it is told once");
    assert_eq!(home.store().finish_tries(&owner, &[]).await.unwrap(), []);
}

/// Races of two processes, each of which may end without the two meeting.
const RACES: usize = 50;

async fn processes_that_keep_results_of_the_same_webhooks_never_wait_in_a_circle(home: &impl Home) {
    for _ in 0..2 {
        create(home, None, None).await;
    }
    let mut raw = Raw::open(home).await;
    for _ in 0..32 {
        happen(&mut raw, EventKind::WalletLow, None).await;
    }
    home.store().fan_out(99).await.unwrap();
    let other = home.again().await;
    let owners = [node("one"), node("two")];
    let stores = [home.store(), &other];
    for _ in 0..RACES {
        // Deliveries are numbered event by event, and of each event webhook by webhook. By number, one
        // process comes to the first webhook first and the other one to the second.
        let due_in_turn = "UPDATE deliveries SET state = 'pending', tries = 0, finished_at = NULL,
            next_at = CASE WHEN (seq % 2 = 1) = (seq <= 32) THEN 1 ELSE 2 END";
        raw.run(due_in_turn).await;
        let mut due = Vec::new();
        for (owner, store) in owners.iter().zip(stores) {
            let room = DeliveryRoom { free: 32, ..roomy() };
            due.push(store.lease_deliveries(owner, LEASE, &room).await.unwrap());
        }
        let kept = owners.iter().zip(stores).zip(&due).map(|((owner, store), due)| async move {
            let result = TryResult::Answered(204);
            let finished = |it: &DueDelivery| FinishedTry {
                delivery: it.number,
                result,
                random: 0,
                event: sample::fresh(),
            };
            let finished: Vec<_> = due.iter().map(finished).collect();
            store.finish_tries(owner, &finished).await.unwrap()
        });
        for told in join_all(kept).await {
            assert_eq!(told, [Some(FollowUp::Delivered); 32]);
        }
    }
    other.close().await.unwrap();
}

on_every_store! {
    tries_that_end_together_are_judged_one_after_the_other,
    processes_that_keep_results_of_the_same_webhooks_never_wait_in_a_circle,
}
