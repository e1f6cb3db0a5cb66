//! List of every endpoint of the public API: parameters, answers, and the errors that it can give.
//!
//! Errors come in three layers, so that an endpoint lists only its own:
//!
//! 1. [`ALWAYS`], of any request, whoever sends it;
//! 2. [`SECURED`], of any request with an API key;
//! 3. the endpoint's own.

use serde_json::{Value, json};

use super::endpoint::{Endpoint, EndpointResponse, RATES, in_header, in_path, in_query};
use super::shape::{array, described, integer, open as open_object, string, words};
use crate::error::Code;

const KEY_PATTERN: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";
/// A date, or the beginning of an hour; offsets of time zones are read as well.
const HOUR_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:00:00Z)?$";
/// Errors of every request, whoever sends it.
const ALWAYS: [Code; 3] = [Code::InvalidValue, Code::MethodNotAllowed, Code::Overloaded];
/// Errors of every request with an API key.
const SECURED: [Code; 4] =
    [Code::InvalidApiKey, Code::HeadersTooLarge, Code::InternalError, Code::StorageUnavailable];

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        complete(),
        quote(),
        operation(),
        cancel(),
        wallet(),
        usage(),
        completions_usage(),
        costs(),
        models(),
        model(),
        health(),
        ready(),
        document(),
        page(),
    ]
}

fn errors(secured: bool, more: &[Code]) -> Vec<Code> {
    let secured: &[Code] = if secured { &SECURED } else { &[] };
    ALWAYS.iter().chain(secured).chain(more).copied().collect()
}

fn request_key() -> Value {
    json!({"type": "string", "pattern": KEY_PATTERN})
}

/// A `GET` that wants an API key and nothing else.
fn look(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: EndpointResponse,
) -> Endpoint {
    Endpoint {
        path,
        method: "get",
        id,
        summary,
        text: "",
        is_secured: true,
        parameters: Vec::new(),
        body: None,
        answers: vec![answer],
        errors: errors(true, &[]),
        is_keyed: false,
    }
}

/// A `GET` for everybody.
fn open(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: EndpointResponse,
) -> Endpoint {
    Endpoint { is_secured: false, errors: errors(false, &[]), ..look(path, id, summary, answer) }
}

fn max_charge() -> Value {
    in_header(
        "Holdfast-Max-Charge-Micros",
        false,
        integer(0, i64::MAX),
        "The most that may be held, in millionths of the wallet's currency. A retry that does not run \
         ignores it.",
    )
}

/// Errors of a body and of what admission refuses.
const QUOTE: [Code; 12] = [
    Code::InvalidJson,
    Code::UnknownParameter,
    Code::UnsupportedParameter,
    Code::ChargeLimitExceeded,
    Code::ApiKeySuspended,
    Code::WalletSuspended,
    Code::ModelNotAllowed,
    Code::ModelNotFound,
    Code::RequestTimeout,
    Code::RequestTooLarge,
    Code::UnsupportedMediaType,
    Code::TooManyOperations,
];

fn quote() -> Endpoint {
    let quoted = EndpointResponse {
        example: Some(super::example::quote()),
        ..EndpointResponse::json("The price.", "Quote")
    };
    Endpoint {
        method: "post",
        text: "The body is checked as a completion's would be, with the same refusals. Nothing runs, nothing is \
               held, and no `Idempotency-Key` is wanted. Funds and limits are judged when it runs.",
        parameters: vec![max_charge()],
        body: Some(("ChatCompletionRequest", super::example::request())),
        errors: errors(true, &QUOTE),
        ..look("/v1/quotes", "createQuote", "Prices a body before it runs", quoted)
    }
}

fn complete() -> Endpoint {
    let key = in_header(
        "Idempotency-Key",
        true,
        request_key(),
        "A new UUIDv4 for every request body, and the same one for every retry of that body. Exactly \
         once: 36 characters, lower-case hexadecimal digits and hyphens; one pair of double quotes \
         around them is taken off.",
    );
    let replay_only = in_header(
        "Holdfast-Replay-Only",
        false,
        words(&["true"]),
        "Answers as a retry would and never runs: 404 `not_found` where the key holds no answer.",
    );
    // A completion passes every step, so a new code is listed without being named here.
    let is_more = |code: &Code| !ALWAYS.contains(code) && !SECURED.contains(code);
    let more: Vec<Code> = Code::ALL.into_iter().filter(is_more).collect();
    let headers = ["idempotent-replayed", "cache-control", "x-accel-buffering"];
    let completed = EndpointResponse {
        headers: [&headers[..], &RATES[..]].concat(),
        example: Some(super::example::completion()),
        event: Some(event()),
        ..EndpointResponse::json("The answer. A retry gets the same bytes.", "ChatCompletion")
    };
    Endpoint {
        path: "/v1/chat/completions",
        method: "post",
        id: "createChatCompletion",
        summary: "Runs a model once for a key, and answers every retry of it",
        text: "The key is bound when the funds are held; what is refused before that binds nothing. A \
               bound key gets its operation's answer whatever else changes: the model is not called \
               again, and the wallet pays once.",
        is_secured: true,
        parameters: vec![key, max_charge(), replay_only],
        body: Some(("ChatCompletionRequest", super::example::request())),
        answers: vec![completed],
        errors: errors(true, &more),
        is_keyed: true,
    }
}

/// Schema of an event in a streamed answer: a chunk, an error, or `[DONE]`.
fn event() -> Value {
    let data = "One of OpenAI's chunks as JSON; at the end `[DONE]`, or an object with an `error` where the \
                stream breaks.";
    described(
        open_object(json!({"data": described(string(), data)}), &["data"]),
        "Where `stream` is true, each of its events. How the answer ends is told only when it is paid for.",
    )
}

fn operation() -> Endpoint {
    let key = in_path("idempotency-key", request_key(), "The key of a request of this API key.");
    Endpoint {
        parameters: vec![key],
        text: "Resolves what a dead process left behind, as a retry would. Never runs anything.",
        errors: errors(true, &[Code::IdempotencyKeyMalformed, Code::NotFound]),
        ..look(
            "/v1/operations/{idempotency-key}",
            "getOperation",
            "Shows what became of a request",
            EndpointResponse {
                example: Some(super::example::operation()),
                ..EndpointResponse::json("The operation.", "Operation")
            },
        )
    }
}

fn cancel() -> Endpoint {
    let asked = EndpointResponse {
        status: 202,
        ..EndpointResponse::json(
            "Its owner is asked to end it. The operation as it stands.",
            "Operation",
        )
    };
    let ended = EndpointResponse {
        example: Some(super::example::operation()),
        ..EndpointResponse::json("Nothing of it runs. The operation.", "Operation")
    };
    Endpoint {
        path: "/v1/operations/{idempotency-key}/cancel",
        method: "post",
        id: "cancelOperation",
        summary: "Ends a request that runs",
        text: "What has arrived of the answer is completed and charged; without any the operation is \
               given up and not charged, and its key never runs again. Asking again changes nothing.",
        answers: vec![ended, asked],
        ..operation()
    }
}

fn wallet() -> Endpoint {
    let example = Some(super::example::wallet());
    let answer = EndpointResponse { example, ..EndpointResponse::json("The wallet.", "Wallet") };
    look(
        "/v1/wallet",
        "getWallet",
        "Shows the wallet that the API key spends from, and the API key's own limits",
        answer,
    )
}

/// Errors of a query, and of a key that has too many requests at once.
const QUERY: [Code; 2] = [Code::UnknownParameter, Code::TooManyOperations];

fn usage() -> Endpoint {
    let moment = json!({"type": "string", "pattern": HOUR_PATTERN});
    let hour = |name, text| in_query(name, false, moment.clone(), text);
    let by = words(&["hour", "day", "month", "hour,model", "day,model", "month,model"]);
    let from = "A date (its first moment, UTC), or the beginning of an hour in RFC 3339; unless it is \
                sent, the beginning of this month. 31 days are told by the hour, 366 by the day, \
                3660 by the month.";
    Endpoint {
        parameters: vec![
            in_query("by", false, by, "What a row is; days unless it is sent."),
            hour("from", from),
            hour("to", "The same, not included; unless it is sent, the end of this hour."),
        ],
        errors: errors(true, &QUERY),
        ..look(
            "/v1/usage",
            "getUsage",
            "Sums what the API key used and was charged, by the moment at which it finished",
            EndpointResponse::json("The sums.", "UsageReport"),
        )
    }
}

fn completions_usage() -> Endpoint {
    let mut parameters = bucket_parameters(&["model", "api_key_id"], 31);
    let models = array(string(), 0, None);
    parameters.push(in_query("models", false, models, "The only models that are summed."));
    Endpoint {
        parameters,
        errors: errors(true, &QUERY),
        ..look(
            "/v1/organization/usage/completions",
            "getCompletionsUsage",
            "The API key's usage in OpenAI's shape",
            EndpointResponse::json("A page of buckets.", "CompletionsUsagePage"),
        )
    }
}

fn costs() -> Endpoint {
    Endpoint {
        parameters: bucket_parameters(&["line_item", "api_key_id"], 180),
        errors: errors(true, &QUERY),
        ..look(
            "/v1/organization/costs",
            "getCosts",
            "The API key's charges less refunds in OpenAI's shape; a line item is a model",
            EndpointResponse::json("A page of buckets.", "CostsPage"),
        )
    }
}

/// Parameters of OpenAI's that both endpoints take.
fn bucket_parameters(groups: &[&str], days_max: i64) -> Vec<Value> {
    const SECONDS_MAX: i64 = 253_402_300_799;
    let seconds = || integer(0, SECONDS_MAX);
    let start = "Unix seconds: the bucket of this moment is the first.";
    let end =
        "Unix seconds, not included: the bucket before it is the last; now unless it is sent.";
    let limit = format!(
        "Buckets on a page: 7 unless it is sent, 24 of hours; {days_max} at most, 168 of hours."
    );
    let page = json!({"type": "string", "pattern": "^page_[0-9]+$"});
    vec![
        in_query("start_time", true, seconds(), start),
        in_query("end_time", false, seconds(), end),
        in_query("bucket_width", false, words(&["1d", "1h"]), "A day unless it is sent, in UTC."),
        in_query(
            "group_by",
            false,
            array(words(groups), 0, None),
            "What results are told apart by.",
        ),
        in_query("limit", false, integer(1, days_max.max(168)), &limit),
        in_query("page", false, page, "The `next_page` of the page before."),
        in_query(
            "api_key_ids",
            false,
            array(string(), 0, None),
            "API keys that are summed; of others than the one that asks nothing is told.",
        ),
    ]
}

fn models() -> Endpoint {
    let answer = EndpointResponse::json("The models.", "ModelList");
    look(
        "/v1/models",
        "listModels",
        "Lists the models that the API key may use and can pay for",
        answer,
    )
}

fn model() -> Endpoint {
    let publisher =
        json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$", "maxLength": 126});
    let name =
        json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]*$", "maxLength": 126});
    Endpoint {
        parameters: vec![
            in_path("publisher", publisher, "What stands before the slash of a model's id."),
            in_path("name", name, "What stands behind it."),
        ],
        errors: errors(true, &[Code::ModelNotFound]),
        ..look(
            "/v1/models/{publisher}/{name}",
            "getModel",
            "Shows one model",
            EndpointResponse::json("The model.", "Model"),
        )
    }
}

fn health() -> Endpoint {
    open(
        "/healthz",
        "getHealth",
        "Says that the process lives",
        EndpointResponse::json("It lives.", "Health"),
    )
}

fn ready() -> Endpoint {
    let ready = EndpointResponse::json("It takes requests.", "Readiness");
    let not_ready = EndpointResponse {
        status: 503,
        text: "It is about to end, the database does not answer or has lost what it had committed, or there are too many connections.",
        ..EndpointResponse::json("", "Readiness")
    };
    let endpoint =
        open("/readyz", "getReadiness", "Says whether the process takes requests", ready);
    Endpoint { answers: endpoint.answers.into_iter().chain([not_ready]).collect(), ..endpoint }
}

fn document() -> Endpoint {
    let answer = EndpointResponse {
        schema: json!({"type": "object"}),
        ..EndpointResponse::json("OpenAPI 3.1.", "")
    };
    let endpoint = open("/openapi.json", "getOpenApi", "This document", answer);
    Endpoint { errors: errors(false, &[Code::HeadersTooLarge]), ..endpoint }
}

fn page() -> Endpoint {
    let answer = EndpointResponse {
        media: "text/html; charset=utf-8",
        headers: vec!["content-security-policy", "x-content-type-options", "referrer-policy"],
        schema: json!({"type": "string"}),
        ..EndpointResponse::json("A page that needs nothing from elsewhere.", "")
    };
    let endpoint = open("/docs", "getDocs", "This document, to be read", answer);
    Endpoint { errors: errors(false, &[Code::HeadersTooLarge]), ..endpoint }
}
