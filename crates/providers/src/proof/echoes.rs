//! Search for the parts of a text that repeat a request: each run of [`RUN`] characters that both contain.
//!
//! ```text
//! text ──── hashes of its runs ─▶ set ◀─ hashes of the request's runs, one by one ──▶ hashes of both
//! ```
//!
//! The text is short and the request may be long, so the runs of the text are kept, and the request is read once,
//! at a rolling hash: the cost is a few steps a character, and no memory. Two characters with equal hashes only
//! remove more.
//!
//! A run counts in two forms. In the first, everything that is neither a letter, a digit nor a sign of ASCII is a
//! blank, and blanks in a row are one, as in the text that is shown. The second has letters and digits alone: it
//! finds an echo with other quotes, escapes or line ends. Both ignore the case.

use std::collections::HashSet;

/// Length of a run, in characters.
pub(super) const RUN: usize = 12;

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Form in which runs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunForm {
    /// Printable characters and single blanks.
    Printed,
    /// Letters and digits.
    Letters,
}

const FORMS: [RunForm; 2] = [RunForm::Printed, RunForm::Letters];

/// Runs of short texts, and those of them that a request contains.
#[derive(Debug)]
pub(super) struct Echoes {
    wanted: HashSet<u64>,
    /// Bits of the hashes to find: most runs of a request differ in them.
    sieve: Box<[u64; 256]>,
    found: HashSet<u64>,
}

/// Last characters of a text with their hash.
struct RollingHash {
    hash: u64,
    last: [u64; RUN],
    at: usize,
    length: usize,
    /// `FACTOR` to the power of `RUN`: weight of the character that leaves.
    leaving: u64,
}

impl RollingHash {
    fn new() -> Self {
        let leaving = (0..RUN).fold(1_u64, |power, _| power.wrapping_mul(FACTOR));
        Self { hash: 0, last: [0; RUN], at: 0, length: 0, leaving }
    }

    /// Adds a character; the hash of the last `RUN` characters, once there are so many.
    fn push(&mut self, c: char) -> Option<u64> {
        let code = u64::from(u32::from(c)).wrapping_add(1);
        let old = self.last.get_mut(self.at).map_or(0, |place| std::mem::replace(place, code));
        self.at = (self.at + 1) % RUN;
        self.length = self.length.saturating_add(1);
        self.hash = self.hash.wrapping_mul(FACTOR).wrapping_add(code);
        self.hash = self.hash.wrapping_sub(old.wrapping_mul(self.leaving));
        (self.length >= RUN).then_some(self.hash)
    }
}

/// Character as it is printed: a blank for everything that is no letter, no digit and no sign of ASCII.
pub(super) fn printed(c: char) -> char {
    if c.is_ascii_graphic() || (!c.is_ascii() && c.is_alphanumeric()) { c } else { ' ' }
}

/// Text as it is printed, with single blanks.
pub(super) fn printed_text(text: &str, chars_max: usize) -> Vec<char> {
    let mut printed_chars: Vec<char> = Vec::new();
    for c in text.chars().map(printed) {
        if printed_chars.len() == chars_max {
            break;
        }
        if c != ' ' || printed_chars.last().is_some_and(|last| *last != ' ') {
            printed_chars.push(c);
        }
    }
    printed_chars
}

/// True if a text may repeat another one in a coded form, in which no run of it is found: by `%41`, `\x41`, `\u0041`,
/// `&#65;`, groups of hex digits, or a tokenizer's sign for a blank.
pub(super) fn is_coded(text: &str) -> bool {
    let begins_with_hex = |rest: &str| {
        let mut chars = rest.trim_start_matches('{').chars();
        chars.by_ref().take(2).filter(char::is_ascii_hexdigit).count() == 2
    };
    let is_entity = |rest: &str| {
        let name = rest.strip_prefix('#').unwrap_or(rest);
        name.split_once(|c: char| !c.is_alphanumeric() && c != '_')
            .is_some_and(|(name, _)| !name.is_empty() && rest.contains(&format!("{name};")))
    };
    let after = |sign: char| text.split(sign).skip(1);
    let is_hex_word =
        |word: &str| word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    text.contains(['Ġ', 'Ċ', '▁'])
        || after('%').any(begins_with_hex)
        || after('\\')
            .filter_map(|rest| rest.strip_prefix(['u', 'U', 'x', 'X']))
            .any(begins_with_hex)
        || after('&').any(is_entity)
        || words.windows(2).any(|pair| pair.iter().all(|word| is_hex_word(word)))
}

/// Text with the escapes of JSON in it replaced, each by its character.
pub(super) fn unescaped(text: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        units.extend(before.encode_utf16());
        let code = escape.strip_prefix('u').and_then(|digits| digits.get(..4));
        let code = code.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let mut chars = escape.chars();
        rest = match (code, chars.next()) {
            (Some(unit), _) => {
                units.push(unit);
                escape.get(5..).unwrap_or_default()
            }
            (None, Some('n' | 't' | 'r' | 'b' | 'f')) => {
                units.push(u16::from(b' '));
                chars.as_str()
            }
            (None, Some(sign)) => {
                units.extend(sign.encode_utf16(&mut [0; 2]).iter());
                chars.as_str()
            }
            (None, None) => "",
        };
    }
    units.extend(rest.encode_utf16());
    String::from_utf16_lossy(&units)
}

pub(super) fn lower(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

impl RunForm {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Printed => true,
            Self::Letters => c.is_alphanumeric(),
        }
    }
}

/// Runs of a printed text in one form: the place of the first character, that of the last, and the hash.
fn runs(text: &[char], form: RunForm) -> impl Iterator<Item = (usize, usize, u64)> {
    let places: Vec<usize> =
        text.iter().enumerate().filter(|(_, c)| form.takes(**c)).map(|(at, _)| at).collect();
    let mut rolling = RollingHash::new();
    let mut found = Vec::new();
    for (nth, at) in places.iter().enumerate() {
        let hash = text.get(*at).and_then(|c| rolling.push(lower(*c)));
        let first = (nth + 1).checked_sub(RUN).and_then(|first| places.get(first));
        if let (Some(hash), Some(first)) = (hash, first) {
            found.push((*first, *at, hash));
        }
    }
    found.into_iter()
}

impl Echoes {
    /// Search for the runs of these printed texts.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t [char]>) -> Self {
        let mut echoes =
            Self { wanted: HashSet::new(), sieve: Box::new([0; 256]), found: HashSet::new() };
        for text in texts {
            for form in FORMS {
                for (_first, _last, hash) in runs(text, form) {
                    echoes.wanted.insert(hash);
                    let (word, bit) = place(hash);
                    if let Some(word) = echoes.sieve.get_mut(word) {
                        *word |= bit;
                    }
                }
            }
        }
        echoes
    }

    /// Reads a part of the request.
    pub(super) fn read(&mut self, part: &str) {
        if self.wanted.is_empty() {
            return;
        }
        let (mut printing, mut letters) = (RollingHash::new(), RollingHash::new());
        let mut is_blank = true;
        for c in part.chars() {
            let c = lower(printed(c));
            if c != ' ' || !is_blank {
                let hash = printing.push(c);
                self.note(hash);
            }
            is_blank = c == ' ';
            if c.is_alphanumeric() {
                let hash = letters.push(c);
                self.note(hash);
            }
        }
    }

    fn note(&mut self, hash: Option<u64>) {
        let Some(hash) = hash else { return };
        let (word, bit) = place(hash);
        let may_be = self.sieve.get(word).is_some_and(|word| word & bit != 0);
        if may_be && self.wanted.contains(&hash) {
            self.found.insert(hash);
        }
    }

    /// Marks the characters of a printed text that repeat what was read.
    pub(super) fn mark(&self, text: &[char], hidden: &mut [bool]) {
        for form in FORMS {
            for (first, last, hash) in runs(text, form) {
                if self.found.contains(&hash) {
                    hidden.iter_mut().take(last + 1).skip(first).for_each(|mark| *mark = true);
                }
            }
        }
    }
}

/// Place of a hash in the sieve: a word, and a bit in it.
fn place(hash: u64) -> (usize, u64) {
    let word = usize::try_from(hash >> 56).unwrap_or(0);
    (word, 1 << ((hash >> 50) & 63))
}
