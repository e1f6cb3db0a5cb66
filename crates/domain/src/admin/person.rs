//! People: who signs in, what they may, and the links and sessions by which they do.
//!
//! ```text
//! invited ─▶ pending ── link: password, one grant ─▶ active ◀── another link, signed in: one more grant
//!               ▲                                     │  │
//!               │ last grant ended: no password        │  └─ password lost: no password, no session, a link
//!               └─────────────────────────────────────┘
//! any of them ─▶ ended, for good; perhaps erased: without address and name
//! ```
//!
//! - A grant is one authority: a role, for all wallets or one. A person may have several, each once.
//! - A link is for one person, shown once and used once. A person has one for the operators and one for each
//!   wallet: a later one takes the place of the one before there. It only gives one authority, or lets a person
//!   without a password set one.
//! - A person with a password, or with a grant whose password was given up, accepts an authority signed in: the bearer
//!   of a link takes over no person.
//! - A person has a password only as long as they have a grant.
//! - A holder sees of a person what was written for the one wallet: invitation, link and grants there.
//!
//! Never in here: how a password is hashed, or a token in the clear. What people have typed has no
//! `Debug`.

use std::fmt;
use std::time::Duration;

use super::email_address::EmailAddress;
use super::field_change::{Fields, TrailFields, moment};
use super::{ActorId, PersonInvitation, Reach, ResourceId, Role};
use crate::private::{Private, unprinted};
use crate::secret::TokenHash;
use crate::{LinkId, PersonId, SessionId, Timestamp};

/// Time for which a link is open.
pub const LINK_LIFETIME: Duration = Duration::from_secs(24 * 3_600);
/// Time for which the link of the first owner is open.
pub const FIRST_OWNER_LIFETIME: Duration = Duration::from_secs(3_600);
/// Time without a request after which a session has ended.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 3_600);
/// Age at which a session has ended.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 86_400);
/// Age of a sign-in up to which it is fresh: people, admin keys and webhooks require that.
pub const FRESH_FOR: Duration = Duration::from_secs(15 * 60);
/// Sessions of a person: one more ends the oldest.
pub const SESSIONS_MAX: u32 = 32;

/// Hash of a password, with its salt and costs, as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

unprinted! { PasswordHash }

impl PasswordHash {
    /// Takes the text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, to be stored or to be checked against.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Authority: a role, and the wallets that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority {
    /// The role.
    pub role: Role,
    /// The wallets.
    pub reach: Reach,
}

impl Authority {
    /// True if the role is for as many wallets as it can be: a holder's for one, any other for all.
    #[must_use]
    pub const fn is_sound(self) -> bool {
        self.role.is_holder() == matches!(self.reach, Reach::Wallet(_))
    }

    /// True if the holder of this authority has all rights of the other one.
    #[must_use]
    pub fn may_grant(self, other: Self) -> bool {
        let is_within = match (self.reach, other.reach) {
            (Reach::All, _) => true,
            (Reach::Wallet(own), Reach::Wallet(wallet)) => own == wallet,
            (Reach::Wallet(_), Reach::All) => false,
        };
        is_within && self.role.may_grant(other.role)
    }
}

impl fmt::Display for Authority {
    /// The role alone, or with its wallet, as `holder_admin:<wallet>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reach {
            Reach::All => write!(f, "{}", self.role),
            Reach::Wallet(wallet) => write!(f, "{}:{wallet}", self.role),
        }
    }
}

/// A person as they are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Id of the person; request keys are bound for it.
    pub id: PersonId,
    /// Address of the person, unique among those who have not ended; `None` once it is erased, and for
    /// the first owner until they give one.
    pub email: Option<EmailAddress>,
    /// Name of the person.
    pub name: Option<Private<String>>,
    /// Moment of the first invitation.
    pub created_at: Timestamp,
    /// Actor of the first invitation.
    pub created_by: ActorId,
    /// Moment since which they have ended, for good.
    pub ended_at: Option<Timestamp>,
}

impl TrailFields for Person {
    fn thing(&self) -> ResourceId {
        ResourceId::Person(self.id)
    }

    /// Address and name are never in the audit log.
    fn trail_fields(&self) -> Fields {
        vec![("ended_at", moment(self.ended_at))]
    }
}

/// Authority that a person has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonGrant {
    /// The authority.
    pub authority: Authority,
    /// Moment at which they took it.
    pub granted_at: Timestamp,
    /// Actor that gave it.
    pub granted_by: ActorId,
}

/// Purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// To give this authority, with a password for a person without one.
    Accept(Authority),
    /// To let a person who has lost their password set another one.
    SetPassword,
    /// To make the first owner, who enters name and address.
    FirstOwner,
}

impl LinkPurpose {
    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::SetPassword => "set_password",
            Self::FirstOwner => "first_owner",
        }
    }

    /// Authority that the link gives, if it gives one.
    #[must_use]
    pub const fn authority(self) -> Option<Authority> {
        match self {
            Self::Accept(authority) => Some(authority),
            Self::FirstOwner => Some(Authority { role: Role::Owner, reach: Reach::All }),
            Self::SetPassword => None,
        }
    }
}

/// The last link of a person for the operators, or for one wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonLink {
    /// Id of the link.
    pub id: LinkId,
    /// The person.
    pub person: PersonId,
    /// Reach within which a later link takes its place: of the authority that it gives, or of its maker.
    pub reach: Reach,
    /// Purpose of the link.
    pub purpose: LinkPurpose,
    /// Moment from which it is not accepted.
    pub expires_at: Timestamp,
    /// Moment at which it was used.
    pub used_at: Option<Timestamp>,
    /// Actor that made it.
    pub created_by: ActorId,
}

impl PersonLink {
    /// True if it can be used.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.used_at.is_none() && self.expires_at > now
    }
}

/// State of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonState {
    /// Without a password: not accepted yet, or lost it.
    Pending,
    /// Able to sign in.
    Active,
    /// Ended for good.
    Ended,
}

impl PersonState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Ended];

    /// The name in answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Ended => "ended",
        }
    }
}

/// A person with all that belongs to them, but their password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRecord {
    /// The person.
    pub person: Person,
    /// Authorities of the person, in the order in which they took them.
    pub grants: Vec<PersonGrant>,
    /// True if they have a password.
    pub has_password: bool,
    /// Last link of the person for each reach, the one that expires last first.
    pub links: Vec<PersonLink>,
    /// Invitations for wallets, one for each wallet.
    pub invitations: Vec<PersonInvitation>,
}

impl PersonRecord {
    /// State of the person.
    #[must_use]
    pub const fn state(&self) -> PersonState {
        if self.person.ended_at.is_some() {
            PersonState::Ended
        } else if self.has_password {
            PersonState::Active
        } else {
            PersonState::Pending
        }
    }

    /// Roles that they have, and those that unused links offer.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        let had = self.grants.iter().map(|grant| grant.authority);
        had.chain(self.offered()).map(|authority| authority.role).collect()
    }

    /// Authorities of unused links, even if the links have run out.
    pub fn offered(&self) -> impl Iterator<Item = Authority> + '_ {
        let unused = self.links.iter().filter(|link| link.used_at.is_none());
        unused.filter_map(|link| link.purpose.authority())
    }

    /// Last link of the person within a reach.
    #[must_use]
    pub fn link_of(&self, reach: Reach) -> Option<&PersonLink> {
        self.links.iter().find(|link| link.reach == reach)
    }

    /// Links of the person that can be used.
    pub fn open_links(&self, now: Timestamp) -> impl Iterator<Item = &PersonLink> + '_ {
        let goes_on = self.person.ended_at.is_none();
        self.links.iter().filter(move |link| goes_on && link.is_open(now))
    }

    /// True if the person uses a link signed in: its bearer must not set a password for what they have.
    #[must_use]
    pub fn requires_sign_in(&self, purpose: LinkPurpose) -> bool {
        self.has_password || (purpose != LinkPurpose::SetPassword && !self.grants.is_empty())
    }

    /// The part of the person that this reach sees. Of a wallet: grants, unused link and invitation there, and
    /// no row of another reach; `None` if there is neither grant nor link.
    #[must_use]
    pub fn seen_from(mut self, reach: Reach) -> Option<Self> {
        let Reach::Wallet(wallet) = reach else { return Some(self) };
        self.grants.retain(|grant| grant.authority.reach == reach);
        // A used one gives nothing any more: what it gave is among the grants, or was ended.
        self.links.retain(|link| link.reach == reach && link.used_at.is_none());
        self.invitations.retain(|invitation| invitation.wallet == wallet);
        let invitation = self.invitations.first().cloned();
        // A version before kept no invitation: the oldest row of the wallet is the nearest to it.
        let grant = self.grants.first().map(|grant| (grant.granted_at, grant.granted_by));
        let link =
            self.links.first().map(|link| (link.expires_at.before(LINK_LIFETIME), link.created_by));
        let written = invitation.as_ref().map(|it| (it.invited_at, it.invited_by));
        (self.person.created_at, self.person.created_by) = written.or(grant).or(link)?;
        self.person.name = invitation.and_then(|invitation| invitation.name);
        // A state elsewhere is not the wallet's to know.
        self.has_password = self.has_password && !self.grants.is_empty();
        (!self.grants.is_empty() || !self.links.is_empty()).then_some(self)
    }
}

/// A link as it is kept, with its person and the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLink {
    /// The person.
    pub record: PersonRecord,
    /// The link that was looked for, which is one of theirs.
    pub link: PersonLink,
    /// The database's clock.
    pub now: Timestamp,
}

/// A session of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Id of the session.
    pub id: SessionId,
    /// The person.
    pub person: PersonId,
    /// Authority in use.
    pub authority: Authority,
    /// Moment at which it began.
    pub created_at: Timestamp,
    /// Moment of the last request, to about a minute.
    pub last_seen_at: Timestamp,
    /// Moment at which the password was last given.
    pub signed_in_at: Timestamp,
    /// Network address of the last request.
    pub address: Private<String>,
}

impl Session {
    /// True if it is accepted no more.
    #[must_use]
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.created_at.after(SESSION_LIFETIME) <= now
            || self.last_seen_at.after(SESSION_IDLE) <= now
    }

    /// True if the password was given a short time ago.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.signed_in_at.after(FRESH_FOR) > now
    }
}

/// A session that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Id of the session.
    pub id: SessionId,
    /// The person.
    pub person: PersonId,
    /// Hash of its token.
    pub token: TokenHash,
    /// Authority in use.
    pub authority: Authority,
    /// Network address.
    pub address: Private<String>,
    /// Password that was proven. The session begins only while it is the person's.
    pub password: PasswordHash,
}

/// A session with its person, and the database's clock to judge its end by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSession {
    /// The session.
    pub session: Session,
    /// The person.
    pub person: Person,
    /// Authorities of the person.
    pub grants: Vec<PersonGrant>,
    /// The database's clock.
    pub now: Timestamp,
}

impl KnownSession {
    /// True if it is accepted no more: the session, its person or its authority has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // A grant that ended while the session began has left its row: it is found at each look-up.
        let has_authority =
            self.grants.iter().any(|grant| grant.authority == self.session.authority);
        self.session.has_ended(self.now) || self.person.ended_at.is_some() || !has_authority
    }
}

/// Password of a person as it is kept, and what they may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPassword {
    /// The person.
    pub person: PersonId,
    /// Hash of the password.
    pub hash: PasswordHash,
    /// Moment at which it was set.
    pub set_at: Timestamp,
    /// Authorities of the person.
    pub grants: Vec<PersonGrant>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WalletId;

    #[test]
    fn nobody_grants_beyond_their_reach() {
        let of = |wallet| Reach::Wallet(WalletId::from_u128(wallet));
        let admin = Authority { role: Role::HolderAdmin, reach: of(1) };
        let owner = Authority { role: Role::Owner, reach: Reach::All };
        assert!(owner.may_grant(admin) && owner.may_grant(owner) && !admin.may_grant(owner));
        assert!(admin.may_grant(Authority { role: Role::HolderViewer, ..admin }));
        assert!(!admin.may_grant(Authority { reach: of(2), ..admin }));
        assert!(!admin.may_grant(Authority { reach: Reach::All, ..admin }));
        assert!(!Authority { reach: Reach::All, ..admin }.is_sound());
    }
}
