//! `[providers.NAME]`: who answers, and how to reach them.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_providers::{BaseUrl, OpenAiOptions, UpstreamKey};
use holdfast_wire::chat::upstream::BoundField;

use super::document::{Table, meant};

/// A configured provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderKind {
    /// Built in; reaches nobody.
    Simulated,
    /// Any server that speaks OpenAI's chat completions.
    OpenAi(Box<OpenAiOptions>),
}

/// Every provider by its name; `None` for one with a mistake, which routes may name all the same.
pub(super) fn all<'d>(table: &Table<'d>) -> BTreeMap<&'d str, Option<ProviderKind>> {
    let all = table.named_tables().into_iter();
    all.map(|(name, table)| {
        if !is_name(name) {
            table.mistake(
                "a provider's name has 1 to 64 letters, digits, hyphens and underscores: rename the \
                 table, and its routes with it",
            );
        }
        (name, one(&table))
    })
    .collect()
}

/// It is shown to the operator beside the model that it serves, and labels metrics.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn one(table: &Table<'_>) -> Option<ProviderKind> {
    let kind = table.required("kind", "kind = \"openai\" or kind = \"simulated\"").and_then(|field| match field.text()? {
        "simulated" => Some(simulated(table)),
        "openai" => Some(openai(table)),
        other => {
            let meant = meant(other, ["openai", "simulated"]);
            field.mistake(format_args!(
                "is not available in this version: {meant}write \"openai\", for any server that speaks \
                 like it, or \"simulated\""
            ));
            None
        }
    });
    if kind.is_some() {
        table.refuse_unknown();
    } else {
        table.ignore_unknown();
    }
    kind.flatten()
}

fn simulated(table: &Table<'_>) -> Option<ProviderKind> {
    let mut kind = Some(ProviderKind::Simulated);
    for key in ["base_url", "api_key", "pool_idle", "output_bound_field"] {
        if let Some(field) = table.field(key) {
            field.mistake(
                "means nothing to the simulated provider, which reaches nobody: remove it",
            );
            kind = None;
        }
    }
    kind
}

fn openai(table: &Table<'_>) -> Option<ProviderKind> {
    const POOL_IDLE_MAX: Duration = Duration::from_secs(3_600);
    let base_url = table
        .required("base_url", "base_url = \"https://api.openai.com/v1\"")
        .and_then(|field| field.parse(BaseUrl::try_from));
    let api_key = table.field("api_key").map(|field| {
        let key = field.secret()?;
        match UpstreamKey::try_from(key.expose()) {
            Ok(key) => Some(key),
            Err(error) => {
                field.mistake(format_args!("is {error}"));
                None
            }
        }
    });
    let pool_idle =
        table.field("pool_idle").map(|field| field.span(Duration::from_millis(1)..=POOL_IDLE_MAX));
    let bound_field = table.field("output_bound_field").map(|field| match field.text()? {
        "max_completion_tokens" => Some(BoundField::MaxCompletionTokens),
        "max_tokens" => Some(BoundField::MaxTokens),
        _ => {
            field.mistake("must be \"max_completion_tokens\" or \"max_tokens\"");
            None
        }
    });
    let mut options = OpenAiOptions::new(base_url?);
    if let Some(api_key) = api_key {
        options.server.api_key = Some(api_key?);
    }
    if let Some(pool_idle) = pool_idle {
        options.server.pool_idle = pool_idle?;
    }
    if let Some(bound_field) = bound_field {
        options.bound_field = bound_field?;
    }
    Some(ProviderKind::OpenAi(Box::new(options)))
}

#[cfg(test)]
mod tests {
    use super::super::{BadConfig, Config, parse};
    use super::*;

    fn config(provider: &str) -> Result<Config, BadConfig> {
        let text = format!(
            "[providers.p]\n{provider}\n[[models]]\nid = \"a/b\"\ncontract = 1\n\
             context_tokens = 9\nmax_output_tokens = 9\n[[models.prices]]\n\
             effective_from = 2026-01-01T00:00:00Z\nmicros_per_million = {{ input = 3, output = 5 }}\n\
             [[models.routes]]\nprovider = \"p\"\nmodel = \"sim-1\"\n"
        );
        parse("file", &text, &|_name| None)
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
            let Some(ProviderKind::OpenAi(options)) = config.providers.get("p") else { panic!() };
            assert_eq!(options.bound_field, field, "{line}");
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
}
