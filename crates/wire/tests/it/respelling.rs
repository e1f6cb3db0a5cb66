//! One request has many spellings, and all of them are one request: one fingerprint, one upstream
//! body. And whatever changes in any leaf or any order makes it another.

use std::fmt::Write as _;

use holdfast_domain::request::{Content, Request};
use holdfast_wire::chat::request::parse;
use holdfast_wire::json::{self, Node};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generated::{EXTRA, requests};
use crate::{fingerprint_of, schema, upstream_body};

/// JSON to be spelled: objects' members may change places, strings and numbers their spelling.
#[derive(Clone, PartialEq)]
enum Json {
    Word(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
    /// Neither order nor numbers may change.
    Fixed(Box<Self>),
}

/// Chooses among spellings; the same seed chooses the same.
struct Whim(u64);

impl Whim {
    fn of(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn now(&mut self) -> bool {
        self.of(2) == 0
    }
}

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

/// How JSON is written: with every freedom, with none in order and numbers, or as it stands.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Free,
    Fixed,
    Plain,
}

fn spell(json: &Json, style: Style, whim: &mut Whim, out: &mut String) {
    space(style, whim, out);
    match json {
        Json::Word(word) => out.push_str(word),
        Json::Number(number) if style == Style::Free => spell_number(number, whim, out),
        Json::Number(number) => out.push_str(number),
        Json::Text(text) => spell_text(text, style, whim, out),
        Json::Fixed(inner) if style == Style::Free => spell(inner, Style::Fixed, whim, out),
        Json::Fixed(inner) => spell(inner, style, whim, out),
        Json::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                spell(element, style, whim, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if style == Style::Free {
                for at in 1..members.len() {
                    let other = whim.of(at + 1);
                    members.swap(at, other);
                }
            }
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                space(style, whim, out);
                spell_text(name, style, whim, out);
                space(style, whim, out);
                out.push(':');
                spell(value, style, whim, out);
            }
            out.push('}');
        }
    }
    space(style, whim, out);
}

fn space(style: Style, whim: &mut Whim, out: &mut String) {
    if style == Style::Plain {
        return;
    }
    for _ in 0..whim.of(3) {
        out.push(match whim.of(4) {
            0 => ' ',
            1 => '\t',
            2 => '\n',
            _ => '\r',
        });
    }
}

/// Moves the point and adds zeros: `0.7` is `7e-1` is `0.70` is `70E-02`.
fn spell_number(number: &str, whim: &mut Whim, out: &mut String) {
    let (mantissa, power) = number.split_once('e').unwrap_or((number, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = whim.of(4);
    match whim.of(3) {
        0 => out.push_str(number),
        1 if power == "0" => {
            let fraction = format!("{fraction}{}", "0".repeat(zeros + 1));
            write!(out, "{sign}{whole}.{fraction}").unwrap();
        }
        _ => {
            let all = format!("{whole}{fraction}{}", "0".repeat(zeros));
            let digits = all.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            let moved = i64::try_from(fraction.len() + zeros).unwrap();
            let power = power.parse::<i64>().unwrap() - moved;
            let e = if whim.now() { 'e' } else { 'E' };
            let plus = if power >= 0 && whim.now() { "+" } else { "" };
            write!(out, "{sign}{digits}{e}{plus}{power}").unwrap();
        }
    }
}

fn spell_text(text: &str, style: Style, whim: &mut Whim, out: &mut String) {
    if style == Style::Plain {
        out.push_str(&serde_json::to_string(text).unwrap());
        return;
    }
    out.push('"');
    for character in text.chars() {
        let short = match character {
            '"' => Some('"'),
            '\\' => Some('\\'),
            '/' => Some('/'),
            '\u{8}' => Some('b'),
            '\u{c}' => Some('f'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            _ => None,
        };
        let plain = character >= ' ' && character != '"' && character != '\\';
        match (short, whim.of(3)) {
            (_, 0) if plain => out.push(character),
            (Some(letter), 1) => write!(out, "\\{letter}").unwrap(),
            (_, 2) if plain => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    if whim.now() {
                        write!(out, "\\u{unit:04x}").unwrap();
                    } else {
                        write!(out, "\\u{unit:04X}").unwrap();
                    }
                }
            }
        }
    }
    out.push('"');
}

fn written(json: &Json, style: Style, whim: &mut Whim) -> String {
    let mut out = String::new();
    spell(json, style, whim, &mut out);
    out
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

fn check_is_another(body: &str, request: &Request) -> Result<(), TestCaseError> {
    if let Ok(other) = parse(body.as_bytes()) {
        prop_assert_ne!(fingerprint_of(&other.request, 1), fingerprint_of(request, 1), "{}", body);
        prop_assert_ne!(upstream_body(&other.request), upstream_body(request), "{}", body);
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
        prop_assume!(*leaves[which] != before);
        check_is_another(&written(&tree, Style::Plain, &mut Whim(0)), &request)?;
    }

    #[test]
    fn every_other_order_is_another_request(request in requests(), which in any::<Index>()) {
        let mut tree = tree(&request);
        let mut lists = Vec::new();
        places(&mut tree, "", is_list, &mut lists);
        prop_assume!(!lists.is_empty());
        let which = which.index(lists.len());
        let before = lists[which].clone();
        rotate(lists[which]);
        prop_assume!(*lists[which] != before);
        check_is_another(&written(&tree, Style::Plain, &mut Whim(0)), &request)?;
    }

    #[test]
    fn every_other_order_of_turns_is_another_request(request in requests()) {
        let mut other = request.clone();
        other.messages.rotate_left(1);
        prop_assume!(other != request);
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
