//! Printable text: the one rule for what people type, and the one form in which it is stored.
//!
//! Names, references, reasons, notes, descriptions and e-mail addresses appear in tables, in files and
//! on terminals, and are compared. Two of them that look the same have to be the same, and none may
//! change how its neighbours are shown.
//!
//! | characters | |
//! |---|---|
//! | letters, marks, numbers, punctuation, symbols of Unicode | accepted |
//! | control, format, unassigned, private, surrogate; line and paragraph separators | refused |
//! | default-ignorable ones of every category, and blank symbols | refused: invisible |
//! | U+200D between two emoji, U+FE0F after one, flags of tags | accepted: one picture |
//! | spaces other than U+0020, such as U+00A0 and U+3000 | accepted, stored as U+0020 |
//!
//! [`normal_form`] is Unicode's NFC with plain spaces, and without a U+FE0F that has no effect. Rows that were
//! written before the rule stay as they are: [`spellings`] finds them.
//!
//! [`bounded`] is a text of a length without blanks around it, [`name`] the one of a wallet or an API key.
//!
//! Not in here: the lengths of other texts. Confusable letters of two scripts (`a` and Cyrillic `а`) are two texts.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::text::{bounded, is_same, name};
//!
//! assert_eq!(name("Cafe\u{301}").unwrap(), "Café");
//! assert!(is_same("Cafe\u{301}", "Café"));
//! assert!(bounded(" a reason", 200).is_err(), "a blank in front");
//! assert!(name("0192f0aa-0000-4000-8000-000000000000").is_err(), "a name that looks like an id");
//! ```

use std::borrow::Cow;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{
    DefaultIgnorableCodePoint, Emoji, EmojiModifier, EmojiPresentation, ExtendedPictographic,
    GeneralCategory, GeneralCategoryGroup,
};
use icu_properties::{CodePointMapData, CodePointSetData};
use uuid::Uuid;

/// Joins emoji to one picture.
const JOINER: char = '\u{200d}';
/// Has the character before it shown as an emoji.
const EMOJI_STYLE: char = '\u{fe0f}';
/// Ends a digit of a key, such as 1️⃣.
const KEYCAP: char = '\u{20e3}';
/// Begins a flag that tags spell.
const TAGGED_FLAG: char = '\u{1f3f4}';
/// The flags that tags spell: of England, Scotland and Wales. Tags that spell no flag are invisible.
const FLAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];
/// Symbols without a picture: the empty pattern of Braille, the place of an object, an empty note.
const BLANK: [char; 3] = ['\u{2800}', '\u{fffc}', '\u{1d159}'];

/// A character that cannot be shown, or that changes how others are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "U+{:04X} at character {place}, which is invisible or changes how others are shown: remove it",
    u32::from(*.character)
)]
pub struct Unprintable {
    /// The character.
    pub character: char,
    /// Place in the text; the first character has place 1.
    pub place: usize,
}

/// Characters of a name of a wallet or an API key, at most.
pub const NAME_CHARS_MAX: usize = 64;

/// Reasons for which a text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRefusal {
    /// A length out of bounds, or a blank at the beginning or the end.
    Form,
    /// A character that cannot be shown.
    Character(Unprintable),
}

/// Failure to read a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// A reference to it would be taken for an id.
    #[error("a name must not look like an id")]
    LikeAnId,
    /// Too long, empty, or with blanks around it.
    #[error("a name has 1 to {NAME_CHARS_MAX} printable characters, and no blanks around them")]
    Characters,
    /// A character that cannot be shown.
    #[error("a name cannot contain {0}")]
    Unprintable(Unprintable),
}

/// Normal form of a text of 1 to `chars_max` printable characters without blanks around them.
///
/// # Errors
///
/// [`TextRefusal::Form`] for another length or blanks around it, [`TextRefusal::Character`] for a character that cannot
/// be shown.
pub fn bounded(text: &str, chars_max: usize) -> Result<String, TextRefusal> {
    // A text that is too long is not read to its end: composing shortens it to a fourth at most.
    let is_long = text.chars().nth(chars_max.saturating_mul(4)).is_some();
    if is_long || text.trim() != text {
        return Err(TextRefusal::Form);
    }
    let text = printable(text).map_err(TextRefusal::Character)?;
    let has_length = (1..=chars_max).contains(&text.chars().count());
    if has_length { Ok(text.into_owned()) } else { Err(TextRefusal::Form) }
}

/// Normal form of the name of a wallet or an API key: 1 to [`NAME_CHARS_MAX`] printable characters that do not look
/// like an id, because names and ids share arguments and paths.
///
/// # Errors
///
/// [`BadName::Characters`], [`BadName::Unprintable`] and [`BadName::LikeAnId`].
pub fn name(text: &str) -> Result<String, BadName> {
    let name = bounded(text, NAME_CHARS_MAX).map_err(|refused| match refused {
        TextRefusal::Form => BadName::Characters,
        TextRefusal::Character(character) => BadName::Unprintable(character),
    })?;
    if Uuid::try_parse(&name).is_ok() { Err(BadName::LikeAnId) } else { Ok(name) }
}

/// Normal form of a text that can be shown.
///
/// ```
/// use holdfast_domain::text::printable;
///
/// assert_eq!(printable("Cafe\u{301}\u{a0}1").unwrap(), "Café 1");
/// assert_eq!(printable("👩\u{200d}💻").unwrap(), "👩\u{200d}💻");
/// let refused = printable("in\u{200b}voice").unwrap_err();
/// assert_eq!((refused.character, refused.place), ('\u{200b}', 3));
/// ```
///
/// # Errors
///
/// [`Unprintable`] with the first character that is refused.
pub fn printable(text: &str) -> Result<Cow<'_, str>, Unprintable> {
    match unprintable(text) {
        Some(refused) => Err(refused),
        None => Ok(normal_form(text)),
    }
}

/// The form in which a text is stored and compared. Total, for texts that were stored before the rule.
#[must_use]
pub fn normal_form(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(text);
    let is_plain = |it: char| it == ' ' || (it != EMOJI_STYLE && !is_space(it));
    if composed.chars().all(is_plain) {
        return composed;
    }
    let mut normal = String::with_capacity(composed.len());
    let mut is_emoji_already = false;
    for character in composed.chars() {
        if character == EMOJI_STYLE && is_emoji_already {
            continue;
        }
        is_emoji_already = CodePointSetData::new::<EmojiPresentation>().contains(character);
        normal.push(if is_space(character) { ' ' } else { character });
    }
    Cow::Owned(normal)
}

/// True for two spellings of one text.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || normal_form(one) == normal_form(other)
}

/// The spellings under which a row may have stored a text before there was a normal form: as it is,
/// composed and decomposed. The text itself comes first.
#[must_use]
pub fn spellings(text: &str) -> Vec<String> {
    let mut all = vec![text.to_owned()];
    if !text.is_ascii() {
        let normal = normal_form(text);
        let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(&normal).into_owned();
        for spelling in [normal.into_owned(), decomposed] {
            if !all.contains(&spelling) {
                all.push(spelling);
            }
        }
    }
    all
}

/// Part of an emoji that a character ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// None.
    Other,
    /// A digit or sign that a keycap may be put around.
    Key,
    /// A picture, which may be given the emoji style or joined.
    Picture,
    /// A picture with its style or the colour of its skin, which may be joined.
    Styled,
}

/// The first character that is refused.
fn unprintable(text: &str) -> Option<Unprintable> {
    let (mut before, mut place, mut rest) = (Before::Other, 1_usize, text.chars());
    while let Some(character) = rest.next() {
        let tail = rest.as_str();
        before = match judge(character, before, tail) {
            Some(before) => before,
            None => return Some(Unprintable { character, place }),
        };
        place = place.saturating_add(1);
        if character == TAGGED_FLAG
            && let Some((flag, after)) =
                FLAGS.iter().find_map(|it| Some((it, tail.strip_prefix(*it)?)))
        {
            place = place.saturating_add(flag.chars().count());
            rest = after.chars();
            before = Before::Styled;
        }
    }
    None
}

/// Judges a character by what is before and behind it; `None` refuses it.
fn judge(character: char, before: Before, tail: &str) -> Option<Before> {
    match character {
        ' '..='~' => {
            let is_key = matches!(character, '0'..='9' | '#' | '*');
            Some(if is_key { Before::Key } else { Before::Other })
        }
        EMOJI_STYLE => match before {
            Before::Picture => Some(Before::Styled),
            Before::Key if tail.starts_with(KEYCAP) => Some(Before::Other),
            // Without an effect it is invisible: two texts that look the same would differ.
            Before::Key | Before::Other | Before::Styled => None,
        },
        JOINER => {
            let joins =
                matches!(before, Before::Picture | Before::Styled) && tail.starts_with(is_picture);
            joins.then_some(Before::Other)
        }
        seen if !is_seen(seen) => None,
        picture if is_picture(picture) => Some(Before::Picture),
        colour if CodePointSetData::new::<EmojiModifier>().contains(colour) => Some(Before::Styled),
        _other => Some(Before::Other),
    }
}

fn is_picture(character: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(character)
        && CodePointSetData::new::<Emoji>().contains(character)
}

/// True for a character that is shown by itself, or as a mark of the one before it.
#[must_use]
pub fn is_seen(character: char) -> bool {
    let category = category(character);
    let is_hidden = GeneralCategoryGroup::Other.contains(category)
        || matches!(category, GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator);
    !is_hidden
        && !CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(character)
        && !BLANK.contains(&character)
}

pub(crate) fn is_space(character: char) -> bool {
    category(character) == GeneralCategory::SpaceSeparator
}

fn category(character: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(character)
}

#[cfg(test)]
mod tests;
