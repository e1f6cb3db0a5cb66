//! Isolation of texts that people typed: a name in Arabic or Hebrew, or an old one with a control of the direction, is
//! shown as it is, without an effect on the text around it.
//!
//! | place of the text | isolation |
//! |---|---|
//! | a cell, a link above the page, the address of the visitor | `<bdi>` of the template |
//! | part of a title or a sentence | [`isolated`]; the template has `<bdi>` there ([`sentence`]) |
//! | the title of the window, an option, an attribute | the same characters, without markup ([`isolated`]) |
//! | an input | `dir="auto"` |
//!
//! The characters are U+2068 and U+2069 of Unicode, which printable text does not contain.

use askama::Template;

const BEGIN: char = '\u{2068}';
const END: char = '\u{2069}';

/// A typed text as part of a title or a sentence.
pub(crate) fn isolated(text: &str) -> String {
    // One of before the rule of printable text may have some of these: seen, and without effect.
    let seen = |it: char| match it {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    let text: String = text.chars().map(seen).collect();
    format!("{BEGIN}{text}{END}")
}

#[derive(Template)]
#[template(
    source = "{% for (text, is_typed) in parts %}{% if *is_typed %}<bdi>{{ text }}</bdi>\
        {% else %}{{ text }}{% endif %}{% endfor %}",
    ext = "html"
)]
struct Parts<'a> {
    parts: Vec<(&'a str, bool)>,
}

/// Markup of a title or a sentence: its typed parts in `<bdi>`, all of it escaped.
pub(crate) fn sentence(text: &str) -> impl std::fmt::Display {
    let mut parts = Vec::new();
    for part in text.split(BEGIN) {
        match part.split_once(END) {
            Some((typed, rest)) => parts.extend([(typed, true), (rest, false)]),
            None => parts.push((part, false)),
        }
    }
    parts.retain(|(text, _)| !text.is_empty());
    Parts { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_parts_of_a_sentence_are_isolated_and_all_of_it_is_escaped() {
        for (text, shown) in [
            ("Revoke".to_owned(), "Revoke"),
            (isolated("שלום"), "<bdi>שלום</bdi>"),
            (
                format!("Rotate {} <now>", isolated("<b>")),
                "Rotate <bdi>&#60;b&#62;</bdi> &#60;now&#62;",
            ),
            (format!("{} of {}.", isolated("a"), isolated("b")), "<bdi>a</bdi> of <bdi>b</bdi>."),
            (isolated("x\u{202e}y\u{2069}z"), "<bdi>x\u{fffd}y\u{fffd}z</bdi>"),
            ("a stray \u{2068}one".to_owned(), "a stray one"),
        ] {
            assert_eq!(sentence(&text).to_string(), shown);
        }
    }
}
