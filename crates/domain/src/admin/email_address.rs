//! E-mail addresses of people. One person has one address, so that all spellings of it are equal.
//!
//! | part | form that is compared |
//! |---|---|
//! | in front of the @ | normal form of printable text ([`crate::text`]), small ASCII letters |
//! | domain | ASCII form of UTS 46 (`xn--…`), small letters, without a dot at its end |
//!
//! Rows from before this rule keep their spelling; [`EmailAddress::spellings`] finds them.
//!
//! Not in here: whether mail arrives. A domain in brackets or without a dot is accepted.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::private::Private;
use crate::text::{Unprintable, is_space, printable, spellings};

/// E-mail address of a person. It is private. Two spellings of one address are equal.
#[derive(Debug, Clone)]
pub struct EmailAddress {
    normal: Private<String>,
    /// Trimmed and in small ASCII letters: the form in which rows were once written.
    spelled: Private<String>,
}

/// A text that is no e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEmailAddress {
    /// Wrong length, number of `@`, or a blank.
    #[error("an e-mail address has 3 to 254 characters, one @ and no blanks")]
    Form,
    /// A character that cannot be shown.
    #[error("an e-mail address cannot contain {0}")]
    Unprintable(Unprintable),
    /// No domain, or one that has no ASCII form.
    #[error("an e-mail address ends with a domain, such as example.com")]
    Domain,
}

impl EmailAddress {
    /// The form that is compared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.normal
    }

    /// An address that is in a row, or that is typed to find one: accepted even if it was written
    /// before the rule and does not fulfil it.
    #[must_use]
    pub fn known(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(address);
        }
        let spelled = spelled(text).ok()?;
        Some(Self { normal: Private(spelled.clone()), spelled: Private(spelled) })
    }

    /// The spellings under which a row may have the address: first as it was typed, then the form
    /// that is compared.
    #[must_use]
    pub fn spellings(&self) -> Vec<String> {
        let mut all = vec![self.spelled.0.clone(), self.normal.0.clone()];
        let (name, host) = self.normal.split_once('@').unwrap_or((&self.normal, ""));
        let (shown, _outcome) =
            Uts46::new().to_unicode(host.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        for name in spellings(name) {
            for host in [vec![host.to_owned()], spellings(&shown)].concat() {
                all.extend([format!("{name}@{host}"), format!("{name}@{host}.")]);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|spelling| seen.insert(spelling.clone()));
        all
    }
}

impl FromStr for EmailAddress {
    type Err = BadEmailAddress;

    fn from_str(text: &str) -> Result<Self, BadEmailAddress> {
        let typed = text.trim_matches(|it: char| it.is_ascii_whitespace() || is_space(it));
        if typed.contains(char::is_whitespace) {
            return Err(BadEmailAddress::Form);
        }
        let shown = printable(typed).map_err(BadEmailAddress::Unprintable)?.to_ascii_lowercase();
        let (name, host) = shown.split_once('@').ok_or(BadEmailAddress::Form)?;
        if name.is_empty() || host.is_empty() || host.contains('@') {
            return Err(BadEmailAddress::Form);
        }
        let normal = format!("{name}@{}", ascii(host)?);
        if !has_length(&normal) {
            return Err(BadEmailAddress::Form);
        }
        let spelled = Private(typed.to_ascii_lowercase());
        Ok(Self { normal: Private(normal), spelled })
    }
}

/// Domain in ASCII, without the dot of the root.
fn ascii(host: &str) -> Result<String, BadEmailAddress> {
    // Names of a network's own, such as `mail_1` and `[192.0.2.1]`, are no concern of UTS 46.
    let is_plain = host.is_ascii() && !host.contains("xn--");
    let ascii = if is_plain {
        host.to_owned()
    } else {
        let lists = (AsciiDenyList::URL, Hyphens::Allow, DnsLength::Ignore);
        let ascii = Uts46::new().to_ascii(host.as_bytes(), lists.0, lists.1, lists.2);
        ascii.ok().ok_or(BadEmailAddress::Domain)?.into_owned()
    };
    let ascii = ascii.strip_suffix('.').unwrap_or(&ascii);
    if ascii.is_empty() || ascii.ends_with('.') {
        return Err(BadEmailAddress::Domain);
    }
    Ok(ascii.to_owned())
}

/// The rule of earlier rows.
fn spelled(text: &str) -> Result<String, BadEmailAddress> {
    let text = text.trim().to_ascii_lowercase();
    let is_printable = !text.contains(|it: char| it.is_control() || it.is_whitespace());
    let is_one = text
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
    if has_length(&text) && is_printable && is_one { Ok(text) } else { Err(BadEmailAddress::Form) }
}

fn has_length(text: &str) -> bool {
    (3..=254).contains(&text.chars().count())
}

impl PartialEq for EmailAddress {
    fn eq(&self, other: &Self) -> bool {
        self.normal == other.normal
    }
}

impl Eq for EmailAddress {}

impl PartialOrd for EmailAddress {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EmailAddress {
    fn cmp(&self, other: &Self) -> Ordering {
        self.normal.cmp(&other.normal)
    }
}

impl Hash for EmailAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.normal.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> EmailAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_has_one_form_and_prints_nowhere() {
        let address = address(" \u{a0} Ada@Example.COM\r\n");
        assert_eq!(address.as_str(), "ada@example.com");
        assert!(!format!("{address:?}").contains("ada"));
        let long = format!("a@{}", "b".repeat(253));
        for bad in ["", "a@", "@b", "ab", "a@b@c", "a b@c", "a@b\u{7}c", "a\u{a0}a@b", &long] {
            assert!(bad.parse::<EmailAddress>().is_err(), "{bad}");
            assert!(EmailAddress::known(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_domain_is_compared_in_ascii_without_a_dot_at_its_end() {
        for (one, others) in [
            ("ada@example.com", &["ada@example.com.", "ADA@EXAMPLE.com.", "ada@ｅxample.com"][..]),
            (
                "ada@xn--bcher-kva.example",
                &[
                    "ada@bücher.example",
                    "ada@bu\u{308}cher.example",
                    "ada@BÜCHER.example",
                    "ada@XN--BCHER-KVA.example.",
                    "ada@bücher。example",
                    "ada@bücher.example。",
                ],
            ),
            ("ada@xn--wgv71a119e.jp", &["ada@日本語.jp", "ada@日本語．jp．"]),
            ("é@example.com", &["e\u{301}@example.com", "e\u{301}@example.com."]),
            ("a@[192.0.2.1]", &["A@[192.0.2.1]"]),
            ("a@mail_1", &["a@mail_1."]),
        ] {
            for other in others {
                assert_eq!(address(other), address(one), "{other}");
                assert_eq!(address(other).as_str(), one, "{other}");
            }
        }
        // Not one of another: case and letters in front of the @ stay what they are.
        assert_ne!(address("ada@straße.de"), address("ada@strasse.de"));
        assert_ne!(address("É@example.com"), address("é@example.com"));
    }

    #[test]
    fn a_refused_address_says_what_to_remove() {
        for (text, error) in [
            ("ada\u{200b}@example.com", "U+200B at character 4"),
            (" a\u{202e}b@example.com", "U+202E at character 2"),
            ("ada@exam\u{ad}ple.com", "U+00AD at character 9"),
            ("ada@example.com\u{feff}", "U+FEFF at character 16"),
            ("ada@b\u{200d}cher.example", "U+200D at character 6"),
            ("\u{2028}ada@example.com", "no blanks"),
            ("ada@example.com\u{85}", "no blanks"),
            ("ada@.", "a domain"),
            ("ada@b..", "a domain"),
            ("ada@xn--a\u{fc}", "a domain"),
            ("ada@xn--zzzzzzzz999999", "a domain"),
            ("ada＠example.com", "one @"),
            ("ada@exa＠mple.com", "a domain"),
        ] {
            let told = text.parse::<EmailAddress>().unwrap_err().to_string();
            assert!(told.contains(error), "{text:?}: {told}");
        }
    }

    #[test]
    fn rows_of_before_are_known_and_found() {
        for (row, typed) in [
            ("ada@example.com.", "Ada@example.com"),
            ("ada@example.com", "ada@example.com."),
            ("ada@bücher.example", "ada@xn--bcher-kva.example"),
            ("ada@bücher.example.", "ada@bücher.example"),
            ("ada@bu\u{308}cher.example", "ada@bücher.example"),
            ("ada@bÜcher.example", "ada@BÜCHER.example"),
            ("e\u{301}@example.com", "é@example.com"),
            ("ada\u{200b}@example.com", "ada\u{200b}@example.com"),
            ("ada@b..", "ADA@b.."),
        ] {
            let (known, typed) = (EmailAddress::known(row), EmailAddress::known(typed).unwrap());
            assert!(typed.spellings().contains(&row.to_owned()), "{row}: {:?}", typed.spellings());
            assert_eq!(known, Some(typed), "{row}");
        }
        let spellings = address("Ada@example.com.").spellings();
        assert_eq!(spellings, ["ada@example.com.", "ada@example.com"]);
    }
}
