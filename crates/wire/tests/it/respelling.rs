//! One request has many spellings, and all of them are one request: one fingerprint, one upstream
//! body. And whatever changes in any leaf or any order makes it another.

use holdfast_domain::request::{Content, Request};
use holdfast_wire::chat::request::parse;
use holdfast_wire::json::{self, Node};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generated::{EXTRA, requests};
use crate::spelling::{Json, Style, Whim, written};
use crate::{fingerprint_of, schema, upstream_body};

/// The tree of what is sent upstream, under the model and the bound that the caller named.
fn tree(request: &Request) -> Json {
    let body = upstream_body(request);
    let Json::Object(mut members) = plain(&json::parse(body.as_bytes()).unwrap(), "") else {
        return Json::Word("null");
    };
    members[0].1 = Json::Text(request.model.to_string());
    if request.max_output_tokens.is_none() {
        members.retain(|(name, _)| name != "max_completion_tokens");
    }
    Json::Object(members)
}

/// `name` is the member's: it says what is passed through.
fn plain(node: &Node<'_>, name: &str) -> Json {
    const PASSED: [&str; 5] =
        ["parameters", "schema", "prediction", "web_search_options", "moderation"];
    let passed = PASSED.contains(&name) || name.starts_with(EXTRA);
    let read = match node {
        Node::Null => Json::Word("null"),
        Node::Bool(true) => Json::Word("true"),
        Node::Bool(false) => Json::Word("false"),
        Node::Number(lexeme) => Json::Number((*lexeme).to_owned()),
        Node::String(text) => Json::Text(text.to_string()),
        Node::Array(elements) => {
            let inside = if name == "allowed" { EXTRA } else { "" };
            Json::Array(elements.iter().map(|element| plain(element, inside)).collect())
        }
        Node::Object(members) => {
            let member = |(inner, value): &(std::borrow::Cow<'_, str>, Node<'_>)| {
                let known = match (name, &**inner, value) {
                    ("allowed_tools", "tools", _) => "allowed",
                    ("custom", "format", Node::Object(_)) => EXTRA,
                    // Names that the caller chose say nothing.
                    ("metadata" | "logit_bias", _, _) => "",
                    (_, inner, _) => inner,
                };
                (inner.to_string(), plain(value, known))
            };
            Json::Object(members.iter().map(member).collect())
        }
    };
    if passed { Json::Fixed(Box::new(read)) } else { read }
}

/// Takes every freedom that callers have.
fn loosen(body: &mut Json, whim: &mut Whim) {
    let Json::Object(members) = body else { return };
    if let Some(at) = members.iter().position(|(name, _)| name == "max_completion_tokens") {
        let bound = members[at].1.clone();
        match whim.of(3) {
            0 => "max_tokens".clone_into(&mut members[at].0),
            1 => members.push(("max_tokens".to_owned(), bound)),
            _ => {}
        }
    }
    for (name, value) in members.iter_mut() {
        let Json::Array(elements) = value else { continue };
        match name.as_str() {
            "messages" => elements.iter_mut().for_each(|turn| loosen_turn(turn, whim)),
            "modalities" if whim.now() => elements.reverse(),
            "stop" if elements.len() == 1 && whim.now() => *value = elements.remove(0),
            _ => {}
        }
    }
    let one = |json: Json| Json::Array(vec![json]);
    let typed = Json::Object(vec![("type".to_owned(), Json::Text("text".to_owned()))]);
    for (name, same) in [
        ("n", Json::Number("1".to_owned())),
        ("logprobs", Json::Word("false")),
        ("tools", Json::Array(Vec::new())),
        ("metadata", Json::Object(Vec::new())),
        ("logit_bias", Json::Object(Vec::new())),
        ("response_format", typed),
        ("modalities", one(Json::Text("text".to_owned()))),
        ("stream", Json::Word("false")),
    ] {
        add(members, name, same, whim);
    }
    for name in NULLABLE {
        add(members, name, Json::Word("null"), whim);
    }
}

const NULLABLE: [&str; 31] = [
    "n",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "seed",
    "user",
    "metadata",
    "stream",
    "stream_options",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "modalities",
    "audio",
    "prediction",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "store",
    "safety_identifier",
    "prompt_cache_key",
    "web_search_options",
    "moderation",
];

/// Adds what says the same as saying nothing, where nothing is said.
fn add(members: &mut Vec<(String, Json)>, name: &str, same: Json, whim: &mut Whim) {
    if whim.of(4) == 0 && !members.iter().any(|(other, _)| other == name) {
        members.push((name.to_owned(), same));
    }
}

fn loosen_turn(turn: &mut Json, whim: &mut Whim) {
    let Json::Object(members) = turn else { return };
    let has_role = |role: &str| members[0].1 == Json::Text(role.to_owned());
    let (is_assistant, is_function) = (has_role("assistant"), has_role("function"));
    add(members, "name", Json::Word("null"), whim);
    if is_assistant {
        let content =
            |(name, value): &(String, Json)| name == "content" && *value == Json::Word("null");
        if whim.now() {
            members.retain(|member| !content(member));
        }
        for name in ["refusal", "audio", "function_call", "tool_calls", "annotations"] {
            add(members, name, Json::Word("null"), whim);
        }
        add(members, "tool_calls", Json::Array(Vec::new()), whim);
        add(members, "annotations", Json::Array(Vec::new()), whim);
    }
    let Some((_, content)) = members.iter_mut().find(|(name, _)| name == "content") else { return };
    match content {
        Json::Text(text) if !is_function && whim.now() => {
            let member = |name: &str, text: &str| (name.to_owned(), Json::Text(text.to_owned()));
            let part = vec![member("type", "text"), member("text", text)];
            *content = Json::Array(vec![Json::Object(part)]);
        }
        Json::Array(parts) => parts.iter_mut().for_each(|part| loosen_part(part, whim)),
        Json::Word(_) | Json::Number(_) | Json::Text(_) | Json::Object(_) | Json::Fixed(_) => {}
    }
}

fn loosen_part(part: &mut Json, whim: &mut Whim) {
    let Json::Object(members) = part else { return };
    for (name, value) in members.iter_mut() {
        match (name.as_str(), value) {
            ("image_url", Json::Object(image)) => {
                add(image, "detail", Json::Text("auto".to_owned()), whim);
                add(image, "detail", Json::Word("null"), whim);
            }
            ("file", Json::Object(file)) => {
                for name in ["file_id", "filename", "file_data"] {
                    add(file, name, Json::Word("null"), whim);
                }
            }
            _ => {}
        }
    }
    if members[0].1 != Json::Text("refusal".to_owned()) {
        add(members, "prompt_cache_breakpoint", Json::Word("null"), whim);
    }
}

/// Every place in the tree, `keep` says which.
fn places<'a>(
    json: &'a mut Json,
    name: &str,
    keep: fn(&Json, &str) -> bool,
    into: &mut Vec<&'a mut Json>,
) {
    if keep(json, name) {
        into.push(json);
        return;
    }
    match json {
        Json::Array(elements) => {
            elements.iter_mut().for_each(|element| places(element, name, keep, into));
        }
        Json::Object(members) => {
            members.iter_mut().for_each(|(name, value)| places(value, name, keep, into));
        }
        Json::Fixed(inner) => places(inner, name, keep, into),
        Json::Word(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

/// What has an order that means something: arrays, and objects that are passed through.
fn is_list(json: &Json, name: &str) -> bool {
    match json {
        Json::Array(elements) => elements.len() > 1 && name != "modalities" && name != "messages",
        Json::Fixed(inner) => matches!(&**inner, Json::Object(members) if members.len() > 1),
        Json::Word(_) | Json::Number(_) | Json::Text(_) | Json::Object(_) => false,
    }
}

fn rotate(list: &mut Json) {
    match list {
        Json::Array(elements) => elements.rotate_left(1),
        Json::Object(members) => members.rotate_left(1),
        Json::Fixed(inner) => rotate(inner),
        Json::Word(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

/// Another value of the same sort.
fn change(leaf: &mut Json, at: Index, gained: char) {
    match leaf {
        Json::Word("true") => *leaf = Json::Word("false"),
        Json::Word("false") => *leaf = Json::Word("null"),
        Json::Word(_) => *leaf = Json::Word("true"),
        Json::Number(number) => *number = if number == "1" { "2" } else { "1" }.to_owned(),
        Json::Text(text) => {
            let all: Vec<char> = text.chars().collect();
            let (before, after) = all.split_at(at.index(all.len() + 1));
            *text = before.iter().chain([&gained]).chain(after).collect();
        }
        Json::Array(_) | Json::Object(_) | Json::Fixed(_) => {}
    }
}

/// The model's id goes upstream under the provider's name for it.
fn check_is_another(body: &str, request: &Request) -> Result<(), TestCaseError> {
    let Ok(other) = parse(body.as_bytes()).map(|parsed| parsed.request) else { return Ok(()) };
    prop_assert_ne!(fingerprint_of(&other, 1), fingerprint_of(request, 1), "{}", body);
    if other.model == request.model {
        prop_assert_ne!(upstream_body(&other), upstream_body(request), "{}", body);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_spelling_is_the_same_request(request in requests(), seed in any::<u64>()) {
        let whim = &mut Whim(seed);
        let mut tree = tree(&request);
        loosen(&mut tree, whim);
        let body = written(&tree, Style::Free, whim);
        let read = parse(body.as_bytes());
        prop_assert_eq!(read.as_ref().map(|read| &read.request), Ok(&request), "{}", body);
        let read = read.unwrap().request;
        prop_assert_eq!(fingerprint_of(&read, 1), fingerprint_of(&request, 1));
        prop_assert_eq!(upstream_body(&read), upstream_body(&request));
    }

    #[test]
    fn what_is_sent_upstream_is_a_request_by_openai_s_schema(request in requests()) {
        let body = serde_json::from_str(&upstream_body(&request)).unwrap();
        prop_assert_eq!(schema::request_fault(&body), None);
    }

    #[test]
    fn every_changed_leaf_is_another_request(
        request in requests(),
        (which, at) in any::<(Index, Index)>(),
        gained in any::<char>(),
    ) {
        let mut tree = tree(&request);
        let mut leaves = Vec::new();
        let is_leaf = |json: &Json, _: &str| {
            matches!(json, Json::Word(_) | Json::Number(_) | Json::Text(_))
        };
        places(&mut tree, "", is_leaf, &mut leaves);
        let which = which.index(leaves.len());
        let before = leaves[which].clone();
        change(leaves[which], at, gained);
        if *leaves[which] == before {
            return Ok(());
        }
        check_is_another(&written(&tree, Style::Plain, &mut Whim(0)), &request)?;
    }

    #[test]
    fn every_other_order_is_another_request(request in requests(), which in any::<Index>()) {
        let mut tree = tree(&request);
        let mut lists = Vec::new();
        places(&mut tree, "", is_list, &mut lists);
        if lists.is_empty() {
            return Ok(());
        }
        let which = which.index(lists.len());
        let before = lists[which].clone();
        rotate(lists[which]);
        if *lists[which] == before {
            return Ok(());
        }
        check_is_another(&written(&tree, Style::Plain, &mut Whim(0)), &request)?;
    }

    #[test]
    fn every_other_order_of_turns_is_another_request(request in requests()) {
        let mut other = request.clone();
        other.messages.rotate_left(1);
        if other == request {
            return Ok(());
        }
        prop_assert_ne!(fingerprint_of(&other, 1), fingerprint_of(&request, 1));
        prop_assert_ne!(upstream_body(&other), upstream_body(&request));
    }

    #[test]
    fn requests_share_a_fingerprint_exactly_when_they_are_sent_as_one(
        (one, other) in (requests(), requests()),
    ) {
        let same = fingerprint_of(&one, 1) == fingerprint_of(&other, 1);
        prop_assert_eq!(same, one == other);
        prop_assert_eq!(same, upstream_body(&one) == upstream_body(&other));
    }

    #[test]
    fn a_text_cut_in_parts_is_another_request(request in requests(), at in any::<Index>()) {
        let mut other = request.clone();
        let content = &mut other.messages[0].content;
        let whole: String = content.iter().flat_map(Content::texts).collect();
        let at = whole.char_indices().map(|(at, _)| at).nth(at.index(whole.chars().count().max(1)));
        let (one, two) = whole.split_at(at.unwrap_or(0));
        *content = Some(Content::Parts(vec![one.to_owned().into(), two.to_owned().into()]));
        if other != request {
            prop_assert_ne!(fingerprint_of(&other, 1), fingerprint_of(&request, 1));
            prop_assert_ne!(upstream_body(&other), upstream_body(&request));
        }
    }
}
