//! Jobs as several pages show them.

use crate::kit::{Cell, Tone};
use holdfast_domain::admin::job::{Job, JobState};
use serde_json::Value;

/// Row of a list.
pub(crate) fn row(job: &Job) -> [(&'static str, Cell); 5] {
    [
        ("Ledger check", Cell::link("ledger check", format!("/jobs/{}", job.id))),
        ("State", state(job)),
        ("Done", done(job)),
        ("Result", result(job)),
        ("Ended", Cell::some_moment(job.finished_at)),
    ]
}

pub(crate) fn state(job: &Job) -> Cell {
    let tone = match job.state {
        JobState::Queued | JobState::Running | JobState::Cancelled => Tone::Plain,
        JobState::Done => Tone::Good,
        JobState::Failed => Tone::Bad,
    };
    Cell::badge(job.state.label(), tone)
}

pub(crate) fn done(job: &Job) -> Cell {
    let (done, of) = (job.step.done, job.step.of);
    let share = done.saturating_mul(100).checked_div(of).map(|share| share.min(100));
    let share = share.and_then(|share| u8::try_from(share).ok());
    share.map_or(Cell::Nothing, |share| Cell::Meter(share, format!("{done} of {of}")))
}

/// Result of a check of the whole ledger.
pub(crate) fn result(job: &Job) -> Cell {
    match is_well(job) {
        Some(true) => Cell::badge("ledger balanced", Tone::Good),
        Some(false) => Cell::badge("mismatches found", Tone::Bad),
        None => Cell::Nothing,
    }
}

/// True for a job that is done and found no mismatch; none without a verdict.
pub(crate) fn is_well(job: &Job) -> Option<bool> {
    match job.state {
        JobState::Queued | JobState::Running | JobState::Failed | JobState::Cancelled => None,
        JobState::Done => {
            let report = report(job);
            let mismatches = report.get("mismatches").and_then(Value::as_array)?;
            let unlisted = report.get("unlisted").and_then(Value::as_u64);
            Some(mismatches.is_empty() && unlisted.is_none_or(|count| count == 0))
        }
    }
}

/// The report of a job, as its node wrote it.
pub(crate) fn report(job: &Job) -> Value {
    let report = job.step.report.as_deref().map(serde_json::from_str::<Value>);
    report
        .transpose()
        .unwrap_or_else(|error| {
            tracing::error!(%error, job.id = %job.id, "the report of a job cannot be read");
            None
        })
        .unwrap_or_default()
}
