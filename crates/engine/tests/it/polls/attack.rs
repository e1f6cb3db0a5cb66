//! What is sent: answers of every structure that costs whoever reads them, at every length that changes how
//! they are read, and mixtures of them that a number repeats.

use holdfast_testkit::Dice;

use super::saying::{AnswerPart, ApiKind, listed};

/// An answer or event that is read where it arrives, and an event that is as long as one may be.
const AT_ONCE: usize = 62 * 1024;
const LONG: usize = (1 << 20) - 2_048;
/// A whole answer, and a stream: a build without optimizations has less patience.
const WHOLE: usize = if cfg!(debug_assertions) { 1 << 18 } else { 14 << 20 };
const STREAM: usize = if cfg!(debug_assertions) { 1 << 18 } else { 12 << 20 };
/// A stream of which almost all is kept as one text: what grows is copied, and at twice this length the copy
/// alone takes from 4 to 9 ms, which is no longer told apart from noise.
const TEXT: usize = if cfg!(debug_assertions) { 1 << 19 } else { 30 << 20 };
/// Mixtures of each kind.
const MIXTURES: u64 = 4;

/// One answer.
pub(super) struct Attack {
    pub(super) name: String,
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// In chunks of so many bytes.
    pub(super) chunk: usize,
    /// Whether it is an answer for all that.
    pub(super) is_sound: bool,
}

/// What a text is made of, as it stands in JSON.
const TEXTS: [(&str, &str); 6] = [
    ("plain text", "x"),
    ("escapes", "\\u0001"),
    ("lone surrogates", "\\ud800"),
    ("quotes", "\\\""),
    ("emoji", "\u{1f600}"),
    ("control escapes", "\\n"),
];

fn text(of: &str, bytes: usize) -> String {
    of.repeat(bytes / of.len())
}

/// Values that cost much for their length.
fn values(bytes: usize) -> [(&'static str, String); 6] {
    let within = |inner: &str| format!("{}{inner}{}", "[".repeat(50), "]".repeat(50));
    [
        ("numbers", format!("[{}]", listed(bytes / 2, |_| "0".to_owned()))),
        ("spaced numbers", format!("[{}]", listed(bytes / 5, |_| "1e-9".to_owned()))),
        ("depths", format!("[{}]", listed(bytes / 102, |_| within("0")))),
        ("objects", format!("[{}]", listed(bytes / 12, |_| "{\"a\":{}  }".to_owned()))),
        ("names", format!("{{{}}}", listed(bytes / 12, |at| format!("\"{at:07}\":0")))),
        ("short escapes", format!("[{}]", listed(bytes / 7, |_| "\"\\n\\n\"".to_owned()))),
    ]
}

/// Everything that one kind is told to send as a stream.
pub(super) fn streams(kind: ApiKind, dice: &mut Dice) -> Vec<Attack> {
    let mut all = Vec::new();
    let mut add = |name: &str, said: Vec<u8>, is_sound: bool| {
        let body = [kind.begin(), said, kind.end()].concat();
        all.push(Attack { name: name.to_owned(), status: 200, body, chunk: 512 << 10, is_sound });
    };
    for bytes in [AT_ONCE, LONG] {
        for (name, of) in TEXTS {
            let said = kind.say(&AnswerPart::Text(text(of, bytes)));
            add(&format!("an event of {bytes} bytes of {name}"), said, true);
        }
        let thought = kind.say(&AnswerPart::Thought(text("\\n", bytes)));
        add(&format!("a thought of {bytes} bytes"), thought, true);
        for (name, value) in values(bytes) {
            add(
                &format!("an event of {bytes} bytes of {name}"),
                kind.say(&AnswerPart::Extra(value)),
                false,
            );
        }
        let calls =
            kind.say(&AnswerPart::Calls(1_024, text("\\n", (bytes / 1_024).saturating_sub(100))));
        add(&format!("{bytes} bytes of calls"), calls, true);
        if kind.has_sources() {
            add(
                &format!("{bytes} bytes of sources"),
                kind.say(&AnswerPart::Sources(bytes / 112)),
                true,
            );
            add(
                &format!("{bytes} bytes of likeliness"),
                kind.say(&AnswerPart::Likely(bytes / 90)),
                true,
            );
        }
    }
    add("too many calls", kind.say(&AnswerPart::Calls(10_000, String::new())), false);
    add("choices that nobody wants", kind.say(&AnswerPart::Choices(5_000)), false);
    let word = kind.say(&AnswerPart::Text("a".to_owned()));
    add("words", word.repeat(STREAM / word.len()), true);
    let nothing = kind.nothing();
    add("nothing", nothing.repeat(STREAM / nothing.len()), false);
    let lines = kind.say(&AnswerPart::Text(text("\\n", 16 << 10)));
    add("many long words", lines.repeat(STREAM / lines.len()), true);
    let lines = kind.say(&AnswerPart::Text(text("x", LONG / 2)));
    add("one long text", lines.repeat(TEXT / lines.len()), true);
    if kind != ApiKind::Bedrock {
        add("comments", b":\n".repeat(STREAM / 2), false);
        add("blank lines", b"\r\n\r\n".repeat(STREAM / 4), false);
        add("lines of data", b"data: 0\n".repeat(LONG / 8), false);
        add("ids", [b"id: ", "x".repeat(LONG).as_bytes(), b"\n"].concat().repeat(4), false);
    }
    let late = [kind.end(), word.repeat(STREAM / word.len())].concat();
    add("what comes after the end", late, false);
    let unended = kind.say(&AnswerPart::Text(text("x", LONG)));
    add("half an event", unended.split_at(unended.len() / 2).0.to_vec(), false);
    add("noise", noise(dice, STREAM), false);
    let one_by_one = [kind.begin(), word.repeat(300), kind.end()].concat();
    let name = "byte by byte".to_owned();
    all.push(Attack { name, status: 200, body: one_by_one, chunk: 1, is_sound: true });
    all.extend((0..MIXTURES).map(|n| mixture(kind, n, dice)));
    all
}

/// Everything that one kind is told to send at once, wanted so or not.
pub(super) fn wholes(kind: ApiKind, dice: &mut Dice) -> Vec<Attack> {
    let mut parts: Vec<(String, AnswerPart)> = Vec::new();
    for bytes in [AT_ONCE, WHOLE] {
        for (name, of) in TEXTS {
            parts.push((format!("{bytes} bytes of {name}"), AnswerPart::Text(text(of, bytes))));
        }
        parts
            .push((format!("a thought of {bytes} bytes"), AnswerPart::Thought(text("\\n", bytes))));
        for (name, value) in values(bytes) {
            parts.push((format!("{bytes} bytes of {name}"), AnswerPart::Extra(value)));
        }
        let input = text("\\n", (bytes / 1_024).saturating_sub(100));
        parts.push((format!("{bytes} bytes of calls"), AnswerPart::Calls(1_024, input)));
        if kind.has_sources() {
            parts.push((format!("{bytes} bytes of sources"), AnswerPart::Sources(bytes / 112)));
            parts.push((format!("{bytes} bytes of likeliness"), AnswerPart::Likely(bytes / 90)));
        }
    }
    parts.push(("too many calls".to_owned(), AnswerPart::Calls(10_000, String::new())));
    let attack = |name: String, body: Vec<u8>, is_sound: bool| Attack {
        name,
        status: 200,
        body,
        chunk: 512 << 10,
        is_sound,
    };
    let mut all: Vec<_> = parts
        .into_iter()
        .map(|(name, part)| {
            let is_sound = !matches!(part, AnswerPart::Extra(_) | AnswerPart::Calls(10_000, _));
            attack(name, kind.whole(&part), is_sound)
        })
        .collect();
    all.push(attack("noise at once".to_owned(), [b"{", &*noise(dice, WHOLE)].concat(), false));
    let cut = kind.whole(&AnswerPart::Text(text("x", WHOLE)));
    all.push(attack("half of it".to_owned(), cut.split_at(cut.len() / 2).0.to_vec(), false));
    all.push(attack("more than there may be".to_owned(), b"{ ".repeat(9 << 20), false));
    for status in [400, 401, 429, 500, 503] {
        let [(_, value), ..] = values(60 << 10);
        let body = format!(r#"{{"error":{{"message":"m","code":"c","x":{value}}}}}"#).into_bytes();
        let name = format!("a long error {status}");
        all.push(Attack { status, ..attack(name, body, false) });
    }
    all
}

/// Parts of any sort and length, in chunks of any length, perhaps cut.
fn mixture(kind: ApiKind, n: u64, dice: &mut Dice) -> Attack {
    let mut said = kind.begin();
    while said.len() < STREAM {
        let bytes_max = 1 << (6 + dice.roll(14));
        let bytes = roll(dice, bytes_max).saturating_add(64);
        let (_, of) = TEXTS[roll(dice, TEXTS.len())];
        said.extend(kind.say(&match dice.roll(7) {
            0 | 1 => AnswerPart::Text(text(of, bytes)),
            2 => AnswerPart::Thought(text(of, bytes)),
            3 => AnswerPart::Calls(roll(dice, 8), text(of, bytes / 8)),
            4 => AnswerPart::Extra(values(bytes)[roll(dice, 6)].1.clone()),
            5 => AnswerPart::Sources(bytes / 112),
            _ => AnswerPart::Likely(bytes / 90),
        }));
    }
    said.extend(kind.end());
    if dice.roll(3) == 0 {
        said.truncate(roll(dice, said.len()));
    }
    let chunk_max = 1 << (8 + dice.roll(12));
    let chunk = roll(dice, chunk_max).saturating_add(64);
    Attack { name: format!("mixture {n}"), status: 200, body: said, chunk, is_sound: false }
}

fn noise(dice: &mut Dice, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect()
}

fn roll(dice: &mut Dice, sides: usize) -> usize {
    usize::try_from(dice.roll(u64::try_from(sides).unwrap())).unwrap()
}
