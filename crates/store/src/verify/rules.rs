//! Rules of one operation that its own row and its result's must satisfy.

use holdfast_domain::OperationId;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::operation::{Operation, Phase};

use super::{AuditedOperation, RetentionBound, StoredResult};

pub(super) fn check(dossier: &AuditedOperation, kept: RetentionBound, wrong: &mut Vec<String>) {
    let operation = &dossier.operation;
    // The id is what makes a key run once: a row under another one would let it run again.
    if operation.id != OperationId::of(operation.api_key, operation.request_key) {
        wrong.push("its id does not follow from its API key and request key".to_owned());
    }
    if dossier.is_listed != operation.phase.holds() {
        let found = if dossier.is_listed { "listed" } else { "not listed" };
        wrong.push(format!("it is {found} among those that run"));
    }
    check_price(operation, wrong);
    check_version(operation, wrong);
    check_usage(operation, wrong);
    check_result(operation, dossier.result, kept, wrong);
}

/// A price version is named after the model and the currency that it is for.
fn check_price(operation: &Operation, wrong: &mut Vec<String>) {
    let Operation { model, price, .. } = operation;
    let is_of = |start: String| price.id.as_str().starts_with(&start);
    if !is_of(format!("{model}/")) {
        wrong.push(format!("its price {} is not of its model {model}", price.id));
    } else if !is_of(format!("{model}/{}/", price.currency)) {
        wrong.push(format!("its price {} is in {}", price.id, price.currency));
    }
}

/// Each generation is two versions, its admission and its end, and asking to cancel is one.
fn check_version(operation: &Operation, wrong: &mut Vec<String>) {
    let ends = u64::from(operation.generation) - u64::from(operation.phase == Phase::Leased);
    // At least: the settlement of what was recorded first is one more.
    let least = u64::from(operation.generation) + ends + u64::from(operation.cancel_asked);
    let version = operation.version.get();
    if u64::from(version) < least {
        wrong.push(format!("its version is {version}, its generations make {least}"));
    }
}

/// The charge is what the meters cost by the price, at most the hold.
fn check_usage(operation: &Operation, wrong: &mut Vec<String>) {
    let Some(usage) = operation.phase.usage() else { return };
    let computed = UsageRecord::of(usage.metered, &operation.price, operation.hold);
    if (computed.charge, computed.shortfall) != (usage.charge, usage.shortfall) {
        wrong.push(format!(
            "its charge is {} micros and its shortfall {}, its meters make {} and {}",
            usage.charge.get(),
            usage.shortfall.get(),
            computed.charge.get(),
            computed.shortfall.get()
        ));
    }
}

/// Only what ended with an answer has a result, and what waits for its settlement has one. A result
/// that is gone was the oldest, and due.
fn check_result(
    operation: &Operation,
    result: StoredResult,
    kept: RetentionBound,
    wrong: &mut Vec<String>,
) {
    let label = operation.phase.label();
    match (&operation.phase, result) {
        (Phase::Recorded(_), StoredResult::Nothing) => {
            wrong.push("it is recorded and its result is gone".to_owned());
        }
        (Phase::Leased | Phase::Open | Phase::Abandoned { .. }, StoredResult::Result { .. }) => {
            wrong.push(format!("it is {label} and has a result"));
        }
        (
            Phase::Recorded(_) | Phase::Completed { .. } | Phase::Refused { .. },
            StoredResult::Result { finished_at },
        ) => {
            if finished_at != operation.phase.finished_at() {
                wrong.push("its result says another moment than its row".to_owned());
            }
        }
        (
            Phase::Completed { finished_at, .. } | Phase::Refused { finished_at, .. },
            StoredResult::Nothing,
        ) => {
            // A purge takes the oldest first: no young result goes while an older one stays.
            let is_early = *finished_at >= kept.due;
            if is_early && kept.oldest.is_some_and(|oldest| oldest < *finished_at) {
                wrong.push("its result is gone, and older ones are kept".to_owned());
            }
        }
        (Phase::Leased | Phase::Open | Phase::Abandoned { .. }, StoredResult::Nothing) => {}
    }
}
