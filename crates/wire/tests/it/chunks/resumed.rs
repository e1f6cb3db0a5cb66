//! One answer out of several tellings of it, cut anywhere.

use std::collections::BTreeSet;

use bytes::Bytes;
use holdfast_domain::answer::{
    Audio, ChoiceDelta, Delta, FinishReason, FunctionCallDelta, Logprobs, ToolCallDelta,
};
use holdfast_domain::request::{Opaque, ToolKind};
use holdfast_wire::chat::chunk::replay;
use holdfast_wire::chat::resume::{ResumeError, Resumption};
use holdfast_wire::sse::{Decoder, event};
use proptest::prelude::*;

use super::{Rendering, as_json, chunks, deltas, end, put_together, say, text, told};

/// What is written of tellings that are cut after so many events, the last one being whole.
pub(super) fn written(tellings: &[(&[Bytes], usize)]) -> Result<Vec<Bytes>, ResumeError> {
    let (written, end) = written_until(tellings);
    end.map(|()| written)
}

/// The same up to the contradiction, if there is one: what a reader has by then.
pub(super) fn written_until(
    tellings: &[(&[Bytes], usize)],
) -> (Vec<Bytes>, Result<(), ResumeError>) {
    let mut resumption = Resumption::new();
    let mut written = Vec::new();
    for (at, (events, cut)) in tellings.iter().enumerate() {
        if at > 0 {
            resumption.restart();
        }
        for event in events.iter().take(*cut) {
            match resumption.filter(event) {
                Ok(news) => written.extend(news),
                Err(error) => return (written, Err(error)),
            }
        }
    }
    (written, Ok(()))
}

proptest! {
    // Each is cut everywhere, in both ways that it is told.
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn an_answer_that_is_cut_anywhere_is_told_as_one_that_is_not(
        deltas in deltas(&[ToolKind::Function, ToolKind::Custom]),
        include_usage in any::<bool>(),
    ) {
        let said = say(&deltas, include_usage);
        let expected = told(as_json(&said.body), include_usage);
        prop_assume!(!expected["choices"].as_array().unwrap().is_empty());
        let again = replay(&said.body, include_usage).unwrap();
        let all = usize::MAX;
        for (first, second) in [(&said.events, &again), (&again, &said.events)] {
            prop_assert_eq!(&written(&[(first, all)]).unwrap(), first, "the first one as it is");
            for cut in 0..first.len() {
                let twice = written(&[(first, cut), (second, all)]).unwrap();
                prop_assert_eq!(&put_together(&chunks(&twice)), &expected, "cut at {}", cut);
                // The second is cut as well, before and after it is as far as the first was.
                for again in [cut / 2, cut, second.len() - 1] {
                    let again = again.min(second.len() - 1);
                    let thrice = [(&**first, cut), (&**second, again), (&**first, all)];
                    let thrice = written(&thrice).unwrap();
                    prop_assert_eq!(&put_together(&chunks(&thrice)), &expected, "{} {}", cut, again);
                }
            }
        }
    }
}

/// The events of two words and an end.
fn events(said: [&str; 2]) -> Vec<Bytes> {
    let [one, two] = said.map(|word| Delta::from(vec![text(0, word)]));
    let deltas = [one, two, Delta::from(vec![end(0, FinishReason::Stop)])];
    say(&deltas, false).events
}

#[test]
fn another_answer_is_never_gone_on_with() {
    let first = events(["Good ", "day"]);
    let with = |second: &[Bytes], cut| written(&[(&first, cut), (second, usize::MAX)]);
    // Nothing but the opening was written: whatever follows is the answer.
    assert!(with(&events(["Bad ", "day"]), 1).is_ok());
    assert_eq!(with(&events(["Bad ", "day"]), 3), Err(ResumeError::OtherAnswer));
    assert_eq!(with(&events(["Good ", "dax"]), 3), Err(ResumeError::OtherAnswer));
    assert_eq!(with(&events(["Go", ""]), 3), Err(ResumeError::OtherAnswer), "it ends before");
    assert!(with(&events(["Good d", "ay, sir"]), 3).is_ok(), "as far as it was written");
    let other = |from: &str, to: &str| -> Vec<Bytes> {
        let renamed = |event: &Bytes| str::from_utf8(event).unwrap().replace(from, to).into();
        first.iter().map(renamed).collect()
    };
    assert_eq!(with(&other("abc\"", "abd\""), 1), Err(ResumeError::OtherAnswer));
    assert_eq!(with(&other("\"a/b\"", "\"a/c\""), 1), Err(ResumeError::OtherAnswer));
    assert_eq!(with(&other("\"stop\"", "\"length\""), 4), Err(ResumeError::OtherAnswer));
    assert_eq!(with(&other("data: ", "date: "), 1), Err(ResumeError::Unreadable));
    // Why it broke is told, whatever was written.
    let error = [Bytes::from_static(b"data: {\"error\":{}}\n\n")];
    assert_eq!(with(&error, 3).unwrap().last(), error.last());
}

fn call(name: Option<&str>, input: &str) -> ToolCallDelta {
    ToolCallDelta {
        index: 0,
        kind: name.map(|_first| ToolKind::Function),
        name: name.map(str::to_owned),
        input: Some(input.to_owned()),
        state: None,
    }
}

fn calling(call: ToolCallDelta) -> Delta {
    Delta::from(vec![ChoiceDelta { tool_calls: vec![call], ..ChoiceDelta::default() }])
}

#[test]
fn a_reader_has_nothing_of_another_answer() {
    let first = events(["Good ", "day"]);
    let ends = Delta::from(vec![end(0, FinishReason::Stop)]);
    let goes_on = Delta::from(vec![text(0, "Go")]);
    let calls = [goes_on.clone(), calling(call(Some("look"), "{}")), ends];
    for other in [events(["Go", ""]), events(["Bad day", ""]), say(&calls, false).events] {
        for cut in 2..first.len() {
            let (written, end) = written_until(&[(&first, cut), (&other, usize::MAX)]);
            assert_eq!((&written[..], end), (&first[..cut], Err(ResumeError::OtherAnswer)));
        }
    }
    // A replay that breaks off while it is behind leaves nothing behind: the next one is the answer.
    let other = say(&[goes_on, calling(call(Some("look"), "{}"))], false).events;
    let thrice = [(&first[..], 2), (&other[..], 3), (&first[..], usize::MAX)];
    assert_eq!(put_together(&chunks(&written(&thrice).unwrap())), put_together(&chunks(&first)));
}

#[test]
fn news_waits_until_all_that_was_written_has_come_again() {
    let of = |word| Delta::from(vec![text(0, word)]);
    let ends = || Delta::from(vec![end(0, FinishReason::ToolCalls)]);
    let [begun, rest] = [call(Some("look"), "{"), call(None, "}")].map(calling);
    let first = say(&[of("Good "), begun, of("day"), rest, ends()], false).events;
    // The same with each part as a whole.
    let second = say(&[of("Good day"), calling(call(Some("look"), "{}")), ends()], false).events;
    let mut resumption = Resumption::new();
    let mut told = Vec::new();
    first[..3].iter().for_each(|event| told.extend(resumption.filter(event).unwrap()));
    resumption.restart();
    let mut counts = Vec::new();
    for event in &second {
        let news = resumption.filter(event).unwrap();
        counts.push((news.len(), resumption.finished()));
        told.extend(news);
    }
    assert_eq!(counts, [(0, 0), (0, 0), (2, 0), (1, 1), (1, 1)]);
    assert_eq!(put_together(&chunks(&told)), put_together(&chunks(&first)));
}

/// A chunk of one choice, spelled as no gateway does, with these further members.
fn chunk(delta: &str, finish: &str, more: &str) -> Bytes {
    let choice = format!(r#"{{"index":0, "delta":{delta}, "finish_reason":{finish}}}"#);
    let text = format!(r#"{{"id":"a", "model":"b", "choices":[{choice}]{more}}}"#);
    event(text.as_bytes())
}

#[test]
fn where_nothing_was_written_the_answer_goes_out_byte_for_byte() {
    let mut resumption = Resumption::new();
    resumption.restart();
    let events = [chunk(r#"{"content":"Good"}"#, "null", ""), event(b"[DONE]")];
    for event in events {
        assert_eq!(resumption.filter(&event), Ok(vec![event]));
    }
}

#[test]
fn what_comes_beside_a_word_that_was_written_is_written() {
    let good = chunk(r#"{"content":"Good"}"#, "null", "");
    let usage = r#", "usage":{"total_tokens":3}"#;
    let rows = [
        ("\"stop\"", "", Some("stop"), false),
        ("null", usage, None, true),
        ("\"stop\"", usage, Some("stop"), true),
    ];
    for (finish, more, is_finished, has_usage) in rows {
        let mut resumption = Resumption::new();
        assert_eq!(resumption.filter(&good), Ok(vec![good.clone()]));
        resumption.restart();
        let again = chunk(r#"{"content":"Good"}"#, finish, more);
        let mut news = resumption.filter(&again).unwrap();
        assert_eq!(resumption.finished(), usize::from(is_finished.is_some()));
        news.extend(resumption.filter(&event(b"[DONE]")).unwrap());
        let news = chunks(&news);
        assert_eq!(news.len(), 1, "{finish}{more}");
        assert_eq!(news[0]["usage"].is_object(), has_usage);
        let choice = &news[0]["choices"][0];
        assert_eq!(choice["finish_reason"].as_str(), is_finished);
        assert_ne!(choice["delta"]["content"], "Good");
    }
}

#[test]
fn news_that_waits_has_a_limit() {
    const MAX: usize = 32 << 20;
    let of = |choice: usize, text: &str| -> Bytes {
        let choice = format!(r#"{{"index":{choice},"delta":{{"content":"{text}"}}}}"#);
        event(format!(r#"{{"id":"a","choices":[{choice}]}}"#).as_bytes())
    };
    let frame = of(0, "").len();
    for (bytes, is_too_much) in [(MAX, false), (MAX + 1, true)] {
        let mut resumption = Resumption::new();
        for choice in [0, 1] {
            resumption.filter(&of(choice, "A")).unwrap();
        }
        resumption.restart();
        // Until the second choice has come again all that is new of the first one waits.
        let news = resumption.filter(&of(0, &format!("A{}", "x".repeat(bytes - frame))));
        assert_eq!(news, if is_too_much { Err(ResumeError::TooMany) } else { Ok(Vec::new()) });
    }
}

/// The events that differ from this one in one letter or digit of a value, each with the name of
/// the value's member.
fn with_a_byte_changed(event: &Bytes) -> Vec<(String, Bytes)> {
    let mut changed = Vec::new();
    let mut name = String::new();
    let mut change = |name: &str, at: usize, byte: u8| {
        let mut other = event.to_vec();
        other[at] = byte;
        changed.push((name.to_owned(), other.into()));
    };
    let mut at = 0;
    while at < event.len() {
        let begin = at + 1;
        if event[at] == b'"' {
            at = begin;
            while event[at] != b'"' {
                at += 1 + usize::from(event[at] == b'\\');
            }
            if event[at + 1] == b':' {
                str::from_utf8(&event[begin..at]).unwrap().clone_into(&mut name);
            } else {
                let letters = (begin..at).filter(|at| event[*at].is_ascii_alphanumeric());
                let is_plain = |at: &usize| event[*at - 1] != b'\\';
                letters
                    .filter(is_plain)
                    .for_each(|at| change(&name, at, if event[at] == b'x' { b'y' } else { b'x' }));
            }
        } else if event[at].is_ascii_digit() {
            change(&name, at, b'0' + (event[at] - b'0' + 1) % 10);
        }
        at += 1;
    }
    changed
}

/// An answer with everything that an answer may have, in two choices.
fn everything() -> Rendering {
    let opaque = |json: &str| Opaque::from_json(json.to_owned());
    let likely = opaque(r#"{"token":"Good","logprob":-0.5,"bytes":[71],"top_logprobs":[]}"#);
    let custom =
        ToolCallDelta { index: 1, kind: Some(ToolKind::Custom), ..call(Some("run"), "go") };
    let one = ChoiceDelta {
        reasoning: Some("Hm".to_owned()),
        tool_calls: vec![call(Some("look"), "{\"q\":17}"), custom],
        logprobs: Some(Logprobs { content: Some(vec![likely.clone()]), refusal: None }),
        ..text(0, "Good day")
    };
    let function_call = FunctionCallDelta {
        name: Some("find".to_owned()),
        arguments: Some("{\"r\":2}".to_owned()),
    };
    let audio = Audio { data: "QUJD".to_owned(), transcript: "abc".to_owned(), expires_at: 1_234 };
    let two = ChoiceDelta {
        refusal: Some("No".to_owned()),
        function_call: Some(function_call),
        logprobs: Some(Logprobs { content: None, refusal: Some(vec![likely]) }),
        annotations: vec![opaque(r#"{"type":"url_citation","url":"u"}"#)],
        audio: Some(audio),
        ..ChoiceDelta { index: 1, ..ChoiceDelta::default() }
    };
    let ends = vec![end(0, FinishReason::Stop), end(1, FinishReason::Length)];
    say(&[Delta::from(vec![one]), Delta::from(vec![two]), Delta::from(ends)], true)
}

#[test]
fn a_changed_byte_of_any_value_is_another_answer() {
    let said = everything();
    let again = replay(&said.body, true).unwrap();
    let told = said.events.len() - 1;
    let mut names = BTreeSet::new();
    for second in [&said.events, &again] {
        for (at, event) in second.iter().enumerate() {
            for (name, changed) in with_a_byte_changed(event) {
                // Of no answer, but of all.
                if name == "object" {
                    continue;
                }
                let mut other = second.clone();
                other[at] = changed;
                let (written, end) = written_until(&[(&said.events, told), (&other, usize::MAX)]);
                assert!(end.is_err(), "{name}: {:?}", other[at]);
                assert_eq!(written, said.events[..told], "{name}: {:?}", other[at]);
                names.insert(name);
            }
        }
    }
    for name in [
        "id",
        "created",
        "model",
        "index",
        "role",
        "content",
        "reasoning_content",
        "refusal",
        "type",
        "name",
        "arguments",
        "input",
        "token",
        "logprob",
        "bytes",
        "data",
        "transcript",
        "expires_at",
        "url",
        "finish_reason",
        "prompt_tokens",
        "customer_charge_micros",
    ] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

/// The whole events of a beginning that is cut anywhere, framed anew as their reader frames them.
pub(super) fn whole_events(bytes: &[u8]) -> Vec<Bytes> {
    let mut decoder = Decoder::new(usize::MAX, usize::MAX);
    let mut events = decoder.feed(bytes);
    let mut whole = Vec::new();
    while let Some(read) = events.next_event().unwrap() {
        whole.push(event(read.data));
    }
    whole
}

#[test]
fn a_cut_at_any_byte_is_gone_on_with_and_shows_nowhere() {
    let first = events(["Go\u{f6}d \"day\"", "\n\u{1f600}!"]);
    let expected = put_together(&chunks(&first));
    let bytes = first.concat();
    for cut in 0..bytes.len() {
        let begun = whole_events(&bytes[..cut]);
        // Another telling of the same: in one piece.
        for second in [first.clone(), whole_events(&bytes)] {
            let twice = written(&[(&begun, usize::MAX), (&second, usize::MAX)]).unwrap();
            assert_eq!(put_together(&chunks(&twice)), expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_changed_byte_in_what_is_dropped_is_never_gone_on_with() {
    let words = ["Good day to you, ", "and good night"];
    let first = events(words);
    let all = words.concat();
    for at in 0..all.len() {
        let mut other = all.clone().into_bytes();
        other[at] ^= 1;
        let other = String::from_utf8(other).unwrap();
        let second = events([&other, ""]);
        // The end of the first word was written, and everything.
        for (cut, told) in [(2, words[0].len()), (3, all.len())] {
            let (written, end) = written_until(&[(&first, cut), (&second, usize::MAX)]);
            let is_dropped = at < told;
            assert_eq!(end.is_err(), is_dropped, "byte {at} of {cut} events");
            assert_eq!(written == first[..cut], is_dropped, "byte {at} of {cut} events");
        }
    }
}
