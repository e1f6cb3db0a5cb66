//! Reports that take longer than a page: what a page says meanwhile, who may have how many, and for how long one is
//! kept. Time is tokio's, paused: it passes where everybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use holdfast_accounts::Principal;
use holdfast_domain::Timestamp;
use holdfast_domain::admin::{Reach, Role};
use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::world::{World, visitor};
use crate::failure::Failure;
use crate::kit::counting::{Absence, CountLimits, Counts, ReportView};

/// Report that the database does not read in its time.
const UNREAD: u8 = 255;
/// Patience of a page, longer than any report here takes whose gate is open.
const PATIENCE: Duration = Duration::from_secs(10);
const AT: Timestamp = Timestamp::from_micros(7);

/// Reports that end when somebody lets them.
struct Reports {
    counts: Counts<u8, u8>,
    begun: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
}

impl Reports {
    fn new() -> Self {
        let (begun, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
        Self { counts: Counts::new(CountLimits::new()), begun, gate }
    }

    async fn read(&self, principal: &Principal, asked: u8) -> Result<ReportView<u8>, Failure> {
        let (begun, gate) = (Arc::clone(&self.begun), Arc::clone(&self.gate));
        let count = || async move {
            begun.fetch_add(1, Ordering::Relaxed);
            gate.acquire().await.unwrap().forget();
            match asked {
                0 => Err(Failure::not_found()),
                UNREAD => Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not in its time")),
                _answered => Ok((asked, AT)),
            }
        };
        self.counts.read(principal, &asked, Instant::now() + PATIENCE, count).await
    }

    async fn is_counting(&self, principal: &Principal, asked: u8) -> bool {
        matches!(self.read(principal, asked).await.unwrap(), ReportView::Absent(Absence::Counting))
    }

    /// Lets one report end.
    async fn end_one(&self) {
        self.gate.add_permits(1);
        for _ in 0..8 {
            yield_now().await;
        }
    }

    fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }
}

fn person() -> Principal {
    visitor(Role::Owner, Reach::All).principal
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_is_counted_once_and_found_by_a_later_look() {
    let (reports, ada) = (Reports::new(), person());
    assert!(reports.is_counting(&ada, 1).await && reports.is_counting(&ada, 1).await);
    reports.end_one().await;
    for _ in 0..2 {
        let found = reports.read(&ada, 1).await.unwrap();
        assert!(matches!(found, ReportView::There(1, Some(AT))), "{found:?}");
    }
    assert_eq!(reports.begun(), 1);
    tokio::time::advance(Duration::from_secs(31)).await;
    reports.gate.add_permits(1);
    let anew = reports.read(&ada, 1).await.unwrap();
    assert!(matches!(anew, ReportView::There(1, None)), "{anew:?}");
    reports.gate.add_permits(1);
    let again = reports.read(&ada, 1).await.unwrap();
    assert!(matches!(again, ReportView::There(1, None)), "{again:?}");
    assert_eq!(reports.begun(), 3, "what came in time is read anew by each look");
}

#[tokio::test(start_paused = true)]
async fn a_person_has_one_report_at_once_and_a_process_two() {
    let reports = Reports::new();
    let [ada, bob, cleo] = [person(), person(), person()];
    assert!(reports.is_counting(&ada, 1).await && reports.is_counting(&ada, 2).await);
    assert_eq!(reports.begun(), 1, "one of a person");
    assert!(reports.is_counting(&bob, 1).await && reports.is_counting(&cleo, 1).await);
    assert_eq!(
        reports.begun(),
        2,
        "what one may see is not told another, and there are two readers"
    );
    reports.end_one().await;
    assert!(reports.is_counting(&ada, 2).await, "another one has its turn now");
    assert_eq!(reports.begun(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_and_not_kept() {
    let (reports, ada) = (Reports::new(), person());
    assert!(reports.is_counting(&ada, 0).await);
    reports.end_one().await;
    let failure = reports.read(&ada, 0).await.unwrap_err();
    assert_eq!(failure.status.as_u16(), 404);
    assert!(reports.is_counting(&ada, 0).await, "it is counted anew");
    assert_eq!(reports.begun(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_database_does_not_read_in_its_time_is_missing_and_no_failure_of_the_page() {
    let (reports, ada) = (Reports::new(), person());
    reports.gate.add_permits(1);
    let missing = reports.read(&ada, UNREAD).await.unwrap();
    assert!(matches!(missing, ReportView::Absent(Absence::Failed)), "{missing:?}");
    assert!(reports.is_counting(&ada, UNREAD).await, "the next look has it counted anew");
}

#[tokio::test]
async fn while_a_report_is_in_progress_pages_say_so_and_files_come() {
    let world = World::new().await;
    let (wallet, owner) = (world.wallet("acme", 5_000_000).await, &world.owner);
    let key = world.api_key(wallet.wallet.id, "one").await;
    // Home has reports from the first request on.
    world.completed(&key, 20).await;
    let page = format!("/wallets/{}", wallet.wallet.id);
    let readers = &world.shared.usage.limits.of_readers;
    let in_progress = readers.enter(owner.principal.actor).unwrap();
    // An export has a place of its own.
    world.get(owner, "/usage.csv").await.is(200).has("closing");
    world.get(owner, &format!("{page}/statement.csv")).await.is(200).has("closing");
    let (key, statement) = (format!("/keys/{}", key.id), format!("{page}/statement"));
    for (page, known) in [
        ("/", "Unhealthy routes"),
        ("/usage", "By"),
        (&page, "5.00 USD"),
        (&key, "one"),
        (&statement, "Journal"),
        ("/wallets", "acme"),
        ("/keys", "one"),
    ] {
        world.get(owner, page).await.is(200).has("being counted").has(known);
    }
    drop(in_progress);
    for page in ["/", "/usage", &page, &key, &statement, "/wallets", "/keys"] {
        world.get(owner, page).await.is(200).has_not("being counted");
    }
}
