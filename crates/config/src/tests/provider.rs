//! Options of a provider, from the file to the client that they make.

use holdfast_domain::Currency;
use holdfast_domain::answer::FinishReason;
use holdfast_providers::kinds::{Holdfast, Kind, OpenAi};
use holdfast_providers::{ImageUrls, LateSystem};
use holdfast_wire::chat::upstream::{BoundField, FinishWords};

use crate::config::{Config, parse};
use crate::{BadConfig, ProviderKind, SecretUse};

fn config(provider: &str) -> Result<Config, BadConfig> {
    let text = format!(
        "[providers.p]\n{provider}\n[[models]]\nid = \"a/b\"\ncontract = 1\n\
         context_tokens = 9\nmax_output_tokens = 9\n[[models.prices]]\n\
         effective_from = 2026-01-01T00:00:00Z\nmicros_per_million = {{ input = 3, output = 5 }}\n\
         [[models.routes]]\nprovider = \"p\"\nmodel = \"sim-1\"\n"
    );
    parse("file", &text, &|_name| None, SecretUse::All)
}

#[test]
fn the_field_that_bounds_the_output_is_the_configured_one() {
    for (line, field) in [
        ("", BoundField::MaxCompletionTokens),
        ("output_bound_field = \"max_completion_tokens\"", BoundField::MaxCompletionTokens),
        ("output_bound_field = \"max_tokens\"", BoundField::MaxTokens),
    ] {
        let openai = format!("kind = \"openai\"\nbase_url = \"http://h\"\n{line}");
        let config = config(&openai).unwrap();
        let Some(ProviderKind::Http(options)) = config.providers.get("p") else { panic!() };
        assert_eq!(options.kind, Kind::OpenAi(OpenAi::new(field)), "{line}");
    }
}

#[test]
fn words_for_the_end_of_an_answer_have_the_configured_meaning() {
    let openai =
        |line: &str| config(&format!("kind = \"openai\"\nbase_url = \"http://h\"\n{line}"));
    let line = "finish_reasons = { natural = \"stop\", \"Out-of-Room\" = \"length\", \
                act = \"tool_calls\", censored = \"content_filter\" }";
    let expected = [
        ("natural", FinishReason::Stop),
        ("Out-of-Room", FinishReason::Length),
        ("act", FinishReason::ToolCalls),
        ("censored", FinishReason::ContentFilter),
    ];
    let mut sorted = expected;
    sorted.sort_by_key(|(word, _)| *word);
    let words = sorted
        .into_iter()
        .fold(FinishWords::NONE, |words, (word, finish)| words.with(word, finish).unwrap());
    let kind = OpenAi { finish_words: words, ..OpenAi::new(BoundField::MaxCompletionTokens) };
    let config_of = openai(line).unwrap();
    let Some(ProviderKind::Http(options)) = config_of.providers.get("p") else { panic!() };
    assert_eq!(options.kind, Kind::OpenAi(kind));
    for (line, what) in [
        (
            "finish_reasons = \"stop\"",
            "`providers.p.finish_reasons` is a string, but must be a table",
        ),
        (
            "finish_reasons = { x = \"end\" }",
            "`providers.p.finish_reasons.x` must be \"stop\", \"length\"",
        ),
        ("finish_reasons = { x = 1 }", "`providers.p.finish_reasons.x` is an integer"),
        ("finish_reasons = { Length = \"stop\" }", "this word is OpenAI's own"),
        ("finish_reasons = { \"\" = \"stop\" }", "a word has 1 to 64 bytes"),
        ("finish_reasons = { x = \"stop\", X = \"stop\" }", "the word is there twice"),
    ] {
        let mistakes = openai(line).unwrap_err().to_string();
        assert!(mistakes.contains(what), "{line}: {mistakes}");
    }
    let anthropic =
        config("kind = \"anthropic\"\napi_key = \"k\"\nfinish_reasons = { x = \"stop\" }");
    let mistakes = anthropic.unwrap_err().to_string();
    assert!(mistakes.contains("is for the kinds \"openai\" and \"azure-openai\""), "{mistakes}");
}

#[test]
fn pictures_come_from_where_the_operator_says() {
    for (line, urls) in [
        ("", ImageUrls::Https),
        ("image_urls = \"data\"", ImageUrls::Data),
        ("image_urls = \"https\"", ImageUrls::Https),
        ("image_urls = \"any\"", ImageUrls::Any),
    ] {
        let openai = format!("kind = \"openai\"\nbase_url = \"http://h\"\n{line}");
        let config = config(&openai).unwrap();
        let Some(ProviderKind::Http(options)) = config.providers.get("p") else { panic!() };
        assert_eq!(options.server.image_urls, urls, "{line}");
    }
}

#[test]
fn another_gateway_has_a_currency_and_no_header_of_another_name() {
    let inner = "kind = \"holdfast\"\nbase_url = \"http://h/v1\"\napi_key = \"k\"";
    for (line, currency) in [("", Currency::USD), ("currency = \"EUR\"", "EUR".parse().unwrap())] {
        let config = config(&format!("{inner}\n{line}")).unwrap();
        let Some(ProviderKind::Http(options)) = config.providers.get("p") else { panic!() };
        assert_eq!(options.kind, Kind::Holdfast(Holdfast { currency }), "{line}");
    }
    for (line, what) in [
        ("idempotency_header = \"Idempotency-Key\"", "is Idempotency-Key for this kind, always"),
        ("currency = \"dollars\"", "currency"),
    ] {
        let Err(BadConfig::Mistakes(mistakes)) = config(&format!("{inner}\n{line}")) else {
            panic!("{line}")
        };
        let texts: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        assert!(texts.len() == 1 && texts[0].contains(what), "{texts:?}");
    }
}

#[test]
fn the_header_of_a_key_is_one_that_no_request_has_anyway() {
    let openai = |name| {
        config(&format!(
            "kind = \"openai\"\nbase_url = \"http://h\"\nidempotency_header = \"{name}\""
        ))
    };
    let good = openai("X-Request-Key").unwrap();
    let Some(ProviderKind::Http(options)) = good.providers.get("p") else { panic!() };
    assert_eq!(options.server.key_header, "x-request-key".try_into().ok());
    for name in ["Authorization", "content-length", "two words", ""] {
        assert!(matches!(openai(name), Err(BadConfig::Mistakes(_))), "{name}");
    }
}

#[test]
fn a_field_that_bounds_nothing_is_a_mistake() {
    for (provider, what) in [
        (
            "kind = \"openai\"\nbase_url = \"http://h\"\noutput_bound_field = \"tokens\"",
            "file:4: `providers.p.output_bound_field` must be \"max_completion_tokens\" or \"max_tokens\"",
        ),
        (
            "kind = \"openai\"\nbase_url = \"http://h\"\nimage_urls = \"http\"",
            "file:4: `providers.p.image_urls` must be \"https\", for images at https: URLs",
        ),
        (
            "kind = \"simulated\"\noutput_bound_field = \"max_tokens\"",
            "file:3: `providers.p.output_bound_field` has no effect on the simulated provider",
        ),
    ] {
        let Err(BadConfig::Mistakes(mistakes)) = config(provider) else { panic!() };
        let texts: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts.iter().all(|text| text.starts_with(what)), "{texts:?}");
    }
}

#[test]
fn instructions_after_the_first_turn_are_folded_unless_the_operator_refuses_them() {
    let late_system = |kind: &str, line: &str| {
        let more = if kind == "bedrock" { "\nregion = \"eu-central-1\"" } else { "" };
        let config = config(&format!("kind = \"{kind}\"\napi_key = \"k\"{more}\n{line}"))?;
        let Some(ProviderKind::Http(options)) = config.providers.get("p") else { panic!() };
        Ok::<_, BadConfig>(match &options.kind {
            Kind::Anthropic(anthropic) => anthropic.late_system,
            Kind::Gemini(gemini) => gemini.late_system,
            Kind::Bedrock(bedrock) => bedrock.late_system,
            Kind::OpenAi(_) | Kind::AzureOpenAi(_) | Kind::Holdfast(_) => panic!("{kind}"),
        })
    };
    for kind in ["anthropic", "gemini", "bedrock"] {
        assert_eq!(late_system(kind, "").unwrap(), LateSystem::Fold, "{kind}");
        for expected in LateSystem::ALL {
            let line = format!("late_system = \"{}\"", expected.label());
            assert_eq!(late_system(kind, &line).unwrap(), expected, "{kind}");
        }
        let bad = late_system(kind, "late_system = \"drop\"").unwrap_err().to_string();
        assert!(bad.contains("`providers.p.late_system` must be \"fold\""), "{bad}");
    }
    let other = "kind = \"openai\"\nbase_url = \"http://h\"\nlate_system = \"fold\"";
    let bad = config(other).unwrap_err().to_string();
    assert!(bad.contains("late_system"), "{bad}");
}
