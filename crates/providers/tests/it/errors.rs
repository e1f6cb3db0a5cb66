//! What the tables that all kinds share make of an error, through a real socket: prompts that do not
//! fit, models that are not there, and pauses.

use std::time::Duration;

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{CallFailure, NotRunProof, UnknownReason};
use holdfast_providers::kinds::{
    Anthropic, AzureOpenAi, Bedrock, Gemini, HttpOptions, Kind, OpenAi, Region,
};
use holdfast_providers::{HttpProvider, LateSystem};
use holdfast_wire::chat::upstream::BoundField;

use crate::calls::{CallResult, call, request, run};
use crate::openai::server;
use crate::upstream::{ScriptedReply, Upstream, answer};

const ACCOUNT: CallFailure = CallFailure::NotRun(NotRunProof::Account);
const RATE_LIMITED: CallFailure = CallFailure::NotRun(NotRunProof::RateLimited);
const REQUEST: CallFailure = CallFailure::Refused(ProviderRefusal::Request);
const CONTEXT_LENGTH: CallFailure = CallFailure::Refused(ProviderRefusal::ContextLength);
const STATUS: CallFailure = CallFailure::Unknown(UnknownReason::Status);

fn kinds() -> [(&'static str, Kind); 5] {
    let dialect = || OpenAi::new(BoundField::MaxCompletionTokens);
    let region = Region::try_from("eu-central-1").unwrap();
    [
        ("openai", Kind::OpenAi(dialect())),
        ("azure-openai", Kind::AzureOpenAi(AzureOpenAi { dialect: dialect(), api_version: None })),
        (
            "anthropic",
            Kind::Anthropic(Anthropic { sampling: false, late_system: LateSystem::Fold }),
        ),
        ("gemini", Kind::Gemini(Gemini { skip_signatures: false, late_system: LateSystem::Fold })),
        ("bedrock", Kind::Bedrock(Bedrock { region, keys: None, late_system: LateSystem::Fold })),
    ]
}

/// Asks once, and is answered so.
async fn asked(kind: Kind, reply: String) -> CallResult {
    let upstream = Upstream::start(ScriptedReply::Send(reply)).await;
    let options = HttpOptions { server: server(&upstream.base_url()), kind };
    let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
    assert_eq!(upstream.arrived().len(), 1);
    ran
}

async fn check(kind: (&str, Kind), status: u16, body: &str, failure: CallFailure) {
    let (name, kind) = kind;
    let ran = asked(kind, answer(status, body)).await;
    assert_eq!(ran.outcome, Err(failure), "{name} {status} {body}");
}

/// The forms in which a text may be an error's.
fn forms(text: &str) -> Vec<String> {
    let quoted = serde_json::to_string(text).unwrap();
    let nested = serde_json::to_string(&format!(r#"{{"error":{{"message":{quoted}}}}}"#)).unwrap();
    vec![
        format!(r#"{{"error":{{"message":{quoted},"type":"invalid_request_error","code":null}}}}"#),
        format!(r#"[{{"error":{{"code":400,"message":{quoted},"status":"INVALID_ARGUMENT"}}}}]"#),
        format!(r#"{{"object":"error","message":{quoted},"type":"BadRequestError","code":400}}"#),
        format!(r#"{{"message":{quoted}}}"#),
        format!(r#"{{"error":{quoted}}}"#),
        format!(r#"{{"detail":{quoted}}}"#),
        format!(r#"{{"detail":[{{"loc":["body"],"msg":{quoted},"input":"x"}}]}}"#),
        format!(
            r#"{{"error":{{"message":"Provider returned error","metadata":{{"raw":{nested}}}}}}}"#
        ),
        format!(r#"{{"error":{{"message":{nested},"code":400}}}}"#),
        text.to_owned(),
    ]
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_recognised_by_its_text_in_every_form_and_kind() {
    let text =
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens";
    for body in forms(text) {
        for kind in kinds() {
            check(kind, 400, &body, CONTEXT_LENGTH).await;
        }
    }
    let [openai, ..] = kinds();
    check(openai, 400, &forms(&text.to_uppercase().replace(' ', "\n  "))[0], CONTEXT_LENGTH).await;
}

#[tokio::test]
async fn a_text_is_looked_at_only_where_the_status_is_definitive() {
    let body = &forms("prompt is too long: 9 tokens > 8 maximum")[0];
    for status in [400, 413] {
        for kind in kinds() {
            check(kind, status, body, CONTEXT_LENGTH).await;
        }
    }
    for (name, kind) in kinds() {
        let is_openai = matches!(name, "openai" | "azure-openai");
        check((name, kind), 422, body, if is_openai { CONTEXT_LENGTH } else { STATUS }).await;
    }
    for kind in kinds() {
        check(kind, 404, body, ACCOUNT).await;
    }
    for kind in kinds() {
        check(kind, 429, body, RATE_LIMITED).await;
    }
    for status in [408, 409, 424, 500, 502, 503, 504] {
        for kind in kinds() {
            check(kind, status, body, STATUS).await;
        }
    }
}

#[tokio::test]
async fn what_an_error_quotes_is_not_looked_at() {
    let text = "prompt is too long: 9 tokens > 8 maximum";
    for body in [
        format!(r#"{{"detail":[{{"msg":"Field required","input":"{text}"}}]}}"#),
        format!(r#"{{"error":{{"message":"no","failed_generation":"{text}","param":"{text}"}}}}"#),
        format!(r#"{{"error":{{"message":"Invalid value: '{text}'","code":"invalid_value"}}}}"#),
        format!(r#"{{"error":{{"message":"no"}},"messages":[{{"content":"{text}"}}]}}"#),
        format!("<html>{text}</html>"),
    ] {
        for kind in kinds() {
            check(kind, 400, &body, REQUEST).await;
        }
    }
}

#[tokio::test]
async fn a_model_that_is_not_there_is_the_operators_fault() {
    for text in ["Model Not Exist", "acme/large is not a valid model ID", "Invalid model: acme"] {
        let body = |name: &str| forms(text).swap_remove(if name == "bedrock" { 3 } else { 0 });
        for (name, kind) in kinds() {
            check((name, kind), 400, &body(name), ACCOUNT).await;
        }
        for (name, kind) in kinds() {
            let is_openai = matches!(name, "openai" | "azure-openai");
            check((name, kind), 422, &body(name), if is_openai { ACCOUNT } else { STATUS }).await;
        }
        for (name, kind) in kinds() {
            check((name, kind), 413, &body(name), REQUEST).await;
        }
        for status in [408, 424, 500, 502, 503] {
            for (name, kind) in kinds() {
                check((name, kind), status, &body(name), STATUS).await;
            }
        }
    }
}

#[tokio::test]
async fn names_of_models_that_are_not_there_prove_it_and_what_relays_say_does_not() {
    let openai = || kinds().into_iter().next().unwrap();
    for name in [
        "model_not_found",
        "model_not_supported",
        "invalid_model",
        "model_not_available",
        "unknown_model",
        "unavailable_model",
        "DeploymentNotFound",
        "OperationNotSupported",
        "model_decommissioned",
    ] {
        for member in ["code", "type"] {
            let body = format!(r#"{{"error":{{"message":"no","{member}":"{name}"}}}}"#);
            check(openai(), 400, &body, ACCOUNT).await;
            check(openai(), 413, &body, REQUEST).await;
        }
    }
    for body in [
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"Model Not Exist"}}}"#,
        r#"{"error":{"message":"The model said: Model Not Exist"}}"#,
        r#"{"error":{"message":"no","param":"model_not_found","code":"x_model_not_found"}}"#,
        r#"{"error":{"message":"no"},"code":"model_not_found"}"#,
    ] {
        check(openai(), 400, body, REQUEST).await;
    }
}

/// A 429 or another status with more headers.
fn with_headers(status: u16, headers: &str, body: &str) -> String {
    answer(status, body).replacen("x-request-id", &format!("{headers}x-request-id"), 1)
}

async fn check_pause(status: u16, headers: &str, body: &str, seconds: Option<u64>) {
    for (name, kind) in kinds() {
        let ran = asked(kind, with_headers(status, headers, body)).await;
        assert_eq!(ran.pause, seconds.map(Duration::from_secs), "{name} {status} {headers}");
        assert!(ran.outcome.is_err());
    }
}

const RETRY_INFO: &str = r#"{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED","details":[
    {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38s"}]}}"#;

#[tokio::test]
async fn a_pause_is_read_of_heads_and_bodies() {
    let limit = "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 6m0s\r\n";
    for status in [429, 503] {
        check_pause(status, "", RETRY_INFO, Some(38)).await;
        check_pause(status, "", &format!("[{RETRY_INFO}]"), Some(38)).await;
        check_pause(status, limit, "{}", Some(360)).await;
        check_pause(status, "retry-after: 20\r\n", RETRY_INFO, Some(20)).await;
        check_pause(status, "retry-after: 0\r\n", RETRY_INFO, Some(38)).await;
        check_pause(status, "retry-after-ms: 5000\r\n", "{}", Some(5)).await;
        check_pause(status, "retry-after: -1\r\n", "{}", None).await;
        check_pause(status, &limit.replace(": 0", ": 7"), "{}", None).await;
    }
}

#[tokio::test]
async fn no_other_status_asks_for_a_pause() {
    let headers = "retry-after: 20\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 30\r\n";
    for status in [400, 401, 404, 408, 413, 422, 500, 502, 504, 529] {
        check_pause(status, headers, RETRY_INFO, None).await;
    }
}
