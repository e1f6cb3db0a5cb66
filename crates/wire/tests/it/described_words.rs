//! Lists of the API's description, whose file repeats them: words of the types that read and render
//! them, and the errors of each endpoint.

use std::collections::BTreeSet;

use holdfast_domain::limits::SpendWindow;
use holdfast_domain::request::{
    AudioFormat, BreakpointTtl, CacheMode, CacheRetention, CacheTtl, ImageDetail, ReasoningEffort,
    RecordingFormat, ServiceTier, ToolMode, Verbosity,
};
use holdfast_domain::usage::{MeterKind, MetersSource};
use holdfast_wire::error::Code;
use holdfast_wire::openapi;
use serde_json::{Value, json};

const FILE: &str = include_str!("../../src/openapi/openapi.json");

#[track_caller]
fn check_words<'a>(place: &str, words: impl IntoIterator<Item = &'a str>) {
    let document: Value = serde_json::from_str(FILE).unwrap();
    let words: Vec<&str> = words.into_iter().collect();
    assert_eq!(document["components"]["schemas"].pointer(place), Some(&json!(words)), "{place}");
}

fn labels<T: Copy>(all: &[T], label: fn(T) -> &'static str) -> impl Iterator<Item = &'static str> {
    all.iter().map(move |one| label(*one))
}

#[test]
fn words_of_a_request_are_those_of_its_types() {
    let check = |member: &str, words: Vec<&'static str>| {
        check_words(&format!("/ChatCompletionRequest/properties/{member}/enum"), words);
    };
    let formats = labels(AudioFormat::ALL, AudioFormat::label).collect();
    check("audio/anyOf/0/properties/format", formats);
    check(
        "reasoning_effort/anyOf/0",
        labels(ReasoningEffort::ALL, ReasoningEffort::label).collect(),
    );
    check("verbosity/anyOf/0", labels(Verbosity::ALL, Verbosity::label).collect());
    let cache = "prompt_cache_options/anyOf/0/properties";
    check(&format!("{cache}/mode/anyOf/0"), labels(CacheMode::ALL, CacheMode::label).collect());
    check(&format!("{cache}/ttl/anyOf/0"), labels(CacheTtl::ALL, CacheTtl::label).collect());
    check("service_tier/anyOf/0", labels(ServiceTier::ALL, ServiceTier::label).collect());
    let retention = labels(CacheRetention::ALL, CacheRetention::label).collect();
    check("prompt_cache_retention/anyOf/0", retention);
    let ttl = "/CacheBreakpoint/properties/ttl/anyOf/0/enum";
    check_words(ttl, labels(BreakpointTtl::ALL, BreakpointTtl::label));
    let details = ["auto"].into_iter().chain(labels(ImageDetail::ALL, ImageDetail::label));
    check_words("/ImagePart/properties/image_url/properties/detail/anyOf/0/enum", details);
    let recordings = labels(RecordingFormat::ALL, RecordingFormat::label);
    check_words("/AudioPart/properties/input_audio/properties/format/enum", recordings);
    check_words("/ToolChoice/anyOf/0/enum", labels(ToolMode::ALL, ToolMode::label));
    let modes = [ToolMode::Auto, ToolMode::Required].map(ToolMode::label);
    check_words("/ToolChoice/anyOf/3/properties/allowed_tools/properties/mode/enum", modes);
}

#[test]
fn words_of_an_answer_are_those_of_its_types() {
    let tiers = labels(ServiceTier::ALL, ServiceTier::label);
    check_words("/ChatCompletion/properties/service_tier/enum", tiers);
    let sources = [MetersSource::Reported, MetersSource::Estimated].map(MetersSource::label);
    let all = sources.map(Value::from).into_iter().chain([Value::Null]).collect::<Vec<_>>();
    let document = openapi::document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Operation"]["properties"]["meters_source"]["enum"], json!(all));
    let members = schemas["Operation"]["properties"].as_object().unwrap();
    assert_eq!(schemas["Operation"]["required"], json!(members.keys().collect::<Vec<_>>()));
    let kinds = || labels(&MeterKind::ALL, MeterKind::label);
    check_words("/Quote/properties/lines/items/properties/kind/enum", kinds());
    for (name, is_per_million) in [("PricesPerMillion", true), ("PricesEach", false)] {
        let kinds = MeterKind::ALL.into_iter().filter(|it| it.per_million() == is_per_million);
        check_words(&format!("/{name}/required"), kinds.map(MeterKind::label));
    }
    check_words("/Meters/required", kinds());
    for name in ["Meters", "PricesPerMillion", "PricesEach"] {
        let described = schemas[name]["properties"].as_object().unwrap().keys();
        let required = schemas[name]["required"].as_array().unwrap().iter();
        let required: BTreeSet<_> = required.map(|it| it.as_str().unwrap()).collect();
        assert_eq!(described.map(String::as_str).collect::<BTreeSet<_>>(), required, "{name}");
    }
    let windows = SpendWindow::ALL.map(SpendWindow::label);
    let limits = "/Wallet/properties/api_key/properties/limits/properties";
    check_words(&format!("{limits}/spend/properties/window/enum"), windows);
    let error = "/Error/properties/error/properties";
    check_words(&format!("{error}/code/enum"), Code::ALL.map(Code::label));
    let kinds: BTreeSet<&str> = Code::ALL.iter().map(|code| code.kind()).collect();
    check_words(&format!("{error}/type/enum"), kinds);
}

#[test]
fn every_error_answer_of_the_file_has_codes_of_the_table_in_its_order() {
    let file: Value = serde_json::from_str(FILE).unwrap();
    let answers = file["components"]["responses"].as_object().unwrap();
    let mut n_checked = 0;
    for (name, answer) in answers.iter().filter(|(name, _)| *name != "Preflight") {
        let labels = answer["x-codes"].as_array().unwrap();
        let codes = Code::ALL.into_iter().filter(|code| labels.contains(&json!(code.label())));
        let codes: Vec<Code> = codes.collect();
        assert_eq!(json!(codes.iter().map(|code| code.label()).collect::<Vec<_>>()), json!(labels));
        assert!(codes.iter().all(|code| code.status() == codes[0].status()), "{name}");
        assert_eq!(answer["x-keyed"] == true, name.starts_with("Completion"), "{name}");
        n_checked += 1;
    }
    assert!(n_checked > 20, "{n_checked}");
    let document = openapi::document().to_string();
    assert!(!document.contains("\"x-codes\"") && !document.contains("\"x-keyed\""));
}

/// Codes of an operation's answers.
fn codes(document: &Value, operation: &Value) -> BTreeSet<Code> {
    let answers = operation["responses"].as_object().unwrap().values();
    let texts = answers.map(|answer| {
        openapi::resolved(document, answer)["content"]["application/json"].to_string()
    });
    let texts: String = texts.collect();
    let is_listed = |code: &Code| {
        let label = code.label();
        texts.contains(&format!("\"{label}\":{{")) || texts.contains(&format!("[\"{label}\"]"))
    };
    Code::ALL.into_iter().filter(is_listed).collect()
}

#[test]
fn every_endpoint_has_the_errors_of_all_and_completions_have_every_code() {
    let document = openapi::document();
    let always = [Code::InvalidValue, Code::MethodNotAllowed, Code::Overloaded];
    let secured =
        [Code::InvalidApiKey, Code::HeadersTooLarge, Code::InternalError, Code::StorageUnavailable];
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let codes = codes(&document, operation);
            assert!(always.iter().all(|code| codes.contains(code)), "{path}: {codes:?}");
            if operation["security"] == json!([]) {
                let of_keys = codes.iter().find(|code| secured.contains(code));
                assert!(of_keys.is_none_or(|code| *code == Code::HeadersTooLarge), "{path}");
            } else {
                assert!(secured.iter().all(|code| codes.contains(code)), "{path}: {codes:?}");
            }
        }
    }
    let complete = &document["paths"]["/v1/chat/completions"]["post"];
    assert_eq!(codes(&document, complete), Code::ALL.into_iter().collect());
}

#[test]
fn the_document_has_the_version_of_the_program() {
    assert_eq!(openapi::document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}
