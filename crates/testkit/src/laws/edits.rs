//! Laws of limits that are edited while their API key is in use: a counter is the sum over all operations of
//! its window, under any history of limits.
//!
//! A claim carries the revision of the limits that it was judged by. After any edit of the key the store refuses it,
//! because its reservations are those of limits that may be gone; a row that exists already is still the answer.
//!
//! The second law walks through random histories of claims, endings, edits and turns of the clock, and compares each
//! counter after every step. The seeds are fixed, so that a failure repeats.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::edits};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! edits::a_claim_by_limits_of_before_an_edit_is_refused(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::unwrap_used, reason = "a law that fails panics")]

use std::time::Duration;

use holdfast_domain::Event;
use holdfast_domain::admin::{AccountAction, ApiKeyAction, ApiKeyPatch};
use holdfast_domain::limits::{Counter, Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Micros, OperationId};

use super::Stores;
use super::tenant::{Tenant, finish, give_up, not_run, record, refuse};
use crate::dice::Dice;

/// Rounds of the random law.
const ROUNDS: u32 = 50;
const HOUR: Duration = Duration::from_secs(3_600);

/// A claim by limits that were read before an edit would miss the counter that the edit has begun: it is refused, and
/// leaves no trace. By limits that are read anew it passes.
pub async fn a_claim_by_limits_of_before_an_edit_is_refused(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let before = revision(&tenant).await;
    tenant.admit(&tenant.claim().limits_revision(before).build()).await;
    let limits = Limits { spend: Some(spend(500, SpendWindow::Month)), ..Limits::default() };
    edit(&tenant, limits).await;
    // Every edit moves it, of a limit that counts on as well.
    let seen = revision(&tenant).await;
    let lower = Limits { spend: Some(spend(400, SpendWindow::Month)), ..limits };
    edit(&tenant, lower).await;
    assert_ne!(revision(&tenant).await, seen);
    edit(&tenant, Limits::default()).await;
    edit(&tenant, limits).await;
    let claim = tenant.claim().limits_revision(before);
    let refused = tenant.offer(&claim.clone().build()).await;
    assert!(matches!(refused, Err(CommitError::LimitsEdited)), "{refused:?}");
    assert_eq!(tenant.balances().await, (9_900, 100), "nothing is held");
    let after = revision(&tenant).await;
    assert_ne!(before, after);
    let commands = tenant.stores.commands();
    for standing in [ApiKeyAction::Suspend(tenant.api_key), ApiKeyAction::Resume(tenant.api_key)] {
        commands.administer(AccountAction::ApiKey(standing)).await.unwrap();
        assert_eq!(revision(&tenant).await, after, "a suspension is no edit of limits");
    }
    let rename = ApiKeyAction::Edit {
        api_key: tenant.api_key,
        wallet: tenant.wallet,
        patch: ApiKeyPatch { name: Some("renamed".to_owned()), ..ApiKeyPatch::default() },
        expected: None,
        is_bounded: false,
    };
    commands.administer(AccountAction::ApiKey(rename)).await.unwrap();
    let before_rename = after;
    let after = revision(&tenant).await;
    assert_ne!(after, before_rename, "an edit of another member");
    let operation = tenant.admit(&claim.limits_revision(after).limits(limits).build()).await;
    assert_eq!(used(&tenant, Counter::SpendMonth).await, 200);
    // An existing row is the answer, even after an edit: a lost commit may be its own.
    let again = tenant.claim().request_key(operation.request_key).limits_revision(before);
    let again = tenant.offer(&again.build()).await;
    assert!(matches!(again, Err(CommitError::Conflict)), "{again:?}");
}

/// Operations begin, end, are recorded, settled and reopened while limits are set, changed and taken away: the
/// counters of the limits in force are the sums over all operations of their windows.
pub async fn counters_are_sums_over_all_rows_whatever_limits_were_set_when(stores: &dyn Stores) {
    for seed in 0..2 {
        let mut history = History::begin(stores, seed).await;
        history.end_on_another_day().await;
        for _round in 0..ROUNDS {
            history.step().await;
            history.compare().await;
        }
    }
}

/// Random history of an API key.
struct History<'a> {
    tenant: Tenant<'a>,
    dice: Dice,
    limits: Limits,
    operations: Vec<OperationId>,
}

impl<'a> History<'a> {
    async fn begin(stores: &'a dyn Stores, seed: u64) -> Self {
        let mut tenant = Tenant::new(stores, 1_000_000).await;
        // Live for longer than all turns take.
        tenant.lease.ends_at = tenant.lease.ends_at.after(HOUR.saturating_mul(100_000));
        let (limits, operations) = (Limits::default(), Vec::new());
        Self { tenant, dice: Dice::new(seed), limits, operations }
    }

    /// The charge of an operation counts on the day of its admission, whenever it has ended.
    async fn end_on_another_day(&mut self) {
        let operation = self.tenant.admit(&self.tenant.claim().build()).await;
        self.operations.push(operation.id);
        let _is_turned = self.tenant.stores.commands().turn(HOUR.saturating_mul(30));
        self.tenant.step(operation.id, finish(&operation, 20, 10)).await;
        self.limits.spend = Some(spend(100_000, SpendWindow::Day));
        edit(&self.tenant, self.limits).await;
        self.compare().await;
    }

    async fn step(&mut self) {
        match self.dice.roll(9) {
            0..=2 => {
                let claim = self.tenant.claim().limits(self.limits).build();
                self.operations.push(self.tenant.admit(&claim).await.id);
            }
            3..=6 => self.move_one().await,
            7 => {
                let hours = u32::try_from(self.dice.roll(30)).unwrap();
                let _is_turned = self.tenant.stores.commands().turn(HOUR.saturating_mul(hours));
            }
            _ => self.edit().await,
        }
    }

    /// Moves one of the operations on: the newest more often, which are those that run.
    async fn move_one(&mut self) {
        let newest = self.operations.iter().rev().take(6).copied().collect::<Vec<_>>();
        let at = usize::try_from(self.dice.roll(6)).unwrap();
        let Some(id) = newest.get(at) else { return };
        let operation = self.tenant.load(*id).await.operation.unwrap();
        let side = self.dice.roll(7);
        if let Some(event) = self.event(&operation, side) {
            self.tenant.step(*id, event).await;
        }
    }

    fn event(&self, operation: &Operation, side: u64) -> Option<Event> {
        Some(match (&operation.phase, side) {
            (Phase::Leased, 0 | 1) => finish(operation, 20, 10),
            (Phase::Leased, 2) => record(operation, 30, 10),
            (Phase::Leased, 3) => not_run(operation),
            (Phase::Leased, 4) => give_up(operation),
            (Phase::Leased, 5) => refuse(operation),
            (Phase::Leased, _) if !operation.cancel_asked => Event::AskCancel,
            (Phase::Recorded(_), _) => Event::Settle,
            (Phase::Open, _) if operation.generation == 1 => {
                let claim = self.tenant.claim().request_key(operation.request_key);
                Event::Claim(Box::new(claim.limits(self.limits).build()))
            }
            (
                Phase::Leased
                | Phase::Open
                | Phase::Completed { .. }
                | Phase::Refused { .. }
                | Phase::Abandoned { .. },
                _,
            ) => return None,
        })
    }

    async fn edit(&mut self) {
        let window = SpendWindow::ALL.get(usize::try_from(self.dice.roll(4)).unwrap());
        let most = i64::try_from(100_000_u64.saturating_add(self.dice.roll(1_000))).unwrap();
        self.limits = Limits {
            spend: window.map(|window| spend(most, *window)),
            concurrency: (self.dice.roll(2) == 0)
                .then(|| 200_u64.saturating_add(self.dice.roll(9))),
            requests_per_minute: (self.dice.roll(2) == 0).then_some(900),
            tokens_per_minute: (self.dice.roll(2) == 0).then_some(900_000),
        };
        edit(&self.tenant, self.limits).await;
    }

    /// Counters by the minute are left out: rows do not contain all that earlier generations left there.
    async fn compare(&self) {
        let spend = self.limits.spend.map(|limit| limit.window.counter());
        let concurrency = self.limits.concurrency.map(|_max| Counter::Concurrency);
        for counter in spend.into_iter().chain(concurrency) {
            let mut sum: i64 = 0;
            for id in &self.operations {
                let snapshot = self.tenant.load(*id).await;
                let operation = snapshot.operation.unwrap();
                if counter.window(operation.admitted_at) == counter.window(snapshot.now) {
                    sum = sum.saturating_add(left_by(&operation, counter));
                }
            }
            assert_eq!(used(&self.tenant, counter).await, sum, "{counter:?}");
        }
    }
}

/// Amount that an operation leaves in a counter of spend, or of concurrency.
fn left_by(operation: &Operation, counter: Counter) -> i64 {
    let is_running = matches!(operation.phase, Phase::Leased | Phase::Recorded(_));
    if counter == Counter::Concurrency {
        return i64::from(is_running);
    }
    match &operation.phase {
        Phase::Leased | Phase::Recorded(_) => operation.hold.get(),
        Phase::Completed { usage, .. } => usage.charge.get(),
        Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => 0,
    }
}

async fn edit(tenant: &Tenant<'_>, limits: Limits) {
    let commands = tenant.stores.commands();
    commands.edit_limits(tenant.api_key, tenant.wallet, limits).await.unwrap();
}

const fn spend(micros: i64, window: SpendWindow) -> SpendLimit {
    SpendLimit { micros: Micros::new(micros), window }
}

async fn used(tenant: &Tenant<'_>, counter: Counter) -> i64 {
    let counters = tenant.stores.keys().unwrap().counters(tenant.api_key).await.unwrap();
    counters.counters.used(counter).unwrap()
}

async fn revision(tenant: &Tenant<'_>) -> u64 {
    let known = tenant.stores.keys().unwrap().credential(tenant.credential).await.unwrap();
    known.unwrap().limits_revision
}
