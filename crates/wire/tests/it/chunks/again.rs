//! An answer that was kept, told again: as large as a stream's pieces, and no larger.

use holdfast_domain::answer::{
    Answer, Audio, ChoiceDelta, Delta, FinishReason, Logprobs, PredictionTokens, ToolCallDelta,
};
use holdfast_domain::request::{Opaque, ServiceTier};
use holdfast_domain::state::ProviderState;
use holdfast_wire::chat::chunk::{replay, split_delta};
use serde_json::{Value, json};

use super::{as_json, chunks, put_together, say};

#[test]
fn an_answer_is_told_again_in_pieces_of_a_stream() {
    let word = |n: usize| format!("wörd-{n} ");
    let token = |n| {
        Opaque::from_json(json!({"token": word(n), "logprob": -0.5, "bytes": null}).to_string())
    };
    let text: String = (0..1_000).map(word).collect();
    let logprobs = Logprobs { content: Some((0..100).map(token).collect()), refusal: None };
    let call = ToolCallDelta {
        name: Some("find".to_owned()),
        input: Some("é".repeat(5_000)),
        ..ToolCallDelta::default()
    };
    let audio = Audio { data: "QUJD".repeat(3_000), transcript: text.clone(), expires_at: 7 };
    let choice = ChoiceDelta {
        content: Some(text.clone()),
        reasoning: Some(text),
        tool_calls: vec![call.clone(), ToolCallDelta { index: 1, ..call }],
        logprobs: Some(logprobs),
        audio: Some(audio),
        finish: Some(FinishReason::Stop),
        ..ChoiceDelta::default()
    };
    let said = say(&[Delta { choices: vec![choice], ..Delta::default() }], true);
    let again = chunks(&replay(&said.body, true).unwrap());
    assert_eq!(put_together(&again), as_json(&said.body));
    let tokens = |chunk: &Value| chunk["choices"][0]["logprobs"]["content"].as_array().cloned();
    for chunk in &again {
        let text = text_bytes(&chunk["choices"][0]["delta"]);
        assert!(text <= 4_096, "{text}: {chunk}");
        let tokens = tokens(chunk).unwrap_or_default();
        assert!(tokens.len() <= 16, "{chunk}");
        let own: String = tokens.iter().map(|token| token["token"].as_str().unwrap()).collect();
        let beside = chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        assert!(beside.starts_with(&own), "{chunk}");
        let data = chunk["choices"][0]["delta"]["audio"]["data"].as_str().unwrap_or_default();
        assert_eq!(data.len() % 4, 0, "{chunk}");
    }
}

#[test]
fn what_is_told_in_pieces_is_the_same_answer() {
    let source = |n| Opaque::from_json(json!({"n": n}).to_string());
    let call = ToolCallDelta {
        name: Some("find".to_owned()),
        input: Some("é".repeat(5_000)),
        state: ProviderState::new("state"),
        ..ToolCallDelta::default()
    };
    let choice = |index| ChoiceDelta {
        index,
        content: Some("é".repeat(9_000)),
        tool_calls: vec![call.clone(), ToolCallDelta { index: 1, ..call.clone() }],
        logprobs: Some(Logprobs { content: Some((0..40).map(source).collect()), refusal: None }),
        annotations: (0..3).map(source).collect(),
        audio: Some(Audio { data: "QUJD".repeat(3_000), transcript: "a".repeat(5), expires_at: 7 }),
        finish: Some(FinishReason::Stop),
        ..ChoiceDelta::default()
    };
    let whole = Delta {
        choices: vec![choice(0), ChoiceDelta { index: 1, ..ChoiceDelta::default() }, choice(2)],
        service_tier: ServiceTier::ALL.first().copied(),
        predicted: Some(PredictionTokens { accepted: 1, rejected: 2 }),
        moderation: Some(source(9)),
    };
    let together = |deltas: Vec<Delta>| {
        let mut answer = Answer::default();
        deltas.into_iter().for_each(|delta| answer.append(delta));
        answer
    };
    let pieces = split_delta(whole.clone());
    assert!(pieces.len() > 20, "{}", pieces.len());
    assert!(together(pieces) == together(vec![whole]));
    assert_eq!(split_delta(Delta::default()), []);
}

/// Bytes of all texts in a delta that grow.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(text_bytes).sum(),
        Value::Object(members) => {
            let grows = |name: &str| !["id", "type", "role"].contains(&name);
            members.iter().filter(|(name, _)| grows(name)).map(|(_, value)| text_bytes(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
