//! `/jobs`: work that takes longer than a request, started and polled here.
//!
//! A running job reports the pages that are done. The result of a verification comes with its last page: a half
//! without a mismatch is no proof that the ledger balances.

use holdfast_domain::ErrorChain;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::job::{Job, JobKind, JobState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, Reply};
use crate::description::{ChangeHeader, Errors, JobPath};
use crate::error::{Code, Problem};
use crate::page::{List, ListPages, ListParams, NoFilters, PageQuery};
use crate::request::{Caller, Change, ChangeBody, ReasonBody};
use crate::value::schema::ReasonText;
use crate::value::{JobKindLabel, JobStateLabel, Moment, parse_some};

/// A job to be started.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobDraft {
    kind: JobKindLabel,
    /// Checksum of the audit log that an earlier verification or the log itself has shown: today's log must still
    /// contain it.
    #[schema(example = "7:9f2c…", pattern = "^[1-9][0-9]{0,8}:[0-9a-f]{64}$")]
    since: Option<String>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for JobDraft {}

/// A job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobView {
    #[schema(format = "uuid")]
    id: String,
    kind: JobKindLabel,
    state: JobStateLabel,
    since: Option<String>,
    /// Rows of the part that it is at, as far as it has looked at them.
    done: u64,
    /// Rows that this part has.
    of: u64,
    /// True if the job is complete and found no mismatch; null before.
    ok: Option<bool>,
    created_at: Moment,
    started_at: Option<Moment>,
    finished_at: Option<Moment>,
    /// Name of the node that does it now.
    node: Option<String>,
    /// Findings so far; in the answer about one job, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    report: Option<VerificationReport>,
}

/// Findings of a verification.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
struct VerificationReport {
    /// Wallets that were looked at.
    wallets: u64,
    /// Operations that were looked at.
    operations: u64,
    /// Transfers that were looked at, postings among them.
    transfers: u64,
    /// Mismatches, the first 1,000.
    mismatches: Vec<MismatchView>,
    /// Number of mismatches beyond those.
    unlisted: u64,
    /// Findings that are no mismatches, such as one payment that is booked twice, the first 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    notes: Vec<MismatchView>,
}

/// A mismatch.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Mismatch)]
struct MismatchView {
    /// `wallet`, `api_key`, `operation`, `posting`, `admin_key`, `person`, `webhook` or `book`.
    subject: String,
    /// Id of the subject; the ledger has none.
    #[schema(format = "uuid")]
    id: Option<String>,
    sentence: String,
}

/// Extent to which a view of a job shows its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownReport {
    Shown,
    LeftOut,
}

impl JobView {
    fn new(job: &Job, shown: ShownReport) -> Result<Self, Problem> {
        let report = job.step.report.as_deref().map(serde_json::from_str::<VerificationReport>);
        let report = report.transpose().map_err(|error| {
            tracing::error!(error = %ErrorChain(&error), job.id = %job.id, "the report of a job cannot be read");
            Problem::new(Code::InternalError)
        })?;
        let is_well =
            |report: &VerificationReport| report.mismatches.is_empty() && report.unlisted == 0;
        Ok(Self {
            id: job.id.to_string(),
            kind: job.kind.into(),
            state: job.state.into(),
            since: job.since.map(|head| head.to_string()),
            done: job.step.done,
            of: job.step.of,
            ok: report.as_ref().map(is_well).filter(|_| job.state == JobState::Done),
            created_at: Moment(job.created_at),
            started_at: job.started_at.map(Moment),
            finished_at: job.finished_at.map(Moment),
            node: job.lease.as_ref().map(|lease| lease.owner.name.to_string()),
            report: report.filter(|_| shown == ShownReport::Shown),
        })
    }
}

#[utoipa::path(
    post, path = "/jobs", operation_id = "start_job", tag = "jobs",
    params(ChangeHeader), request_body = JobDraft,
    responses((status = 201, description = "The job.", body = JobView), Errors)
)]
/// Starts a job, such as a verification of the ledger. It does not change the ledger; the audit log has its
/// requester.
pub(crate) async fn start(
    caller: Caller,
    Change { request, body }: Change<JobDraft>,
) -> Reply<JobView> {
    let since: Option<TrailHead> = parse_some("since", body.since.as_deref())?;
    let kind = JobKind::from(body.kind);
    let started = caller.accounts().start_job(&caller.principal, &request, kind, since).await?;
    Ok(Answer::made(JobView::new(&started.thing, ShownReport::Shown)?, started.replayed))
}

#[utoipa::path(
    get, path = "/jobs", operation_id = "list_jobs", tag = "jobs", params(PageQuery),
    responses((status = 200, description = "A page.", body = List<JobView>), Errors)
)]
/// Lists jobs. Of those that have ended the oldest are not kept.
pub(crate) async fn list(
    caller: Caller,
    ListParams(NoFilters {}, page): ListParams<NoFilters>,
) -> Reply<List<JobView>> {
    let list = ListPages::new(&caller, "jobs", &())?;
    let page = list.request(&page)?;
    let found = caller.accounts().jobs(&caller.principal, page).await?;
    let views = found.rows.iter().map(|job| JobView::new(job, ShownReport::LeftOut));
    let views = views.collect::<Result<Vec<_>, _>>()?;
    list.list(found.with_rows(views)).await
}

#[utoipa::path(
    post, path = "/jobs/{id}/cancel", operation_id = "cancel_job", tag = "jobs",
    params(JobPath, ChangeHeader), request_body = Option<ReasonBody>,
    responses((status = 200, description = "The job.", body = JobView), Errors)
)]
/// Takes a queued job back. One that a node has begun goes on.
pub(crate) async fn cancel(caller: Caller, change: Change<ReasonBody>) -> Reply<JobView> {
    let cancelled =
        caller.accounts().cancel_job(&caller.principal, &change.request, caller.id()?).await?;
    let view = JobView::new(&cancelled.thing, ShownReport::Shown)?;
    Ok(Answer::changed(view, cancelled.replayed))
}

#[utoipa::path(
    get, path = "/jobs/{id}", operation_id = "show_job", tag = "jobs", params(JobPath),
    responses((status = 200, description = "The job.", body = JobView), Errors)
)]
/// Shows a job with its report.
pub(crate) async fn show(caller: Caller) -> Reply<JobView> {
    let job = caller.accounts().job(&caller.principal, caller.id()?).await?;
    Ok(Answer::of(JobView::new(&job, ShownReport::Shown)?))
}
