//! One request has many spellings, and all of them are one request: one fingerprint, one upstream
//! body. And whatever changes in any leaf or any order makes it another.

use holdfast_domain::request::{Content, Request};
use holdfast_wire::chat::request::parse;
use holdfast_wire::json::{self, Node};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generated::{EXTRA, requests, without_empty_turns};
use crate::places::{self, Expectation};
use crate::spelling::{Json, Style, Whim, written};
use crate::{fingerprint_of, schema, upstream_body};

/// The tree of what is sent upstream, under the model and the bound that the caller named.
pub(crate) fn tree(request: &Request) -> Json {
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
pub(crate) fn loosen(body: &mut Json, whim: &mut Whim) {
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
        loosen_option(name, value, whim);
        let Json::Array(elements) = value else { continue };
        match name.as_str() {
            "messages" => {
                elements.iter_mut().for_each(|turn| loosen_turn(turn, whim));
                add_silence(elements, whim);
            }
            "modalities" if whim.now() => elements.reverse(),
            "stop" if elements.len() == 1 && whim.now() => *value = elements.remove(0),
            _ => {}
        }
    }
    let one = |json: Json| Json::Array(vec![json]);
    let text = |text: &str| Json::Text(text.to_owned());
    let typed = Json::Object(vec![("type".to_owned(), Json::Text("text".to_owned()))]);
    for (name, same) in [
        ("n", Json::Number("1".to_owned())),
        ("logprobs", Json::Word("false")),
        ("tools", Json::Array(Vec::new())),
        ("metadata", Json::Object(Vec::new())),
        ("logit_bias", Json::Object(Vec::new())),
        ("response_format", typed),
        ("modalities", one(Json::Text("text".to_owned()))),
        ("prompt_cache_options", Json::Object(vec![("mode".to_owned(), text("implicit"))])),
    ] {
        add(members, name, same, whim);
    }
    for name in ["user", "safety_identifier", "prompt_cache_key"] {
        add(members, name, text(""), whim);
    }
    add(members, "not_known_here", Json::Word("null"), whim);
    loosen_delivery(members, whim);
    for name in EMPTY {
        let same = if whim.now() { Json::Array(Vec::new()) } else { text("") };
        add(members, name, same, whim);
    }
    for name in NULLABLE {
        add(members, name, Json::Word("null"), whim);
    }
}

/// How the answer travels is said, and nothing else.
fn loosen_delivery(members: &mut Vec<(String, Json)>, whim: &mut Whim) {
    let stream = match whim.of(4) {
        0 => "false",
        1 => "true",
        _ => return,
    };
    members.push(("stream".to_owned(), Json::Word(stream)));
    if stream == "true" && whim.now() {
        let mut options = Vec::new();
        for name in ["include_usage", "include_obfuscation"] {
            let said = ["true", "false", "null"][whim.of(3)];
            add(&mut options, name, Json::Word(said), whim);
        }
        members.push(("stream_options".to_owned(), Json::Object(options)));
    }
}

const NULLABLE: [&str; 35] = [
    "max_tokens",
    "max_completion_tokens",
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
    "prompt_cache_retention",
    "prompt_cache_options",
    "web_search_options",
    "moderation",
];

/// Members that an empty text or an empty array leaves out, as null does.
const EMPTY: [&str; 16] = [
    "stop",
    "metadata",
    "logit_bias",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "response_format",
    "modalities",
    "audio",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "prompt_cache_retention",
    "prompt_cache_options",
    "stream_options",
];

/// Adds instructions without a word, where somebody else says something.
fn add_silence(turns: &mut Vec<Json>, whim: &mut Whim) {
    let is_silent = |turn: &Json| {
        let Json::Object(members) = turn else { return false };
        let role = &members[0].1;
        ["developer", "system"].iter().any(|silent| *role == Json::Text((*silent).to_owned()))
    };
    if whim.of(4) > 0 || turns.iter().all(is_silent) {
        return;
    }
    let part = |text: &str| {
        let member = |name: &str, text: &str| (name.to_owned(), Json::Text(text.to_owned()));
        Json::Object(vec![member("type", "text"), member("text", text)])
    };
    let content = match whim.of(4) {
        0 => Json::Text(String::new()),
        1 => Json::Word("null"),
        2 => Json::Array(Vec::new()),
        _ => Json::Array(vec![part(""), part("")]),
    };
    let role = if whim.now() { "system" } else { "developer" };
    let members = [("role", Json::Text(role.to_owned())), ("content", content)];
    let at = whim.of(turns.len());
    turns.insert(at, Json::Object(members.map(|(name, value)| (name.to_owned(), value)).to_vec()));
}

/// What is offered and how it is to be said: members that may be null there.
fn loosen_option(name: &str, value: &mut Json, whim: &mut Whim) {
    let nullable: &[&str] = match name {
        "function" | "functions" => &["description", "parameters", "strict"],
        "custom" => &["description", "format"],
        "json_schema" => &["description", "schema", "strict"],
        "prompt_cache_options" => &["mode", "ttl"],
        "tools" | "response_format" => &[],
        _ => return,
    };
    match value {
        Json::Array(elements) => {
            elements.iter_mut().for_each(|element| loosen_option(name, element, whim));
        }
        Json::Object(members) => {
            for (inner, value) in members.iter_mut() {
                loosen_option(inner, value, whim);
            }
            if name == "tools" {
                loosen_type(members, whim);
            }
            add(members, "not_known_here", Json::Word("null"), whim);
            for inner in nullable.iter().filter(|inner| name != "functions" || **inner != "strict")
            {
                add(members, inner, Json::Word("null"), whim);
            }
        }
        Json::Word(_) | Json::Number(_) | Json::Text(_) | Json::Fixed(_) => {}
    }
}

/// Adds what says the same as saying nothing, where nothing is said.
fn add(members: &mut Vec<(String, Json)>, name: &str, same: Json, whim: &mut Whim) {
    if whim.of(4) == 0 && !members.iter().any(|(other, _)| other == name) {
        members.push((name.to_owned(), same));
    }
}

/// A tool without its type is of the kind that it describes; so is a call.
fn loosen_type(members: &mut Vec<(String, Json)>, whim: &mut Whim) {
    match whim.of(4) {
        0 => members.retain(|(name, _)| name != "type"),
        1 => members.iter_mut().filter(|(name, _)| name == "type").for_each(|(_, kind)| {
            *kind = Json::Word("null");
        }),
        _ => {}
    }
    for other in ["function", "custom"] {
        add(members, other, Json::Word("null"), whim);
    }
}

fn loosen_turn(turn: &mut Json, whim: &mut Whim) {
    let Json::Object(members) = turn else { return };
    let has_role = |role: &str| members[0].1 == Json::Text(role.to_owned());
    let (is_assistant, is_function) = (has_role("assistant"), has_role("function"));
    add(members, "name", Json::Word("null"), whim);
    if !is_function {
        add(members, "name", Json::Text(String::new()), whim);
    }
    for name in ["tool_calls", "audio", "refusal", "not_known_here"] {
        add(members, name, Json::Word("null"), whim);
    }
    if is_assistant {
        let content =
            |(name, value): &(String, Json)| name == "content" && *value == Json::Word("null");
        match whim.of(3) {
            0 => members.retain(|member| !content(member)),
            1 => members.iter_mut().filter(|member| content(member)).for_each(|(_, nothing)| {
                *nothing = Json::Array(Vec::new());
            }),
            _ => {}
        }
        for (name, calls) in members.iter_mut() {
            let Json::Array(calls) = calls else { continue };
            for call in calls.iter_mut().filter(|_| name == "tool_calls") {
                if let Json::Object(members) = call {
                    loosen_type(members, whim);
                }
            }
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
            ("prompt_cache_breakpoint", Json::Object(mark)) => {
                add(mark, "ttl", Json::Word("null"), whim);
            }
            ("file", Json::Object(file)) => {
                for name in ["file_id", "filename", "file_data"] {
                    add(file, name, Json::Word("null"), whim);
                }
            }
            _ => {}
        }
    }
    add(members, "not_known_here", Json::Word("null"), whim);
    if members[0].1 != Json::Text("refusal".to_owned()) {
        add(members, "prompt_cache_breakpoint", Json::Word("null"), whim);
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

/// One place of what is sent is changed: then it is another request, or none at all.
fn check_changed(
    request: &Request,
    wanted: Expectation,
    whim: &mut Whim,
    change: impl Fn(&mut Json, bool, &mut Whim),
) -> Result<(), TestCaseError> {
    let mut tree = tree(request);
    let Some((place, is_fixed)) = places::some(&mut tree, wanted, whim) else { return Ok(()) };
    let before = place.clone();
    change(place, is_fixed, whim);
    if *place == before {
        return Ok(());
    }
    check_is_another(&written(&tree, Style::Plain, &mut Whim(0)), request)
}

proptest! {
    #[test]
    fn every_spelling_is_the_same_request(request in requests(), seed in any::<u64>()) {
        let whim = &mut Whim(seed);
        let mut tree = tree(&request);
        loosen(&mut tree, whim);
        let body = written(&tree, Style::Free, whim);
        let read = parse(body.as_bytes()).map(|read| without_empty_turns(read.request));
        prop_assert_eq!(read.as_ref(), Ok(&request), "{}", body);
        let read = read.unwrap();
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
        seed in any::<u64>(),
        gained in any::<char>(),
    ) {
        check_changed(&request, places::is_leaf, &mut Whim(seed), |leaf, is_fixed, whim| {
            places::change(leaf, is_fixed, whim, gained);
        })?;
    }

    #[test]
    fn every_changed_name_is_another_request(
        request in requests(),
        seed in any::<u64>(),
        gained in any::<char>(),
    ) {
        let whim = &mut Whim(seed);
        check_changed(&request, places::is_named_by_callers, whim, |object, _is_fixed, whim| {
            places::rename(object, whim, gained);
        })?;
    }

    #[test]
    fn every_other_order_is_another_request(request in requests(), seed in any::<u64>()) {
        check_changed(&request, places::is_list, &mut Whim(seed), |list, _is_fixed, whim| {
            places::reorder(list, whim);
        })?;
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
        seed in any::<u64>(),
    ) {
        // Close relatives: one member of the other's, or one member less.
        let whim = &mut Whim(seed);
        let mut body = tree(&one);
        if let (Json::Object(members), Json::Object(others)) = (&mut body, tree(&other)) {
            let (name, value) = others[whim.of(others.len())].clone();
            members.retain(|(known, _)| *known != name);
            if whim.of(3) > 0 {
                members.push((name, value));
            }
        }
        loosen(&mut body, whim);
        let body = written(&body, Style::Free, whim);
        let Ok(near) = parse(body.as_bytes()) else { return Ok(()) };
        for other in [without_empty_turns(near.request), other] {
            let same = fingerprint_of(&one, 1) == fingerprint_of(&other, 1);
            prop_assert_eq!(same, one == other, "{}", body);
            prop_assert_eq!(same, upstream_body(&one) == upstream_body(&other), "{}", body);
        }
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
