//! One answer out of several tellings of it, cut anywhere.

use bytes::Bytes;
use holdfast_domain::answer::{Delta, FinishReason};
use holdfast_domain::request::ToolKind;
use holdfast_wire::chat::chunk::replay;
use holdfast_wire::chat::resume::{ResumeError, Resumption};
use holdfast_wire::sse::{Decoder, event};
use proptest::prelude::*;

use super::{as_json, chunks, deltas, end, put_together, say, text, told};

/// What is written of tellings that are cut after so many events, the last one being whole.
pub(super) fn written(tellings: &[(&[Bytes], usize)]) -> Result<Vec<Bytes>, ResumeError> {
    let mut resumption = Resumption::new();
    let mut written = Vec::new();
    for (at, (events, cut)) in tellings.iter().enumerate() {
        if at > 0 {
            resumption.restart();
        }
        for event in events.iter().take(*cut) {
            written.extend(resumption.filter(event)?);
        }
    }
    Ok(written)
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
            let resumed = written(&[(&first, cut), (&second, usize::MAX)]);
            let is_dropped = at < told;
            assert_eq!(resumed.is_err(), is_dropped, "byte {at} of {cut} events");
        }
    }
}
