//! The words of a Rust file from which the dependencies of its module are read: names, paths, attributes and
//! braces, each with its line.
//!
//! A lexer and not a parser: comments, texts and characters are left out, and the rest is read by `cycles.rs`. It
//! never fails. A file that does not compile gives meaningless tokens, and the compiler reports it before this
//! does.

/// A word of the code, or one character of its punctuation; `::` is one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Index of its line, from zero.
    pub(crate) index: usize,
}

/// All tokens of `text`, in order.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let pieces = pieces(text).into_iter();
    pieces.filter(|(_, is_code)| *is_code).map(|(token, _)| token).collect()
}

/// All of `text` in order: its tokens, and between them blanks, comments, texts and characters.
pub(crate) fn pieces(text: &str) -> Vec<(Token<'_>, bool)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut index = 0;
    while let Some(first) = rest.chars().next() {
        let (length, is_code) = measure(rest, first);
        let (piece, after) = rest.split_at(length);
        pieces.push((Token { text: piece, index }, is_code));
        index += piece.matches('\n').count();
        rest = after;
    }
    pieces
}

/// Bytes of what `rest` begins with, and whether it is a token.
fn measure(rest: &str, first: char) -> (usize, bool) {
    if first.is_whitespace() {
        return (first.len_utf8(), false);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (rest.find("*/").map_or(rest.len(), |end| end + 2), false);
    }
    if let Some(length) = raw_text(rest) {
        return (length, false);
    }
    match first {
        '"' => (quoted(rest, '"').unwrap_or(rest.len()), false),
        // A character has a second quote, a lifetime has none.
        '\'' => match character(rest) {
            Some(length) => (length, false),
            None => (1, true),
        },
        _ if is_of_a_word(first) => (rest.find(|it| !is_of_a_word(it)).unwrap_or(rest.len()), true),
        _ if rest.starts_with("::") => (2, true),
        _ => (first.len_utf8(), true),
    }
}

/// `r"…"`, `br#"…"#` and their like.
fn raw_text(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let opened = after.trim_start_matches('#');
    let hashes = after.get(..after.len() - opened.len())?;
    let inside = opened.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let closed = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(rest.len() - inside.len() + closed)
}

/// Up to and with the closing quote.
fn quoted(rest: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return Some(at + character.len_utf8()),
            _ => {}
        }
    }
    None
}

fn character(rest: &str) -> Option<usize> {
    let mut inside = rest.chars().skip(1);
    let first = inside.next()?;
    if first == '\\' || inside.next() == Some('\'') { quoted(rest, '\'') } else { None }
}

fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = tokens(text).into_iter().map(|it| it.text).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_and_paths_are_tokens() {
        check(
            "use crate::a::{B, c};",
            &["use", "crate", "::", "a", "::", "{", "B", ",", "c", "}", ";"],
        );
    }

    #[test]
    fn comments_and_texts_are_none() {
        check("a // crate::b\n/* crate::c\n*/ d", &["a", "d"]);
        check("\"crate::a \\\" crate::b\" c", &["c"]);
        check("r#\"crate::a \" b\"# c br\"x\" d", &["c", "d"]);
        check("return r", &["return", "r"]);
    }

    #[test]
    fn a_quote_is_a_character_or_a_lifetime() {
        check("'\"' a '\\'' b", &["a", "b"]);
        check("&'a str 'x'", &["&", "'", "a", "str"]);
    }

    #[test]
    fn tokens_know_their_lines() {
        let found = tokens("a\n\"x\ny\" b\n");
        assert_eq!(found.iter().map(|it| it.index).collect::<Vec<_>>(), [0, 2]);
    }
}
