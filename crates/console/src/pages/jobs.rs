//! Jobs: work that takes longer than a request. A ledger check has a result once it is whole.

pub(crate) mod forms;

use holdfast_domain::JobId;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::job::{Job, JobState};
use serde_json::Value;

use crate::failure::Failure;
use crate::kit::{Cell, Facts, Page, Pages, Table, Visit};
use crate::pages::parts::job::{done, report, result, row, state};
use crate::pages::parts::node;

texts! { #[template(path = "pages/jobs.txt")] JobsText { Empty = "empty" } }

/// Mismatches of a page; the command line prints all.
const MISMATCHES: usize = 50;

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let pages = Pages::new(&visit, "/jobs", &visit.query);
    let listed = visit.accounts().jobs(visit.principal(), pages.request()?).await?;
    let rows = listed.rows.iter().map(row);
    let next = pages.next(listed.next)?;
    let page = Page::new("Ledger checks")
        .form(&visit, UseCase::JobCreate, "/jobs/new")
        .section(Table::of("Newest first", rows, JobsText::Empty).next(next));
    if !visit.may(UseCase::NodeRead) {
        return Ok(page);
    }
    let nodes = visit.accounts().nodes(visit.principal()).await?;
    Ok(page.section(node::table(&nodes)))
}

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let job = opened(&visit).await?;
    let report = report(&job);
    let count = |name: &str| {
        let count = report.get(name).and_then(Value::as_u64);
        count.map_or(Cell::Nothing, Cell::count)
    };
    let node = job.lease.as_ref().map(|lease| lease.owner.name.as_str());
    let since = job.since.map(|head| head.to_string());
    let rows = vec![
        ("State", state(&job)),
        ("Result", result(&job)),
        ("Done", done(&job)),
        ("Wallets", count("wallets")),
        ("Requests", count("operations")),
        ("Transfers", count("transfers")),
        ("Started by", Cell::some_text(node)),
        ("Asked", Cell::moment(job.created_at)),
        ("Began", Cell::some_moment(job.started_at)),
        ("Ended", Cell::some_moment(job.finished_at)),
        ("Audit log since", since.map_or(Cell::Nothing, Cell::code)),
        ("Id", Cell::code(job.id)),
    ];
    let may_cancel = job.state == JobState::Queued && visit.may(UseCase::JobCreate);
    let page = Page::new("Ledger check").below("Ledger checks", "/jobs");
    let page = page.action(may_cancel, "Cancel", format!("/jobs/{}/cancel", job.id));
    let page = page.section(Facts::new("", rows));
    let mismatches = report.get("mismatches").and_then(Value::as_array);
    let Some(mismatches) = mismatches.filter(|all| !all.is_empty()) else { return Ok(page) };
    let text = |row: &Value, name: &str| Cell::some_text(row.get(name).and_then(Value::as_str));
    let rows = mismatches.iter().take(MISMATCHES);
    let members = [("Of", "subject"), ("Id", "id"), ("What", "sentence")];
    let rows = rows.map(|row| members.map(|(head, member)| (head, text(row, member))));
    Ok(page.section(Table::of("Mismatches", rows, "")))
}

/// The job whose page or form it is.
async fn opened(visit: &Visit) -> Result<Job, Failure> {
    Ok(visit.accounts().job(visit.principal(), JobId::from(visit.id()?)).await?)
}
