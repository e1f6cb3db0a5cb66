//! Rules of one operation that its own row and those that belong to it must satisfy: its API key's, its wallet's,
//! its result's, its refunds'.
//!
//! A moment is compared only with a second copy of itself, never with another moment: a clock that was set back is
//! not a mismatch.
//!
//! Pure: the rows are read elsewhere, and each mismatch is a sentence. All rules are applied, also after one that does
//! not hold, so that an altered row shows all that does not fit at once.

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{
    OWN_RESULT_FORMAT, Operation, Phase, RESULT_FORMATS, RESULT_TAG_LENGTH,
};
use holdfast_domain::{ApiKeyId, Micros, OperationId};

use super::{AuditedOperation, Refunds, ResultShape, RetentionBound, StoredResult};

/// Length of a nonce.
const NONCE_LENGTH: i64 = 12;

/// Sentences about an operation whose earlier generations held so much by its transfers.
pub(crate) fn check(
    dossier: &AuditedOperation,
    past_holds: i128,
    kept: RetentionBound,
) -> Vec<String> {
    let mut wrong = Vec::new();
    check_owners(dossier, &mut wrong);
    check_row(dossier, past_holds, &mut wrong);
    check_price(&dossier.operation, &mut wrong);
    check_version(&dossier.operation, &mut wrong);
    check_usage(&dossier.operation, &mut wrong);
    check_result(&dossier.operation, dossier.result, kept, &mut wrong);
    check_refunds(&dossier.operation, dossier.refunds, &mut wrong);
    wrong
}

fn check_owners(dossier: &AuditedOperation, wrong: &mut Vec<String>) {
    let operation = &dossier.operation;
    match dossier.key_wallet {
        None => wrong.push("its API key does not exist".to_owned()),
        Some(wallet) if wallet != operation.wallet => {
            wrong.push("its wallet is not that of its API key".to_owned());
        }
        Some(_same) => {}
    }
    match &dossier.currency {
        None => wrong.push("its wallet does not exist".to_owned()),
        Some(currency) if *currency != operation.price.currency.as_str() => {
            wrong.push("its price is in another currency than its wallet".to_owned());
        }
        Some(_same) => {}
    }
}

fn check_row(dossier: &AuditedOperation, past_holds: i128, wrong: &mut Vec<String>) {
    let operation = &dossier.operation;
    let released = dossier.released.get();
    if past_holds != i128::from(released) {
        wrong.push(format!(
            "its earlier generations held {past_holds} micros by its transfers and {released} by its \
             row"
        ));
    }
    // A hold of zero has no transfer with a second copy of the moment.
    if operation.generation == 1 && operation.created_at != operation.admitted_at {
        wrong.push("it was made at another moment than it was admitted".to_owned());
    }
    // The id is what makes a key run once: a row under another one would let it run again.
    if operation.id != OperationId::of(operation.api_key, operation.request_key) {
        wrong.push("its id does not follow from its API key and request key".to_owned());
    }
    if dossier.is_listed != operation.phase.holds() {
        let found = if dossier.is_listed { "listed" } else { "not listed" };
        wrong.push(format!("it is {found} among those that run"));
    }
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

/// Each generation is two versions, its admission and its end, and a request to cancel is one. An end that was
/// recorded first is one more: only a completed operation may have that, or may not. The cancel of an open
/// operation is one more. A limit that is set while it runs is one more for each counter that the generation has by
/// then; a row does not show which of them it was admitted with.
fn check_version(operation: &Operation, wrong: &mut Vec<String>) {
    let is_completed = matches!(operation.phase, Phase::Completed { .. });
    let ends = u64::from(operation.generation) - u64::from(operation.phase == Phase::Leased)
        + u64::from(operation.is_cancelled_open());
    let least = u64::from(operation.generation) + ends + u64::from(operation.cancel_asked);
    let version = operation.version.get();
    let most = least + u64::from(is_completed);
    let counters = u64::from(operation.reserved.counters_reserved());
    let earlier = u64::from(operation.generation.saturating_sub(1));
    let seeded = counters + earlier * u64::try_from(Counter::ALL.len()).unwrap_or(u64::MAX);
    if !(least..=most + seeded).contains(&u64::from(version)) {
        let made = if is_completed { format!("{least} or {most}") } else { least.to_string() };
        wrong.push(format!("its version is {version}, its generations make {made}"));
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
/// that is gone was the oldest, and due, or a purge has deleted one as young.
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
            StoredResult::Result { finished_at, api_key, is_nobodys, shape },
        ) => {
            // A service that embeds the store lays its results out itself, for no credential of the ledger.
            let is_of_format = shape.format == i64::from(OWN_RESULT_FORMAT);
            let is_own = is_of_format && api_key.is_none() && !is_nobodys;
            if !is_own {
                check_shape(shape, wrong);
            }
            if is_nobodys {
                wrong.push("its result is sealed for a credential without an owner".to_owned());
            }
            if finished_at != operation.phase.finished_at() {
                wrong.push("its result has another moment than its row".to_owned());
            }
            if api_key.is_some_and(|api_key: ApiKeyId| api_key != operation.api_key) {
                wrong.push("its result is sealed for another API key".to_owned());
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
            } else if is_early && kept.purged.is_none_or(|youngest| youngest < *finished_at) {
                wrong.push("its result is gone, and no purge has deleted one so young".to_owned());
            }
        }
        (Phase::Leased | Phase::Open | Phase::Abandoned { .. }, StoredResult::Nothing) => {}
    }
}

/// Only the caller's secret opens a sealed result: a row shows whether it can be one at all.
fn check_shape(ResultShape { format, nonce, sealed }: ResultShape, wrong: &mut Vec<String>) {
    if !u8::try_from(format).is_ok_and(|format| RESULT_FORMATS.contains(&format)) {
        wrong.push(format!("its result is in format {format}, which this version does not know"));
    }
    if nonce != NONCE_LENGTH {
        wrong.push(format!("the nonce of its result has {nonce} bytes"));
    }
    if usize::try_from(sealed).map_or(true, |sealed| sealed < RESULT_TAG_LENGTH) {
        wrong.push(format!("its result has {sealed} bytes, which is less than its seal alone"));
    }
}

/// All refunds together give back at most the charge, and to the wallet that paid it.
fn check_refunds(operation: &Operation, refunds: Refunds, wrong: &mut Vec<String>) {
    let charge = match &operation.phase {
        Phase::Completed { usage, .. } => usage.charge,
        Phase::Leased
        | Phase::Recorded(_)
        | Phase::Open
        | Phase::Refused { .. }
        | Phase::Abandoned { .. } => Micros::ZERO,
    };
    let Refunds { micros, elsewhere } = refunds;
    if micros > i128::from(charge.get()) {
        wrong.push(format!("{micros} micros were refunded of a charge of {}", charge.get()));
    }
    if elsewhere > 0 {
        wrong.push("it was refunded to another wallet".to_owned());
    }
}
