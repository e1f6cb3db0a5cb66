//! `holdfast ledger`

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::Context;
use holdfast_store::Store;
use holdfast_store::verify::{AuditOptions, Mismatch, Progress, Subject};
use holdfast_wire::api::{MismatchView, VerificationView};

use crate::failure::{CommandFailure, Status};
use crate::output::{Output, note};

/// Between two lines that say how far it is.
const EVERY: Duration = Duration::from_secs(1);

pub(super) async fn verify(
    output: Output,
    store: &Store,
    retention: Duration,
    progress: bool,
) -> Result<(), CommandFailure> {
    let is_shown = progress || io::stderr().is_terminal();
    let mut told = Instant::now();
    let tell = move |Progress { operations, of }: Progress| {
        // A short audit ends before it has said anything; one that was asked to say so says its
        // end.
        if is_shown && (told.elapsed() >= EVERY || (progress && operations >= of)) {
            note(&format!("{operations} of {of} operations"));
            told = Instant::now();
        }
    };
    let found = store.verify_by(AuditOptions { retention }, tell).await;
    let found = found.context("the book could not be read to its end")?;
    let mut mismatches: Vec<_> = found.mismatches.iter().map(mismatch).collect();
    if found.unlisted > 0 {
        let text = format!("{} more mismatches are not listed", found.unlisted);
        mismatches.push(MismatchView { wallet_id: None, operation_id: None, text });
    }
    let ok = mismatches.is_empty();
    let mut fields = vec![
        ("ok", if ok { "yes" } else { "no" }.to_owned()),
        ("wallets", found.wallets.to_string()),
        ("operations", found.operations.to_string()),
        ("transfers", found.transfers.to_string()),
    ];
    fields.extend(mismatches.iter().map(|mismatch| ("mismatch", mismatch.text.clone())));
    let view = VerificationView::of(found.wallets, found.operations, found.transfers, mismatches);
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
