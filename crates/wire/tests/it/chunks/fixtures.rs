//! Every streamed answer of the providers' fixtures, told anew after a cut at every event and every byte: what is
//! written is the uncut answer, and a changed character in what is dropped is an error.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use holdfast_wire::chat::chunk::{DONE, replay};
use holdfast_wire::chat::resume::ResumeError;
use holdfast_wire::sse::event;
use serde_json::{Value, json};

use super::resumed::{whole_events, written, written_until};
use super::{chunks, put_together};

/// Fewer would mean that the fixtures are elsewhere.
const STREAMS_MIN: usize = 20;

/// Members of a delta that grow, by the path to each.
const TEXTS: [&str; 5] = [
    "/choices/0/delta/content",
    "/choices/0/delta/refusal",
    "/choices/0/delta/reasoning_content",
    "/choices/0/delta/tool_calls/0/function/arguments",
    "/choices/0/delta/tool_calls/0/custom/input",
];

/// The streamed answers of the fixtures, as the gateway replays them.
fn streams() -> Vec<(PathBuf, Vec<Bytes>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/fixtures");
    let folders = |folder: &Path| fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut cases: Vec<_> = folders(&folder).flat_map(|kind| folders(&kind)).collect();
    cases.sort();
    let streamed = |case: &PathBuf| {
        ["answer.sse", "answer.frames"].into_iter().any(|name| case.join(name).is_file())
    };
    let reply = |case: PathBuf| {
        let body = fs::read(case.join("reply.json")).unwrap();
        let told: Value = serde_json::from_slice(&body).unwrap();
        // Others are failures, or have the gateway's own count, which is not in the file.
        told.get("usage").filter(|usage| usage.is_object())?;
        Some((case, replay(told.to_string().as_bytes(), true).unwrap()))
    };
    cases.into_iter().filter(streamed).filter_map(reply).collect()
}

fn data(event: &Bytes) -> Option<Value> {
    let data = event.strip_prefix(b"data: ").unwrap().strip_suffix(b"\n\n").unwrap();
    serde_json::from_slice(data).ok()
}

/// The same answer with a character in each event.
fn finest(events: &[Bytes]) -> Vec<Bytes> {
    let mut finest = Vec::new();
    for whole in events {
        let grown = data(whole).and_then(|chunk| {
            let path = TEXTS.into_iter().find(|path| {
                chunk.pointer(path).and_then(Value::as_str).is_some_and(|it| it.len() > 1)
            })?;
            Some((chunk, path))
        });
        let Some((chunk, path)) = grown else {
            finest.push(whole.clone());
            continue;
        };
        let text = chunk.pointer(path).unwrap().as_str().unwrap().to_owned();
        for (at, letter) in text.chars().enumerate() {
            let mut piece = chunk.clone();
            *piece.pointer_mut(path).unwrap() = json!(letter);
            if at > 0 {
                // What comes once came with the first.
                let delta = piece.pointer_mut("/choices/0/delta").unwrap().as_object_mut().unwrap();
                let member = path.split('/').nth(4).unwrap();
                delta.retain(|name, _| name == member);
                if let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) {
                    calls.truncate(1);
                    let call = calls[0].as_object_mut().unwrap();
                    call.retain(|name, _| !["id", "type"].contains(&&**name));
                    for inner in call.values_mut().filter_map(Value::as_object_mut) {
                        inner.remove("name");
                    }
                }
            }
            finest.push(event(piece.to_string().as_bytes()));
        }
    }
    finest
}

#[test]
fn every_stream_of_the_fixtures_is_gone_on_with_wherever_it_is_cut() {
    let streams = streams();
    assert!(streams.len() >= STREAMS_MIN, "{}", streams.len());
    for (case, coarse) in streams {
        let fine = finest(&coarse);
        let expected = put_together(&chunks(&coarse));
        assert_eq!(put_together(&chunks(&fine)), expected, "{}", case.display());
        for (first, second) in [(&coarse, &fine), (&fine, &coarse), (&fine, &fine)] {
            for cut in 0..first.len() {
                let twice = written(&[(first, cut), (second, usize::MAX)]).unwrap();
                let told = put_together(&chunks(&twice));
                assert_eq!(told, expected, "{} cut before event {cut}", case.display());
            }
        }
        // A cut within an event is one before it: its reader has nothing of it.
        let bytes = coarse.concat();
        let mut begin = 0;
        for (cut, next) in coarse.iter().enumerate() {
            for length in begin..begin + next.len() {
                assert_eq!(whole_events(&bytes[..length]), coarse[..cut], "at byte {length}");
            }
            begin += next.len();
        }
    }
}

#[test]
fn a_changed_character_in_any_dropped_event_of_the_fixtures_is_another_answer() {
    for (case, coarse) in streams() {
        let fine = finest(&coarse);
        let told = coarse.len() - usize::from(coarse.last().is_some_and(|it| it == DONE));
        for (at, piece) in fine.iter().enumerate() {
            let Some(mut chunk) = data(piece) else { continue };
            let grown = TEXTS.into_iter().find(|path| {
                chunk.pointer(path).and_then(Value::as_str).is_some_and(|it| !it.is_empty())
            });
            let Some(path) = grown else { continue };
            let text = chunk.pointer_mut(path).unwrap();
            let letter = if *text == json!("x") { "y" } else { "x" };
            *text = json!(letter);
            let mut other = fine.clone();
            other[at] = event(chunk.to_string().as_bytes());
            let (written, end) = written_until(&[(&coarse, told), (&other, usize::MAX)]);
            assert_eq!(end, Err(ResumeError::OtherAnswer), "{}: event {at}", case.display());
            assert_eq!(written, coarse[..told], "{}: event {at}", case.display());
        }
    }
}
