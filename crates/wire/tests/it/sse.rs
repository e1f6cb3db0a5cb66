//! Streams of events: the same whatever pieces they come in.

use holdfast_wire::sse::{Decoder, Event, TooLong, event};
use proptest::prelude::*;

/// An event as the test keeps it: its name, its data, the last id.
type EventFields = [String; 3];

fn heard(event: Event<'_>) -> EventFields {
    [event.name, event.data, event.last_id].map(|text| String::from_utf8(text.to_vec()).unwrap())
}

/// Reads a stream that comes in pieces.
fn read<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<EventFields>, TooLong> {
    let mut all = Vec::new();
    for piece in pieces {
        let mut events = decoder.feed(piece);
        while let Some(event) = events.next_event()? {
            all.push(heard(event));
        }
    }
    Ok(all)
}

fn decoder() -> Decoder {
    Decoder::new(1_000, 1_000)
}

/// Reads it at once, byte by byte, and cut in two at every place: all the same.
#[track_caller]
fn check(stream: &str, expected: &[[&str; 3]]) {
    let stream = stream.as_bytes();
    let whole = read(&mut decoder(), [stream]).unwrap();
    assert_eq!(whole, expected);
    assert_eq!(read(&mut decoder(), stream.chunks(1)).unwrap(), whole);
    for at in 0..=stream.len() {
        let (one, other) = stream.split_at(at);
        assert_eq!(read(&mut decoder(), [one, other]).unwrap(), whole, "cut at {at}");
        assert_eq!(read(&mut decoder(), [one, b"", other]).unwrap(), whole, "cut at {at}");
    }
}

#[test]
fn events_end_at_blank_lines_of_every_sort() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = ["data: a", "", "data:b", "data: c", "", ""].join(end);
        check(&stream, &[["", "a", ""], ["", "b\nc", ""]]);
    }
    check("data: a\r\n\ndata: b\n\r\n", &[["", "a", ""], ["", "b", ""]]);
    check("data: a\r\n\r\n\r\n\r\ndata: b\r\r", &[["", "a", ""], ["", "b", ""]]);
}

#[test]
fn fields_are_read_as_the_standard_has_them() {
    check("data:  two spaces\n\n", &[["", " two spaces", ""]]);
    check("data\n\n", &[["", "", ""]]);
    check("data\ndata:\n\n", &[["", "\n", ""]]);
    check("data: a:b: c\n\n", &[["", "a:b: c", ""]]);
    check("event: ping\ndata: {}\n\ndata: x\n\n", &[["ping", "{}", ""], ["", "x", ""]]);
    check("event: a\nevent: b\ndata: x\n\n", &[["b", "x", ""]]);
    check("id: 7\ndata: a\n\ndata: b\nid\n\n", &[["", "a", "7"], ["", "b", ""]]);
    check("id: 7\nid: \0\ndata: a\n\n", &[["", "a", "7"]]);
    check("retry: 5\nfoo: bar\nDATA: x\n data: y\ndata: z\n\n", &[["", "z", ""]]);
}

#[test]
fn what_carries_nothing_is_no_event() {
    check(": a comment\n\n:\n\nevent: x\n\nid: 7\n\n\n\ndata: a\n\n", &[["", "a", "7"]]);
    check(": ping\ndata: a\n: ping\ndata: b\n\n", &[["", "a\nb", ""]]);
    check("data: whole\n\ndata: cut\n", &[["", "whole", ""]]);
    check("data: whole\n\ndata: c", &[["", "whole", ""]]);
    check("", &[]);
}

#[test]
fn a_byte_order_mark_is_read_over_once() {
    check("\u{feff}data: a\n\n", &[["", "a", ""]]);
    check("\u{feff}\u{feff}data: a\n\ndata: b\n\n", &[["", "b", ""]]);
    check("data: a\n\n\u{feff}data: b\n\n", &[["", "a", ""]]);
}

#[test]
fn nothing_grows_beyond_its_limit() {
    let of = |stream: &str, line, event| {
        let whole = read(&mut Decoder::new(line, event), [stream.as_bytes()]).map(|all| all.len());
        let bytes = stream.as_bytes().chunks(1);
        assert_eq!(read(&mut Decoder::new(line, event), bytes).map(|all| all.len()), whole);
        whole
    };
    let stream = "data: abc\ndata: de\n\n";
    assert_eq!(of(stream, 9, 6), Ok(1));
    assert_eq!(of(stream, 8, 6), Err(TooLong::Line));
    assert_eq!(of(stream, 9, 5), Err(TooLong::Event));
    // A line without an end is noticed before it has one.
    assert_eq!(of("data: abcd", 9, 9), Err(TooLong::Line));
    assert_eq!(of(": 34567890", 9, 9), Err(TooLong::Line));
    // Each event has the limit to itself.
    assert_eq!(of("data: abcdef\n\ndata: abcdef\n\n", 12, 6), Ok(2));
}

#[test]
fn what_is_written_is_read() {
    let written = [&event(b"{\"a\":1}")[..], b": ping\n", &event(b"[DONE]")].concat();
    check(str::from_utf8(&written).unwrap(), &[["", "{\"a\":1}", ""], ["", "[DONE]", ""]]);
}

proptest! {
    /// Lines of every sort, in pieces of every length.
    #[test]
    fn pieces_make_no_difference(
        lines in prop::collection::vec("(data|event|id|x|)(:|: |)[a-zé:\u{feff} ]{0,6}(\n|\r|\r\n)", 0..12),
        lengths in prop::collection::vec(1_usize..9, 1..40),
    ) {
        let stream = lines.concat().into_bytes();
        let whole = read(&mut decoder(), [&stream[..]]).unwrap();
        let mut rest = &stream[..];
        let mut pieces = Vec::new();
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(read(&mut decoder(), pieces).unwrap(), whole);
    }
}
