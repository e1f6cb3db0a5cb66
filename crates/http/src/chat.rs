//! `POST /v1/chat/completions`: reads the head in the order of `docs/api.md`, then asks the engine.

use std::sync::Arc;

use holdfast_engine::{Answered, Caller, Engine, Reply, Submission};
use holdfast_wire::error::Code;
use http::{HeaderMap, StatusCode};

use crate::body::{Limits, Upload};
use crate::current::Serving;
use crate::error::{Problem, Retry};
use crate::log::RequestLog;
use crate::reply::{
    Answer, IDEMPOTENT_REPLAYED, event_stream, flag, holding, json, problem, status,
    with_error_headers,
};
use crate::{headers, limits};

/// Answers a completion request of an authenticated caller.
pub(crate) async fn complete(
    engine: &Arc<Engine>,
    serving: &Serving,
    caller: &Arc<Caller>,
    request: (&HeaderMap, Upload),
    log: &mut RequestLog,
) -> Result<Answer, Problem> {
    let (Serving { options, offer, .. }, (head, body)) = (serving, request);
    let request_key = headers::request_key(head)?;
    let in_hand =
        engine.take_in_hand(offer, caller).ok_or_else(|| Problem::new(Code::TooManyOperations))?;
    if !headers::is_json(head) {
        return Err(Problem::new(Code::UnsupportedMediaType));
    }
    let bytes_max = match options.body_bytes {
        usual if body.is_at_most(usual) => usual,
        usual => offer.body_bytes_max(caller).max(usual),
    };
    let (in_memory, time) = (options.body_bytes_in_memory, options.body_time);
    let body = body.read(Limits { bytes_max, in_memory, time }).await?;
    let in_hand = Arc::new(in_hand);
    let submission = Submission {
        offer: Arc::clone(offer),
        caller: Arc::clone(caller),
        request_key,
        body,
        max_charge: headers::max_charge(head),
        patience: headers::patience(head, options.retry_wait),
        in_hand: Arc::clone(&in_hand),
    };
    let reply = engine.complete(submission).await;
    Ok(holding(answer(reply, log), in_hand))
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
            log.failed(&told);
            problem(&told)
        }
    };
    limits::put(answer.headers_mut(), &rates);
    answer.headers_mut().insert(IDEMPOTENT_REPLAYED, flag(replayed));
    answer
}
