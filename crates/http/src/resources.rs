//! Endpoints that show callers their operations, their wallet and the models.
//!
//! The handlers read, or request a cancellation, and start no run. A failure of the store is logged here, once.
//! A large result is rendered on a blocking thread, and its room is given back when its bytes are written. A
//! caller sees no model that its API key may not use, nor learns from a suggestion that there is one.

use bytes::Bytes;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::Phase;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::private::Private;
use holdfast_domain::{ErrorChain, OperationId, Timestamp};
use holdfast_engine::{
    Caller, Catalogue, Engine, LookupError, Model, OperationLookup, Price, ResultState,
    ServingConfig, is_large,
};
use holdfast_wire::api::render;
use holdfast_wire::api::{
    AccountView, ModelListView, ModelView, NotJson, OperationResult, OperationView,
};
use holdfast_wire::error::{Code, model_not_found};
use http::StatusCode;

use crate::guarded_bytes::GuardedBytes;
use crate::headers;
use crate::log::RequestLog;
use crate::problem::Problem;
use crate::reply::{HttpResponse, json};

const NO_OPERATION: &str = "This API key has no operation under this Idempotency-Key: nothing was bound or charged. Send the \
                            request with the key to run it.";

/// `GET /v1/operations/{idempotency-key}`
pub(crate) async fn operation(
    engine: &Engine,
    caller: &Caller,
    key: &str,
    log: &mut RequestLog,
) -> Result<HttpResponse, Problem> {
    let request_key = headers::request_key_of_path(key)?;
    let look_up =
        engine.look_up(caller, request_key).await.map_err(|error| about_operation(&error))?;
    let view = render_operation(engine, &look_up, log).await?;
    Ok(json(StatusCode::OK, view))
}

/// `POST /v1/operations/{idempotency-key}/cancel`
pub(crate) async fn cancel(
    engine: &Engine,
    caller: &Caller,
    key: &str,
    log: &mut RequestLog,
) -> Result<HttpResponse, Problem> {
    let request_key = headers::request_key_of_path(key)?;
    let look_up =
        engine.cancel(caller, request_key).await.map_err(|error| about_operation(&error))?;
    let view = render_operation(engine, &look_up, log).await?;
    match look_up.operation.phase {
        // Requested, not done: the task that runs it has the last word.
        Phase::Leased => Ok(json(StatusCode::ACCEPTED, view)),
        Phase::Open | Phase::Completed { .. } | Phase::Refused { .. } | Phase::Abandoned { .. } => {
            Ok(json(StatusCode::OK, view))
        }
        // It has its result; what it waits for is its settlement.
        Phase::Recorded(ref usage) => Err(Problem {
            operation: Some(look_up.operation.id),
            charged: Some(usage.charge),
            ..Problem::new(Code::StorageUnavailable)
        }),
    }
}

/// The body that shows an operation. That of a large result is made beside what else runs, and keeps the
/// room of the result until it is written.
async fn render_operation(
    engine: &Engine,
    look_up: &OperationLookup,
    log: &mut RequestLog,
) -> Result<Bytes, Problem> {
    let operation = &look_up.operation;
    log.facts.operation = Some(operation.id);
    log.facts.phase = Some(operation.phase.label());
    let view = OperationView::of(operation, look_up.situation);
    let internal = || internal(operation.id);
    let result = match &look_up.result {
        ResultState::Kept(Private(body)) if is_large(body.len()) => {
            // Rendering takes milliseconds for megabytes: it would hold up every other task here.
            let room = body.clone();
            let rendered = engine.run_blocking(move || {
                let view = view.with_result(OperationResult::from_stored(&room)?);
                Ok(Bytes::from_owner(GuardedBytes { bytes: render(&view), held: room }))
            });
            let rendered: Result<_, NotJson> = rendered.await.ok_or_else(internal)?;
            return rendered.map_err(|error| render_error(operation.id, &error));
        }
        ResultState::Kept(Private(body)) => OperationResult::from_stored(body)
            .map_err(|error| render_error(operation.id, &error))?,
        ResultState::Expired => OperationResult::Expired,
        ResultState::Sealed => OperationResult::Sealed,
        ResultState::None => OperationResult::None,
    };
    Ok(render(&view.with_result(result)).into())
}

fn render_error(operation: OperationId, error: &NotJson) -> Problem {
    let error = ErrorChain(error);
    tracing::error!(operation.id = %operation, %error, "a kept result cannot be shown");
    internal(operation)
}

pub(crate) fn internal(operation: OperationId) -> Problem {
    Problem { operation: Some(operation), charged: None, ..Problem::new(Code::InternalError) }
}

/// `GET /v1/wallet`
pub(crate) async fn wallet(engine: &Engine, caller: &Caller) -> Result<HttpResponse, Problem> {
    let account = engine.account(caller).await.map_err(|error| problem(&error))?;
    let view = AccountView::of(&account.wallet, &caller.api_key, &account.standing);
    Ok(json(StatusCode::OK, render(&view)))
}

/// `GET /v1/models`
pub(crate) fn models(serving: &ServingConfig, caller: &Caller, now: Timestamp) -> HttpResponse {
    let models = serving.models(caller, now).map(|(model, price)| view(model, price)).collect();
    json(StatusCode::OK, render(&ModelListView::of(models)))
}

/// `GET /v1/models/{publisher}/{name}`
pub(crate) fn model(
    serving: &ServingConfig,
    caller: &Caller,
    now: Timestamp,
    id: &str,
) -> Result<HttpResponse, Problem> {
    let found = model_id(id, &serving.catalogue)
        .and_then(|id| serving.model(caller, &id, now).map(|(model, price)| view(model, price)));
    let view = found.ok_or_else(|| {
        let meant =
            serving.suggest_model(caller, &id.replacen("%2F", "/", 1).replacen("%2f", "/", 1), now);
        let message = model_not_found(meant.as_deref());
        Problem { message: message.into(), ..Problem::new(Code::ModelNotFound) }
    })?;
    Ok(json(StatusCode::OK, render(&view)))
}

/// Official clients write the slash of an id as `%2F`. No other character of an id needs an escape.
fn model_id(path: &str, catalogue: &Catalogue) -> Option<PublicModelId> {
    catalogue.id_of(&path.replacen("%2F", "/", 1).replacen("%2f", "/", 1))
}

fn view(model: &Model, price: &Price) -> ModelView {
    let prices = std::slice::from_ref(&price.version);
    ModelView::of(&model.contract, &model.aliases, price.effective_from, prices)
}

pub(crate) fn about_operation(error: &LookupError) -> Problem {
    match error {
        LookupError::NotFound => {
            Problem { message: NO_OPERATION.into(), ..Problem::new(Code::NotFound) }
        }
        LookupError::LedgerRestored { .. }
        | LookupError::Unreadable(..)
        | LookupError::TooManyResults
        | LookupError::Overloaded
        | LookupError::Unavailable(_) => problem(error),
    }
}

fn problem(error: &LookupError) -> Problem {
    match error {
        LookupError::NotFound => Problem::new(Code::NotFound),
        LookupError::LedgerRestored { until } => Problem::ledger_restored(Some(*until)),
        LookupError::Unreadable(operation, usage) => {
            Problem::unreadable(*operation, usage.as_deref())
        }
        LookupError::TooManyResults => Problem::too_many_results(),
        LookupError::Overloaded => Problem::new(Code::Overloaded),
        LookupError::Unavailable(cause) => unavailable(cause),
    }
}

/// The store does not answer: logged for the operator once, here.
pub(crate) fn unavailable(cause: &Unavailable) -> Problem {
    tracing::warn!(error = %ErrorChain(cause), "the store could not be read");
    Problem::new(Code::StorageUnavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slash_of_a_model_id_may_be_escaped() {
        let sim = PublicModelId::try_from("holdfast/sim-1").ok();
        for path in ["holdfast/sim-1", "holdfast%2Fsim-1", "holdfast%2fsim-1"] {
            assert_eq!(model_id(path, &Catalogue::default()), sim, "{path}");
        }
        for path in ["", "holdfast", "holdfast%2Fsim%2F1", "holdfast%2Fsim%2D1"] {
            assert_eq!(model_id(path, &Catalogue::default()), None, "{path}");
        }
    }
}
