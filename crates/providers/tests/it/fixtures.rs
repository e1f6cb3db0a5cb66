//! Every folder of `fixtures/<kind>/<case>` over a real socket: what a caller asks for (`request.json`),
//! what the provider is sent for it (`upstream.json`), what it answers (`answer.json`), and what the
//! caller gets (`reply.json`): a completion, or the failure's name, or the field that is refused before
//! anything is sent. `options.json` is what the operator set, `states.json` what came with earlier calls,
//! by their ids, and `kept.json` what comes with those of this answer. Where the answer is `answer.sse`, or
//! `answer.frames` with a name and a payload in each line, it was asked for as a stream; cut after any of
//! its events, it is no other answer. A new case needs no code.
//!
//! Answers are full of marks (`mark-of-…`), in ids, names, texts of errors and the provider's own
//! fields; none may be in what the caller gets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_domain::answer::Answer;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{Call, CallFailure, Provider, ResponseMode};
use holdfast_domain::price::{PriceVersion, PriceVersionId, UnitPrices};
use holdfast_domain::state::{Origin, ProviderState, ProviderStates};
use holdfast_domain::usage::{
    MeterKind, MeterReading, Meters, MetersSource, UsageCeiling, UsageReasons,
};
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_providers::kinds::{
    Anthropic, ApiVersion, AzureOpenAi, Bedrock, Gemini, HttpOptions, Kind, OpenAi, Region,
};
use holdfast_providers::{HttpProvider, LateSystem, ServerOptions, UpstreamKey};
use holdfast_wire::chat::completion::{CompletionView, render};
use holdfast_wire::chat::request::parse;
use holdfast_wire::chat::upstream::BoundField;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::{CallResult, call, run};
use crate::frames::frame;
use crate::openai::server;
use crate::upstream::{ScriptedReply, Upstream, answer, frames};

/// Fewer are no coverage of a kind.
const CASES_MIN: usize = 15;

type Make = fn(&Value) -> Kind;

#[tokio::test]
async fn anthropic() {
    check_kind("anthropic", |options| {
        let sampling = options["sampling"] == true;
        Kind::Anthropic(Anthropic { sampling, late_system: late_system(options) })
    })
    .await;
}

#[tokio::test]
async fn gemini() {
    check_kind("gemini", |options| {
        let skip_signatures = options["skip_signatures"] == true;
        Kind::Gemini(Gemini { skip_signatures, late_system: late_system(options) })
    })
    .await;
}

#[tokio::test]
async fn openai() {
    check_kind("openai", |options| Kind::OpenAi(dialect(options))).await;
}

#[tokio::test]
async fn azure_openai() {
    check_kind("azure-openai", |options| {
        let api_version = options["api_version"].as_str();
        let api_version = api_version.map(|version| ApiVersion::try_from(version).unwrap());
        Kind::AzureOpenAi(AzureOpenAi { dialect: dialect(options), api_version })
    })
    .await;
}

#[tokio::test]
async fn bedrock() {
    check_kind("bedrock", |options| {
        let region = Region::try_from("eu-central-1").unwrap();
        Kind::Bedrock(Bedrock { region, keys: None, late_system: late_system(options) })
    })
    .await;
}

fn late_system(options: &Value) -> LateSystem {
    if options["late_system"] == "refuse" { LateSystem::Refuse } else { LateSystem::Fold }
}

fn dialect(options: &Value) -> OpenAi {
    let bound_field = match options["output_bound_field"].as_str() {
        Some("max_tokens") => BoundField::MaxTokens,
        _ => BoundField::MaxCompletionTokens,
    };
    OpenAi::new(bound_field)
}

async fn check_kind(kind: &str, make: Make) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(kind);
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.collect();
    cases.sort();
    assert!(cases.len() >= CASES_MIN, "{kind} has {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        if let Err(difference) = check_case(&case, make).await {
            wrong.push(format!("{}: {difference}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Says how a case differs.
async fn check_case(case: &Path, make: Make) -> Result<(), String> {
    let request = parse(&fs::read(case.join("request.json")).unwrap()).unwrap().request;
    let pieces = pieces(case);
    let answered = match &pieces {
        None => ScriptedReply::Send(answered(case)),
        Some(pieces) => ScriptedReply::Bytes(frames(pieces, true)),
    };
    let upstream = Upstream::start(answered).await;
    let options = read(case, "options").unwrap_or_default();
    let asked_of = provider(&upstream, make(&options));
    let expected = read(case, "reply");
    if let Err(unsupported) = asked_of.check_supported(&request) {
        let told = json!({"unsupported": unsupported.param});
        return compare("what is refused", Some(told), expected);
    }
    let bound = request.max_output_tokens.unwrap_or(1_000);
    let model = "upstream-model".into();
    let arrival = if pieces.is_none() { ResponseMode::Whole } else { ResponseMode::Streamed };
    let states = states_of(read(case, "states"));
    let asked =
        Call { model, max_output_tokens: bound, response_mode: arrival, states, ..call(request) };
    let ran = run(&asked_of, &asked).await;
    let arrived = upstream.arrived();
    assert_eq!(arrived.len(), 1, "{}", case.display());
    let sent = serde_json::from_str(&arrived[0].body).unwrap();
    compare("what is sent", Some(sent), read(case, "upstream"))?;
    let (choices, is_answered) = (ran.answer.clone(), ran.outcome.is_ok());
    let kept = read(case, "kept").unwrap_or_else(|| json!({}));
    compare("what is kept", Some(kept_of(&ran.answer)), Some(kept))?;
    let told = reply(&asked, ran);
    assert!(!told.to_string().contains("mark-of"), "{}: {told}", case.display());
    compare("what is told", Some(told), expected)?;
    let pieces = pieces.filter(|_pieces| is_answered).unwrap_or_default();
    for length in 0..pieces.len() {
        let upstream =
            Upstream::start(ScriptedReply::Bytes(frames(&pieces[..length], false))).await;
        let cut = run(&provider(&upstream, make(&options)), &asked).await;
        match cut.outcome {
            // What is missing is at most the usage.
            Ok(_) => assert_eq!(cut.answer, choices, "{} cut at {length}", case.display()),
            Err(CallFailure::Unknown(_)) => {}
            Err(failure) => panic!("{} cut at {length}: {failure}", case.display()),
        }
    }
    Ok(())
}

fn states_of(states: Option<Value>) -> ProviderStates {
    let states = states.iter().filter_map(Value::as_object).flatten();
    let state = |text: &Value| ProviderState::new(text.as_str().unwrap()).unwrap();
    states.map(|(id, text)| (id.clone(), state(text))).collect()
}

/// By the ids that callers get.
fn kept_of(answer: &Answer) -> Value {
    let kept = answer.call_states(Origin::of("shape", "provider", "model"));
    let states = kept.into_iter().flat_map(|kept| kept.states);
    states.map(|(at, state)| (operation().tool_call_id(at), json!(state.as_str()))).collect()
}

fn operation() -> OperationId {
    "00000000-0000-4000-8000-000000000001".parse().unwrap()
}

/// The events of an answer that streams.
fn pieces(case: &Path) -> Option<Vec<Vec<u8>>> {
    if let Ok(text) = fs::read_to_string(case.join("answer.sse")) {
        return Some(text.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect());
    }
    let text = fs::read_to_string(case.join("answer.frames")).ok()?;
    Some(text.lines().map(|line| line.split_once(' ').unwrap()).map(frame).collect())
}

fn provider(upstream: &Upstream, kind: Kind) -> HttpProvider {
    let api_key = Some(UpstreamKey::try_from("sk-mark-of-key").unwrap());
    let server = ServerOptions { api_key, ..server(&upstream.base_url()) };
    HttpProvider::new(HttpOptions { server, kind }).unwrap()
}

fn compare(what: &str, found: Option<Value>, expected: Option<Value>) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let show = |value: Option<Value>| value.unwrap_or_default().to_string();
    Err(format!("{what} is\n  {}\nand should be\n  {}", show(found), show(expected)))
}

/// The provider's answer, its body as it is spelled in the file.
fn answered(case: &Path) -> String {
    let Ok(text) = fs::read_to_string(case.join("answer.json")) else { return answer(200, "{}") };
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&text).unwrap();
    let answer = answer(members["status"].get().parse().unwrap(), members["body"].get());
    // AWS names an error in a header.
    let Some(kind) = members.get("kind") else { return answer };
    let kind: String = serde_json::from_str(kind.get()).unwrap();
    answer.replacen("x-request-id", &format!("x-amzn-errortype: {kind}\r\nx-request-id"), 1)
}

fn read(case: &Path, file: &str) -> Option<Value> {
    let file = case.join(file).with_extension("json");
    let text = fs::read_to_string(&file).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

/// What the caller gets, as the gateway makes it.
fn reply(call: &Call, ran: CallResult) -> Value {
    let reported = match ran.outcome {
        Ok(reported) => reported,
        Err(failure) => {
            let is_whole = call.response_mode == ResponseMode::Whole;
            assert!(!is_whole || ran.answer.is_empty(), "a failure that says something");
            return json!({"failure": label(failure)});
        }
    };
    let mut answer = ran.answer;
    assert!(answer.is_complete(call.request.n));
    answer.retain_requested(&call.request);
    let price = price(&call.request.model);
    let ceiling = UsageCeiling { context_tokens: 1_000_000, output_tokens: 1_000_000 };
    let usage = reported
        .and_then(|report| report.resolve(&ceiling, |meters| price.tariff.cost(meters)).ok());
    let meters = usage.map(|usage| usage.meters).unwrap_or_default();
    let mut body = completion(call, &answer, meters, &price);
    if usage.is_none() {
        body["usage"] = Value::Null;
    }
    body
}

fn label(failure: CallFailure) -> &'static str {
    match failure {
        CallFailure::Refused(ProviderRefusal::Request) => "refused_request",
        CallFailure::Refused(ProviderRefusal::ContextLength) => "refused_context_length",
        CallFailure::NotRun(_) | CallFailure::Unknown(_) => failure.label(),
    }
}

/// Each kind has a price of its own, so that a count in the wrong place shows in the charge.
fn price(model: &PublicModelId) -> PriceVersion {
    let usd = "USD".parse().unwrap();
    let rates = UnitPrices::from_fn(|kind| match kind {
        MeterKind::Input => 2_000_000,
        MeterKind::CachedInput => 1_000_000,
        MeterKind::CacheWrite => 3_000_000,
        MeterKind::AudioInput => 4_000_000,
        MeterKind::Output => 5_000_000,
        MeterKind::Reasoning => 7_000_000,
        MeterKind::AudioOutput => 8_000_000,
        MeterKind::Request | MeterKind::Image => 0,
    });
    let id = PriceVersionId::new(model, usd, "2026-01-01T00:00:00Z");
    PriceVersion { id, currency: usd, tariff: rates.unwrap().into() }
}

fn completion(call: &Call, answer: &Answer, meters: Meters, price: &PriceVersion) -> Value {
    let model = &call.request.model;
    let source = MetersSource::Reported;
    let metered = MeterReading { meters, source, reasons: UsageReasons::NONE, provider_cost: None };
    let usage = UsageRecord::of(metered, price, Micros::MAX);
    let created = Timestamp::from_micros(1_767_225_600_000_000);
    let body = render(&CompletionView {
        id: operation(),
        created,
        model: model.as_str(),
        answer,
        usage: &usage,
    });
    serde_json::from_slice(&body).unwrap()
}
