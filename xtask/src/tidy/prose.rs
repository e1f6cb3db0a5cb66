//! Documents are read in a window next to the code: lines of prose are 120 characters long at most.
//!
//! Rows of tables, code and a word that is too long by itself, such as an address, cannot be broken, and stay as
//! they are.

use super::Finding;

const LINE_CHARACTERS_MAX: usize = 120;

/// Lines of a document that are too long.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".md") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        // Fences come in pairs: an open one at the end makes the rest code, as a renderer does.
        is_code ^= is_fence;
        let length = line.chars().count();
        let is_prose = !is_code && !is_fence && !line.trim_start().starts_with('|');
        if is_prose && length > LINE_CHARACTERS_MAX && !is_one_word(line, length) {
            let what = format_args!("{length} characters, at most {LINE_CHARACTERS_MAX}: break it");
            findings.push(Finding::at(path, index, what));
        }
    }
    findings
}

/// True if one word is longer than the rest of its line.
fn is_one_word(line: &str, length: usize) -> bool {
    let words = line.split_whitespace().map(|word| word.chars().count());
    words.max().is_some_and(|longest| longest > length - longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(text: &str, expected: usize) {
        assert_eq!(check("docs/a.md", text).len(), expected, "{text}");
    }

    #[test]
    fn long_prose_is_found() {
        let exactly = "word ".repeat(24);
        check_text(&exactly, 0);
        check_text(&format!("{exactly}a"), 1);
        check_text(&format!("- {exactly}\n\n{exactly}\n# {exactly}"), 2);
        assert_eq!(check("a.rs", &format!("{exactly}a")), []);
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        check_text(&"wörd ".repeat(24), 0);
    }

    #[test]
    fn what_cannot_be_broken_may_be_long() {
        let long = "word ".repeat(30);
        check_text(&format!("| {long} |"), 0);
        check_text(&format!("```sh\n{long}\n```\n"), 0);
        check_text(&format!("```\n{long}\n```\n{long}\n"), 1);
        let address = format!("https://example.org/{}", "a".repeat(110));
        check_text(&format!("See {address} for more"), 0);
        check_text(&format!("{long} https://example.org/a"), 1);
    }
}
