//! Changes of people: actions, what they are judged by, and the rows that follow.
//!
//! An action knows hashes alone: of the token of a link, of a password. The authority of whoever
//! grants or ends comes with the action, because whether it is enough depends on what the person has,
//! which is read under the locks.

use std::time::Duration;

use super::email_address::EmailAddress;
use super::person::{Authority, PasswordHash, Person, PersonGrant, PersonLink, PersonRecord};
use super::{ActorId, PersonInvitation, UseCase};
use crate::private::Private;
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

/// Change of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAction {
    /// Offer an authority to whoever has this address.
    Invite {
        /// The person, where nobody has the address yet.
        new: Person,
        /// The address.
        email: EmailAddress,
        /// The role that is offered.
        offered: Authority,
        /// Authority of its grantor.
        grantor: Authority,
        /// The link.
        link: NewLink,
    },
    /// Offer everything to the first owner, whoever has the link.
    InviteFirstOwner {
        /// The person, where nobody waits for it yet.
        new: Person,
        /// The link.
        link: NewLink,
    },
    /// Give up a person's password and sessions, and make another link.
    RenewLink {
        /// The person.
        person: PersonId,
        /// Authority of its grantor.
        grantor: Authority,
        /// The link.
        link: NewLink,
    },
    /// Take what a link gives.
    Accept {
        /// The person.
        person: PersonId,
        /// The link.
        link: LinkId,
        /// Actor that made the link.
        made_by: ActorId,
        /// Password of whoever has none.
        password: Option<PasswordHash>,
        /// True where the person has signed in.
        is_signed_in: bool,
    },
    /// Become the first owner.
    AcceptFirstOwner {
        /// The person.
        person: PersonId,
        /// The link.
        link: LinkId,
        /// Address of the owner.
        email: EmailAddress,
        /// Name of the owner.
        name: Option<Private<String>>,
        /// Password of the owner.
        password: PasswordHash,
    },
    /// Change a password that is known.
    ChangePassword {
        /// The person.
        person: PersonId,
        /// Password that was proven.
        old: PasswordHash,
        /// The next one.
        new: PasswordHash,
        /// Session that stays, and the hash of its next token.
        kept: (SessionId, TokenHash),
    },
    /// End an authority, or the offer of it.
    EndGrant {
        /// The person.
        person: PersonId,
        /// The role that ends.
        authority: Authority,
        /// Authority of the one who ends it.
        grantor: Authority,
    },
    /// End a person for good.
    End {
        /// The person.
        person: PersonId,
        /// True where their address and name are erased.
        is_erased: bool,
    },
}

/// Facts that a change of a person is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonFacts {
    /// The person: locked. Of an invitation the one who has the address and has not ended; of the
    /// first owner's the one without an address who has not.
    pub record: Option<PersonRecord>,
    /// Password of the person.
    pub password: Option<PasswordHash>,
    /// True where somebody else who has not ended has the address of the action.
    pub is_email_taken: bool,
    /// Authorities of the link's maker now: none, where they have ended.
    pub maker: Vec<Authority>,
}

impl PersonFacts {
    /// Facts where there is no person.
    pub const NONE: Self =
        Self { record: None, password: None, is_email_taken: false, maker: Vec::new() };
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

impl PersonAction {
    /// Use case that the action belongs to.
    #[must_use]
    pub const fn use_case(&self) -> UseCase {
        match self {
            Self::Invite { .. } | Self::InviteFirstOwner { .. } => UseCase::PersonInvite,
            Self::RenewLink { .. } => UseCase::PersonLink,
            Self::Accept { .. } | Self::AcceptFirstOwner { .. } => UseCase::PersonAccept,
            Self::ChangePassword { .. } => UseCase::PersonPassword,
            Self::EndGrant { .. } | Self::End { .. } => UseCase::PersonEnd,
        }
    }

    /// Person that the action makes, where nobody is there yet.
    pub(super) const fn made(&self) -> Option<PersonId> {
        match self {
            Self::Invite { new, .. } => Some(new.id),
            Self::InviteFirstOwner { .. }
            | Self::RenewLink { .. }
            | Self::Accept { .. }
            | Self::AcceptFirstOwner { .. }
            | Self::ChangePassword { .. }
            | Self::EndGrant { .. }
            | Self::End { .. } => None,
        }
    }

    /// True where the action adds a link to a person who is there, whose token another offer of it may
    /// have made.
    pub(super) const fn is_rotation(&self) -> bool {
        matches!(self, Self::RenewLink { .. } | Self::InviteFirstOwner { .. })
    }
}
