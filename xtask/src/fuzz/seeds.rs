//! Seeds of the fuzzer: the bodies that the wire's tests read, and the words of OpenAI's schema.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const VECTORS: &str = "crates/wire/tests/vectors";

/// The vectors of the wire's tests.
#[derive(Debug)]
pub(crate) struct Seeds {
    /// Two bodies each, that are one request or two.
    pairs: Vec<[String; 2]>,
    refused: Vec<String>,
    words: BTreeSet<String>,
}

impl Seeds {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let read = |name: &str| -> Result<Value> {
            let path = root.join(VECTORS).join(name);
            let text = fs::read_to_string(&path).with_context(|| format!("no {VECTORS}/{name}"))?;
            serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))
        };
        let (pairs, refused) =
            (read("fingerprint-vectors.json")?, read("fingerprint-reject.json")?);
        let both = |vector: &Value| Some([text(vector, "a")?, text(vector, "b")?]);
        let mut words = BTreeSet::new();
        collect(&read("requests.schema.json")?, &mut words);
        let seeds = Self {
            pairs: elements(&pairs).filter_map(both).collect(),
            refused: elements(&refused).filter_map(|vector| text(vector, "body")).collect(),
            words,
        };
        let is_whole =
            !seeds.pairs.is_empty() && !seeds.refused.is_empty() && seeds.words.len() > 1;
        // A fuzzer without seeds finds no failure, and would report success.
        ensure!(is_whole, "{VECTORS} has another shape");
        Ok(seeds)
    }

    /// Every body by itself.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        let good = self.pairs.iter().flatten();
        good.chain(&self.refused).map(|body| body.clone().into_bytes()).collect()
    }

    /// Two bodies with a NUL between them, and one with an edit of no effect.
    pub(crate) fn pairs(&self) -> Vec<Vec<u8>> {
        let both = self.pairs.iter().map(|pair| pair.join("\0"));
        let alone = self.pairs.iter().map(|[one, _]| format!("{one}\0\u{1}~~ "));
        both.chain(alone).map(String::into_bytes).collect()
    }

    /// Words and what is between them, as libFuzzer reads a dictionary.
    pub(crate) fn dictionary(&self) -> String {
        let words = self.words.iter().map(|word| format!("\"\\\"{word}\\\"\"\n"));
        let rest = ["null", "true", "false", "1e0", "1.0", "[{", "}]", "\\\":", "\\\\u00e9"];
        words.chain(rest.map(|it| format!("\"{it}\"\n"))).collect()
    }
}

/// Streams as providers send them, each with a first byte that the target reads.
pub(crate) fn streams() -> Vec<Vec<u8>> {
    STREAMS.iter().map(|stream| stream.as_bytes().to_vec()).collect()
}

const STREAMS: &[&str] = &[
    concat!(
        "\0data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        ": ping\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"logprobs\":{\"content\":[{}]}}]}\r\n\r\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n",
    ),
    concat!(
        "\u{19}event: x\nid: 1\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\n",
        "data: \"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}]}},",
        "{\"index\":1,\"delta\":{\"refusal\":\"no\",\"reasoning\":\"hm\"},\"finish_reason\":\"length\"}]}\r\r",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    ),
    concat!(
        "\u{4}data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\"}}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"audio\":{\"data\":\"AA\",\"expires_at\":7},\"annotations\":[{}]}}]}\n\n",
        "data: {\"error\":{\"message\":\"m\",\"code\":500}}\n\n",
    ),
];

/// Names of members, and the words that values may be.
fn collect(schema: &Value, words: &mut BTreeSet<String>) {
    let is_word =
        |word: &str| word.bytes().all(|it| it.is_ascii_alphanumeric() || b"_.-".contains(&it));
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        words.extend(properties.keys().filter(|name| is_word(name)).cloned());
                    }
                    ("enum", Value::Array(all)) => {
                        let all = all.iter().filter_map(Value::as_str).filter(|word| is_word(word));
                        words.extend(all.map(str::to_owned));
                    }
                    _ => {}
                }
                collect(value, words);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn the_vectors_are_what_the_fuzzer_starts_from() {
        let seeds = Seeds::read(&Workspace::load().unwrap().root).unwrap();
        assert!(seeds.bodies().len() >= 60 && seeds.pairs().len() >= 50);
        let dictionary = seeds.dictionary();
        for word in ["max_completion_tokens", "json_schema", "in_memory", "null"] {
            assert!(dictionary.contains(word), "{word}");
        }
    }
}
