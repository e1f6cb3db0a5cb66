//! Reports that may take longer than a page: they are counted beside it.
//!
//! ```text
//! page ─▶ Counts::read ─▶ a task that reads ─▶ there before the page's deadline: it is on the page
//!             │                                 └▶ later: the page shows that it is being counted,
//!             └── the next look finds the same task, and what it has read for KEPT
//! ```
//!
//! A report reads few rows if its hours are summed, and otherwise all that is not summed yet; a statement reads all
//! that a wallet ever moved. So no page waits for them for longer than it may take itself. What came in time is
//! shown and forgotten: the next page reads anew. What came later is kept for a moment, with the moment that it is of.
//!
//! - A person has one report at once, and a process as many as the store has readers for them.
//! - A report is known by its principal, too: no person finds the report of another.
//!
//! Never: a part of a report. A number is whole, or shown as being counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_accounts::{InFlight, Principal};
use holdfast_domain::Timestamp;
use holdfast_domain::admin::report::REPORTS_AT_ONCE;
use http::StatusCode;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::kit::moment::second;
use crate::kit::{Notice, Tone};

/// Time for which a report is kept that took longer.
const KEPT: Duration = Duration::from_secs(30);
/// Most reports that are known at once, in the making or kept.
const KNOWN_MAX: usize = 16;

/// A report as a page finds it.
#[derive(Debug)]
pub(crate) enum ReportView<T> {
    /// Counted: as the rows are now, or as they were at this moment.
    There(T, Option<Timestamp>),
    /// Not counted.
    Absent(Absence),
}

/// Reason for which a report is not there yet. The rest of its page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Being counted, or waiting for its turn.
    Counting,
    /// The database did not read it in its time.
    Failed,
}

/// Result of a count, and the moment that it is of.
#[derive(Debug, Clone)]
struct Outcome<T> {
    found: Result<(T, Timestamp), Failure>,
    ended: Instant,
}

/// A report in the making, or kept.
#[derive(Debug)]
struct Count<Q, T> {
    principal: Principal,
    asked: Q,
    outcome: watch::Receiver<Option<Outcome<T>>>,
}

#[derive(Debug)]
struct CountTable<Q, T> {
    counts: Vec<Count<Q, T>>,
    /// Dropped with the console: its unfinished counts end with it.
    tasks: JoinSet<()>,
}

/// Reports of one kind, by their query.
#[derive(Debug, Clone)]
pub(crate) struct Counts<Q, T> {
    known: Arc<Mutex<CountTable<Q, T>>>,
    pub(crate) limits: CountLimits,
}

/// Bounds that kinds of reports share.
#[derive(Debug, Clone)]
pub(crate) struct CountLimits {
    /// Reports that are being read, by their reader.
    pub(crate) of_readers: InFlight,
    of_process: Arc<Semaphore>,
}

impl CountLimits {
    pub(crate) fn new() -> Self {
        Self {
            of_readers: InFlight::of_reports(),
            of_process: Arc::new(Semaphore::new(REPORTS_AT_ONCE.into())),
        }
    }
}

impl<Q, T> Counts<Q, T>
where
    Q: Clone + PartialEq,
    T: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(limits: CountLimits) -> Self {
        let known = CountTable { counts: Vec::new(), tasks: JoinSet::new() };
        Self { known: Arc::new(Mutex::new(known)), limits }
    }

    /// The report of a query, counted by this future unless it is known. Cancel safe: the count goes on, and
    /// the next look finds it.
    pub(crate) async fn read<F>(
        &self,
        principal: &Principal,
        asked: &Q,
        until: Instant,
        count: impl FnOnce() -> F,
    ) -> Result<ReportView<T>, Failure>
    where
        F: Future<Output = Result<(T, Timestamp), Failure>> + Send + 'static,
    {
        let found = self.find(principal, asked);
        let is_new = found.is_none();
        // Another tab may begin the same report between the two locks. A person has one place, so
        // that this count is not begun, and the page shows that the report is being counted.
        let begun = found.or_else(|| self.begin(principal, asked, count()));
        let Some(mut outcome) = begun else { return Ok(ReportView::Absent(Absence::Counting)) };
        let waited = timeout_at(until, outcome.wait_for(Option::is_some)).await;
        let outcome = match waited {
            Ok(Ok(outcome)) => outcome.clone(),
            // Its task is gone without a word.
            Ok(Err(_gone)) => None,
            Err(_elapsed) => return Ok(ReportView::Absent(Absence::Counting)),
        };
        let outcome = outcome.map_or_else(|| Err(not_counted()), |outcome| outcome.found);
        // A report that came in time is forgotten, so that the next page has the rows of its own
        // moment. A failure is forgotten, so that a reload counts anew and need not wait for
        // KEPT.
        if is_new || outcome.is_err() {
            self.known().counts.retain(|known| !known.is_of(principal, asked));
        }
        match outcome {
            Ok((report, at)) => Ok(ReportView::There(report, Some(at).filter(|_at| !is_new))),
            Err(failure) if failure.status == StatusCode::SERVICE_UNAVAILABLE => {
                Ok(ReportView::Absent(Absence::Failed))
            }
            Err(failure) => Err(failure),
        }
    }

    fn known(&self) -> MutexGuard<'_, CountTable<Q, T>> {
        // The table is whole after a panic: an entry is added or removed in one step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(
        &self,
        principal: &Principal,
        asked: &Q,
    ) -> Option<watch::Receiver<Option<Outcome<T>>>> {
        let mut known = self.known();
        known.counts.retain(Count::is_fresh);
        known.counts.iter().find(|it| it.is_of(principal, asked)).map(|it| it.outcome.clone())
    }

    /// Begins a count; `None` if its reader or the process has as many as they may.
    fn begin<F>(
        &self,
        principal: &Principal,
        asked: &Q,
        count: F,
    ) -> Option<watch::Receiver<Option<Outcome<T>>>>
    where
        F: Future<Output = Result<(T, Timestamp), Failure>> + Send + 'static,
    {
        let mut known = self.known();
        // A set keeps its ended tasks until they are joined: it would grow with every report.
        while known.tasks.try_join_next().is_some() {}
        if known.counts.len() >= KNOWN_MAX {
            // The one that is kept for longest: so few are in the making that there is one.
            let kept = known.counts.iter().position(|it| it.outcome.borrow().is_some())?;
            known.counts.remove(kept);
        }
        // Without a wait: the page has a deadline, and shows that the report is not there yet.
        let reader = self.limits.of_readers.enter(principal.actor)?;
        let process = Arc::clone(&self.limits.of_process).try_acquire_owned().ok()?;
        let (sender, outcome) = watch::channel(None);
        // A task, and not the page's future: a reader who leaves and looks again finds this
        // count, and does not begin a second one.
        known.tasks.spawn(async move {
            let found = count.await;
            // Before the result: a page that waits for it begins its next report at once, and
            // must find its place free.
            drop((reader, process));
            sender.send_replace(Some(Outcome { found, ended: Instant::now() }));
        });
        let (principal, asked) = (principal.clone(), asked.clone());
        known.counts.push(Count { principal, asked, outcome: outcome.clone() });
        Some(outcome)
    }
}

impl<Q: PartialEq, T> Count<Q, T> {
    fn is_of(&self, principal: &Principal, asked: &Q) -> bool {
        self.principal == *principal && self.asked == *asked
    }

    /// False if it is to be counted anew: it ended some time ago, or its task is gone.
    fn is_fresh(&self) -> bool {
        match &*self.outcome.borrow() {
            Some(outcome) => outcome.ended.elapsed() < KEPT,
            // An error if the task has dropped its sender: no result will come.
            None => self.outcome.has_changed().is_ok(),
        }
    }
}

fn not_counted() -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "It was not counted. Load this page again.")
}

impl Absence {
    /// Predicate of the sentence in a cell or a notice.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Counting => "is being counted",
            Self::Failed => "was not counted",
        }
    }

    /// Notice in the place of a missing part of a page.
    pub(crate) fn notice(self, what: &str, address: &str) -> Notice {
        let (tone, why) = match self {
            Self::Counting => (Tone::Plain, "It takes longer than a page may."),
            Self::Failed => (Tone::Warning, "The database did not read it in its time."),
        };
        let text = format!("{what} {}. {why} The rest is as it is now.", self.words());
        Notice::new(tone, text).link("Look again", address)
    }
}

/// Notice with the moment of a report that is not of now.
pub(crate) fn of_moment(at: Option<Timestamp>, address: &str) -> Option<Notice> {
    let text = format!("This took longer than a page may. It was counted at {}.", second(at?));
    Some(Notice::new(Tone::Plain, text).link("Look again", address))
}
