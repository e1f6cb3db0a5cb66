//! Options of a provider, from the file to the client that they make.

use holdfast_domain::Currency;
use holdfast_providers::{Holdfast, ImageUrls, Kind, OpenAi};
use holdfast_wire::chat::upstream::BoundField;

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
        assert_eq!(options.kind, Kind::OpenAi(OpenAi { bound_field: field }), "{line}");
    }
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
            "file:4: `providers.p.image_urls` must be \"https\", for pictures at https: URLs",
        ),
        (
            "kind = \"simulated\"\noutput_bound_field = \"max_tokens\"",
            "file:3: `providers.p.output_bound_field` means nothing to the simulated provider",
        ),
    ] {
        let Err(BadConfig::Mistakes(mistakes)) = config(provider) else { panic!() };
        let texts: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts.iter().all(|text| text.starts_with(what)), "{texts:?}");
    }
}
