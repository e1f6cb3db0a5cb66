//! Texts that people choose: names, external ids, reasons, notes. Each is printable text
//! ([`holdfast_domain::text`]) of a bounded length without blanks around it, and has the normal form
//! of that rule.
//!
//! Names and ids share arguments and paths ([`Reference`]): that is why no name may look like an
//! id. A text that a list or a command is to find keeps its spelling ([`Name::sought`]): what was
//! stored before the rule has to be found.

use std::fmt;
use std::str::FromStr;

use holdfast_domain::text::{BadName, NAME_CHARS_MAX, TextRefusal, Unprintable, bounded, name};
use uuid::Uuid;

/// True for what was accepted before there was a rule of printable text.
fn was_accepted(text: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&text.chars().count())
        && !text.contains(char::is_control)
        && text.trim() == text
}

/// Name of a wallet or a key: 1 to 64 printable characters that do not look like an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    normal: String,
    typed: String,
}

impl Name {
    /// Characters that it has at most.
    pub const CHARS_MAX: usize = NAME_CHARS_MAX;

    /// The text in its normal form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.normal
    }

    /// The text as it was typed: what a request is repeated with.
    #[must_use]
    pub fn as_typed(&self) -> &str {
        &self.typed
    }

    /// A name that is only looked for, as it was typed. Names of before the rule are found.
    ///
    /// # Errors
    ///
    /// A [`BadName`].
    pub fn sought(text: &str) -> Result<Self, BadName> {
        match text.parse::<Self>() {
            // As it was typed: a row of before the rule may have no normal form, and would not be
            // found by one.
            Ok(_) | Err(BadName::Unprintable(_)) if was_accepted(text, Self::CHARS_MAX) => {
                Ok(Self { normal: text.to_owned(), typed: text.to_owned() })
            }
            other => other,
        }
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Ok(Self { normal: name(text)?, typed: text.to_owned() })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.normal)
    }
}

/// An id or a name; names never look like ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// An id.
    Id(Uuid),
    /// A name, as it was typed.
    Name(Name),
}

impl FromStr for Reference {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Uuid::try_parse(text)
            .map_or_else(|_name| Name::sought(text).map(Self::Name), |id| Ok(Self::Id(id)))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// A text that cannot stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadText {
    /// Too long, empty, or with blanks around it.
    #[error("{what} has 1 to {chars_max} printable characters, and no blanks around them")]
    Form {
        /// The kind of text.
        what: &'static str,
        /// Characters that it has at most.
        chars_max: usize,
    },
    /// A character that cannot be shown.
    #[error("{what} cannot contain {character}")]
    Unprintable {
        /// The kind of text.
        what: &'static str,
        /// The character.
        character: Unprintable,
    },
}

/// Writes a type of texts with a bound.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($what:literal, $chars_max:literal);)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            normal: String,
            typed: String,
        }

        impl $name {
            /// Characters that it has at most.
            pub const CHARS_MAX: usize = $chars_max;

            /// The text in its normal form.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.normal
            }

            /// The text as it was typed: what a request is repeated with.
            #[must_use]
            pub fn as_typed(&self) -> &str {
                &self.typed
            }
        }

        impl FromStr for $name {
            type Err = BadText;

            fn from_str(text: &str) -> Result<Self, BadText> {
                let (what, chars_max) = ($what, Self::CHARS_MAX);
                let normal = bounded(text, chars_max).map_err(|refused| match refused {
                    TextRefusal::Form => BadText::Form { what, chars_max },
                    TextRefusal::Character(character) => BadText::Unprintable { what, character },
                })?;
                Ok(Self { normal, typed: text.to_owned() })
            }
        }
    )+};
}

texts! {
    /// Reason of a change: 1 to 200 printable characters.
    Reason("a reason", 200);
    /// Note of a posting, such as the number of an invoice: 1 to 200 printable characters.
    Note("a note", 200);
    /// Id of a resource or a payment in an outer system: 1 to 128 printable characters.
    ExternalId("an external id", 128);
    /// Description of a webhook: 1 to 200 printable characters.
    Description("a description", 200);
    /// System that a payment came through: 1 to 32 printable characters.
    Source("a source", 32);
}

impl ExternalId {
    /// An id that is only looked for, as it was typed. Ids of before the rule are found.
    ///
    /// # Errors
    ///
    /// A [`BadText`].
    pub fn sought(text: &str) -> Result<Self, BadText> {
        match text.parse::<Self>() {
            Ok(_) | Err(BadText::Unprintable { .. }) if was_accepted(text, Self::CHARS_MAX) => {
                Ok(Self { normal: text.to_owned(), typed: text.to_owned() })
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_print_and_have_a_bound() {
        let long = "x".repeat(201);
        for bad in ["", " x", "x ", "a\nb", "\u{7f}", &long] {
            assert!(bad.parse::<Reason>().is_err(), "{bad:?}");
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
        assert_eq!("ω".repeat(64).parse::<Name>().unwrap().as_str(), "ω".repeat(64));
        assert!("ω".repeat(65).parse::<Name>().is_err());
        // Counted in the form that is stored, and not read to its end where it is far too long.
        assert_eq!("o\u{308}".repeat(64).parse::<Name>().unwrap().as_str(), "ö".repeat(64));
        assert_eq!("\u{200b}".repeat(1 << 20).parse::<Name>(), Err(BadName::Characters));
    }

    #[test]
    fn every_kind_of_text_refuses_what_is_not_seen_and_says_where() {
        let errors = |text: &str| {
            [
                text.parse::<Name>().map(drop).unwrap_err().to_string(),
                text.parse::<Reason>().map(drop).unwrap_err().to_string(),
                text.parse::<Note>().map(drop).unwrap_err().to_string(),
                text.parse::<ExternalId>().map(drop).unwrap_err().to_string(),
                text.parse::<Description>().map(drop).unwrap_err().to_string(),
                text.parse::<Source>().map(drop).unwrap_err().to_string(),
            ]
        };
        for (text, told) in [
            ("a\u{200b}b", "cannot contain U+200B at character 2"),
            ("\u{feff}ab", "cannot contain U+FEFF at character 1"),
            ("ab\u{202e}", "cannot contain U+202E at character 3"),
            ("a\u{e0041}b", "cannot contain U+E0041 at character 2"),
        ] {
            for error in errors(text) {
                assert!(error.contains(told) && error.ends_with(": remove it"), "{error}");
            }
        }
    }

    #[test]
    fn a_text_has_its_normal_form_and_is_sought_as_it_was_typed() {
        for typed in ["Café 1", "Cafe\u{301} 1", "Café\u{a0}1", "Cafe\u{301}\u{3000}1"] {
            assert_eq!(typed.parse::<Name>().unwrap().as_str(), "Café 1");
            assert_eq!(typed.parse::<ExternalId>().unwrap().as_str(), "Café 1");
            assert_eq!(Name::sought(typed).unwrap().as_str(), typed);
        }
        for old in ["a\u{200b}b", "\u{202e}x"] {
            assert_eq!(Name::sought(old).unwrap().as_str(), old);
            assert_eq!(ExternalId::sought(old).unwrap().as_str(), old);
            assert!(matches!(old.parse(), Ok(Reference::Name(name)) if name.as_str() == old));
        }
        for bad in ["", " x", "a\nb"] {
            assert!(Name::sought(bad).is_err() && ExternalId::sought(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_name_looks_like_an_id() {
        let id = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
        assert_eq!(id.parse::<Name>(), Err(BadName::LikeAnId));
        assert!(matches!(id.parse(), Ok(Reference::Id(_))));
        assert!(matches!("acme".parse(), Ok(Reference::Name(_))));
    }
}
