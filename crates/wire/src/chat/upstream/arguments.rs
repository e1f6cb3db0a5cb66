//! Progress of a JSON text that arrives in pieces: the arguments of a tool call.
//!
//! Only the structure of the text is kept: the open brackets, and whether a string is open. So the text may be
//! of any length, each byte is looked at once, and no piece is read again.
//!
//! Structure is what a cut or a mix-up breaks: a text that ends early has an open bracket, and two
//! texts in one continue behind the end of the first. A slip of the model within the structure, such
//! as a comma too many, is the model's own answer and passes.

use crate::json::plain_prefix;

/// Brackets whose kind is compared when they close; deeper ones are only counted.
const COMPARED_DEPTH: u32 = u64::BITS;

/// Progress of one JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JsonProgress {
    place: Place,
    depth: u32,
    /// Kinds of the open brackets, the innermost last: a set bit is an object.
    objects: u64,
    /// The text began with a brace.
    is_object: bool,
}

/// Place of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Before the first byte that is not white space.
    #[default]
    Start,
    /// Between the strings of an object or an array.
    Inside,
    /// In a string.
    Text,
    /// After a backslash in a string.
    Escape,
    /// In a number or a word at the top: it has no mark of its end.
    Scalar,
    /// After the value.
    End,
    /// No JSON text goes on like this.
    Broken,
}

impl JsonProgress {
    /// Takes the next piece of the text.
    pub fn feed(&mut self, piece: &str) {
        let mut rest = piece.as_bytes();
        while let [byte, after @ ..] = rest {
            rest = after;
            match (self.place, byte) {
                (Place::Text, _) => rest = self.text(*byte, after),
                (Place::Escape, _) => self.place = Place::Text,
                (Place::Start | Place::Inside | Place::End, b' ' | b'\t' | b'\n' | b'\r') => {}
                (Place::Start, _) => self.begin(*byte),
                (Place::Inside, _) => self.inside(*byte),
                (Place::Scalar, b' ' | b'\t' | b'\n' | b'\r') => self.place = Place::End,
                (Place::Scalar, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'.' | b'+' | b'-') => {}
                (Place::Scalar | Place::End | Place::Broken, _) => self.place = Place::Broken,
            }
        }
    }

    /// True before the first byte that is not white space.
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        matches!(self.place, Place::Start)
    }

    /// True if the text so far is one whole value.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.place, Place::End | Place::Scalar)
    }

    /// True if the text so far is one whole object: more of the text would be another value.
    #[must_use]
    pub const fn is_whole_object(&self) -> bool {
        self.is_object && matches!(self.place, Place::End)
    }

    fn begin(&mut self, byte: u8) {
        self.is_object = byte == b'{';
        match byte {
            b'0'..=b'9' | b'-' | b't' | b'f' | b'n' => self.place = Place::Scalar,
            b'{' | b'[' | b'"' => self.inside(byte),
            _ => self.place = Place::Broken,
        }
    }

    fn inside(&mut self, byte: u8) {
        self.place = match byte {
            b'"' => Place::Text,
            b'{' | b'[' => {
                if self.depth < COMPARED_DEPTH {
                    self.objects = (self.objects << 1) | u64::from(byte == b'{');
                }
                self.depth = self.depth.saturating_add(1);
                Place::Inside
            }
            b'}' | b']' => self.close(byte),
            _ => Place::Inside,
        };
    }

    /// Takes a closing bracket.
    const fn close(&mut self, byte: u8) -> Place {
        let is_pair = (self.objects & 1 == 1) == (byte == b'}');
        let is_compared = self.depth <= COMPARED_DEPTH;
        if is_compared {
            self.objects >>= 1;
        }
        self.depth = self.depth.saturating_sub(1);
        if is_compared && !is_pair {
            Place::Broken
        } else if self.depth == 0 {
            Place::End
        } else {
            Place::Inside
        }
    }

    /// Takes a byte of a string, and returns the rest of the piece from the next byte that matters.
    fn text<'p>(&mut self, byte: u8, after: &'p [u8]) -> &'p [u8] {
        match byte {
            b'"' => self.place = if self.depth == 0 { Place::End } else { Place::Inside },
            b'\\' => self.place = Place::Escape,
            _ => return after.get(plain_prefix(after)..).unwrap_or_default(),
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text in one piece, and in pieces of one character.
    #[track_caller]
    fn progress(text: &str) -> JsonProgress {
        let (mut whole, mut pieces) = (JsonProgress::default(), JsonProgress::default());
        whole.feed(text);
        text.split_inclusive(|_: char| true).for_each(|piece| pieces.feed(piece));
        assert_eq!(whole, pieces, "{text}");
        whole
    }

    #[test]
    fn a_text_is_whole_at_the_end_of_its_value() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":"}\"{","b":[1,{"c":null}]}"#,
            r#"{"é":"𝄞\\"}"#,
            "[]",
            "[1,2]",
            "\"x\"",
            "-1.5e+3",
            "true",
            "null",
        ] {
            assert!(progress(text).is_whole(), "{text}");
        }
        let deep = r#"{"a":"#.repeat(100) + "[1]" + &"}".repeat(100);
        assert!(progress(&deep).is_whole());
    }

    #[test]
    fn a_text_that_is_cut_mixed_or_doubled_is_not_whole() {
        for text in [
            "",
            " ",
            "{",
            r#"{"a":"x"#,
            r#"{"a":"x\"}"#,
            r#"{"a":[1}"#,
            r#"{"a":1]"#,
            "{}{}",
            r#"{"a":1}{"a":2}"#,
            r#"{"a":1}x"#,
            "{}}",
            "1 2",
            "Oslo",
            "}",
            "\"x",
            r#"true{"a":1}"#,
        ] {
            assert!(!progress(text).is_whole(), "{text}");
        }
    }

    #[test]
    fn only_an_object_has_an_end_that_nothing_continues() {
        for (text, expected) in
            [("{}", true), ("{\"a\":1} ", true), ("{\"a\":", false), ("[]", false), ("1", false)]
        {
            assert_eq!(progress(text).is_whole_object(), expected, "{text}");
        }
    }
}
