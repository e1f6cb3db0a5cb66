//! The deliverer: looks into the outbox, fans events out, and sends what is due.
//!
//! ```text
//! every POLL_INTERVAL while there is work, and when tries have ended:
//!   finish_tries ─▶ outbox ─▶ fan_out, a batch at a time ─▶ lease what there is room for ─▶ a task for
//!        ▲                                                                                  each try
//!        └─────────────────────── results, all that there are by then ◀────────────────────────┘
//! ```
//!
//! At rest it reads no row. A commit of this process that wrote an event, and a heartbeat that reports events or
//! deliveries, make it look for [`ACTIVE`], and so does each look that finds work. So an event of this process is sent
//! at once, one that another program wrote after the next heartbeat, and a retry at its time: heartbeats report it
//! a lease ahead.
//!
//! The loop makes all writes, one after the other: a database's writers have more to do than webhooks,
//! and 64 tries that end at once are one transaction for them (`results`).
//!
//! Every process has one, and they need no leader: if two of them scan at the same time, each leases rows that
//! the other one has not. An attempt has [`SenderOptions::TRY_TIME_MAX`](crate::SenderOptions::TRY_TIME_MAX),
//! far less than its lease. If a process dies during an attempt, the next scan after the end of its lease takes
//! the delivery, and the receiver may get the event again: delivery is at least once.
//!
//! The end: tries that are under way have [`GRACE`], and the rest is given back, due at once.
//!
//! Never: a second task for a delivery whose lease is another's, and anything of an event in the log
//! but its id.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::admin::Deliveries;
use holdfast_domain::admin::ports::{DueDelivery, Outbox};
use holdfast_domain::admin::webhook::{Endpoint, FinishedTry, TryResult};
use holdfast_domain::debug_as;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{PendingWork, Unavailable, WorkKind};
use holdfast_domain::private::Private;
use holdfast_domain::secret::{ServerSecret, WebhookKey};
use holdfast_domain::{ErrorChain, EventId};
use holdfast_wire::api::rfc3339;
use metrics::{counter, gauge};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::origins::AllowedOrigins;
use crate::permits::Permit;
use crate::results::{BETWEEN_OFFERS, DELIVERIES, EventTry, TryResults};
use crate::sender::{Delivery, Sender};

/// Interval between two looks into the outbox, while there is work.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time for which looks go on after a sign of work: longer than between two heartbeats.
const ACTIVE: Duration = Duration::from_secs(5);
/// Lease of a delivery: a try, and the time to keep its result.
const LEASE: Duration = Duration::from_secs(60);
/// Events of one fan-out, and fan-outs of one look: a burst must not keep deliveries waiting.
const EVENTS_MAX: u32 = 100;
const FAN_OUTS_MAX: u32 = 20;
/// Time for tries that are under way when the process ends.
const GRACE: Duration = Duration::from_secs(5);

const TRIES: &str = "holdfast_webhook_tries_total";
const OLDEST_DUE: &str = "holdfast_webhook_oldest_due_seconds";

/// Sends the deliveries that are due, in a process that serves.
#[derive(Clone)]
pub struct Deliverer {
    /// Rows of the deliveries.
    pub deliveries: Arc<dyn Deliveries>,
    /// Sender of all tries of the process.
    pub sender: Arc<Sender>,
    /// Origins that the operator has listed.
    pub allowed: AllowedOrigins,
    /// Server secrets that keys are derived from.
    pub secrets: Arc<[ServerSecret]>,
    /// Process that leases.
    pub owner: Node,
    /// Reports of its heartbeats.
    pub pending: watch::Receiver<PendingWork>,
}

debug_as!(Deliverer as it: "Deliverer({})", it.owner.name.as_str());

impl Deliverer {
    /// Delivers until `shutdown`, and ends what is under way. Not cancel safe: the results of attempts in flight are
    /// lost, and these deliveries are repeated after their lease.
    pub async fn run(mut self, shutdown: CancellationToken) {
        begin();
        let (mut tries, mut results) = (JoinSet::new(), TryResults::default());
        let mut looks = interval(POLL_INTERVAL);
        // A long write makes the loop miss ticks: made up for in a burst, they would all read the
        // same rows.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_well = true;
        let mut active_until = Instant::now() + ACTIVE;
        loop {
            // A result that waits to be kept is offered again at a look.
            let is_active = results.len() > 0 || Instant::now() < active_until;
            tokio::select! {
                _ = looks.tick(), if is_active => {}
                () = self.deliveries.event_written() => active_until = Instant::now() + ACTIVE,
                report = timeout(ACTIVE, self.pending.changed()), if self.pending.has_changed().is_ok() => {
                    // Heartbeats that do not come back prove no rest: it looks by itself.
                    let is_silent = report.is_err();
                    if !is_silent && !self.pending.borrow_and_update().has(WorkKind::Outbox) {
                        continue;
                    }
                    active_until = Instant::now() + ACTIVE;
                }
                Some(ended) = tries.join_next() => collect(ended, &mut tries, &mut results),
                () = shutdown.cancelled() => break,
            }
            self.keep(&mut results).await;
            match self.turn(&mut tries, results.len()).await {
                Ok(has_work) => {
                    is_well = true;
                    if has_work {
                        active_until = Instant::now() + ACTIVE;
                    }
                }
                Err(error) if is_well => {
                    // Once: the next looks are soon, and fail alike.
                    is_well = false;
                    let error = ErrorChain(&error);
                    tracing::warn!(%error, "webhooks wait: the outbox cannot be read or written");
                }
                Err(_unavailable) => {}
            }
        }
        self.end(tries, results).await;
    }

    /// Looks once, and starts what there is room for: what waits to be kept still has its places. True if there was
    /// work, or will be soon.
    async fn turn(
        &self,
        tries: &mut JoinSet<EventTry>,
        waiting: usize,
    ) -> Result<bool, Unavailable> {
        let Outbox { has_events, next_due_at, now } = self.deliveries.outbox().await?;
        let overdue = next_due_at.map_or(Duration::ZERO, |at| now.since(at));
        gauge!(OLDEST_DUE).set(overdue.as_secs_f64());
        if has_events {
            for _batch in 0..FAN_OUTS_MAX {
                let fanned_out = self.deliveries.fan_out(EVENTS_MAX).await?;
                if fanned_out < usize::try_from(EVENTS_MAX).unwrap_or(usize::MAX) {
                    break;
                }
            }
        }
        // `next_due_at` was read before the fan-out, whose deliveries are due at once.
        let is_due = has_events || next_due_at.is_some_and(|at| at <= now);
        let has_work = has_events || next_due_at.is_some_and(|at| at <= now.after(ACTIVE));
        let mut room = self.sender.room();
        // An ended attempt has given its permit back, and its result may still wait: counted
        // here, so that the results in memory have a bound.
        room.free = room.free.saturating_sub(waiting);
        if !is_due || room.free == 0 {
            return Ok(has_work);
        }
        for due in self.deliveries.lease_deliveries(&self.owner, LEASE, &room).await? {
            match self.sender.permit(due.webhook.wallet, due.webhook.id) {
                Some(permit) => {
                    // A task for each: a receiver that hangs delays neither the loop nor another webhook.
                    tries.spawn(self.clone().deliver(due, permit));
                }
                // A bug: only this loop takes permits. The lease ends, and the delivery is due again.
                None => tracing::error!(event.id = %due.event, "no permit for a leased delivery"),
            }
        }
        Ok(has_work)
    }

    async fn deliver(self, due: DueDelivery, permit: Permit) -> EventTry {
        let (delivery, event) = (due.number, due.event);
        let result = self.attempt(due, permit).await;
        counter!(TRIES, "result" => result.label()).increment(1);
        // A version 4 UUID has six fixed bits, none of them in the low half of `second`: all 32
        // bits are random. They spread the retries.
        let (first, second) = Uuid::new_v4().as_u64_pair();
        let random = u32::try_from((first ^ second) & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let event_id = EventId::from(Uuid::new_v4());
        EventTry { finished: FinishedTry { delivery, result, random, event: event_id }, event }
    }

    async fn attempt(&self, due: DueDelivery, permit: Permit) -> TryResult {
        let keys = self.keys(&due);
        if keys.is_empty() {
            let webhook = due.webhook.id;
            tracing::error!(webhook.id = %webhook, "no server secret is known that signs this webhook");
            return TryResult::Unsigned;
        }
        // By the list of now: an origin that the operator has taken off is sent to no more.
        let endpoint = match Endpoint::parse(&due.webhook.url, &self.allowed.get()) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                tracing::debug!(event.id = %due.event, %error, "the URL of a webhook is refused");
                return TryResult::UrlRefused;
            }
        };
        let (event, sent_at) = (due.event, due.leased_at);
        let body = Private(Bytes::from(body(&due)));
        self.sender.send(permit, Delivery { event, endpoint, keys, sent_at, body }).await
    }

    /// Keys of the generations that sign at the moment of the lease.
    fn keys(&self, due: &DueDelivery) -> Vec<WebhookKey> {
        let key = |(generation, made_with)| {
            let secret = self.secrets.iter().find(|secret| secret.id() == made_with)?;
            Some(secret.webhook_key(due.webhook.id, generation))
        };
        due.webhook.secret.signing(due.leased_at).filter_map(key).collect()
    }

    /// Keeps the results, as many as there are in one transaction. Cancel safe: the results of a write whose
    /// future was dropped stay in memory, and have no effect when they are offered again.
    async fn keep(&self, results: &mut TryResults) {
        loop {
            let batch = results.batch();
            if batch.is_empty() {
                return;
            }
            match self.deliveries.finish_tries(&self.owner, &batch).await {
                Ok(followed) => results.kept(&followed),
                Err(error) => results.put_off(batch.len(), &error),
            }
        }
    }

    async fn end(&self, mut tries: JoinSet<EventTry>, mut results: TryResults) {
        let all = async {
            while let Some(ended) = tries.join_next().await {
                collect(ended, &mut tries, &mut results);
                self.keep(&mut results).await;
            }
            while results.len() > 0 {
                // The store rests after a failed offer: until then the batch is empty.
                sleep(BETWEEN_OFFERS).await;
                self.keep(&mut results).await;
            }
        };
        if timeout(GRACE, all).await.is_err() {
            tries.shutdown().await;
        }
        // Also those of aborted attempts, which the receiver may have got: at least once.
        if let Err(error) = self.deliveries.give_back(&self.owner).await {
            tracing::warn!(
                error = %ErrorChain(&error),
                "deliveries were not given back: they wait for the end of their lease"
            );
        }
    }
}

/// Collects a result, and those that are there beside it.
fn collect(
    ended: Result<EventTry, JoinError>,
    tries: &mut JoinSet<EventTry>,
    results: &mut TryResults,
) {
    let more = std::iter::from_fn(|| tries.try_join_next());
    for ended in std::iter::once(ended).chain(more) {
        match ended {
            Ok(result) => results.push(result),
            Err(error) => {
                tracing::error!(%error, "a delivery attempt of a webhook panicked: it is repeated");
            }
        }
    }
}

/// The event as JSON, the same at every try. Ids, names and moments have no character that JSON
/// escapes, and the data is JSON already.
fn body(due: &DueDelivery) -> String {
    let DueDelivery { event, kind, wallet, created_at, data, .. } = due;
    let wallet = wallet.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    let (timestamp, data) = (rfc3339(*created_at), &**data);
    format!(
        r#"{{"id":"{event}","type":"{kind}","timestamp":"{timestamp}","wallet_id":{wallet},"data":{data}}}"#
    )
}

/// Shows what may be alarmed on before it happens.
fn begin() {
    for state in ["delivered", "dead"] {
        counter!(DELIVERIES, "state" => state).increment(0);
    }
    counter!(TRIES, "result" => "delivered").increment(0);
}
