//! Links of people, each for one use: an invitation, a new password, the first owner.
//!
//! ```text
//! open_link ─▶ open by the database's clock? ─▶ hash of the password ─▶ command, request key = id of the link
//!     └─ unknown, used, expired: NotValid          (off the transaction)     └─ bound before: NotValid
//! ```
//!
//! A link may be viewed any number of times, because mail scanners and browsers fetch it, and is used once: its id is
//! the request key of its use, so of two uses at once one is a repetition, and refused. Every fault of a link has the
//! same answer, which does not reveal whether it existed. A person with a password uses it signed in: a stolen link
//! is of no use without the password.
//!
//! Never in here: a token in an error or a row. The store has its hash.

use holdfast_domain::admin::{
    AccountAction, AccountRefusal, EmailAddress, KnownLink, KnownPassword, LinkPurpose,
    PasswordHash, PersonAction, PersonLink,
};
use holdfast_domain::private::Private;
use holdfast_domain::secret::LinkToken;
use holdfast_domain::{CommandKey, PersonId, Timestamp};

use crate::passwords::{HashError, Lane};
use crate::sessions::attempt;
use crate::{
    Accounts, AccountsError, BegunSession, Name, Password, Principal, Request, SignInError,
    SignInOrigin,
};

/// View of a link for its bearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkView {
    /// Address of its person; `None` for the first owner, who enters theirs.
    pub email: Option<EmailAddress>,
    /// Name of its person.
    pub name: Option<Private<String>>,
    /// Purpose of the link.
    pub purpose: LinkPurpose,
    /// True if its person uses it signed in.
    pub requires_sign_in: bool,
    /// Moment from which it is not accepted.
    pub expires_at: Timestamp,
}

/// A link that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedLink {
    /// Person of the link.
    pub person: PersonId,
    /// Password that was set by it.
    pub password: Option<PasswordHash>,
}

/// A link that was used, with the session that began by it.
#[derive(Debug, Clone)]
pub struct AcceptedLink {
    /// Person of the link.
    pub person: PersonId,
    /// Session of the person who set a password; `None` for one who was signed in, or if none could begin.
    pub begun: Option<BegunSession>,
}

/// Failure to look at a link or to use it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Unknown, used, or expired: the answer does not reveal which.
    #[error("the link is not valid any more")]
    NotValid,
    /// The person has a password: they sign in, and use the link then.
    #[error("sign in first, as the person whom the link is for")]
    SignInFirst,
    /// The person has none: they set one.
    #[error("set a password")]
    PasswordMissing,
    /// Another person has the address that the first owner gave.
    #[error("another person has this e-mail address")]
    EmailTaken,
    /// As many passwords as may wait to be hashed are waiting.
    #[error("too many people set or check passwords at this moment")]
    Busy,
    /// A failure of another kind.
    #[error(transparent)]
    Failed(AccountsError),
}

/// A session that has begun, or `None` with a line in the log.
fn logged(begun: Result<BegunSession, SignInError>) -> Option<BegunSession> {
    begun.inspect_err(|error| tracing::warn!(%error, "no session began by a used link")).ok()
}

impl From<AccountsError> for LinkError {
    fn from(error: AccountsError) -> Self {
        use AccountRefusal as Refusal;
        let AccountsError::Refused(refusal) = &error else { return Self::Failed(error) };
        let is_gone =
            [Refusal::NoLink, Refusal::NoPerson, Refusal::PersonEnded, Refusal::RequestKeyConflict];
        if is_gone.contains(refusal) {
            Self::NotValid
        } else if *refusal == Refusal::SignInFirst {
            Self::SignInFirst
        } else if *refusal == Refusal::PasswordMissing {
            Self::PasswordMissing
        } else if *refusal == Refusal::EmailTaken {
            Self::EmailTaken
        } else {
            Self::Failed(error)
        }
    }
}

impl From<HashError> for LinkError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::Busy,
            HashError::Failed(cause) => Self::Failed(AccountsError::NoRandom(cause)),
        }
    }
}

impl Accounts {
    /// View of a link. A view changes no state and may be repeated.
    ///
    /// # Errors
    ///
    /// [`LinkError::NotValid`], or that the store fails.
    pub async fn look_at_link(&self, token: &LinkToken) -> Result<LinkView, LinkError> {
        let (known, link) = self.open_link(token).await?;
        let record = known.record;
        Ok(LinkView {
            requires_sign_in: record.requires_sign_in(link.purpose),
            email: record.person.email,
            name: record.person.name,
            purpose: link.purpose,
            expires_at: link.expires_at,
        })
    }

    /// Uses a link. `signed_in` is the person of the session that it is used in: a person with a password has
    /// to be that one, and a person without one sets this password.
    ///
    /// # Errors
    ///
    /// A [`LinkError`].
    pub async fn accept_link(
        &self,
        token: &LinkToken,
        password: Option<&Password>,
        signed_in: Option<PersonId>,
    ) -> Result<UsedLink, LinkError> {
        let (known, link) = self.open_link(token).await?;
        let person = known.record.person.id;
        let is_signed_in = signed_in == Some(person);
        // Hashed before the command, which decides by the same facts once more: its transaction
        // must not last as long as a hash. An invented token has ended above and costs none.
        let hash = match (known.record.requires_sign_in(link.purpose), password) {
            (true, _) if !is_signed_in => return Err(LinkError::SignInFirst),
            (true, _) => None,
            (false, Some(password)) => {
                Some(self.passwords.hash(Lane::of_known(person.to_bytes()), password).await?)
            }
            (false, None) => return Err(LinkError::PasswordMissing),
        };
        let (id, made_by, password) = (link.id, link.created_by, hash.clone());
        let accepted = PersonAction::Accept { person, link: id, made_by, password, is_signed_in };
        self.use_link(person, &link, accepted).await?;
        Ok(UsedLink { person, password: hash })
    }

    /// Uses the link of the first owner, who enters name and address.
    ///
    /// # Errors
    ///
    /// A [`LinkError`].
    pub async fn accept_first_owner(
        &self,
        token: &LinkToken,
        email: &EmailAddress,
        name: Option<&Name>,
        password: &Password,
    ) -> Result<UsedLink, LinkError> {
        let (known, link) = self.open_link(token).await?;
        // The link of an invitation has an address already: by this way its bearer would choose
        // another one.
        if link.purpose != LinkPurpose::FirstOwner {
            return Err(LinkError::NotValid);
        }
        let person = known.record.person.id;
        let lane = Lane::of_known(person.to_bytes());
        let password: PasswordHash = self.passwords.hash(lane, password).await?;
        let accepted = PersonAction::AcceptFirstOwner {
            person,
            link: link.id,
            email: email.clone(),
            name: name.map(|name| Private(name.as_str().to_owned())),
            password: password.clone(),
        };
        self.use_link(person, &link, accepted).await?;
        Ok(UsedLink { person, password: Some(password) })
    }

    /// Signs the person in who has just set a password by a link: the password needs no second proof. Without a session
    /// if none can begin, because an error would read as if the link were unused.
    pub async fn sign_in_by_link(
        &self,
        used: UsedLink,
        email: Option<&EmailAddress>,
        origin: &SignInOrigin,
    ) -> AcceptedLink {
        let UsedLink { person, password } = used;
        let (Some(hash), Some(email)) = (password, email) else {
            return AcceptedLink { person, begun: None };
        };
        let begun = async {
            let known = self.book.password_of(email).await?;
            // Another password may have been set since, or the person ended.
            let is_own = |known: &KnownPassword| known.person == person && known.hash == hash;
            self.begin(&known.filter(is_own).ok_or(SignInError::Wrong)?, None, origin).await
        };
        AcceptedLink { person, begun: logged(begun.await) }
    }

    /// The person of a used link, if the caller is that person: by the session, or by the password that they
    /// set with it, whose failures are those of a sign-in. A session begins by the password. Other callers do not learn
    /// the person.
    pub async fn accepted_by(
        &self,
        token: &LinkToken,
        password: Option<&Password>,
        signed_in: Option<PersonId>,
        origin: &SignInOrigin,
    ) -> Option<AcceptedLink> {
        let known = self.book.known_link(&token.hash()).await.ok()??;
        let person = Some(known.link).filter(|link| link.used_at.is_some())?.person;
        if signed_in == Some(person) {
            return Some(AcceptedLink { person, begun: None });
        }
        // Counted and slowed down as a sign-in is: a used link must not become a place to guess
        // passwords.
        let email = known.record.person.email?;
        let known = self.book.password_of(&email).await.ok()?;
        let attempt = attempt(origin, email.as_str(), known.as_ref(), None);
        let proven = self.prove(attempt, origin.address, password?, known).await.ok()?;
        let begun = logged(self.begin(&proven, None, origin).await);
        Some(AcceptedLink { person: proven.person, begun })
    }

    async fn open_link(&self, token: &LinkToken) -> Result<(KnownLink, PersonLink), LinkError> {
        let known = self.book.known_link(&token.hash()).await.map_err(AccountsError::from)?;
        let known = known.ok_or(LinkError::NotValid)?;
        // By the database's clock, which the transaction judges by too: a link that looks open here
        // and is refused there would show a form that cannot succeed.
        let open = known.record.open_links(known.now).find(|link| link.id == known.link.id);
        let link = open.cloned().ok_or(LinkError::NotValid)?;
        Ok((known, link))
    }

    async fn use_link(
        &self,
        person: PersonId,
        link: &PersonLink,
        accepted: PersonAction,
    ) -> Result<(), LinkError> {
        let id = link.id.to_bytes();
        let key = CommandKey::from_bytes(id);
        let request = Request::new(key, &[b"use link", &id], None);
        let action = AccountAction::Person(accepted);
        let done = self.change(&Principal::acting_person(person), &request, action).await?;
        // Used before: no effect of this use was kept.
        if done.replayed { Err(LinkError::NotValid) } else { Ok(()) }
    }
}
