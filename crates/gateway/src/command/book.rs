//! `holdfast ledger`

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::Context;
use holdfast_domain::Administration as _;
use holdfast_store::Store;
use holdfast_store::verify::{AuditOptions, Mismatch, Progress, Subject};
use holdfast_wire::api::{MismatchView, VerificationView};

use crate::failure::{CommandFailure, Status};
use crate::output::{Output, note};

/// Time between two lines of progress, where a person looks on and where a file is written.
const ON_TERMINAL: Duration = Duration::from_secs(1);
const IN_FILE: Duration = Duration::from_secs(10);

pub(super) async fn verify(
    output: Output,
    store: &Store,
    options: AuditOptions,
    progress: bool,
) -> Result<(), CommandFailure> {
    let every = match output {
        Output::Json if !progress => None,
        Output::Json | Output::Table | Output::Plain if io::stderr().is_terminal() => {
            Some(ON_TERMINAL)
        }
        Output::Json | Output::Table | Output::Plain => Some(IN_FILE),
    };
    let mut told = Instant::now();
    let tell = move |Progress { part, done, of }: Progress| {
        // A short audit ends before it has said anything; one that was asked to say so says the end
        // of each part.
        let is_due = every.is_some_and(|every| told.elapsed() >= every);
        if is_due || (progress && done >= of) {
            note(&format!("{part}: {done} of {of}"));
            told = Instant::now();
        }
    };
    let found = store.verify_by(options, tell).await;
    let found = found.context("the book could not be read to its end")?;
    let mut mismatches: Vec<_> = found.mismatches.iter().map(mismatch).collect();
    if found.unlisted > 0 {
        let text = format!("{} more mismatches are not listed", found.unlisted);
        mismatches.push(MismatchView { wallet_id: None, operation_id: None, text });
    }
    let ok = mismatches.is_empty();
    // Printed to be kept elsewhere: whoever has the server secret cannot make another trail go
    // through it.
    let head = store.trail_head().await.context("the head of the trail was not read")?;
    let mut fields = vec![
        ("ok", if ok { "yes" } else { "no" }.to_owned()),
        ("wallets", found.wallets.to_string()),
        ("operations", found.operations.to_string()),
        ("transfers", found.transfers.to_string()),
        ("trail", head.to_string()),
    ];
    fields.extend(mismatches.iter().map(|mismatch| ("mismatch", mismatch.text.clone())));
    let view = VerificationView::of(found.wallets, found.operations, found.transfers, mismatches)
        .with_trail(&head.to_string());
    output.object(&view, &fields)?;
    if ok { Ok(()) } else { Err(CommandFailure::Told(Status::Failed)) }
}

fn mismatch(mismatch: &Mismatch) -> MismatchView {
    let (wallet_id, operation_id) = match mismatch.subject {
        Subject::Wallet(id) => (Some(id.to_string()), None),
        Subject::Operation(id) => (None, Some(id.to_string())),
        Subject::ApiKey(_) | Subject::Posting(_) | Subject::Book => (None, None),
    };
    MismatchView { wallet_id, operation_id, text: mismatch.to_string() }
}
