//! `holdfast ledger`

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::Context;
use holdfast_domain::ErrorChain;
use holdfast_domain::admin::Administration as _;
use holdfast_store::Store;
use holdfast_store::verify::{AuditOptions, Mismatch, Progress, Subject, Verification};
use holdfast_wire::api::{MismatchView, VerificationView};
use uuid::Uuid;

use crate::failure::{CommandFailure, Result, Status};
use crate::output::{Output, note};
use crate::view::NOTHING;

/// Time between two lines of progress, for a person at a terminal and for a file.
pub(super) const ON_TERMINAL: Duration = Duration::from_secs(1);
pub(super) const IN_FILE: Duration = Duration::from_secs(10);

pub(super) async fn verify(
    output: Output,
    store: &Store,
    options: AuditOptions,
    progress: bool,
) -> Result {
    let (begun, since) = (Instant::now(), options.since);
    let found = find(output, store, options, progress).await?;
    // The alert on the ledger reads jobs. Findings that are not among them are still findings.
    let recorded =
        store.record_verification(Uuid::new_v4().into(), since, &found, begun.elapsed()).await;
    if let Err(error) = recorded {
        note(&format!(
            "the findings were not recorded as a job, so no metric shows them: {}",
            ErrorChain(&error)
        ));
    }
    report(store, &found).await?.print(output)
}

/// Verifies the ledger, and prints the progress meanwhile.
pub(super) async fn audit(
    output: Output,
    store: &Store,
    options: AuditOptions,
    progress: bool,
) -> Result<AuditReport> {
    let found = find(output, store, options, progress).await?;
    report(store, &found).await
}

async fn find(
    output: Output,
    store: &Store,
    options: AuditOptions,
    progress: bool,
) -> Result<Verification> {
    let every = match output {
        Output::Json if !progress => None,
        Output::Json | Output::Table | Output::Plain if io::stderr().is_terminal() => {
            Some(ON_TERMINAL)
        }
        Output::Json | Output::Table | Output::Plain => Some(IN_FILE),
    };
    let mut printed = Instant::now();
    let print_progress = move |Progress { part, done, of }: Progress| {
        // A short audit ends before its first line; with the option for it, the end of each part is printed.
        let is_due = every.is_some_and(|every| printed.elapsed() >= every);
        if is_due || (progress && done >= of) {
            note(&format!("{part}: {done} of {of}"));
            printed = Instant::now();
        }
    };
    let found = store.verify_by(options, print_progress).await;
    Ok(found.context("the ledger could not be read to its end")?)
}

async fn report(store: &Store, found: &Verification) -> Result<AuditReport> {
    let mut mismatches: Vec<_> = found.mismatches.iter().map(mismatch).collect();
    mismatches.extend(unlisted(found.unlisted));
    // Printed for a copy outside: a thief of the server secret cannot make another log contain it.
    let head = store.trail_head().await.context("the latest audit checksum was not read")?;
    let counts = [found.wallets, found.operations, found.transfers];
    let notes = found.notes.iter().map(mismatch).collect();
    Ok(AuditReport::of(counts, mismatches, Some(&head.to_string())).with_notes(notes))
}

/// A mismatch that counts those beyond the listed ones.
pub(super) fn unlisted(count: u64) -> Option<MismatchView> {
    let text = format!("{count} more mismatches are not listed");
    (count > 0).then_some(MismatchView { wallet_id: None, operation_id: None, text })
}

/// Findings of a verification, as they are printed.
#[derive(Debug)]
pub(super) struct AuditReport {
    pub(super) is_ok: bool,
    pub(super) view: VerificationView,
    pub(super) fields: Vec<(&'static str, String)>,
}

impl AuditReport {
    pub(super) fn of(counts: [u64; 3], mismatches: Vec<MismatchView>, head: Option<&str>) -> Self {
        let is_ok = mismatches.is_empty();
        let [wallets, operations, transfers] = counts;
        let mut fields = vec![
            ("ok", if is_ok { "yes" } else { "no" }.to_owned()),
            ("wallets", wallets.to_string()),
            ("operations", operations.to_string()),
            ("transfers", transfers.to_string()),
            ("trail", head.unwrap_or(NOTHING).to_owned()),
        ];
        fields.extend(mismatches.iter().map(|mismatch| ("mismatch", mismatch.text.clone())));
        let view = VerificationView::of(wallets, operations, transfers, mismatches);
        let view = match head {
            Some(head) => view.with_trail(head),
            None => view,
        };
        Self { is_ok, view, fields }
    }

    /// The same with notes, which are no mismatches.
    pub(super) fn with_notes(self, notes: Vec<MismatchView>) -> Self {
        let mut fields = self.fields;
        fields.extend(notes.iter().map(|note| ("note", note.text.clone())));
        Self { view: self.view.with_notes(notes), fields, ..self }
    }

    /// Prints it; a failure if there is a mismatch.
    pub(super) fn print(&self, output: Output) -> Result {
        output.object(&self.view, &self.fields)?;
        self.outcome()
    }

    pub(super) fn outcome(&self) -> Result {
        if self.is_ok { Ok(()) } else { Err(CommandFailure::Told(Status::Failed)) }
    }
}

fn mismatch(mismatch: &Mismatch) -> MismatchView {
    let (wallet_id, operation_id) = match mismatch.subject {
        Subject::Wallet(id) => (Some(id.to_string()), None),
        Subject::Operation(id) => (None, Some(id.to_string())),
        Subject::ApiKey(_)
        | Subject::Posting(_)
        | Subject::AdminKey(_)
        | Subject::Person(_)
        | Subject::Webhook(_)
        | Subject::Ledger => (None, None),
    };
    MismatchView { wallet_id, operation_id, text: mismatch.to_string() }
}
