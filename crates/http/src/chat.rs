//! `POST /v1/chat/completions` and `POST /v1/quotes`: checks the head in the order of `docs/reference/http-api.md`, then
//! submits to the engine. The order decides which of two errors a caller sees first, so it is contract.
//!
//! ```text
//! Idempotency-Key ─ place of the API key ─ content type ─ body ─▶ engine ─▶ whole or stream
//! ```
//!
//! The engine alone binds a key and understands a body: a refusal of this file leaves the key free. A quote has the
//! same way from the place of the API key on, and no key.

use std::sync::Arc;

use holdfast_domain::private::Private;
use holdfast_engine::{
    Caller, Engine, InFlight, MemoryReservation, Quote, QuoteRequest, Reply, ReplyBody,
    ServingConfig, Submission,
};
use holdfast_wire::api::{QuoteView, render};
use holdfast_wire::error::Code;
use http::{HeaderMap, StatusCode};

use crate::body::{BodyLimits, ReadBody, Upload};
use crate::log::RequestLog;
use crate::problem::{Problem, RetryAdvice};
use crate::reply::{
    HttpResponse, IDEMPOTENT_REPLAYED, event_stream, flag, json, problem, status,
    with_error_headers, with_guard,
};
use crate::{Options, headers, limits};

/// A completion request with all that it is served by.
pub(crate) struct CompletionRequest<'a> {
    pub(crate) options: Options,
    pub(crate) serving: Arc<ServingConfig>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) head: &'a HeaderMap,
    pub(crate) body: Upload,
}

/// Answers a completion request of an authenticated caller. The future may be dropped at any await: before the
/// submission no key is bound, and after it the engine owns the run.
pub(crate) async fn complete(
    engine: &Arc<Engine>,
    request: CompletionRequest<'_>,
    log: &mut RequestLog,
) -> Result<HttpResponse, Problem> {
    let CompletionRequest { options, serving, caller, head, body } = request;
    let request_key = headers::request_key(head)?;
    let mode = headers::run_mode(head)?;
    // Entered before the body is read: a key over its limit must not fill memory with bodies.
    let in_flight = enter(engine, &serving, &caller)?;
    let ReadBody { bytes, reservation } =
        read_body(body, head, &options, (&serving, &caller)).await?;
    let submission = Submission {
        serving,
        caller,
        request_key,
        mode,
        body: Private(bytes),
        memory: reservation.map(|it| -> MemoryReservation { it }),
        // Not unwrapped here: a malformed limit refuses a new run, and no replay of an old one.
        max_charge: headers::max_charge(head),
        retry_wait: headers::retry_wait(head, options.retry_wait),
        in_flight: Arc::clone(&in_flight),
        trace: log.trace.as_ref().map(|(trace, _method)| Arc::clone(trace)),
    };
    let reply = engine.complete(submission).await;
    Ok(with_guard(answer(reply, log), in_flight))
}

/// Answers with the hold and the price lines of a body; no run is started.
pub(crate) async fn quote(
    engine: &Engine,
    request: CompletionRequest<'_>,
    log: &mut RequestLog,
) -> Result<HttpResponse, Problem> {
    let CompletionRequest { options, serving, caller, head, body } = request;
    let in_flight = enter(engine, &serving, &caller)?;
    // The reservation of a large body goes with its last bytes: a quote holds no memory.
    let ReadBody { bytes: body, .. } = read_body(body, head, &options, (&serving, &caller)).await?;
    let max_charge = headers::max_charge(head);
    let offered = Arc::clone(&serving);
    let request = QuoteRequest { serving, caller, body: Private(body.clone()), max_charge };
    let quoted = engine.quote(request).await.map_err(|failure| {
        log.facts.model = offered.model_in(&body);
        Problem::from(&failure)
    });
    let Quote { model, contract, price, hold, lines } = quoted?;
    let view = QuoteView::of((&model, contract), &price, hold, &lines);
    log.facts.model = Some(model);
    Ok(with_guard(json(StatusCode::OK, render(&view)), in_flight))
}

/// A place among the requests of an API key.
pub(crate) fn enter(
    engine: &Engine,
    serving: &ServingConfig,
    caller: &Caller,
) -> Result<Arc<InFlight>, Problem> {
    let place = engine.enter(serving, caller);
    place.map(Arc::new).ok_or_else(|| Problem::new(Code::TooManyOperations))
}

async fn read_body(
    body: Upload,
    head: &HeaderMap,
    options: &Options,
    (serving, caller): (&ServingConfig, &Caller),
) -> Result<ReadBody, Problem> {
    if !headers::is_json(head) {
        return Err(Problem::new(Code::UnsupportedMediaType));
    }
    // The model is unknown until the body is read, so a larger body is allowed up to the largest
    // that any of the caller's models takes; the engine judges again by the model.
    let bytes_max = match options.body_bytes {
        usual if body.is_at_most(usual) => usual,
        usual => serving.body_bytes_max(caller).max(usual),
    };
    let (in_memory, time) = (options.body_bytes_in_memory, options.body_time);
    let api_key = caller.api_key.id;
    body.read(BodyLimits { api_key, bytes_max, in_memory, time }).await
}

fn answer(reply: Reply, log: &mut RequestLog) -> HttpResponse {
    let Reply { outcome, replayed, rates, facts } = reply;
    log.facts = facts;
    log.replayed = replayed;
    let mut answer = match outcome {
        Ok(ReplyBody::Completed(Private(body))) => json(StatusCode::OK, body),
        Ok(ReplyBody::Streamed(stream)) => event_stream(stream),
        Ok(ReplyBody::Refused(refusal, Private(body))) => {
            let code = Code::of(refusal);
            log.code = Some(code.label());
            with_error_headers(json(status(code), body), code, RetryAdvice::of(code))
        }
        Err(failure) => {
            let error = Problem::from(&failure);
            log.set_error(&error);
            problem(&error)
        }
    };
    limits::put(answer.headers_mut(), &rates);
    answer.headers_mut().insert(IDEMPOTENT_REPLAYED, flag(replayed));
    answer
}
