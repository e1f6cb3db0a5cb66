//! What is made of a provider's chunks, one test for each way in which servers differ.

use holdfast_domain::answer::{Answer, Choice, ChoiceDelta, Delta, FinishReason, PredictionTokens};
use holdfast_domain::request::{ServiceTier, ToolKind};
use holdfast_domain::usage::{MeterKind, Meters, UsageCeiling};
use holdfast_wire::chat::upstream::{
    AnswerContext, ChunkReader, UnreadableReason, read_completion,
};

use crate::upstream_meters::resolved;

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"prompt_tokens":10,"completion_tokens":5}"#;

/// What came of a stream: all that was said, what was reported, and how many chunks added nothing.
#[derive(Debug)]
struct StreamOutcome {
    answer: Answer,
    meters: Option<Meters>,
    n_silent: usize,
}

impl StreamOutcome {
    fn choice(&self) -> &Choice {
        self.answer.choices().next().unwrap().1
    }
}

fn hear_n(n: u32, chunks: &[&str]) -> Result<StreamOutcome, UnreadableReason> {
    let ceiling = UsageCeiling { context_tokens: 1_000_000, output_tokens: 1_000 };
    let mut reader = ChunkReader::in_context(AnswerContext::of_choices(n), ceiling);
    let (mut answer, mut n_silent) = (Answer::default(), 0);
    for chunk in chunks {
        match reader.read(chunk.as_bytes())? {
            Some(delta) => answer.append(delta),
            None => n_silent += 1,
        }
    }
    assert_eq!(reader.is_complete(), answer.is_complete(n));
    Ok(StreamOutcome { answer, meters: resolved(reader.end()?), n_silent })
}

fn hear(chunks: &[&str]) -> Result<StreamOutcome, UnreadableReason> {
    hear_n(1, chunks)
}

/// A chunk of the only choice with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

/// What the only choice says in the end when it gets these deltas and stops.
#[track_caller]
fn after(deltas: &[&str]) -> Choice {
    let chunks: Vec<_> = deltas.iter().map(|it| delta(it)).collect();
    let mut chunks: Vec<_> = chunks.iter().map(String::as_str).collect();
    chunks.push(STOP);
    hear(&chunks).unwrap().choice().clone()
}

#[test]
fn a_stream_as_openai_sends_it() {
    let heard = hear(&[
        r#"{"id":"chatcmpl-x","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abc"}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"accepted_prediction_tokens":2,"rejected_prediction_tokens":1}}}"#,
    ])
    .unwrap();
    assert_eq!(heard.choice().content.as_deref(), Some("Hi"));
    assert_eq!(heard.choice().finish, Some(FinishReason::Stop));
    assert_eq!(heard.answer.service_tier, Some(ServiceTier::Default));
    assert_eq!(heard.answer.predicted, PredictionTokens { accepted: 2, rejected: 1 });
    let meters = heard.meters.unwrap();
    assert_eq!((meters.count(MeterKind::Input), meters.count(MeterKind::CachedInput)), (6, 4));
    assert_eq!(meters.completion_tokens(), 5);
}

#[test]
fn a_chunk_says_what_it_adds_and_nothing_else() {
    let mut reader = ChunkReader::new(2);
    let read = |reader: &mut ChunkReader, chunk: &str| reader.read(chunk.as_bytes()).unwrap();
    let chunk = r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{}}]}"#;
    let gained = ChoiceDelta { index: 1, content: Some("b".to_owned()), ..ChoiceDelta::default() };
    assert_eq!(read(&mut reader, chunk), Some(Delta::from(vec![gained])));
    for nothing in [
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[]}}]}"#,
        // Azure: what its filters say, before or between the words.
        r#"{"id":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#,
        r#"{"choices":[{"index":0,"content_filter_results":{},"content_filter_offsets":{}}]}"#,
        r#"{"choices":[{"index":0,"delta":null,"finish_reason":""}]}"#,
        r#"{"choices":null,"usage":null,"error":null,"x_groq":{"id":"req"}}"#,
        r#"{"object":"chat.completion.chunk"}"#,
    ] {
        assert_eq!(read(&mut reader, nothing), None, "{nothing}");
    }
    assert!(!reader.is_complete());
}

#[test]
fn text_and_end_may_come_together() {
    let last = r#"{"choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"length"}]}"#;
    let heard = hear(&[&delta(r#"{"content":"Hi"}"#), last]).unwrap();
    assert_eq!(heard.choice().content.as_deref(), Some("Hi!"));
    assert_eq!(heard.choice().finish, Some(FinishReason::Length));
}

#[test]
fn the_first_end_counts() {
    let again = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"length"}]}"#;
    let heard = hear(&[&delta(r#"{"content":"x"}"#), STOP, again]).unwrap();
    assert_eq!(heard.choice().finish, Some(FinishReason::Stop));
}

#[test]
fn an_index_may_be_missing_where_there_is_one_choice() {
    let chunk = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
    assert_eq!(hear(&[chunk]).unwrap().choice().content.as_deref(), Some("x"));
    let no_index = UnreadableReason::Choices("choices[].index");
    assert_eq!(hear_n(2, &[chunk]).unwrap_err(), no_index);
}

#[test]
fn usage_is_found_where_vendors_put_it() {
    let said = delta(r#"{"content":"x"}"#);
    let count = |chunks: &[&str]| hear(chunks).unwrap().meters.map(|m| m.completion_tokens());
    for report in [
        format!(r#"{{"choices":[],"usage":{USAGE}}}"#),
        format!(r#"{{"usage":{USAGE}}}"#),
        format!(r#"{{"choices":[],"x_groq":{{"id":"req","usage":{USAGE}}}}}"#),
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop","usage":{USAGE}}}]}}"#
        ),
    ] {
        assert_eq!(count(&[&said, STOP, &report]), Some(5), "{report}");
    }
    // One that grows with the text: the last counts, and none after it takes it away.
    let grown = format!(r#"{{"choices":[],"usage":{USAGE}}}"#);
    let first = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}"#;
    let none = r#"{"choices":[],"usage":null}"#;
    assert_eq!(count(&[&said, first, STOP, &grown, none]), Some(5));
    for odd in [
        r#"{"choices":[],"usage":{}}"#,
        r#"{"choices":[],"usage":[]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":-1}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":99999999}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}"#,
    ] {
        assert_eq!(count(&[&said, &grown, STOP, odd]), Some(5), "{odd}");
        assert_eq!(count(&[&said, STOP, odd, &grown]), Some(5), "{odd}");
    }
}

#[test]
fn usage_that_cannot_be_believed_is_none() {
    let said = delta(r#"{"content":"x"}"#);
    let meters = |report: &str| hear(&[&said, STOP, report]).unwrap().meters;
    assert_eq!(meters("{}"), None);
    assert_eq!(meters(r#"{"usage":{"prompt_tokens":10}}"#), None);
    assert_eq!(meters(r#"{"usage":{"prompt_tokens":10,"completion_tokens":-1}}"#), None);
    assert_eq!(meters(r#"{"usage":{"prompt_tokens":10,"completion_tokens":0}}"#), None);
    let silent = hear(&[STOP, r#"{"usage":{"prompt_tokens":10,"completion_tokens":0}}"#]);
    assert_eq!(silent.unwrap().meters, Meters::text(10, 0).ok());
}

#[test]
fn thoughts_are_told_under_either_name() {
    for name in ["reasoning_content", "reasoning"] {
        let choice = after(&[
            &format!(r#"{{"{name}":"hm"}}"#),
            &format!(r#"{{"{name}":"m","content":null}}"#),
            &format!(r#"{{"{name}":"","content":"x"}}"#),
            &format!(r#"{{"{name}":null,"content":"y"}}"#),
        ]);
        assert_eq!(choice.reasoning.as_deref(), Some("hmm"), "{name}");
        assert_eq!(choice.content.as_deref(), Some("xy"), "{name}");
    }
    let both = after(&[r#"{"reasoning_content":"a","reasoning":"a"}"#]);
    assert_eq!(both.reasoning.as_deref(), Some("a"));
    assert_eq!(after(&[r#"{"content":"x","reasoning":""}"#]).reasoning, None);
    let parts = r#"{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}]}"#;
    assert_eq!(after(&[parts, r#"{"content":"b"}"#]).content.as_deref(), Some("ab"));
}

/// The calls of the choice in the end: name and input of each.
#[track_caller]
fn calls(deltas: &[&str]) -> Vec<(String, String)> {
    let deltas: Vec<_> =
        deltas.iter().map(|calls| format!(r#"{{"tool_calls":{calls}}}"#)).collect();
    let choice = after(&deltas.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        choice.tool_calls.keys().copied().eq(0..u32::try_from(choice.tool_calls.len()).unwrap())
    );
    choice.tool_calls.into_values().map(|call| (call.name, call.input)).collect()
}

#[track_caller]
fn check_calls(deltas: &[&str], expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, input)| ((*name).to_owned(), (*input).to_owned())).collect();
    assert_eq!(calls(deltas), expected);
}

#[test]
fn a_piece_under_another_id_continues_no_call() {
    let named =
        r#"[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]"#;
    let other = r#"[{"index":0,"id":"b","function":{"arguments":"}"}}]"#;
    let chunks = [named, other].map(|calls| delta(&format!(r#"{{"tool_calls":{calls}}}"#)));
    let name = UnreadableReason::ToolCalls("choices[].delta.tool_calls[].function.name");
    assert_eq!(hear(&[&chunks[0], &chunks[1], STOP]).unwrap_err(), name);
}

#[test]
fn calls_are_put_together_however_they_are_told_apart() {
    // By their numbers, as OpenAI does it.
    check_calls(
        &[
            r#"[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
            r#"[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}]"#,
            r#"[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
        ],
        &[("f", "{\"x\":1}"), ("g", "{}")],
    );
    // With id, type and name in every piece.
    let again = |arguments: &str| {
        format!(
            r#"[{{"index":0,"id":"a","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}]"#
        )
    };
    check_calls(&[&again("{"), &again("}"), &again("")], &[("f", "{}")]);
    // With those empty or null after the first piece.
    check_calls(
        &[
            r#"[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":null}}]"#,
            r#"[{"index":0,"id":"","type":"","function":{"name":"","arguments":"{"}}]"#,
            r#"[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"}"}}]"#,
        ],
        &[("f", "{}")],
    );
    // Without numbers: by their ids, or in their order.
    check_calls(
        &[
            r#"[{"id":"a","function":{"name":"f","arguments":"{"}}]"#,
            r#"[{"id":"a","function":{"arguments":"}"}}]"#,
            r#"[{"id":"b","function":{"name":"f","arguments":"["}}]"#,
            r#"[{"function":{"arguments":"]"}}]"#,
            r#"[{"id":"a","function":{"arguments":" "}}]"#,
        ],
        &[("f", "{} "), ("f", "[]")],
    );
    check_calls(
        &[
            r#"[{"function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
        ],
        &[("f", "{\"x\":1}"), ("f", "{\"x\":2}")],
    );
    // All under one number, with ids of their own.
    check_calls(
        &[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\""}}]"#,
            r#"[{"index":0,"function":{"arguments":":2}"}}]"#,
        ],
        &[("f", "{\"x\":1}"), ("f", "{\"x\":2}")],
    );
    // Under numbers that do not begin at zero.
    check_calls(
        &[
            r#"[{"index":3,"function":{"name":"f"}},{"index":1,"function":{"name":"g"}}]"#,
            r#"[{"index":3,"function":{"arguments":"{}"}}]"#,
        ],
        &[("f", "{}"), ("g", "{}")],
    );
    // Whole, with the arguments as the object that the text would be.
    check_calls(
        &[r#"[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}]"#],
        &[("f", "{\"x\":1}")],
    );
    // In two pieces of one chunk, and with a name in pieces.
    check_calls(
        &[
            r#"[{"index":0,"function":{"name":"get_"}},{"index":0,"function":{"name":"it","arguments":"{}"}}]"#,
        ],
        &[("get_it", "{}")],
    );
}

#[test]
fn a_piece_tells_the_kind_once_and_no_call_twice() {
    let mut reader = ChunkReader::new(1);
    let mut read = |calls: &str| {
        let chunk = delta(&format!(r#"{{"tool_calls":{calls}}}"#));
        let delta = reader.read(chunk.as_bytes()).unwrap();
        delta.map(|mut delta| delta.choices.remove(0).tool_calls).unwrap_or_default()
    };
    let first = read(
        r#"[{"index":0,"custom":{"name":"c"}},{"index":0,"type":"custom","custom":{"input":"a"}}]"#,
    );
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].kind, first[0].input.as_deref()), (Some(ToolKind::Custom), Some("a")));
    let later = read(r#"[{"index":0,"type":"custom","custom":{"name":"c","input":"b"}}]"#);
    assert_eq!((later[0].kind, later[0].name.as_deref()), (None, None));
    assert_eq!(later[0].input.as_deref(), Some("b"));
    assert_eq!(read(r#"[{"index":0,"custom":{"name":"c","input":""}}]"#), []);
}

#[test]
fn a_function_call_in_the_older_form_is_told_its_name_once() {
    let choice = after(&[
        r#"{"function_call":{"name":"f","arguments":""}}"#,
        r#"{"function_call":{"name":"f","arguments":"{"}}"#,
        r#"{"function_call":{"arguments":"}"}}"#,
    ]);
    let call = choice.function_call.unwrap();
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("f", "{}"));
}

#[test]
fn what_goes_with_the_text_is_kept() {
    let entry = r#"{"token":"x","logprob":-1.50,"bytes":null,"top_logprobs":[]}"#;
    let said = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"x","annotations":[{{"type":"url_citation","url_citation":{{"url":"u"}}}}]}},"logprobs":{{"content":[{entry}],"refusal":null}}}}]}}"#
    );
    let spoken = [
        r#"{"audio":{"id":"audio_x","transcript":"a"}}"#,
        r#"{"audio":{"data":"AA"}}"#,
        r#"{"audio":{"expires_at":7}}"#,
    ];
    let spoken = spoken.map(delta);
    let heard = hear(&[&said, &said, &spoken[0], &spoken[1], &spoken[2], STOP]).unwrap();
    let choice = heard.choice();
    let logprobs = choice.logprobs.as_ref().unwrap().content.as_ref().unwrap();
    assert_eq!(logprobs.iter().map(|it| it.as_str()).collect::<Vec<_>>(), [entry, entry]);
    assert_eq!(choice.annotations.len(), 2);
    let audio = choice.audio.as_ref().unwrap();
    assert_eq!((audio.data.as_str(), audio.transcript.as_str(), audio.expires_at), ("AA", "a", 7));
}

#[test]
fn a_message_at_the_end_is_news_only_where_nothing_was_said() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}]}"#;
    assert_eq!(hear(&[whole]).unwrap().choice().content.as_deref(), Some("all"));
    let heard =
        hear(&[&delta(r#"{"content":"al"}"#), &delta(r#"{"content":"l"}"#), whole]).unwrap();
    assert_eq!(heard.choice().content.as_deref(), Some("all"));
}

#[test]
fn no_part_of_a_message_at_the_end_is_left_out() {
    let call = |name: &str| {
        format!(r#"{{"type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#)
    };
    let (one, both) = (call("f"), [call("f"), call("g")].join(","));
    let first = |index: u32| format!(r#"{{"tool_calls":[{{"index":{index},{}]}}"#, &one[1..]);
    let repeated = |message: &str, finish: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"message":{{{message}}},"finish_reason":"{finish}"}}]}}"#
        )
    };
    let old = r#""function_call":{"name":"f","arguments":"{}"}"#;
    for (said, message, is_whole) in [
        (r#"{"content":"a"}"#, r#""content":"a""#, true),
        (r#"{"content":"a"}"#, &format!(r#""tool_calls":[{one}]"#), false),
        (r#"{"content":"a"}"#, r#""tool_calls":[null,{}]"#, true),
        (r#"{"content":"a"}"#, old, false),
        (r#"{"reasoning_content":"a"}"#, r#""content":"b""#, false),
        (r#"{"reasoning_content":"a"}"#, r#""content":"""#, true),
        (&first(0), &format!(r#""tool_calls":[{one}]"#), true),
        (&first(0), &format!(r#""tool_calls":[{both}]"#), false),
        (&first(0), r#""content":"b""#, false),
    ] {
        let finish = if said.contains("tool_calls") { "tool_calls" } else { "stop" };
        let heard = hear(&[&delta(said), &repeated(message, finish)]);
        assert_eq!(heard.is_ok(), is_whole, "{said}, then {message}");
    }
}

#[test]
fn a_call_after_an_end_that_promises_none_breaks_the_stream() {
    let promised = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    let text = delta(r#"{"content":"a"}"#);
    let call = delta(r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}"#);
    // Callers have read that the answer with a text stopped.
    let finish = hear(&[&text, promised]).unwrap().choice().finish;
    assert_eq!(finish, Some(FinishReason::Stop));
    let late = UnreadableReason::ToolCalls("choices[].delta.tool_calls");
    assert_eq!(hear(&[&text, promised, &call]).unwrap_err(), late);
    let finish = hear(&[&call, promised]).unwrap().choice().finish;
    assert_eq!(finish, Some(FinishReason::ToolCalls));
}

#[test]
fn a_stream_that_is_not_whole_is_broken() {
    let said = delta(r#"{"content":"x"}"#);
    let check = |n, chunks: &[&str], why| assert_eq!(hear_n(n, chunks).unwrap_err(), why);
    let (missing, no_end) =
        (UnreadableReason::Choices("choices"), UnreadableReason::Finish("choices[].finish_reason"));
    check(1, &[], missing);
    check(1, &[&said], no_end);
    check(2, &[&said, STOP], missing);
    let no_index = UnreadableReason::Choices("choices[].index");
    check(1, &[&said, r#"{"choices":[{"index":1,"delta":{}}]}"#], no_index);
    check(1, &["{"], UnreadableReason::Json);
    check(1, &[r#"{"choices":{}}"#], missing);
    let no_delta = UnreadableReason::Choices("choices[].delta");
    check(1, &[r#"{"choices":[{"index":0,"delta":"x"}]}"#], no_delta);
    let no_text = UnreadableReason::Content("choices[].delta.content");
    check(1, &[r#"{"choices":[{"index":0,"delta":{"content":7}}]}"#], no_text);
    for reason in ["error", "abort", "insufficient_system_resource"] {
        let end =
            format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        check(1, &[&said, &end], no_end);
    }
}

#[test]
fn an_error_in_the_stream_breaks_it_whatever_else_it_says() {
    let said = delta(r#"{"content":"x"}"#);
    for error in [
        r#"{"error":{"message":"m","code":502}}"#,
        r#"{"error":"overloaded"}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"error":{"code":"x"}}"#,
        r#"{"choices":[],"x_groq":{"id":"req","error":"over capacity"}}"#,
    ] {
        assert_eq!(hear(&[&said, error]).unwrap_err(), UnreadableReason::Error, "{error}");
    }
}

#[test]
fn calls_that_cannot_be_read_break_it() {
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    let broken = |calls: &str| {
        let chunk = delta(&format!(r#"{{"tool_calls":{calls}}}"#));
        hear(&[&chunk, end]).unwrap_err()
    };
    const CALLS: &str = "choices[].delta.tool_calls";
    for (calls, field) in [
        ("[]", CALLS),
        ("{}", CALLS),
        (r#"[{"index":0,"function":{"arguments":"{}"}}]"#, CALLS),
        (r#"[{"function":{"arguments":"{}"}}]"#, "choices[].delta.tool_calls[].function.name"),
        (r#"[{"index":"x","function":{"name":"f"}}]"#, "choices[].delta.tool_calls[].index"),
        (
            r#"[{"index":0,"type":"web","function":{"name":"f"}}]"#,
            "choices[].delta.tool_calls[].type",
        ),
        (
            r#"[{"index":0,"function":{"name":"f","arguments":7}}]"#,
            "choices[].delta.tool_calls[].function.arguments",
        ),
    ] {
        assert_eq!(broken(calls), UnreadableReason::ToolCalls(field), "{calls}");
    }
    let old = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#;
    assert_eq!(hear(&[old]).unwrap_err(), UnreadableReason::ToolCalls(CALLS));
    let nameless = delta(r#"{"function_call":{"arguments":"{}"}}"#);
    assert_eq!(hear(&[&nameless, old]).unwrap_err(), UnreadableReason::ToolCalls(CALLS));
}

#[test]
fn chunks_are_read_as_the_completion_that_they_are() {
    let message = r#"{"content":"a","refusal":"no","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}],"annotations":[{"type":"t"}]}"#;
    let whole = format!(
        r#"{{"choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":"tool_calls"}}],"usage":{USAGE}}}"#
    );
    let completion = read_completion(whole.as_bytes(), 1).unwrap();
    let chunk = whole.replace("\"message\"", "\"delta\"");
    let heard = hear(&[&chunk]).unwrap();
    let mut answer = Answer::default();
    answer.append(completion.delta);
    assert_eq!(
        (heard.answer, heard.meters, heard.n_silent),
        (answer, resolved(completion.usage), 0)
    );
}
