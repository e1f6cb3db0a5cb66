//! The rule over every character, and over the sequences of emoji.

use super::*;

/// A character of each kind that is always refused.
const REFUSED: [char; 48] = [
    '\0',
    '\t',
    '\n',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{ad}',
    '\u{34f}',
    '\u{600}',
    '\u{61c}',
    '\u{6dd}',
    '\u{70f}',
    '\u{115f}',
    '\u{1160}',
    '\u{17b4}',
    '\u{17b5}',
    '\u{180b}',
    '\u{180e}',
    '\u{180f}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202e}',
    '\u{2060}',
    '\u{2066}',
    '\u{2069}',
    '\u{206f}',
    '\u{2800}',
    '\u{3164}',
    '\u{e000}',
    '\u{fe00}',
    '\u{fe0e}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{fff9}',
    '\u{fffc}',
    '\u{ffff}',
    '\u{1d159}',
    '\u{1d173}',
    '\u{e0001}',
    '\u{e0100}',
    '\u{10ffff}',
];

#[test]
fn hidden_characters_are_refused_wherever_they_are() {
    for hidden in REFUSED {
        for (before, after) in [("", ""), ("", "a"), ("a", ""), ("a", "b"), ("é", "山"), ("1", "2")]
        {
            let text = format!("{before}{hidden}{after}");
            let place = before.chars().count() + 1;
            assert_eq!(printable(&text), Err(Unprintable { character: hidden, place }), "{text:?}");
        }
    }
    for first in ['\u{2000}', '\u{2060}', '\u{e0000}'] {
        let error = printable(&format!("a{first}\u{200b}")).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("U+") && error.contains(" at character "), "{error}");
    }
}

#[test]
fn every_character_is_refused_or_has_a_normal_form_that_stays() {
    let mut accepted = 0_u32;
    for character in (0..=0x10_ffff).filter_map(char::from_u32) {
        let text = format!("a{character}b");
        let Ok(normal) = printable(&text) else { continue };
        accepted += 1;
        assert_eq!(printable(&normal).as_deref(), Ok(&*normal), "{character:?}");
        assert!(!normal.contains(|it: char| it != ' ' && it.is_whitespace()), "{character:?}");
        assert!(!normal.contains(char::is_control), "{character:?}");
    }
    assert!(accepted > 140_000, "{accepted}");
}

#[test]
fn texts_of_all_scripts_are_accepted() {
    for text in [
        "Acme, Inc. (EU) – №7 / \"best\" <&>",
        "Žluťoučký kůň",
        "Ελληνικά",
        "שלום עולם",
        "مرحبا بالعالم",
        "नमस्ते",
        "สวัสดี",
        "山田 太郎",
        "한국어",
        "ωω",
        "＝1＋1",
        "𐍈𝒳",
        "a\u{323}\u{307}",
    ] {
        assert!(printable(text).is_ok(), "{text}");
    }
}

#[test]
fn emoji_keep_what_joins_them() {
    for text in [
        "👩\u{200d}💻",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦",
        "🏳\u{fe0f}\u{200d}🌈",
        "👩🏽\u{200d}⚕\u{fe0f}",
        "❤\u{fe0f}",
        "☀\u{fe0f} day",
        "1\u{fe0f}\u{20e3}",
        "#\u{fe0f}\u{20e3}",
        "🇩🇪",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} x",
    ] {
        assert_eq!(printable(text).as_deref(), Ok(text), "{text}");
    }
    // One look, one text.
    assert_eq!(printable("🎉\u{fe0f}").as_deref(), Ok("🎉"));
    for (text, place) in [
        ("a\u{200d}b", 2),
        ("👩\u{200d}", 2),
        ("\u{200d}👩", 1),
        ("👩\u{200d}\u{200d}💻", 2),
        ("👩\u{200d}a", 2),
        ("a\u{200d}💻", 2),
        ("1\u{fe0f}", 2),
        ("a\u{fe0f}", 2),
        ("❤\u{fe0f}\u{fe0f}", 3),
        ("❤\u{fe0e}", 2),
        ("👩\u{200c}💻", 2),
        ("🏴\u{e0067}\u{e0062}\u{e007f}", 2),
        ("🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}\u{e007f}", 8),
        ("x\u{e0067}", 2),
    ] {
        assert_eq!(printable(text).map_err(|it| it.place), Err(place), "{text:?}");
    }
}

#[test]
fn one_text_has_one_form() {
    let spelled = "Ve\u{302}\u{301} Cafe\u{301} Ω";
    for text in [
        spelled,
        "Vê\u{301} Café \u{2126}",
        "Vế\u{a0}Café\u{3000}Ω",
        "Vế\u{202f}Cafe\u{301}\u{2003}Ω",
    ] {
        assert_eq!(printable(text).unwrap(), "Vế Café Ω", "{text:?}");
        assert!(is_same(text, spelled));
    }
    assert!(!is_same("a", "а"), "two scripts");
    assert_eq!(spellings("plain"), ["plain"]);
    assert_eq!(spellings("é"), ["é", "e\u{301}"]);
    assert_eq!(spellings("e\u{301}"), ["e\u{301}", "é"]);
    assert_eq!(spellings("ê\u{301}"), ["ê\u{301}", "ế", "e\u{302}\u{301}"]);
}
