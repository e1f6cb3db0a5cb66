//! Options of a provider, from the file to the client that they make.

use holdfast_providers::{ImageUrls, Kind, OpenAi};
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
