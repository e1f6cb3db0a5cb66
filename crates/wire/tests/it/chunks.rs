//! The chunks that a caller gets: put together as clients put them together, they are the completion.

mod again;
mod fixtures;
mod resumed;

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_domain::answer::{
    Answer, Audio, ChoiceDelta, Delta, FinishReason, FunctionCallDelta, Logprobs, PredictionTokens,
    ToolCallDelta,
};
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::PriceVersionId;
use holdfast_domain::request::{Opaque, ServiceTier, ToolKind};
use holdfast_domain::usage::{MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_wire::chat::chunk::{Chunks, DONE, Frame, NotStored, error, replay};
use holdfast_wire::chat::completion::{CompletionView, render};
use holdfast_wire::sse::Decoder;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::schema;

const ID: OperationId = OperationId::from_u128(0xabc);
const CREATED: Timestamp = Timestamp::from_micros(1_790_000_000_999_999);

fn model() -> PublicModelId {
    PublicModelId::try_from("a/b").unwrap()
}

fn usage() -> UsageRecord {
    UsageRecord {
        metered: MeterReading {
            meters: Meters::text(7, 11).unwrap(),
            source: MetersSource::Reported,
            reasons: UsageReasons::NONE,
            provider_cost: None,
        },
        charge: Micros::new(123),
        shortfall: Micros::new(9),
        price_version: PriceVersionId::from_stored("a/b/USD/2026-01-01T00:00:00Z"),
    }
}

/// An answer, its whole stream for one sort of reader, and its JSON.
struct Rendering {
    events: Vec<Bytes>,
    body: Vec<u8>,
}

fn say(deltas: &[Delta], include_usage: bool) -> Rendering {
    let mut chunks = Chunks::new(ID, CREATED, model().as_str());
    let mut answer = Answer::default();
    let mut frames = Vec::new();
    for delta in deltas {
        frames.extend(chunks.delta(delta).into_iter().map(|piece| piece.frame));
        answer.append(delta.clone());
    }
    frames.extend(chunks.finish(&answer));
    let (model, usage) = (&model(), &usage());
    let view =
        CompletionView { id: ID, created: CREATED, model: model.as_str(), answer: &answer, usage };
    let mut events: Vec<_> = frames.iter().map(|it| Frame::bytes(it, include_usage)).collect();
    events.extend(include_usage.then(|| chunks.usage(&view)));
    events.push(Bytes::from_static(DONE));
    Rendering { events, body: render(&view) }
}

/// The chunks of a stream as JSON, without its end.
fn chunks(events: &[Bytes]) -> Vec<Value> {
    let mut decoder = Decoder::new(1 << 20, 1 << 20);
    let mut all = Vec::new();
    for bytes in events {
        let mut heard = decoder.feed(bytes);
        // Every frame is an event, and no more than one.
        let event = heard.next_event().unwrap().unwrap();
        all.push(String::from_utf8(event.data.to_vec()).unwrap());
        assert_eq!(heard.next_event(), Ok(None));
    }
    assert_eq!(all.pop().as_deref(), Some("[DONE]"));
    all.iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Adds one value to another as OpenAI's clients do: texts and numbers are added, `index` and `type`
/// are not, and what lists hold is found by its `index`.
fn add(to: &mut Value, more: &Value) {
    match (to, more) {
        (to @ Value::Null, more) => *to = more.clone(),
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Number(number), Value::Number(more)) => {
            *number = (number.as_i64().unwrap() + more.as_i64().unwrap()).into();
        }
        (Value::Object(members), Value::Object(more)) => {
            for (name, value) in more {
                if name == "index" || name == "type" {
                    members.insert(name.clone(), value.clone());
                } else {
                    add(members.entry(name.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(elements), Value::Array(more)) => {
            for element in more {
                // Clients find an element by its index, and stop at one that has none.
                let index = element.get("index").unwrap();
                match elements.iter_mut().find(|other| other.get("index") == Some(index)) {
                    Some(other) => add(other, element),
                    None => elements.push(element.clone()),
                }
            }
        }
        (to, more) => assert_eq!(to, more, "they cannot be added"),
    }
}

/// The completion that a client makes of the chunks.
fn put_together(chunks: &[Value]) -> Value {
    let mut body = json!({"object": "chat.completion", "choices": []});
    let mut choices: Vec<Value> = Vec::new();
    for chunk in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        for name in ["id", "created", "model", "service_tier", "moderation", "usage"] {
            if let Some(value) = chunk.get(name).filter(|value| !value.is_null()) {
                body[name] = value.clone();
            }
        }
        for choice in chunk["choices"].as_array().unwrap() {
            let known = choices.iter_mut().find(|other| other["index"] == choice["index"]);
            let known = match known {
                Some(known) => known,
                None => {
                    choices.push(json!({"index": choice["index"], "logprobs": null}));
                    choices.last_mut().unwrap()
                }
            };
            add(&mut known["message"], &choice["delta"]);
            add(&mut known["finish_reason"], &choice["finish_reason"]);
            for side in ["content", "refusal"] {
                let Some(more) = choice["logprobs"].get(side) else { continue };
                let list = &mut known["logprobs"][side];
                match (list.as_array_mut(), more.as_array()) {
                    (Some(list), Some(more)) => list.extend(more.iter().cloned()),
                    (None, _) => *list = more.clone(),
                    (Some(_), None) => {}
                }
            }
        }
    }
    choices.sort_by_key(|choice| choice["index"].as_u64());
    for choice in &mut choices {
        let message = choice["message"].as_object_mut().unwrap();
        message.entry("annotations").or_insert(json!([]));
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            calls.sort_by_key(|call| call["index"].as_u64());
            calls.iter_mut().for_each(|call| drop(call.as_object_mut().unwrap().remove("index")));
        }
    }
    body["choices"] = choices.into();
    body
}

fn as_json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn text(index: u32, content: &str) -> ChoiceDelta {
    ChoiceDelta { index, content: Some(content.to_owned()), ..ChoiceDelta::default() }
}

fn end(index: u32, finish: FinishReason) -> ChoiceDelta {
    ChoiceDelta { index, finish: Some(finish), ..ChoiceDelta::default() }
}

#[test]
fn a_stream_is_what_openai_s_clients_read() {
    let deltas = [
        Delta::from(vec![text(0, "")]),
        Delta::from(vec![text(0, "hi \"é\"")]),
        Delta::from(vec![text(0, "")]),
        Delta::from(vec![text(0, "!"), end(0, FinishReason::Stop)]),
    ];
    let head = r#"data: {"id":"chatcmpl_00000000000000000000000000000abc","object":"chat.completion.chunk","created":1790000000,"model":"a/b","choices":["#;
    let said = [
        r#"{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]"#,
        r#"{"index":0,"delta":{"content":"hi \"é\""},"logprobs":null,"finish_reason":null}]"#,
        r#"{"index":0,"delta":{"content":"!"},"logprobs":null,"finish_reason":null}]"#,
        r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]"#,
    ];
    let text = |said: Rendering| String::from_utf8(said.events.concat()).unwrap();
    let plain = said.map(|chunk| format!("{head}{chunk}}}\n\n")).concat();
    assert_eq!(text(say(&deltas, false)), format!("{plain}data: [DONE]\n\n"));
    let with_null = said.map(|chunk| format!("{head}{chunk},\"usage\":null}}\n\n")).concat();
    let usage = r#"],"usage":{"prompt_tokens":7,"completion_tokens":11,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0,"cache_write_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0},"customer_charge_micros":123}}"#;
    let expected = format!("{with_null}{head}{usage}\n\ndata: [DONE]\n\n");
    assert_eq!(text(say(&deltas, true)), expected);
}

#[test]
fn a_call_has_our_id_once() {
    let piece = |name: Option<&str>, input: &str| ToolCallDelta {
        index: 1,
        kind: name.map(|_first| ToolKind::Function),
        name: name.map(str::to_owned),
        input: Some(input.to_owned()),
        state: None,
    };
    let pieces =
        [piece(Some("look"), ""), piece(None, "{\"q\""), piece(None, ""), piece(None, ":1}")];
    let mut deltas = pieces.map(|piece| {
        Delta::from(vec![ChoiceDelta {
            index: 2,
            tool_calls: vec![piece],
            ..ChoiceDelta::default()
        }])
    });
    deltas[3].choices.push(end(2, FinishReason::ToolCalls));
    let all = chunks(&say(&deltas, false).events);
    let said: Vec<_> = all.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(said[0], &json!({"role": "assistant", "content": null, "refusal": null}));
    let first = json!({
        "index": 1, "id": "call_00000000000000000000iK_2_1", "type": "function",
        "function": {"name": "look", "arguments": ""},
    });
    assert_eq!(said[1], &json!({"tool_calls": [first]}));
    let later = |arguments: &str| json!({"tool_calls": [{"index": 1, "function": {"arguments": arguments}}]});
    assert_eq!(said[2..], [&later("{\"q\""), &later(":1}"), &json!({})]);
}

#[test]
fn what_cannot_be_added_is_told_once_at_the_end() {
    let opaque = |json: &str| Opaque::from_json(json.to_owned());
    let spoken = |data: &str, expires_at| {
        let audio = Audio { data: data.to_owned(), transcript: String::new(), expires_at };
        let annotations = vec![opaque(r#"{"type":"x"}"#)];
        Delta::from(vec![ChoiceDelta { annotations, audio: Some(audio), ..ChoiceDelta::default() }])
    };
    let said = say(&[spoken("AA", 0), spoken("BB", 17)], false);
    let all = chunks(&said.events);
    let last = &all[all.len() - 2]["choices"][0];
    let sources = json!([{"type": "x"}, {"type": "x"}]);
    assert_eq!(last["delta"], json!({"annotations": sources, "audio": {"expires_at": 17}}));
    assert_eq!(last["finish_reason"], Value::Null);
    let told = |name: &str| {
        all.iter().filter(|chunk| chunk["choices"][0]["delta"].get(name).is_some()).count()
    };
    assert_eq!((told("annotations"), told("audio")), (1, 3));
}

#[test]
fn choices_that_were_cut_are_opened_and_end_with_length() {
    let mut answer = Answer::default();
    answer.end_open_choices(2);
    let mut chunks = Chunks::new(ID, CREATED, model().as_str());
    let frames = chunks.finish(&answer);
    let all: Vec<Value> = frames
        .iter()
        .map(|frame| as_json(frame.bytes(false).strip_prefix(b"data: ").unwrap()))
        .collect();
    let of = |at: usize| (&all[at]["choices"][0]["index"], &all[at]["choices"][0]["finish_reason"]);
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        [
            (&json!(0), &json!(null)),
            (&json!(0), &json!("length")),
            (&json!(1), &json!(null)),
            (&json!(1), &json!("length")),
        ]
    );
}

#[test]
fn both_forms_of_a_chunk_are_made_once() {
    let mut chunks = Chunks::new(ID, CREATED, model().as_str());
    let delta = Delta::from(vec![text(0, "hi")]);
    let frames: Vec<_> = chunks.delta(&delta).into_iter().map(|piece| piece.frame).collect();
    for include_usage in [false, true] {
        let once = frames[0].bytes(include_usage);
        assert_eq!(once.as_ptr(), frames[0].bytes(include_usage).as_ptr());
    }
}

#[test]
fn an_error_is_an_event_of_its_own() {
    let body = holdfast_wire::error::ErrorBody::new(holdfast_wire::error::Code::OutcomeUnknown);
    let event = error(&body.render());
    let told = event.strip_prefix(b"data: ").and_then(|rest| rest.strip_suffix(b"\n\n")).unwrap();
    assert_eq!(as_json(told)["error"]["code"], "outcome_unknown");
}

#[test]
fn what_we_have_not_made_is_not_replayed() {
    let body = String::from_utf8(say(&[Delta::from(vec![text(0, "hi")])], false).body).unwrap();
    assert!(replay(body.as_bytes(), true).is_ok());
    for (from, to) in [
        ("chatcmpl_", "chatcmpl-"),
        ("\"created\":1790000000", "\"created\":\"x\""),
        ("a/b", "A b"),
        ("\"choices\"", "\"answers\""),
        ("\"length\"", "\"eos \""),
        ("\"usage\"", "\"costs\""),
        ("{", ""),
    ] {
        let other = body.replace(from, to);
        assert_ne!(other, body);
        assert_eq!(replay(other.as_bytes(), true), Err(NotStored), "{from}");
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z\"\\\\\n\u{0}é😀]{0,8}"]
}

fn entries() -> impl Strategy<Value = Option<Vec<Opaque>>> {
    let entry = r#"{"token":"x","logprob":-9999.0,"bytes":[120],"top_logprobs":[]}"#;
    of(prop::collection::vec(Just(Opaque::from_json(entry.to_owned())), 0..3))
}

fn calls(kinds: &'static [ToolKind]) -> impl Strategy<Value = Vec<ToolCallDelta>> {
    let piece = (0..3_u32, of(texts()), of(texts())).prop_map(|(index, name, input)| {
        let kind = kinds.iter().cycle().nth(usize::try_from(index).unwrap()).copied();
        ToolCallDelta { index, kind, name, input, state: None }
    });
    prop::collection::vec(piece, 0..3)
}

fn pieces(n: u32, kinds: &'static [ToolKind]) -> impl Strategy<Value = ChoiceDelta> {
    use FinishReason::{ContentFilter, Length, Stop};
    // Its members in the order in which a provider's are passed on.
    let cited = r#"{"type":"url_citation","url_citation":{"start_index":0,"end_index":1,"title":"t","url":"u"}}"#;
    let said = (of(texts()), of(texts()), of(texts()));
    let audio = (texts(), texts(), 0..9_i64).prop_map(|(data, transcript, expires_at)| Audio {
        data,
        transcript,
        expires_at,
    });
    let function = (of(texts()), of(texts()))
        .prop_map(|(name, arguments)| FunctionCallDelta { name, arguments });
    let logprobs = of((entries(), entries()));
    let cited = prop::collection::vec(Just(Opaque::from_json(cited.to_owned())), 0..2);
    let rest =
        (of(function), logprobs, cited, of(audio), of(select(vec![Stop, Length, ContentFilter])));
    (0..n, said, calls(kinds), rest).prop_map(
        |(index, (content, refusal, reasoning), tool_calls, rest)| {
            let (function_call, logprobs, annotations, audio, finish) = rest;
            ChoiceDelta {
                index,
                content,
                refusal,
                reasoning,
                tool_calls,
                function_call,
                logprobs: logprobs.map(|(content, refusal)| Logprobs { content, refusal }),
                annotations,
                audio,
                finish,
            }
        },
    )
}

fn deltas(kinds: &'static [ToolKind]) -> impl Strategy<Value = Vec<Delta>> {
    let moderation = r#"{"input":{"type":"error","code":"c","message":"m"},"output":{"type":"error","code":"c","message":"m"}}"#;
    let moderation = of(Just(Opaque::from_json(moderation.to_owned())));
    let tier = of(select(ServiceTier::ALL));
    let predicted = of((0..9_u64, 0..9_u64));
    let delta = move |n: u32| prop::collection::vec(pieces(n, kinds), 0..3);
    let delta = (1..4_u32).prop_flat_map(delta);
    (prop::collection::vec((delta, tier), 0..6), moderation, predicted).prop_map(
        |(deltas, moderation, predicted)| {
            let delta = |(choices, service_tier)| Delta { service_tier, ..Delta::from(choices) };
            let mut deltas: Vec<_> = deltas.into_iter().map(delta).collect();
            number(&mut deltas);
            if let Some(last) = deltas.last_mut() {
                last.moderation = moderation;
                last.predicted =
                    predicted.map(|(accepted, rejected)| PredictionTokens { accepted, rejected });
            }
            deltas
        },
    )
}

/// Numbers the calls of each choice in the order in which they begin, each once in a piece, as providers
/// are read.
fn number(deltas: &mut [Delta]) {
    let mut begun: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for choice in deltas.iter_mut().flat_map(|delta| &mut delta.choices) {
        let begun = begun.entry(choice.index).or_default();
        for call in &mut choice.tool_calls {
            let known = begun.iter().position(|index| *index == call.index);
            let place = known.unwrap_or_else(|| {
                begun.push(call.index);
                begun.len() - 1
            });
            call.index = u32::try_from(place).unwrap();
        }
        let mut here = Vec::new();
        choice.tool_calls.retain(|call| {
            let is_first = !here.contains(&call.index);
            here.push(call.index);
            is_first
        });
    }
}

/// Without what a reader was not told.
fn told(mut body: Value, include_usage: bool) -> Value {
    if !include_usage {
        body.as_object_mut().map(|body: &mut Map<_, _>| body.remove("usage"));
    }
    body
}

proptest! {
    #[test]
    fn a_stream_says_what_the_completion_says(
        deltas in deltas(&[ToolKind::Function, ToolKind::Custom]),
        include_usage in any::<bool>(),
    ) {
        // The tier is told from the first chunk on: a provider that names two of them has both told.
        let said = say(&deltas, include_usage);
        let expected = told(as_json(&said.body), include_usage);
        prop_assume!(!expected["choices"].as_array().unwrap().is_empty());
        prop_assert_eq!(&put_together(&chunks(&said.events)), &expected);
        let again = replay(&said.body, include_usage).unwrap();
        prop_assert_eq!(&put_together(&chunks(&again)), &expected);
        prop_assert_eq!(replay(&said.body, include_usage).unwrap(), again);
    }

    #[test]
    fn every_chunk_is_one_by_openai_s_schema(
        deltas in deltas(&[ToolKind::Function]),
        include_usage in any::<bool>(),
    ) {
        let said = say(&deltas, include_usage);
        let mut opened = Vec::new();
        for events in [&said.events, &replay(&said.body, include_usage).unwrap()] {
            opened.clear();
            let all = chunks(events);
            for (at, chunk) in all.iter().enumerate() {
                let fault = schema::fault("CreateChatCompletionStreamResponse", chunk);
                prop_assert_eq!(fault, None, "{}", chunk);
                let is_last = at + 1 == all.len();
                let usage = chunk.get("usage");
                prop_assert_eq!(usage.is_some(), include_usage);
                prop_assert_eq!(usage.is_some_and(Value::is_object), include_usage && is_last);
                for choice in chunk["choices"].as_array().unwrap() {
                    let role = choice["delta"].get("role").is_some();
                    prop_assert_eq!(!role, opened.contains(&choice["index"]), "{}", chunk);
                    opened.push(choice["index"].clone());
                }
            }
        }
    }
}
