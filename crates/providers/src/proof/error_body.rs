//! Error body, as far as the tables of proofs may use it: names, the error's own message, and the
//! texts of all errors that it contains.
//!
//! | form | servers |
//! |---|---|
//! | `{"error": {"message", "code", "type", …}}` | OpenAI, Azure, Anthropic, Google and most others |
//! | `[{"error": {…}}]` | Google's endpoint for OpenAI's clients |
//! | the members at the top | old vLLM, Mistral, Cohere, SiliconFlow, Bedrock |
//! | `{"error": "…"}` | Ollama, text-generation-inference, xAI |
//! | `{"detail": "…"}`, `{"detail": [{"msg": …}]}` | FastAPI's servers, Mistral |
//! | `{"error": {"metadata": {"raw": "…"}}}` | OpenRouter: another server's body |
//! | plain text | proxies |
//!
//! Never: a member that may contain parts of the request, such as `input`, `failed_generation` or
//! `param`.

use holdfast_wire::json::{Node, parse_answer};

use super::shape::normal;
use crate::adapter::ErrorResponse;

/// Members of an error that contain its text or another error.
const PLACES: [&str; 9] =
    ["message", "Message", "msg", "detail", "error", "errors", "metadata", "raw", "error_message"];

/// Maximum number of texts per body, and maximum depth of a text.
const TEXTS_MAX: usize = 8;
const LEVELS_MAX: usize = 5;

/// Names and texts of an error. No word of it leaves `proof`: it may quote the prompt.
#[derive(Default)]
pub(crate) struct UpstreamErrorBody {
    pub(crate) names: Vec<String>,
    /// The error's own message, as it came.
    pub(crate) message: Option<String>,
    /// All texts of the body, in the form of [`shape`](super::shape).
    pub(crate) texts: Vec<String>,
}

impl UpstreamErrorBody {
    /// Reads `{"error": {…}}`; its names are texts at these places in it.
    pub(crate) fn read(body: &[u8], names: &[&[&str]]) -> Self {
        // A body that cannot be read fits only rows without a condition, or by its text.
        let Ok(tree) = parse_answer(body) else { return Self::plain(body) };
        let texts = texts_of(&tree);
        let Some(error) = first(&tree).get("error") else {
            return Self { texts, ..Self::default() };
        };
        let text = |place: &&[&str]| {
            let found = place.iter().try_fold(error, |node, name| node.get(name));
            found.and_then(Node::as_str).map(str::to_owned)
        };
        let names = names.iter().filter_map(text).collect();
        Self { names, message: text(&&["message"][..]), texts }
    }

    /// Reads `{"message": …}` of an error whose name is a header: what stands before a colon, which
    /// a URL follows.
    pub(crate) fn from_header(rejected: &ErrorResponse) -> Self {
        let kind = rejected.kind.as_deref().and_then(|kind| kind.split(':').next());
        let names = kind.map(str::to_owned).into_iter().collect();
        let Ok(tree) = parse_answer(&rejected.body) else {
            return Self { names, ..Self::plain(&rejected.body) };
        };
        let text = |name| tree.get(name).and_then(Node::as_str);
        let message = text("message").or_else(|| text("Message")).map(str::to_owned);
        Self { names, message, texts: texts_of(&tree) }
    }

    /// Reads an error in OpenAI's dialect, whose name is its `code` or its `type`; a number is its
    /// digits.
    pub(crate) fn of_openai(body: &[u8]) -> Self {
        let Ok(tree) = parse_answer(body) else { return Self::plain(body) };
        let top = first(&tree);
        let error = top.get("error").unwrap_or(top);
        let word = |name| {
            let found = error.get(name)?;
            found.as_str().or_else(|| found.as_number()).map(str::to_owned)
        };
        let names = [word("code"), word("type")].into_iter().flatten().collect();
        let message = error.as_str().map(str::to_owned).or_else(|| word("message"));
        Self { names, message, texts: texts_of(&tree) }
    }

    /// A body that is no JSON: a text of its server, unless it is a page.
    fn plain(body: &[u8]) -> Self {
        let text = str::from_utf8(body).ok().filter(|text| !text.trim_start().starts_with('<'));
        Self { texts: text.map(normal).into_iter().collect(), ..Self::default() }
    }
}

/// The first of a list of errors, or the error.
fn first<'n, 'a>(tree: &'n Node<'a>) -> &'n Node<'a> {
    tree.as_array().and_then(<[_]>::first).unwrap_or(tree)
}

fn texts_of(tree: &Node<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    collect(tree, LEVELS_MAX, &mut texts);
    texts
}

fn collect(node: &Node<'_>, levels: usize, texts: &mut Vec<String>) {
    let Some(levels) = levels.checked_sub(1).filter(|_levels| texts.len() < TEXTS_MAX) else {
        return;
    };
    match node {
        Node::String(text) => texts.push(normal(text)),
        Node::Array(nodes) => {
            nodes.iter().take(TEXTS_MAX).for_each(|node| collect(node, levels, texts));
        }
        Node::Object(_) => {
            let found = PLACES.iter().filter_map(|name| node.get(name));
            found.for_each(|node| collect(node, levels, texts));
        }
        Node::Null | Node::Bool(_) | Node::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_every_form_but_not_in_parts_of_the_request() {
        for (body, texts) in [
            (r#"{"error":{"message":"A","code":1}}"#, &["a"][..]),
            (r#"[{"error":{"message":"A","status":"B"}}]"#, &["a"]),
            (r#"{"object":"error","message":"A","type":"B"}"#, &["a"]),
            (r#"{"Message":"A"}"#, &["a"]),
            (r#"{"error":"A"}"#, &["a"]),
            (r#"{"detail":"A"}"#, &["a"]),
            (r#"{"detail":[{"loc":["x"],"msg":"A","input":"prompt"}]}"#, &["a"]),
            (r#"{"message":{"detail":[{"msg":"A","type":"x"}]}}"#, &["a"]),
            (r#"{"errors":[{"message":"A"},{"message":"B"}]}"#, &["a", "b"]),
            (r#"{"error":{"message":"A","metadata":{"raw":"B","input":"prompt"}}}"#, &["a", "b"]),
            (r#"{"error":{"message":"A","failed_generation":"prompt","param":"b"}}"#, &["a"]),
            (r#"{"error":{"message":{"content":"prompt","role":"user"}}}"#, &[]),
            (r#""A""#, &["a"]),
            ("A plain\ntext", &["a plain text"]),
            ("<html>A page</html>", &[]),
            ("", &[""]),
            ("{}", &[]),
            ("null", &[]),
        ] {
            assert_eq!(UpstreamErrorBody::of_openai(body.as_bytes()).texts, texts, "{body}");
        }
    }

    #[test]
    fn many_texts_and_deep_ones_are_not_all_read() {
        let many = format!(r#"{{"errors":[{}]}}"#, vec![r#""A""#; 99].join(","));
        assert_eq!(UpstreamErrorBody::of_openai(many.as_bytes()).texts.len(), TEXTS_MAX);
        let deep = format!("{}\"A\"{}", r#"{"error":"#.repeat(9), "}".repeat(9));
        assert_eq!(UpstreamErrorBody::of_openai(deep.as_bytes()).texts.len(), 0);
    }
}
