//! That the generated requests say everything that OpenAI's schema lets a caller say: every member,
//! every word of every list of words, and null wherever it is allowed. So what holds for all generated
//! requests holds for every field.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::generated::requests;
use crate::respelling::{loosen, tree};
use crate::schema;
use crate::spelling::{Style, Whim, written};

const SAMPLES: u64 = 600;

/// Members, words and nulls that a schema knows at a path.
fn wanted(root: &Value, schema: &Value, at: &str, into: &mut BTreeSet<String>) {
    if let Some(target) = schema["$ref"].as_str() {
        wanted(root, root.pointer(target.trim_start_matches('#')).unwrap(), at, into);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for part in schema[keyword].as_array().into_iter().flatten() {
            wanted(root, part, at, into);
        }
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        into.insert(format!("{at}.{name}"));
        wanted(root, member, &format!("{at}.{name}"), into);
    }
    if schema.get("items").is_some() {
        wanted(root, &schema["items"], &format!("{at}[]"), into);
    }
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    into.extend(words.map(|word| format!("{at}={word}")));
    let one = std::slice::from_ref(&schema["type"]);
    let kinds = schema["type"].as_array().map_or(one, Vec::as_slice);
    if kinds.iter().any(|kind| kind == "null") {
        into.insert(format!("{at}=null"));
    }
}

/// The same of what was said.
fn said(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Null => drop(into.insert(format!("{at}=null"))),
        Value::Bool(_) | Value::Number(_) => {}
        Value::String(word) => drop(into.insert(format!("{at}={word}"))),
        Value::Array(elements) => {
            elements.iter().for_each(|element| said(element, &format!("{at}[]"), into));
        }
        Value::Object(members) => {
            for (name, member) in members {
                into.insert(format!("{at}.{name}"));
                said(member, &format!("{at}.{name}"), into);
            }
        }
    }
}

#[test]
fn generated_requests_say_all_that_openai_s_schema_knows() {
    let mut runner = TestRunner::deterministic();
    let mut heard = BTreeSet::new();
    for seed in 0..SAMPLES {
        let request = requests().new_tree(&mut runner).unwrap().current();
        let whim = &mut Whim(seed);
        let mut tree = tree(&request);
        loosen(&mut tree, whim);
        let body = written(&tree, Style::Plain, whim);
        said(&serde_json::from_str(&body).unwrap(), "", &mut heard);
    }
    let mut known = BTreeSet::new();
    let (root, request) = schema::of_requests();
    wanted(root, request, "", &mut known);
    assert!(known.len() > 100, "{known:?}");
    let missing: Vec<_> = known.difference(&heard).map(String::as_str).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
