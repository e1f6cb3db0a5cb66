//! Texts that people choose: names, external ids, reasons, notes. Each has a length, no control
//! characters and no blanks around it, because it goes onto terminals, into tables and into files.
//!
//! Names and ids share arguments and paths ([`Reference`]): that is why no name may look like an
//! id.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// True for 1 to `chars_max` characters without control characters, and without blanks around them.
fn is_printable(text: &str, chars_max: usize) -> bool {
    let count = text.chars().count();
    (1..=chars_max).contains(&count) && !text.contains(char::is_control) && text.trim() == text
}

/// Name of a wallet or a key: 1 to 64 printable characters that do not look like an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Characters that it has at most.
    pub const CHARS_MAX: usize = 64;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        // `Reference` takes such a text for an id: a wallet of that name could never be named.
        if Uuid::try_parse(text).is_ok() {
            return Err(BadName::LikeAnId);
        }
        if is_printable(text, Self::CHARS_MAX) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadName::Characters)
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Failure to read a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// A reference to it would be taken for an id.
    #[error("a name must not look like an id")]
    LikeAnId,
    /// Too long, empty, or with characters that do not print.
    #[error("a name has 1 to 64 printable characters")]
    Characters,
}

/// An id or a name; names never look like ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// An id.
    Id(Uuid),
    /// A name.
    Name(Name),
}

impl FromStr for Reference {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Uuid::try_parse(text)
            .map_or_else(|_name| text.parse().map(Self::Name), |id| Ok(Self::Id(id)))
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

/// A text that is too long, empty, or has characters that do not print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} has 1 to {chars_max} printable characters, and no blanks around them")]
pub struct BadText {
    what: &'static str,
    chars_max: usize,
}

/// Writes a type of texts with a bound.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($what:literal, $chars_max:literal);)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// Characters that it has at most.
            pub const CHARS_MAX: usize = $chars_max;

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadText;

            fn from_str(text: &str) -> Result<Self, BadText> {
                if is_printable(text, Self::CHARS_MAX) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(BadText { what: $what, chars_max: Self::CHARS_MAX })
                }
            }
        }
    )+};
}

texts! {
    /// Reason of a change: 1 to 200 printable characters.
    Reason("a reason", 200);
    /// Note of a posting, such as the number of an invoice: 1 to 200 printable characters.
    Note("a note", 200);
    /// Id that an outer system has for a thing, or for a payment: 1 to 128 printable characters.
    ExternalId("an external id", 128);
    /// Description of a webhook: 1 to 200 printable characters.
    Description("a description", 200);
    /// System that a payment came through: 1 to 32 printable characters.
    Source("a source", 32);
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
    }

    #[test]
    fn no_name_looks_like_an_id() {
        let id = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
        assert_eq!(id.parse::<Name>(), Err(BadName::LikeAnId));
        assert!(matches!(id.parse(), Ok(Reference::Id(_))));
        assert!(matches!("acme".parse(), Ok(Reference::Name(_))));
    }
}
