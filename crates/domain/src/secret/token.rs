//! Tokens of people: 256 random bits of a session, of a one-time link or of a browser, and the hash that is kept.
//!
//! Each kind has a context of its own: no link is a session, even if its hash is copied to the other table. The
//! bits are random and so many that their hash confirms no guess, and needs no secret.

use super::derived;
use crate::base62::{self, LEN_OF_256};
use crate::private::unprinted;

/// Writes a token that is 256 bits.
macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident = $context:literal),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Takes the bits.
            #[must_use]
            pub const fn new(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Reads what [`Self::expose`] wrote; `None` for any other text.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                // The length first: a token has one spelling.
                let bytes = (text.len() == LEN_OF_256).then(|| base62::read(text)).flatten();
                bytes.map(Self)
            }

            /// The text, 43 letters and digits: shown once to its recipient, and not kept.
            #[must_use]
            pub fn expose(&self) -> String {
                base62::write(&self.0, LEN_OF_256)
            }

            /// The hash that is kept.
            #[must_use]
            pub fn hash(&self) -> TokenHash {
                TokenHash(blake3::Hash::from_bytes(derived($context, &[&self.0])))
            }
        }

        unprinted! { $name }
    )+};
}

tokens! {
    /// Token of a person's session, which their browser shows.
    SessionToken = "holdfast 2026-11 session token v1",
    /// Token of a one-time link, which is a part of its address.
    LinkToken = "holdfast 2026-11 link token v1",
    /// Token of a browser that a person has signed in from.
    BrowserToken = "holdfast 2026-11 browser token v1",
}

/// Hash of a token. Comparison takes the same time for all values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(blake3::Hash);

impl TokenHash {
    /// Reads what [`TokenHash::to_bytes`] wrote.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// The bytes that are stored.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; 32] {
        *self.0.as_bytes()
    }
}

unprinted! { TokenHash }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_what_it_wrote_and_prints_nothing() {
        let token = SessionToken::new([7; 32]);
        let text = token.expose();
        assert_eq!(text.len(), 43);
        assert_eq!(SessionToken::parse(&text).unwrap().hash(), token.hash());
        assert!(!format!("{token:?} {:?}", token.hash()).contains(&text));
        for bad in ["", "7", &text[1..], &format!("{text}0"), &"z".repeat(43)] {
            assert!(SessionToken::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn no_link_is_a_session() {
        let session = SessionToken::new([7; 32]).hash();
        assert_ne!(session, LinkToken::new([7; 32]).hash());
        assert_ne!(session, BrowserToken::new([7; 32]).hash());
    }
}
