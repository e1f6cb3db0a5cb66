//! JSON in any of its spellings.

use std::fmt::Write as _;

/// JSON to be spelled: objects' members may change places, strings and numbers their spelling.
#[derive(Clone, PartialEq)]
pub(crate) enum Json {
    Word(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
    /// Neither order nor numbers may change.
    Fixed(Box<Self>),
}

/// Chooses among spellings; the same seed chooses the same.
pub(crate) struct Whim(pub(crate) u64);

impl Whim {
    pub(crate) fn of(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    pub(crate) fn now(&mut self) -> bool {
        self.of(2) == 0
    }
}

/// How JSON is written: with every freedom, with none in order and numbers, or as it stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Style {
    Free,
    Fixed,
    Plain,
}

fn spell(json: &Json, style: Style, whim: &mut Whim, out: &mut String) {
    space(style, whim, out);
    match json {
        Json::Word(word) => out.push_str(word),
        Json::Number(number) if style == Style::Free => spell_number(number, whim, out),
        Json::Number(number) => out.push_str(number),
        Json::Text(text) => spell_text(text, style, whim, out),
        Json::Fixed(inner) if style == Style::Free => spell(inner, Style::Fixed, whim, out),
        Json::Fixed(inner) => spell(inner, style, whim, out),
        Json::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                spell(element, style, whim, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if style == Style::Free {
                for at in 1..members.len() {
                    let other = whim.of(at + 1);
                    members.swap(at, other);
                }
            }
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                space(style, whim, out);
                spell_text(name, style, whim, out);
                space(style, whim, out);
                out.push(':');
                spell(value, style, whim, out);
            }
            out.push('}');
        }
    }
    space(style, whim, out);
}

fn space(style: Style, whim: &mut Whim, out: &mut String) {
    if style == Style::Plain {
        return;
    }
    for _ in 0..whim.of(3) {
        out.push(match whim.of(4) {
            0 => ' ',
            1 => '\t',
            2 => '\n',
            _ => '\r',
        });
    }
}

/// Moves the point and adds zeros: `0.7` is `7e-1` is `0.70` is `70E-02`.
fn spell_number(number: &str, whim: &mut Whim, out: &mut String) {
    let (mantissa, power) = number.split_once('e').unwrap_or((number, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = whim.of(4);
    match whim.of(3) {
        0 => out.push_str(number),
        1 if power == "0" => {
            let fraction = format!("{fraction}{}", "0".repeat(zeros + 1));
            write!(out, "{sign}{whole}.{fraction}").unwrap();
        }
        _ => {
            let all = format!("{whole}{fraction}{}", "0".repeat(zeros));
            let digits = all.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            let moved = i64::try_from(fraction.len() + zeros).unwrap();
            let power = power.parse::<i64>().unwrap() - moved;
            let e = if whim.now() { 'e' } else { 'E' };
            let plus = if power >= 0 && whim.now() { "+" } else { "" };
            write!(out, "{sign}{digits}{e}{plus}{power}").unwrap();
        }
    }
}

fn spell_text(text: &str, style: Style, whim: &mut Whim, out: &mut String) {
    if style == Style::Plain {
        out.push_str(&serde_json::to_string(text).unwrap());
        return;
    }
    out.push('"');
    for character in text.chars() {
        let short = match character {
            '"' => Some('"'),
            '\\' => Some('\\'),
            '/' => Some('/'),
            '\u{8}' => Some('b'),
            '\u{c}' => Some('f'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            _ => None,
        };
        let plain = character >= ' ' && character != '"' && character != '\\';
        match (short, whim.of(3)) {
            (_, 0) if plain => out.push(character),
            (Some(letter), 1) => write!(out, "\\{letter}").unwrap(),
            (_, 2) if plain => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    if whim.now() {
                        write!(out, "\\u{unit:04x}").unwrap();
                    } else {
                        write!(out, "\\u{unit:04X}").unwrap();
                    }
                }
            }
        }
    }
    out.push('"');
}

pub(crate) fn written(json: &Json, style: Style, whim: &mut Whim) -> String {
    let mut out = String::new();
    spell(json, style, whim, &mut out);
    out
}
