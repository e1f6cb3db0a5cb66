//! `POST /v1/chat/completions`: reads the head in the order of `docs/api.md`, then asks the engine.

use std::sync::Arc;

use holdfast_engine::{Answered, Caller, Engine, Reply, Submission};
use holdfast_wire::error::Code;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;

use crate::current::Serving;
use crate::error::{Problem, Retry};
use crate::log::RequestLog;
use crate::reply::{
    Answer, IDEMPOTENT_REPLAYED, event_stream, flag, json, problem, status, with_error_headers,
};
use crate::{body, headers, limits};

/// Answers a completion request of an authenticated caller.
pub(crate) async fn complete(
    engine: &Arc<Engine>,
    serving: &Serving,
    caller: &Arc<Caller>,
    request: (&HeaderMap, Incoming),
    log: &mut RequestLog,
) -> Result<Answer, Problem> {
    let (Serving { options, offer }, (head, body)) = (serving, request);
    let request_key = headers::request_key(head)?;
    let in_hand =
        engine.take_in_hand(offer, caller).ok_or_else(|| Problem::new(Code::TooManyOperations))?;
    if !headers::is_json(head) {
        return Err(Problem::new(Code::UnsupportedMediaType));
    }
    let body_bytes = offer.catalogue.body_bytes_max().max(options.body_bytes);
    let body = body::read(body, body_bytes, options.body_time).await?;
    let submission = Submission {
        offer: Arc::clone(offer),
        caller: Arc::clone(caller),
        request_key,
        body,
        max_charge: headers::max_charge(head),
        patience: headers::patience(head, options.retry_wait),
        in_hand: Arc::new(in_hand),
    };
    let reply = engine.complete(submission).await;
    Ok(answer(reply, log))
}

fn answer(reply: Reply, log: &mut RequestLog) -> Answer {
    let Reply { outcome, replayed, rates, facts } = reply;
    log.facts = facts;
    log.replayed = replayed;
    let mut answer = match outcome {
        Ok(Answered::Completed(body)) => json(StatusCode::OK, body),
        Ok(Answered::Streamed(stream)) => event_stream(stream),
        Ok(Answered::Refused(refusal, body)) => {
            let code = Code::of(refusal);
            log.code = Some(code.label());
            with_error_headers(json(status(code), body), code, Retry::of(code))
        }
        Err(failure) => {
            let told = Problem::from(&failure);
            log.code = Some(told.code.label());
            problem(&told)
        }
    };
    limits::put(answer.headers_mut(), &rates);
    answer.headers_mut().insert(IDEMPOTENT_REPLAYED, flag(replayed));
    answer
}
