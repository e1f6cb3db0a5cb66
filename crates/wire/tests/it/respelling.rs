//! One request has many spellings, and all of them are one request: one fingerprint, one upstream
//! body. And whatever changes in any string makes it another.

use std::fmt::Write as _;

use holdfast_domain::model::PublicModelId;
use holdfast_domain::request::{Content, Decimal, Message, Request, Role};
use holdfast_wire::chat::request::parse;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{fingerprint_of, upstream_body};

/// JSON to be spelled: objects' members may change places, strings and numbers their spelling.
enum Json {
    Word(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
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

/// Some tree for the request, with every freedom that callers have.
fn tree(request: &Request, whim: &mut Whim) -> Json {
    let mut members = vec![
        ("model", Json::Text(request.model.to_string())),
        ("messages", Json::Array(request.messages.iter().map(|m| message(m, whim)).collect())),
    ];
    let mut optional = |name, value: Option<Json>| match value {
        Some(value) => members.push((name, value)),
        None if whim.now() => members.push((name, Json::Word("null"))),
        None => {}
    };
    let number = |number: &Decimal| Json::Number(number.to_string());
    optional("temperature", request.temperature.as_ref().map(number));
    optional("top_p", request.top_p.as_ref().map(number));
    optional("presence_penalty", request.presence_penalty.as_ref().map(number));
    optional("frequency_penalty", request.frequency_penalty.as_ref().map(number));
    optional("seed", request.seed.map(|seed| Json::Number(seed.to_string())));
    optional("user", request.user.clone().map(Json::Text));
    optional("stream_options", None);
    let bound = request.max_output_tokens.map(|bound| bound.to_string());
    let which = whim.of(3);
    for (name, at) in [("max_tokens", 0), ("max_completion_tokens", 1)] {
        match &bound {
            Some(bound) if which != at => members.push((name, Json::Number(bound.clone()))),
            Some(_) | None => {}
        }
    }
    if request.n != 1 || whim.now() {
        members.push(("n", Json::Number(request.n.to_string())));
    }
    match &request.stop[..] {
        [] => {}
        [one] if whim.now() => members.push(("stop", Json::Text(one.clone()))),
        all => members.push(("stop", Json::Array(all.iter().cloned().map(Json::Text).collect()))),
    }
    if !request.metadata.is_empty() || whim.now() {
        let pairs = request.metadata.clone().into_iter();
        let pairs = pairs.map(|(name, value)| (name, Json::Text(value)));
        members.push(("metadata", Json::Object(pairs.collect())));
    }
    if whim.now() {
        members.push(("stream", Json::Word(if whim.now() { "false" } else { "null" })));
    }
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn message(message: &Message, whim: &mut Whim) -> Json {
    let part = |text: &String| {
        let kind = ("type".to_owned(), Json::Text("text".to_owned()));
        Json::Object(vec![kind, ("text".to_owned(), Json::Text(text.clone()))])
    };
    let content = match message.content.as_ref().unwrap() {
        Content::Text(text) if whim.now() => Json::Text(text.clone()),
        Content::Text(text) => Json::Array(vec![part(text)]),
        Content::Parts(texts) => Json::Array(texts.iter().map(part).collect()),
    };
    let mut members =
        vec![("role", Json::Text(message.role.label().to_owned())), ("content", content)];
    match &message.name {
        Some(name) => members.push(("name", Json::Text(name.clone()))),
        None if whim.now() => members.push(("name", Json::Word("null"))),
        None => {}
    }
    if message.role == Role::Assistant {
        for name in ["refusal", "audio", "function_call", "tool_calls"] {
            match whim.of(3) {
                0 => members.push((name, Json::Word("null"))),
                1 if name == "tool_calls" => members.push((name, Json::Array(Vec::new()))),
                _ => {}
            }
        }
    }
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn spell(json: &Json, whim: &mut Whim, out: &mut String) {
    space(whim, out);
    match json {
        Json::Word(word) => out.push_str(word),
        Json::Number(number) => spell_number(number, whim, out),
        Json::Text(text) => spell_text(text, whim, out),
        Json::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                spell(element, whim, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for at in 1..members.len() {
                let other = whim.of(at + 1);
                members.swap(at, other);
            }
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                space(whim, out);
                spell_text(name, whim, out);
                space(whim, out);
                out.push(':');
                spell(value, whim, out);
            }
            out.push('}');
        }
    }
    space(whim, out);
}

fn space(whim: &mut Whim, out: &mut String) {
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

fn spell_text(text: &str, whim: &mut Whim, out: &mut String) {
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

fn spelled(request: &Request, seed: u64) -> String {
    let whim = &mut Whim(seed);
    let mut out = String::new();
    spell(&tree(request, whim), whim, &mut out);
    out
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z/\"\\\\\n\u{0}é😀]{0,12}"]
}

/// Numbers from `-bound` or zero to `bound`, as a caller may write them.
fn decimals(negative: bool, bound: u32) -> impl Strategy<Value = Option<Decimal>> {
    let sign = if negative { select(vec!["", "-"]) } else { select(vec![""]) };
    let number = (sign, 0..bound, 0_u64..10_000_000_000_000_000, 0_usize..16).prop_map(
        |(sign, whole, fraction, zeros)| {
            format!("{sign}{whole}.{}{fraction}", "0".repeat(zeros)).parse().unwrap()
        },
    );
    prop::option::of(prop_oneof![number, Just(bound.to_string().parse().unwrap())])
}

fn turns() -> impl Strategy<Value = Message> {
    let roles = select(vec![Role::Developer, Role::System, Role::User, Role::Assistant]);
    let content = prop_oneof![
        texts().prop_map(Content::Text),
        prop::collection::vec(texts(), 2..4).prop_map(Content::Parts),
    ];
    (roles, prop::option::of(texts()), content).prop_map(|(role, name, content)| Message {
        role,
        name,
        content: Some(content),
    })
}

fn requests() -> impl Strategy<Value = Request> {
    let sampling = (decimals(false, 2), decimals(false, 1), decimals(true, 2), decimals(true, 2));
    let bounds = (prop::option::of(1_u64..=1 << 53), prop_oneof![Just(1), 1_u32..=128]);
    let metadata = prop::collection::btree_map("[a-zA-Zé ]{0,64}", "[a-z😀\n]{0,40}", 0..=16);
    (
        prop::collection::vec(turns(), 1..4),
        sampling,
        bounds,
        prop::collection::vec(texts(), 0..=4),
        (any::<Option<i64>>(), prop::option::of(texts()), metadata),
    )
        .prop_map(
            |(messages, sampling, (max_output_tokens, n), stop, (seed, user, metadata))| {
                let (temperature, top_p, presence_penalty, frequency_penalty) = sampling;
                Request {
                    model: PublicModelId::try_from("a/B:1").unwrap(),
                    messages,
                    max_output_tokens,
                    n,
                    temperature,
                    top_p,
                    presence_penalty,
                    frequency_penalty,
                    stop,
                    seed,
                    user,
                    metadata,
                }
            },
        )
}

/// Every string of a request that reaches a provider as it is.
fn strings(request: &mut Request) -> Vec<&mut String> {
    let turns = request.messages.iter_mut().flat_map(|message| {
        let texts: Vec<_> = match message.content.as_mut().unwrap() {
            Content::Text(text) => vec![text],
            Content::Parts(texts) => texts.iter_mut().collect(),
        };
        texts.into_iter().chain(&mut message.name)
    });
    turns
        .chain(&mut request.stop)
        .chain(&mut request.user)
        .chain(request.metadata.values_mut())
        .collect()
}

fn check_both_differ(one: &Request, other: &Request) -> Result<(), TestCaseError> {
    prop_assert_ne!(fingerprint_of(one, 1), fingerprint_of(other, 1));
    prop_assert_ne!(upstream_body(one), upstream_body(other));
    Ok(())
}

proptest! {
    #[test]
    fn every_spelling_is_the_same_request(request in requests(), seed in any::<u64>()) {
        let body = spelled(&request, seed);
        let read = parse(body.as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&request), "{}", body);
        let read = read.unwrap();
        prop_assert_eq!(fingerprint_of(&read, 1), fingerprint_of(&request, 1));
        prop_assert_eq!(upstream_body(&read), upstream_body(&request));
    }

    #[test]
    fn what_is_sent_upstream_says_the_same(request in requests()) {
        let mut read = parse(upstream_body(&request).replace("\"model\":\"m\"", "\"model\":\"a/B:1\"").as_bytes()).unwrap();
        read.max_output_tokens = request.max_output_tokens;
        prop_assert_eq!(read, request);
    }

    #[test]
    fn every_change_of_a_string_is_another_request(
        request in requests(),
        which in any::<Index>(),
        at in any::<Index>(),
        gained in any::<char>(),
    ) {
        let mut other = request.clone();
        let mut strings = strings(&mut other);
        let which = which.index(strings.len());
        let text: Vec<char> = strings[which].chars().collect();
        let at = at.index(text.len() + 1);
        let (before, after) = text.split_at(at);
        *strings[which] = before.iter().chain([&gained]).chain(after).collect();
        check_both_differ(&request, &other)?;
    }

    #[test]
    fn every_change_of_order_is_another_request(request in requests(), at in any::<Index>()) {
        let mut other = request.clone();
        other.messages.rotate_left(1);
        let n_stop = other.stop.len().max(1);
        other.stop.rotate_left(at.index(n_stop));
        if other != request {
            check_both_differ(&request, &other)?;
        }
    }

    #[test]
    fn a_text_cut_in_parts_is_another_request(request in requests(), at in any::<Index>()) {
        let mut other = request.clone();
        let content = &mut other.messages[0].content;
        let whole: String = content.iter().flat_map(Content::texts).collect();
        let at = whole.char_indices().map(|(at, _)| at).nth(at.index(whole.chars().count().max(1)));
        let (one, two) = whole.split_at(at.unwrap_or(0));
        *content = Some(Content::Parts(vec![one.to_owned(), two.to_owned()]));
        if other != request {
            check_both_differ(&request, &other)?;
        }
    }
}
