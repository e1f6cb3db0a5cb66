//! Programs to copy that send a first request, in the languages of most callers.

use askama::Template;

use crate::kit::Snippet;

/// Texts of the examples.
// No Debug: one of them holds a secret.
#[derive(Template)]
#[template(path = "pages/example.txt")]
enum ExamplePartText<'a> {
    #[template(block = "shell")]
    Shell { base_url: &'a str, api_key: &'a str },
    #[template(block = "curl")]
    Curl { model: &'a str },
    #[template(block = "python")]
    Python { model: &'a str },
    #[template(block = "node")]
    Node { model: &'a str },
}

/// The environment of an API key, and programs that send a request to a model in it.
pub(crate) fn snippets(base_url: &str, api_key: &str, model: &str) -> [Snippet; 4] {
    [
        ("For a shell", ExamplePartText::Shell { base_url, api_key }),
        ("curl", ExamplePartText::Curl { model }),
        ("Python", ExamplePartText::Python { model }),
        ("Node", ExamplePartText::Node { model }),
    ]
    .map(|(title, text)| Snippet::new(title, text.to_string()))
}
