//! `holdfast ledger verify`: an audit in this process, or over the network a job of the servers, polled until
//! it has ended.
//!
//! Both print the same and exit with the same status. An interruption of the command stops no job.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use holdfast_accounts::Reason;
use holdfast_domain::admin::audit::TrailHead;
use holdfast_store::verify::AuditOptions;
use holdfast_wire::api::MismatchView;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use super::book::{self, AuditReport, IN_FILE, ON_TERMINAL, unlisted};
use super::context::{CommandContext, LocalLedger};
use crate::admin_client::{ChangeKey, ChangeRequest};
use crate::arguments::Ledger;
use crate::failure::{CommandFailure, Result, Status};
use crate::output::{Output, note};
use crate::view::{member, some_text, text};
use holdfast_bootstrap::database;

/// Time between two polls of the job.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A verification of a command.
pub(super) struct VerificationOrder {
    pub(super) progress: bool,
    pub(super) since: Option<TrailHead>,
    pub(super) key: Option<Uuid>,
    pub(super) reason: Option<Reason>,
}

pub(super) async fn run(context: &CommandContext<'_>, order: VerificationOrder) -> Result {
    match context.local {
        Some(local) => here(context.output, local, order).await,
        None => on_server(context, order).await,
    }
}

/// Refuses options of a server's job for the audit of this process, before the database is opened.
pub(super) fn refuse_job_options(verification: &Ledger) -> Result {
    let Ledger::Verify { key, reason, .. } = verification else { return Ok(()) };
    if key.is_some() || reason.is_some() {
        return Err(CommandFailure::Usage(anyhow!(
            "--key and --reason are for the job of a server: leave them out, or name the server with --server"
        )));
    }
    Ok(())
}

/// The audit of this process: it needs no server.
async fn here(
    output: Output,
    LocalLedger { config, store }: LocalLedger<'_>,
    VerificationOrder { progress, since, .. }: VerificationOrder,
) -> Result {
    let secrets = database::known_secrets(config).into();
    let options = AuditOptions { retention: config.retention.results, secrets, since };
    book::verify(output, store, options, progress).await
}

async fn on_server(context: &CommandContext<'_>, order: VerificationOrder) -> Result {
    let since = order.since.map(|head| head.to_string());
    let body = json!({ "kind": "verification", "since": since });
    let change = ChangeRequest::post(ChangeKey::new(order.key), "/jobs", body);
    let change = change.because(order.reason.as_ref());
    let started = context.change("no verification was started", &change).await?;
    let id = text(&started.thing, "id");
    // Listened for before the id is printed: its reader may interrupt at once.
    let interrupt = signal(SignalKind::interrupt());
    let mut interrupt = interrupt.context("interruptions cannot be received")?;
    note(&format!("job {id}"));
    let is_quiet = matches!(context.output, Output::Json) && !order.progress;
    let ended = tokio::select! {
        ended = wait(context, &id, is_quiet) => ended?,
        _pressed = interrupt.recv() => {
            note(&format!("the job goes on: `holdfast job show {id}` shows it"));
            // Status 1, although no mismatch was found: a script must not take a check without a
            // result for a sound ledger.
            return Err(CommandFailure::Told(Status::Failed));
        }
    };
    if text(&ended, "state") != "done" {
        return Err(anyhow!(
            "job {id} has failed: the log of the server that ran it has the cause"
        )
        .into());
    }
    let report = member(&ended, "report");
    let count = |name: &str| member(report, name).as_u64().unwrap_or_default();
    let mut mismatches: Vec<_> = mismatches(report).collect();
    mismatches.extend(unlisted(count("unlisted")));
    let counts = ["wallets", "operations", "transfers"].map(count);
    let notes = member(report, "notes").as_array().into_iter().flatten().map(mismatch).collect();
    let report = AuditReport::of(counts, mismatches, head(context).await?.as_deref());
    report.with_notes(notes).print(context.output)
}

/// Waits until the job has ended, and prints its progress.
async fn wait(context: &CommandContext<'_>, id: &str, is_quiet: bool) -> Result<Value> {
    let every = if io::stderr().is_terminal() { ON_TERMINAL } else { IN_FILE };
    let mut printed = Instant::now();
    loop {
        let found = context.client.get(&format!("/jobs/{id}"), &[]).await;
        let nothing = format!("the job goes on, `holdfast job show {id}` shows it");
        let job = found.map_err(|error| error.because(&nothing))?;
        let state = text(&job, "state");
        if !matches!(&*state, "queued" | "running") {
            return Ok(job);
        }
        if !is_quiet && printed.elapsed() >= every {
            note(&format!("{state}: {} of {}", text(&job, "done"), text(&job, "of")));
            printed = Instant::now();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The latest audit checksum; none for a caller who may not read that.
async fn head(context: &CommandContext<'_>) -> Result<Option<String>> {
    match context.client.get("/audit", &[("limit", "1")]).await {
        Ok(newest) => Ok(member(&newest, "data").get(0).and_then(|row| some_text(row, "head"))),
        // The findings are complete without it: a caller who may not read the audit log gets them
        // all the same.
        Err(error) if error.is("forbidden") => Ok(None),
        Err(error) => Err(error.because("the latest audit checksum was not read")),
    }
}

/// Listed mismatches of a job's report.
pub(super) fn mismatches(report: &Value) -> impl Iterator<Item = MismatchView> {
    member(report, "mismatches").as_array().into_iter().flatten().map(mismatch)
}

/// A mismatch in the form of a verification with direct database access.
fn mismatch(found: &Value) -> MismatchView {
    let (subject, id) = (text(found, "subject"), some_text(found, "id"));
    let only = |kind: &str| id.clone().filter(|_id| subject == kind);
    let named = match (&*subject, &id) {
        ("book", _) | (_, None) => "the ledger".to_owned(),
        ("api_key", Some(id)) => format!("API key {id}"),
        ("admin_key", Some(id)) => format!("admin key {id}"),
        (subject, Some(id)) => format!("{subject} {id}"),
    };
    MismatchView {
        wallet_id: only("wallet"),
        operation_id: only("operation"),
        text: format!("{named}: {}", text(found, "sentence")),
    }
}
