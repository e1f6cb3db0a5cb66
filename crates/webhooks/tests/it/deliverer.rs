//! The loop over what is due, against a store that only counts what is asked of it. Every URL is one
//! that is refused unread, so that a try ends at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::ports::{Deliveries, DueDelivery, Outbox};
use holdfast_domain::admin::webhook::{
    DeliveryNumber, DeliveryRoom, FinishedTry, FollowUp, TryResult,
};
use holdfast_domain::admin::{ActorId, WebhookRecord, WebhookSecret};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{PendingWork, Unavailable};
use holdfast_domain::private::Private;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{EventId, Incarnation, NodeName, Timestamp, WebhookId};
use holdfast_webhooks::{AllowedOrigins, Deliverer};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::sample::sender;

/// Time that a write takes. The clock is paused: it goes on when there is nothing else to do, so all
/// tries that can end have ended by then.
const WRITE: Duration = Duration::from_millis(50);

/// A store of deliveries that are due, of several webhooks in turn.
struct Rows {
    secret: ServerSecret,
    state: Mutex<State>,
    done: Notify,
    /// Told at the begin of each write.
    began: Notify,
    /// Told at the end of each write that failed.
    failed: Notify,
}

#[derive(Default)]
struct State {
    due: Vec<i64>,
    leased: Vec<i64>,
    /// Sizes of the writes, in their order.
    writes: Vec<usize>,
    is_writing: bool,
    /// Writes that are yet to fail.
    failures: u32,
    given_back: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the store does not work")]
struct StoreFailure;

impl Rows {
    fn new(due: i64, failures: u32) -> Arc<Self> {
        let secret = ServerSecret::new(&[7; 32]).unwrap();
        let state = State { due: (1..=due).collect(), failures, ..State::default() };
        let (done, began, failed) = (Notify::new(), Notify::new(), Notify::new());
        Arc::new(Self { secret, state: Mutex::new(state), done, began, failed })
    }

    fn due(&self, number: i64) -> DueDelivery {
        let webhook = u128::try_from(number).unwrap() / 4 + 1;
        DueDelivery {
            number: DeliveryNumber(number),
            webhook: WebhookRecord {
                id: WebhookId::from_u128(webhook),
                wallet: None,
                url: Private("http://not.listed".to_owned()),
                kinds: None,
                description: None,
                secret: WebhookSecret::first(self.secret.id()),
                edited: 0,
                created_at: Timestamp::from_micros(0),
                created_by: ActorId::Local,
                disabled: None,
            },
            event: EventId::from_u128(1),
            kind: "wallet.low".into(),
            wallet: None,
            created_at: Timestamp::from_micros(0),
            data: Private("{}".into()),
            leased_at: Timestamp::from_micros(0),
        }
    }
}

#[async_trait]
impl Deliveries for Rows {
    async fn outbox(&self) -> Result<Outbox, Unavailable> {
        let now = Timestamp::from_micros(1);
        let is_due = !self.state.lock().unwrap().due.is_empty();
        Ok(Outbox { has_events: false, next_due_at: is_due.then_some(now), now })
    }

    async fn event_written(&self) {
        std::future::pending::<()>().await;
    }

    async fn fan_out(&self, _events_max: u32) -> Result<usize, Unavailable> {
        Ok(0)
    }

    async fn lease_deliveries(
        &self,
        _owner: &Node,
        _lease: Duration,
        room: &DeliveryRoom,
    ) -> Result<Vec<DueDelivery>, Unavailable> {
        let (mut state, mut room) = (self.state.lock().unwrap(), room.clone());
        let all = std::mem::take(&mut state.due);
        let (taken, left) =
            all.into_iter().partition(|number| room.take(None, self.due(*number).webhook.id));
        state.due = left;
        let taken: Vec<i64> = taken;
        state.leased.extend(&taken);
        Ok(taken.into_iter().map(|number| self.due(number)).collect())
    }

    async fn finish_tries(
        &self,
        _owner: &Node,
        finished: &[FinishedTry],
    ) -> Result<Vec<Option<FollowUp>>, Unavailable> {
        assert!(!std::mem::replace(&mut self.state.lock().unwrap().is_writing, true));
        self.began.notify_one();
        sleep(WRITE).await;
        let mut state = self.state.lock().unwrap();
        state.is_writing = false;
        state.writes.push(finished.len());
        if state.failures > 0 {
            state.failures = state.failures.saturating_sub(1);
            self.failed.notify_one();
            return Err(Unavailable(Box::new(StoreFailure)));
        }
        for FinishedTry { delivery: DeliveryNumber(number), result, .. } in finished {
            assert_eq!(*result, TryResult::UrlRefused);
            state.leased.retain(|leased| leased != number);
        }
        if state.leased.is_empty() && state.due.is_empty() {
            self.done.notify_one();
        }
        Ok(vec![Some(FollowUp::Dead); finished.len()])
    }

    async fn give_back(&self, _owner: &Node) -> Result<(), Unavailable> {
        self.state.lock().unwrap().given_back = true;
        Ok(())
    }
}

async fn run(rows: &Arc<Rows>, end: impl Future<Output = ()>) {
    let owner =
        Node { name: NodeName::try_from("one").unwrap(), incarnation: Incarnation::from_u128(1) };
    let (_heartbeat, pending) = watch::channel(PendingWork::NONE);
    let deliverer = Deliverer {
        deliveries: Arc::<Rows>::clone(rows),
        sender: Arc::new(sender()),
        allowed: AllowedOrigins::new(&[]),
        secrets: vec![rows.secret.clone()].into(),
        owner,
        pending,
    };
    let shutdown = CancellationToken::new();
    let ending = async {
        end.await;
        shutdown.cancel();
    };
    tokio::join!(deliverer.run(shutdown.clone()), ending);
    assert!(rows.state.lock().unwrap().given_back);
}

#[tokio::test(start_paused = true)]
async fn tries_that_end_together_are_one_write_and_never_two_at_once() {
    let rows = Rows::new(200, 0);
    run(&rows, rows.done.notified()).await;
    let state = rows.state.lock().unwrap();
    assert_eq!(state.writes.iter().sum::<usize>(), 200, "each once");
    assert!(state.writes.len() <= 8, "{:?}", state.writes);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_offered_again_to_a_store_that_failed_twice() {
    let rows = Rows::new(3, 2);
    run(&rows, rows.done.notified()).await;
    let state = rows.state.lock().unwrap();
    assert_eq!((state.writes.last(), state.leased.len()), (Some(&3), 0));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_never_kept_gives_its_place_back_at_last() {
    let rows = Rows::new(70, u32::MAX);
    // Three offers, and as many for those that had no place before.
    let six = async {
        for _ in 0..6 {
            rows.failed.notified().await;
        }
    };
    run(&rows, six).await;
    let state = rows.state.lock().unwrap();
    assert!(state.due.is_empty(), "the last ones were sent too");
    assert!(state.writes.len() >= 6, "{:?}", state.writes);
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_by_the_end_of_the_process_is_kept() {
    let rows = Rows::new(64, 1);
    run(&rows, rows.began.notified()).await;
    assert_eq!(rows.state.lock().unwrap().leased, [0; 0]);
}
