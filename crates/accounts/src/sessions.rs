//! Sign-in, and the sessions that it begins.
//!
//! A wrong password, an unknown address and a person without a password are told alike, and cost the
//! same hash. A session has one of its person's roles in use; a role that ends takes the sessions
//! that use it along.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_domain::account::{
    AccountAction, AccountRefusal, Authority, EmailAddress, KnownPassword, NewSession, Person,
    PersonAction, PersonGrant, Session,
};
use holdfast_domain::ports::{Cause, Unavailable};
use holdfast_domain::private::Private;
use holdfast_domain::secret::SessionToken;
use holdfast_domain::{SessionId, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

use crate::api_keys::random_bits;
use crate::attempts::Attempt;
use crate::passwords::HashError;
use crate::{Accounts, AccountsError, Password, Principal, Request, ThingKind};

/// Age at which the last request of a session is noted anew.
const TOUCHED_EVERY: Duration = Duration::from_secs(60);

/// A session that has begun, with its token, which is told once.
#[derive(Debug, Clone)]
pub struct BegunSession {
    /// Token, which the browser shows from now on.
    pub token: SessionToken,
    /// The session.
    pub signed_in: SignedIn,
}

/// Somebody in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// Whoever asks, with the role that is in use.
    pub principal: Principal,
    /// The person.
    pub person: Person,
    /// The session.
    pub session: Session,
    /// All that the person may.
    pub grants: Vec<PersonGrant>,
    /// The database's clock.
    pub now: Timestamp,
}

impl SignedIn {
    /// True where the password was given less than 15 minutes ago.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.session.is_fresh(now)
    }
}

/// Failure to sign in, or to prove a password.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Nobody has this address and this password.
    #[error("the e-mail address or the password is wrong")]
    Wrong,
    /// Failures slow down.
    #[error("wait {} s before the next attempt", .retry_after.as_secs().max(1))]
    Slow {
        /// Time until the next attempt is judged.
        retry_after: Duration,
    },
    /// As many passwords as may wait to be checked are waiting.
    #[error("too many people sign in at this moment")]
    Busy,
    /// The store or the system does not work: nothing is said of the password.
    #[error("nobody can sign in")]
    Unavailable(#[source] Cause),
}

/// Failure to find a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Unknown or ended: nobody is told which.
    #[error("the session has ended")]
    Ended,
    /// The store does not work: nothing is said of the session.
    #[error("sessions cannot be checked")]
    Unavailable(#[source] Cause),
}

impl From<HashError> for SignInError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::Busy,
            HashError::Failed(cause) => Self::Unavailable(cause),
        }
    }
}

impl From<Unavailable> for SignInError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable(cause)
    }
}

impl From<Unavailable> for SessionError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable(cause)
    }
}

impl Accounts {
    /// Begins a session, with the first of the person's roles in the order of
    /// [`Role`](holdfast_domain::account::Role). `is_known_device` is true for a browser that has a
    /// mark of this address ([`Accounts::is_known_device`]).
    ///
    /// # Errors
    ///
    /// A [`SignInError`].
    pub async fn sign_in(
        &self,
        email: &str,
        password: &Password,
        address: IpAddr,
        is_known_device: bool,
    ) -> Result<BegunSession, SignInError> {
        // One of before the rule of addresses is in its row as it was typed.
        let email = EmailAddress::known(email);
        let written = email.as_ref().map_or("", EmailAddress::as_str);
        let attempt = Attempt::new(address, written, is_known_device);
        let known = match &email {
            Some(email) => self.book.password_of(email).await?,
            None => None,
        };
        let known = self.prove(attempt, password, known).await?;
        // The broadest one: whoever wants another one chooses it.
        let first = known.grants.iter().map(|grant| grant.authority).min_by_key(|it| it.role);
        let authority = first.ok_or(SignInError::Wrong)?;
        let bits = random_bits().map_err(|error| SignInError::Unavailable(Box::new(error)))?;
        let token = SessionToken::new(bits);
        let new = NewSession {
            id: SessionId::from(Uuid::new_v4()),
            person: known.person,
            token: token.hash(),
            authority,
            address: Private(address.to_string()),
            password: known.hash,
        };
        self.book.begin_session(&new).await?;
        match self.session(&token, address).await {
            Ok(signed_in) => Ok(BegunSession { token, signed_in }),
            // The password or the role was changed while it was proven.
            Err(SessionError::Ended) => Err(SignInError::Wrong),
            Err(SessionError::Unavailable(cause)) => Err(SignInError::Unavailable(cause)),
        }
    }

    /// Proves a password, and counts a failure to.
    pub(crate) async fn prove(
        &self,
        attempt: Attempt,
        password: &Password,
        known: Option<KnownPassword>,
    ) -> Result<KnownPassword, SignInError> {
        if let Some(retry_after) = self.attempts.pause(attempt, Instant::now()) {
            return Err(SignInError::Slow { retry_after });
        }
        let hash = known.as_ref().map(|known| &known.hash);
        let is_proven = self.passwords.is_proven(password, hash).await?;
        match known.filter(|_| is_proven) {
            Some(known) => {
                self.attempts.succeeded(attempt);
                Ok(known)
            }
            None => {
                self.attempts.failed(attempt, Instant::now());
                Err(SignInError::Wrong)
            }
        }
    }

    /// Mark of a browser that this address has signed in from, to be kept in a cookie there.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NoSecret`].
    pub fn device_mark(&self, email: &EmailAddress) -> Result<String, AccountsError> {
        Ok(self.writing_secret()?.device_key().mark(email.as_str()))
    }

    /// True where a browser shows the mark of this address, as it was typed.
    #[must_use]
    pub fn is_known_device(&self, email: &str, mark: &str) -> bool {
        let Some(email) = EmailAddress::known(email) else { return false };
        let digest = blake3::hash(mark.as_bytes());
        let is_mark = |made: String| blake3::hash(made.as_bytes()) == digest;
        self.secrets.iter().any(|secret| is_mark(secret.device_key().mark(email.as_str())))
    }

    /// The session of this token, which is in use at this address from now on.
    ///
    /// # Errors
    ///
    /// A [`SessionError`].
    pub async fn session(
        &self,
        token: &SessionToken,
        address: IpAddr,
    ) -> Result<SignedIn, SessionError> {
        let known = self.book.session(&token.hash()).await?;
        let known = known.filter(|known| !known.has_ended()).ok_or(SessionError::Ended)?;
        let (mut session, now) = (known.session, known.now);
        let address = address.to_string();
        if session.last_seen_at.after(TOUCHED_EVERY) <= now || session.address.0 != address {
            session.last_seen_at = now;
            session.address = Private(address.clone());
            self.book.touch_session(session.id, &session.address).await?;
        }
        let principal = Principal::of_person(known.person.id, session.authority, Some(address));
        Ok(SignedIn { principal, person: known.person, session, grants: known.grants, now })
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn sign_out(&self, signed_in: &SignedIn) -> Result<(), AccountsError> {
        self.end_session(signed_in, signed_in.session.id).await
    }

    /// Sessions of the person that have not ended, the newest first.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn sessions_of(&self, signed_in: &SignedIn) -> Result<Vec<Session>, AccountsError> {
        Ok(self.book.sessions_of(signed_in.person.id).await?)
    }

    /// Ends a session of the person, which may be this one. One that is none of theirs stays, and
    /// nobody is told of it.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn end_session(
        &self,
        signed_in: &SignedIn,
        session: SessionId,
    ) -> Result<(), AccountsError> {
        Ok(self.book.end_session(signed_in.person.id, session).await?)
    }

    /// Has the session use another role of the person.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`] for one that the person has not.
    pub async fn choose_grant(
        &self,
        signed_in: &SignedIn,
        authority: Authority,
    ) -> Result<(), AccountsError> {
        if !signed_in.grants.iter().any(|grant| grant.authority == authority) {
            return Err(AccountsError::NotFound(ThingKind::Grant));
        }
        Ok(self.book.use_authority(signed_in.session.id, authority).await?)
    }

    /// Changes the person's password, and ends their other sessions.
    ///
    /// # Errors
    ///
    /// A [`SignInError`]: [`SignInError::Wrong`] where the old one is.
    pub async fn change_password(
        &self,
        signed_in: &SignedIn,
        old: &Password,
        new: &Password,
    ) -> Result<(), SignInError> {
        let person = signed_in.person.id;
        // Guesses in a session are slowed down as those before it are.
        let address = signed_in.session.address.parse().ok();
        let address = address.unwrap_or(IpAddr::from([0, 0, 0, 0]));
        let email = signed_in.person.email.as_ref().map_or("", EmailAddress::as_str);
        let attempt = Attempt::new(address, email, true);
        let known = self.book.password_of_person(person).await?;
        let known = self.prove(attempt, old, known).await?;
        let new = self.passwords.hash(new).await?;
        let kept = signed_in.session.id;
        let action = PersonAction::ChangePassword { person, old: known.hash, new, kept };
        let request = Request::own(&[b"change password", &person.to_bytes()]);
        let action = AccountAction::Person(action);
        match self.change(&signed_in.principal, &request, action).await {
            Ok(_done) => Ok(()),
            Err(AccountsError::Refused(
                AccountRefusal::PasswordChanged
                | AccountRefusal::NoPerson
                | AccountRefusal::PersonEnded,
            )) => Err(SignInError::Wrong),
            Err(error) => Err(SignInError::Unavailable(Box::new(error))),
        }
    }
}
