//! Credentials in the text of an error, to be removed: those that went out with the request, and everything
//! that looks like one. Rather too much than too little: an operator may lose a word of a message, but no key
//! leaks.

use std::collections::HashSet;

use http::HeaderMap;

use super::echoes::lower;

/// Part of a credential of ours that is removed, in characters at least.
const PART: usize = 6;
/// Length of a word with a digit that may be a credential, and that of any word, in characters at least.
const DIGITS_MIN: usize = 16;
const WORD_MIN: usize = 32;
/// Length of a word with a digit in the name of an error that may be one.
const NAME_DIGITS_MIN: usize = 8;

/// Beginnings of credentials, in lower case.
const PREFIXES: [&str; 22] = [
    "sk-",
    "sk_",
    "pk-",
    "pk_",
    "rk_",
    "hfk_",
    "hfa_",
    "hf_",
    "gsk_",
    "xai-",
    "r8_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xox",
    "akia",
    "asia",
    "aiza",
    "ya29",
    "eyj",
    "whsec_",
];

/// Words after which a credential stands, in lower case.
const INTRODUCTIONS: [&str; 2] = ["bearer", "basic"];

/// Credentials that went out with a request: the values of its sensitive headers.
pub(super) fn of_headers(headers: &HeaderMap) -> Vec<Vec<char>> {
    let sensitive = headers.values().filter(|value| value.is_sensitive());
    let texts = sensitive.filter_map(|value| value.to_str().ok());
    let plain = texts.map(|text| text.strip_prefix("Bearer ").unwrap_or(text));
    plain.map(|text| text.chars().map(lower).collect()).collect()
}

/// Marks the characters of a text that are part of a credential which went out with the request.
pub(super) fn mark_own(text: &[char], own: &[Vec<char>], hidden: &mut [bool]) {
    let text: Vec<char> = text.iter().copied().map(lower).collect();
    for credential in own {
        let length = PART.min(credential.len()).max(1);
        let parts: HashSet<&[char]> = credential.windows(length).collect();
        for (at, part) in text.windows(length).enumerate() {
            if parts.contains(part) {
                hide(hidden, at, length);
            }
        }
    }
}

/// Marks the characters of a text that are, or may be, part of a credential.
pub(super) fn mark(text: &[char], own: &[Vec<char>], hidden: &mut [bool]) {
    mark_own(text, own, hidden);
    let text: Vec<char> = text.iter().copied().map(lower).collect();
    let mut is_introduced = false;
    for (at, word) in pieces(&text, |c| c != ' ') {
        if is_introduced || word.contains(&'@') {
            hide(hidden, at, word.len());
        }
        let bare: String = word.iter().filter(|c| c.is_alphanumeric()).collect();
        is_introduced = INTRODUCTIONS.contains(&&*bare);
    }
    for (at, word) in pieces(&text, is_of_token) {
        let begin = word.iter().take_while(|c| !c.is_ascii_alphanumeric()).count();
        let body: String = word.iter().skip(begin).collect();
        let is_long = word.len() >= WORD_MIN
            || (word.len() >= DIGITS_MIN && word.iter().any(char::is_ascii_digit));
        if is_long || PREFIXES.iter().any(|prefix| body.starts_with(prefix)) {
            hide(hidden, at, word.len());
        }
    }
}

/// True if a name, in lower case, looks like a credential: by its beginning, a long word, or digits inside of words.
/// The names of errors are words of letters.
pub(super) fn is_like(name: &str) -> bool {
    let is_separator = |c: char| matches!(c, '_' | '-' | '.');
    let begins = |(at, c): (usize, char)| is_separator(c).then(|| name.get(at + 1..)).flatten();
    let mut beginnings = std::iter::once(name).chain(name.char_indices().filter_map(begins));
    if beginnings.any(|rest| PREFIXES.iter().any(|prefix| rest.starts_with(prefix))) {
        return true;
    }
    let has_digit = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    let is_mixed =
        |word: &&str| has_digit(word) && word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let words = || name.split(is_separator);
    words().any(|word| word.len() >= WORD_MIN || (word.len() >= NAME_DIGITS_MIN && has_digit(word)))
        || (name.len() >= DIGITS_MIN && words().filter(is_mixed).count() >= 2)
}

const fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '*')
}

fn hide(hidden: &mut [bool], at: usize, length: usize) {
    hidden.iter_mut().skip(at).take(length).for_each(|mark| *mark = true);
}

/// Parts of a text whose characters all are of a kind, with their places.
fn pieces(text: &[char], is_of: impl Fn(char) -> bool) -> Vec<(usize, &[char])> {
    let mut found = Vec::new();
    let mut at = 0;
    for piece in text.split(|c| !is_of(*c)) {
        if !piece.is_empty() {
            found.push((at, piece));
        }
        at += piece.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn names_of_errors_are_kept_and_credentials_are_not() {
        for name in [
            "context_length_exceeded",
            "model_not_found",
            "rate_limit_exceeded",
            "invalid_api_key",
            "responsibleaipolicyviolation",
            "servicequotaexceededexception",
            "messages.0.content.1.image_url",
        ] {
            assert!(!is_like(name), "{name}");
        }
        for name in [
            "sk-abc",
            "invalid_key.sk-proj-x",
            "abcdef0123456789",
            "0123abcd-0123-abcd-0123-0123456789ab",
            "ab1c-de2f-gh3i-jk4l",
            "key_x8zq71bb",
            "abcdefghijklmnopqrstuvwxyzabcdefgh",
        ] {
            assert!(is_like(name), "{name}");
        }
    }
}
