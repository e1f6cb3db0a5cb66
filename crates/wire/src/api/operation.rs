//! View of an operation for its caller. The operator's has keys of its own, and is the
//! administration's.

use holdfast_domain::Micros;
use holdfast_domain::Situation;
use holdfast_domain::operation::Operation;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{MetersView, rfc3339};
use crate::render::Raw;

/// An operation.
#[derive(Debug, Clone, Serialize)]
pub struct OperationView {
    id: String,
    idempotency_key: String,
    api_key_id: String,
    situation: &'static str,
    status: &'static str,
    model: String,
    contract: u32,
    generation: u32,
    hold_id: String,
    usage_id: Option<String>,
    hold_micros: i64,
    charge_micros: Option<i64>,
    shortfall_micros: Option<i64>,
    meters: Option<MetersView>,
    meters_source: Option<&'static str>,
    price_version: String,
    created_at: String,
    finished_at: Option<String>,
    #[serde(flatten)]
    result: Option<ResultPart>,
}

#[derive(Debug, Clone, Serialize)]
struct ResultPart {
    result: Option<Raw<Box<str>>>,
    result_state: &'static str,
}

/// Content of an operation as far as this request can open it.
#[derive(Debug, Clone)]
pub enum OperationResult {
    /// Content that is kept, and was opened with the caller's credential.
    Kept(Box<RawValue>),
    /// Content that is no longer kept.
    Expired,
    /// Content that is kept under a credential that the request does not bear.
    Sealed,
    /// No content, or none yet.
    None,
}

/// An opened result that is not JSON: it was not written here.
#[derive(Debug, thiserror::Error)]
#[error("the opened result is not JSON")]
pub struct NotJson(#[source] serde_json::Error);

impl OperationResult {
    /// A result that was opened, byte for byte.
    pub fn from_stored(body: &[u8]) -> Result<Self, NotJson> {
        serde_json::from_slice(body).map(Self::Kept).map_err(NotJson)
    }
}

impl OperationView {
    /// Shows the content of a row and its situation.
    #[must_use]
    pub fn of(operation: &Operation, situation: Situation) -> Self {
        let usage = operation.phase.usage();
        let charge = operation.phase.charge();
        // Who pays nothing has no shortfall either.
        let shortfall = usage.map(|usage| usage.shortfall).or(charge);
        Self {
            id: operation.id.to_string(),
            idempotency_key: operation.request_key.to_string(),
            api_key_id: operation.api_key.to_string(),
            situation: situation.label(),
            status: operation.phase.label(),
            model: operation.model.to_string(),
            contract: operation.binding.terms.contract,
            generation: operation.generation,
            hold_id: operation.id.hold(operation.generation).to_string(),
            usage_id: usage.map(|_recorded| operation.id.usage().to_string()),
            hold_micros: operation.hold.get(),
            charge_micros: charge.map(Micros::get),
            shortfall_micros: shortfall.map(Micros::get),
            meters: usage.map(|usage| MetersView::of(&usage.metered.meters)),
            meters_source: usage.map(|usage| usage.metered.source.label()),
            price_version: operation.price.id.to_string(),
            created_at: rfc3339(operation.created_at),
            finished_at: operation.phase.finished_at().map(rfc3339),
            result: None,
        }
    }

    /// Adds what only the caller may see: the answer.
    #[must_use]
    pub fn with_result(mut self, result: OperationResult) -> Self {
        // The state says why `result` is null: three causes want three different things of the caller.
        let (result, result_state) = match result {
            OperationResult::Kept(result) => (Some(Raw(result.get().into())), "kept"),
            OperationResult::Expired => (None, "expired"),
            OperationResult::Sealed => (None, "sealed"),
            OperationResult::None => (None, "none"),
        };
        self.result = Some(ResultPart { result, result_state });
        self
    }
}
