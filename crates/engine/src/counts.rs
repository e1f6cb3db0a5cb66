//! What operations come to, counted from what this process is told that it brought about: by a run, a
//! retry, a look-up, a cancel, a heartbeat or the reconciler. Not what another process brought about.

use holdfast_domain::conduct::{Concluded, Found};
use holdfast_domain::operation::{Operation, Snapshot};
use holdfast_domain::usage::{Kind, UsageRecord};
use metrics::counter;

use crate::metrics::{OPERATIONS, SHORTFALL_MICROS, TOKENS};

/// Counts the ending of an own run, and what it used up.
pub(crate) fn count_concluded(concluded: &Concluded) {
    let Some(operation) = concluded.snapshot.operation.as_ref().filter(|_row| concluded.moved)
    else {
        return;
    };
    count(operation);
    if let Some(UsageRecord { metered, shortfall, .. }) = operation.phase.usage() {
        let shortfall = u64::try_from(shortfall.get()).unwrap_or(0);
        counter!(SHORTFALL_MICROS).increment(shortfall);
        for (kind, tokens) in [
            (Kind::Input, metered.meters.prompt_tokens()),
            (Kind::Output, metered.meters.completion_tokens()),
        ] {
            counter!(TOKENS, "kind" => kind.label()).increment(tokens);
        }
    }
}

/// Counts what was given up or settled for whoever ran it. What it used up was counted when its result
/// was recorded.
pub(crate) fn counted(found: Found) -> Snapshot {
    if let Some(operation) = found.snapshot.operation.as_ref().filter(|_row| found.moved) {
        count(operation);
    }
    found.snapshot
}

fn count(operation: &Operation) {
    counter!(OPERATIONS, "outcome" => operation.phase.label()).increment(1);
}
