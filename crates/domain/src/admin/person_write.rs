//! Rows of people that follow from a change.
//!
//! A write knows hashes alone: of the token of a link, of a password.

use std::time::Duration;

use super::{Authority, PasswordHash, Person, PersonGrant, PersonInvitation, PersonLink};
use crate::secret::TokenHash;
use crate::{LinkId, PersonId, SessionId, Timestamp, WalletId};

/// A link that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLink {
    /// Id of the link.
    pub id: LinkId,
    /// Hash of its token.
    pub token: TokenHash,
    /// Time for which it is open.
    pub lifetime: Duration,
}

/// Sessions of a person that end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedSessions {
    /// All of them.
    All,
    /// All but one.
    Except(SessionId),
    /// The ones that use this authority.
    Using(Authority),
}

/// Write of a person's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonWrite {
    /// A new person.
    Insert(Person),
    /// Address, name and end of a person.
    Update(Person),
    /// The password of a person, in the place of the one before.
    PutPassword(PersonId, PasswordHash, Timestamp),
    /// No password.
    DeletePassword(PersonId),
    /// A grant.
    InsertGrant(PersonId, PersonGrant),
    /// No such grant.
    DeleteGrant(PersonId, Authority),
    /// No grants.
    DeleteGrants(PersonId),
    /// An invitation, or the name that it gives to the one that the person has for the wallet.
    PutInvitation(PersonId, PersonInvitation),
    /// No invitation for this wallet.
    DeleteInvitation(PersonId, WalletId),
    /// No names in invitations.
    EraseInvitations(PersonId),
    /// A link of a person, in the place of the one before within its reach.
    PutLink(PersonLink, TokenHash),
    /// The moment at which a link was used.
    UseLink(LinkId, Timestamp),
    /// No such link.
    DeleteLink(LinkId),
    /// No links.
    DeleteLinks(PersonId),
    /// End of sessions.
    EndSessions(PersonId, EndedSessions),
    /// Another token of a session; the one before ends.
    RenewSession(SessionId, TokenHash),
}
