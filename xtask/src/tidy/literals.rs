//! Texts of the console's pages: a sentence stands in a template, with a member or with its error's type, and never in
//! the code of a page. Logs, panics, attributes and tests are apart.
//!
//! So who rewords a page reads its template, and who reads its code sees what is read and how.

use super::{
    Finding,
    tokens::{Token, pieces},
};

const PAGES: &str = "crates/console/src/pages/";
/// Words of a literal from which on it is a text.
const WORDS: usize = 4;
/// Macros whose literals are for developers and logs.
const MACROS: &[&str] = &[
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "panic",
    "unreachable",
    "assert",
    "assert_eq",
    "debug_assert",
];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !path.starts_with(PAGES) {
        return Vec::new();
    }
    let product = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    // The brackets around a piece: true for those of a log, a panic or an attribute.
    let (mut brackets, mut before) = (Vec::<bool>::new(), ["", ""]);
    let mut findings = Vec::new();
    for (piece, is_code) in pieces(product) {
        if !is_code {
            if !brackets.contains(&true) && is_text(piece) {
                let what = "a text of a page: move it to the page's template";
                findings.push(Finding::at(path, piece.index, what));
            }
            continue;
        }
        match piece.text {
            "(" | "[" | "{" => brackets.push(is_apart(before)),
            ")" | "]" | "}" => {
                brackets.pop();
            }
            _other => {}
        }
        before = [before[1], piece.text];
    }
    findings
}

/// True for a bracket after these two tokens whose literals nobody reads on a page.
fn is_apart(before: [&str; 2]) -> bool {
    match before {
        [name, "!"] => MACROS.contains(&name),
        [_, "#" | "expect"] => true,
        _other => false,
    }
}

fn is_text(piece: Token<'_>) -> bool {
    let is_literal = piece.text.starts_with(['"', 'r', 'b']) && piece.text.contains('"');
    is_literal && words(piece.text) >= WORDS
}

/// Words of a literal, without what a format puts in.
fn words(literal: &str) -> usize {
    let mut depth = 0_usize;
    let shown = |it: &char| {
        match it {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _other => return depth == 0,
        }
        false
    };
    let shown: String = literal.chars().filter(shown).collect();
    shown.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_page(text: &str, lines: &[&str]) {
        let path = "crates/console/src/pages/wallet.rs";
        let found = check(path, text);
        let found: Vec<_> = found.iter().filter_map(|it| it.place.rsplit(':').next()).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn a_sentence_in_a_page_is_found() {
        check_page("let a = 1;\nlet it = \"No wallet is here.\";", &["2"]);
        check_page("Notice::new(\"It has \\\n  run, and ended.\")", &["1"]);
        check_page("let it = format!(\"{a} was sent to {b} by {c} today\");", &["1"]);
    }

    #[test]
    fn names_formats_logs_and_tests_are_no_texts() {
        check_page("let it = \"Latest deposits here\"; // four words are in this comment", &[]);
        check_page("format!(\"{a} of {b}, {c} and {d} more\")", &[]);
        check_page("tracing::error!(%error, \"the data of an event cannot be read\");", &[]);
        check_page("#[expect(lint, reason = \"an edit tells a list from none\")]", &[]);
        check_page(
            "fn a() {}\n#[cfg(test)]\nmod tests { const A: &str = \"one two three four\"; }",
            &[],
        );
        assert!(check("crates/console/src/kit/form.rs", "\"one two three four\"").is_empty());
    }
}
