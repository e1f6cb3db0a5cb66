//! Writer of log lines to standard error. The formatters are the library's, and two faults of theirs are
//! corrected here: a line break of a value would begin a line that looks like another event, and control
//! characters beyond ASCII would reach a terminal that obeys them.
//!
//! Each event comes in one write, with its line end. Of the control characters before that only colours stay,
//! on a terminal: they are the formatter's own, and do no harm if a value has them. Within JSON they can only
//! be in strings, in which `\u009b` is their equal.

use std::borrow::Cow;
use std::io::{self, Stderr, Write};

use tracing_subscriber::fmt::MakeWriter;

use super::plain::is_printable;

/// Standard error, a line at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineWriter {
    pub(super) is_terminal: bool,
}

impl<'a> MakeWriter<'a> for LineWriter {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { to: io::stderr(), has_colours: self.is_terminal }
    }
}

/// Standard error for one event.
#[derive(Debug)]
pub(super) struct Line {
    to: Stderr,
    has_colours: bool,
}

impl Write for Line {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        // Nearly all lines: nothing in them to escape, and no character to decode.
        if is_printable(event.strip_suffix(b"\n").unwrap_or(event)) {
            self.to.write_all(event)?;
            return Ok(event.len());
        }
        match str::from_utf8(event) {
            Ok(line) => self.to.write_all(one_line(line, self.has_colours).as_bytes())?,
            Err(_no_text) => self.to.write_all(event)?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The text of an event with every control character escaped but its line end and, if it may have them,
/// colours.
fn one_line(event: &str, has_colours: bool) -> Cow<'_, str> {
    let line = event.strip_suffix('\n').unwrap_or(event);
    // Most have no character to escape, which one pass over their bytes shows: control characters beyond ASCII
    // begin with `0xc2`. All bytes, many at a time: to stop at the first would be to look at one after the
    // other.
    let may_be_control = |byte: u8| byte < 0x20 || byte == 0x7f || byte == 0xc2;
    if !line.bytes().fold(false, |any, byte| any | may_be_control(byte)) {
        return Cow::Borrowed(event);
    }
    let mut escaped = String::with_capacity(event.len());
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let length = if has_colours { colour_length(rest) } else { None };
        let (taken, after) = rest.split_at(length.unwrap_or(character.len_utf8()));
        rest = after;
        if length.is_none() && character.is_control() {
            escape(character, &mut escaped);
        } else {
            escaped.push_str(taken);
        }
    }
    escaped.push('\n');
    Cow::Owned(escaped)
}

fn escape(character: char, to: &mut String) {
    match character {
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        _ => to.push_str(&format!("\\u{:04x}", u32::from(character))),
    }
}

/// Bytes of the colour that a text begins with: `ESC [`, numbers, `m`.
fn colour_length(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers.get(end..)?.starts_with('m').then(|| text.len() - numbers.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        for (event, told) in [
            ("whole\n", "whole\n"),
            ("a\nb\r\tc\n", "a\\nb\\r\\tc\n"),
            ("{\"a\":\"\u{9b}0m\u{7f} é\"}\n", "{\"a\":\"\\u009b0m\\u007f é\"}\n"),
            ("\u{1b}[31mred\u{1b}[0m\n", "\\u001b[31mred\\u001b[0m\n"),
        ] {
            assert_eq!(one_line(event, false), told);
        }
    }

    #[test]
    fn a_terminal_gets_colours_and_no_other_command() {
        for (event, told) in [
            ("\u{1b}[31mred\u{1b}[1;2m\n", "\u{1b}[31mred\u{1b}[1;2m\n"),
            ("\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}[3\n", "\\u001b[2J\\u001b]0;x\\u0007\\u001b[3\n"),
        ] {
            assert_eq!(one_line(event, true), told);
        }
    }
}
