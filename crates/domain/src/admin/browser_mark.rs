//! Marks of browsers that a person has signed in from: failures elsewhere do not slow them down.
//!
//! A mark is random and of one browser. It ends with the password that it was made under, or when its person signs out
//! everywhere.

use super::PasswordHash;
use crate::private::Private;
use crate::secret::TokenHash;
use crate::{BrowserMarkId, PersonId, Timestamp};

/// Marks of a person: one more ends the oldest.
pub const BROWSER_MARKS_MAX: u32 = 20;

/// Mark of a browser, without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserMark {
    /// Id of the mark.
    pub id: BrowserMarkId,
    /// The person.
    pub person: PersonId,
    /// Moment of the first sign-in.
    pub created_at: Timestamp,
    /// Moment of the last sign-in.
    pub used_at: Timestamp,
    /// Network address of the last sign-in.
    pub address: Private<String>,
}

/// Mark that is made at a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBrowserMark {
    /// Id of the mark.
    pub id: BrowserMarkId,
    /// The person.
    pub person: PersonId,
    /// Hash of its token.
    pub token: TokenHash,
    /// Network address of the browser.
    pub address: Private<String>,
    /// Password that was proven or set. The mark is kept only while it is the person's.
    pub password: PasswordHash,
}
