//! What is not taken from a provider: more than an answer can be, and what says whose it is.

use holdfast_domain::answer::{Answer, Choice};
use holdfast_domain::request::Opaque;
use holdfast_wire::chat::upstream::{
    CALLS_MAX, CHOICES_MAX, ChunkReader, UnreadableReason, read_completion,
};
use proptest::prelude::*;

/// What one choice says in two chunks and in a whole answer; both say the same.
#[track_caller]
fn said(members: &str, beside: &str) -> Choice {
    let chunk = |rest: &str| format!(r#"{{"choices":[{{"index":0,{rest}}}]}}"#);
    let mut reader = ChunkReader::new(1);
    let mut streamed = Answer::default();
    let delta =
        chunk(&format!(r#""delta":{{"content":"x",{members}}},{beside},"finish_reason":null"#));
    for chunk in [delta, chunk(r#""delta":{},"finish_reason":"stop""#)] {
        streamed.append(reader.read(chunk.as_bytes()).unwrap().unwrap());
    }
    let whole =
        chunk(&format!(r#""message":{{"content":"x",{members}}},{beside},"finish_reason":"stop""#));
    let mut answer = Answer::default();
    answer.append(read_completion(whole.as_bytes(), 1).unwrap().delta);
    assert_eq!(streamed, answer);
    answer.choices().next().unwrap().1.clone()
}

fn texts(all: &[Opaque]) -> Vec<&str> {
    all.iter().map(Opaque::as_str).collect()
}

#[test]
fn of_sources_and_probabilities_only_the_members_of_the_schema_are_kept() {
    let choice = said(
        r#""annotations":[
            {"type":"file_citation","file_id":"LEAK","url_citation":{"url":"u"}},
            {"type":"url_citation","file_id":"LEAK","LEAK":1,"url_citation":{"url":"https://a.test/?utm_source=LEAK",
                "title":"t","start_index":1,"end_index":"LEAK","LEAK":2}},
            {"type":"url_citation","url_citation":{"title":"LEAK"}},{"type":"url_citation"},"LEAK"]"#,
        r#""logprobs":{"LEAK":1,"refusal":null,"content":["LEAK",{"logprob":-1},{"token":"x","logprob":-1.50,
            "bytes":[120,"LEAK"],"LEAK":1,"top_logprobs":[{"token":"y","logprob":-2,"LEAK":[1]}]}]}"#,
    );
    let source = r#"{"type":"url_citation","url_citation":{"start_index":1,"title":"t","url":"https://a.test/"}}"#;
    assert_eq!(texts(&choice.annotations), [source]);
    let logprobs = choice.logprobs.unwrap();
    assert_eq!(logprobs.refusal, None);
    let token = r#"{"token":"x","logprob":-1.50,"bytes":[120],"top_logprobs":[{"token":"y","logprob":-2,"bytes":null}]}"#;
    assert_eq!(texts(&logprobs.content.unwrap()), [token]);
}

#[test]
fn half_of_a_surrogate_pair_is_a_replacement_and_no_lost_answer() {
    for (escaped, text) in [
        (r"\ud83d", "\u{fffd}"),
        (r"\ude00", "\u{fffd}"),
        (r"a\ud83dz", "a\u{fffd}z"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\ude00", "😀"),
    ] {
        let choice = said(&format!(r#""refusal":"{escaped}""#), r#""logprobs":null"#);
        assert_eq!(choice.refusal.as_deref(), Some(text), "{escaped}");
    }
}

#[test]
fn a_choice_calls_so_many_tools_and_no_more() {
    let calls = |from: usize, to: usize| {
        let call = |at| format!(r#"{{"index":{at},"id":"c{at}","function":{{"name":"f"}}}}"#);
        let calls: Vec<_> = (from..to).map(call).collect();
        format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{}]}}}}]}}"#, calls.join(","))
    };
    let mut reader = ChunkReader::new(1);
    assert_eq!(
        reader.read(calls(0, CALLS_MAX + 1).as_bytes()),
        Err(UnreadableReason::TooManyCalls)
    );
    reader.read(calls(0, CALLS_MAX).as_bytes()).unwrap().unwrap();
    assert_eq!(reader.read(calls(0, CALLS_MAX).as_bytes()), Ok(None), "they are known");
    assert_eq!(
        reader.read(calls(CALLS_MAX, CALLS_MAX + 1).as_bytes()),
        Err(UnreadableReason::TooManyCalls)
    );
    let whole =
        calls(0, CALLS_MAX + 1).replace(r#""delta""#, r#""finish_reason":"tool_calls","message""#);
    assert_eq!(read_completion(whole.as_bytes(), 1), Err(UnreadableReason::TooManyCalls));
    let choices = vec![r#"{"index":0,"delta":{"content":"a"}}"#; CHOICES_MAX + 1].join(",");
    let chunk = format!(r#"{{"choices":[{choices}]}}"#);
    assert_eq!(
        ChunkReader::new(1).read(chunk.as_bytes()),
        Err(UnreadableReason::Choices("choices"))
    );
}

#[test]
fn sources_have_an_end_in_any_number_of_chunks() {
    let source = r#"{"type":"url_citation","url_citation":{"url":"u"}}"#;
    let chunk = |n: usize| {
        let sources = vec![source; n].join(",");
        format!(r#"{{"choices":[{{"index":0,"delta":{{"annotations":[{sources}]}}}}]}}"#)
    };
    let (mut reader, mut answer) = (ChunkReader::new(1), Answer::default());
    for n in [1, 1_000, 1_000, 10_000] {
        answer.append(reader.read(chunk(n).as_bytes()).unwrap().unwrap_or_default());
    }
    assert_eq!(answer.choices().next().unwrap().1.annotations.len(), 1_024);
}

#[test]
fn an_answer_has_no_more_values_than_its_length_tells() {
    let junk = |value: &str, n: usize| format!(r#"{{"choices":[],"junk":[{}0]}}"#, value.repeat(n));
    for (value, n, why) in [
        ("0,", 100_000, UnreadableReason::Choices("choices")),
        ("0,", 2_000_000, UnreadableReason::Values),
        ("[],", 1_000_000, UnreadableReason::Values),
        ("1234567,", 2_000_000, UnreadableReason::Choices("choices")),
    ] {
        let body = junk(value, n);
        assert_eq!(read_completion(body.as_bytes(), 1), Err(why), "{n} times {value}");
    }
}

/// Pieces of calls as providers tell them apart: numbered, named by an id, both or neither.
fn piece() -> impl Strategy<Value = String> {
    let number =
        prop_oneof![Just(String::new()), (0..4_u8).prop_map(|n| format!(r#""index":{n},"#))];
    let id = prop_oneof![Just(String::new()), (0..4_u8).prop_map(|n| format!(r#""id":"i{n}","#))];
    let name = prop_oneof![Just("\"x\":1"), Just("\"name\":\"f\""), Just("\"name\":\"g\"")];
    (number, id, name).prop_map(|(number, id, name)| {
        format!(r#"{{{number}{id}"function":{{{name},"arguments":"a"}}}}"#)
    })
}

proptest! {
    /// One piece an event or all in one: they are the same calls.
    #[test]
    fn calls_are_the_same_however_they_are_cut(pieces in prop::collection::vec(piece(), 1..12)) {
        let read = |chunks: &[String]| {
            let (mut reader, mut answer) = (ChunkReader::new(1), Answer::default());
            for calls in chunks {
                let chunk =
                    format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{calls}]}}}}]}}"#);
                answer.append(reader.read(chunk.as_bytes())?.unwrap_or_default());
            }
            Ok::<_, UnreadableReason>(answer)
        };
        prop_assert_eq!(read(&pieces), read(&[pieces.join(",")]));
    }
}
