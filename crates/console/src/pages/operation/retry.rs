//! The answer to a retry with the same key, in the words of the public API.

use holdfast_domain::operation::{Operation, Phase, Situation};

use crate::kit::cell::Tone;
use crate::kit::section::Notice;

/// The answer to whoever sends the request again, and its price.
pub(crate) fn notice(operation: &Operation, situation: Situation) -> Notice {
    let text = match (&operation.phase, situation) {
        (Phase::Open, _) => {
            "A retry with the same key runs it anew: it is proven that it did not run before."
        }
        (Phase::Leased, Situation::Stale) => {
            "A retry with the same key first ends what its lost owner left, and then gets what \
                came of it."
        }
        (Phase::Leased, Situation::InProgress | Situation::NotStarted | Situation::Completed) => {
            "A retry with the same key joins it and waits for its answer; after ten minutes it \
                gets 409 \
             operation_in_progress. It never runs twice."
        }
        (Phase::Recorded(_), _) => {
            "A retry with the same key settles it and gets the answer, or 503 storage_unavailable \
                where that \
             fails once more. Nothing is lost."
        }
        (Phase::Completed { .. }, _) => {
            "A retry with the same key gets the same answer, byte for byte, and is charged \
                nothing. Once the \
             answer is no longer kept it gets 410 with the charge and the meters; it never runs \
                 again."
        }
        (Phase::Refused { .. }, _) => {
            "A retry with the same key gets the same refusal, and is charged nothing. Send it \
                under a new key \
             to run it again."
        }
        (Phase::Abandoned { .. }, _) => {
            "A retry with the same key gets the same error, and is charged nothing. Send it under \
                a new key to \
             run it again."
        }
    };
    let other = "Another request under the same key gets 409 idempotency_key_conflict.";
    Notice::new(Tone::Plain, format!("{text} {other}"))
}
