//! Errors as sentences: the texts of errors begin in lower case, and end without a mark.

/// The same words with a capital and a full stop. What begins with a URL, a path or the name of a
/// member is spelled as it was.
#[must_use]
pub fn sentence(text: &str) -> String {
    let end = if text.ends_with('.') { "" } else { "." };
    if !text.split_whitespace().next().is_none_or(is_word) {
        return format!("{text}{end}");
    }
    let mut chars = text.chars();
    let capital = chars.next().map(char::to_uppercase);
    capital.into_iter().flatten().chain(chars).chain(end.chars()).collect()
}

/// True for a word of a sentence: letters, and perhaps a hyphen or a sign at its end.
fn is_word(first: &str) -> bool {
    let word = first.trim_end_matches([',', ':', ';', '.', '?', '!', ')', '\'']);
    word.chars().all(|char| char.is_alphabetic() || char == '-' || char == '\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_a_capital_unless_it_begins_with_a_thing() {
        for (text, sentence_of_it) in [
            ("say why", "Say why."),
            ("it's over: wait.", "It's over: wait."),
            ("write-only: leave it out", "Write-only: leave it out."),
            ("", "."),
            (
                "https://hooks.example.com cannot be looked up",
                "https://hooks.example.com cannot be looked up.",
            ),
            ("ends_at is in the past", "ends_at is in the past."),
            ("/in is no path", "/in is no path."),
        ] {
            assert_eq!(sentence(text), sentence_of_it);
        }
    }
}
