//! Sign-in, and the sessions that it begins.
//!
//! ```text
//! address ─▶ password's hash, mark ─▶ attempt counted ─▶ argon2id ─▶ session written ─▶ session read ─▶ token
//!              (None: same cost)        (pause: Slow)      (its turn)    (password unchanged?)
//! ```
//!
//! A wrong password, an unknown address and a person without a password have the same answer, and cost the same hash.
//! A session has one of its person's roles in use; a role that ends takes the sessions that use it along. Each change
//! of the password or of the role in use gives a session another token: a copy of the one before is worth nothing.
//!
//! Never in here: a session without a proof of the password, a token in a row (the store has its hash), or a failure
//! that locks a person out ([`crate::attempts`]).

use std::net::IpAddr;
use std::time::Duration;

use holdfast_domain::admin::{
    AccountAction, AccountRefusal, Authority, BrowserMark, EmailAddress, KnownPassword,
    NewBrowserMark, NewSession, PasswordHash, Person, PersonAction, PersonGrant, Session,
};
use holdfast_domain::ports::{Cause, Unavailable};
use holdfast_domain::private::Private;
use holdfast_domain::secret::{BrowserToken, SessionToken};
use holdfast_domain::{BrowserMarkId, PersonId, SessionId, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

use crate::api_keys::random_bits;
use crate::attempts::Attempt;
use crate::passwords::{HashError, Lane};
use crate::{
    Accounts, AccountsError, Password, Principal, Request, ResourceKind, Result, SignInOrigin,
};

// A page sends several requests: noted at each of them, a session would cost a write per request. A
// minute is exact enough for an idle time of hours, and for a person who looks through the list.
/// Age at which the last request of a session is noted anew.
const TOUCHED_EVERY: Duration = Duration::from_secs(60);

/// A session that has begun, with its token, which is shown once.
#[derive(Debug, Clone)]
pub struct BegunSession {
    /// Token, which the browser shows from now on.
    pub token: SessionToken,
    /// Mark of the browser, which it shows at the next sign-in; `None` if it was not written.
    pub mark: Option<BrowserToken>,
    /// The session.
    pub signed_in: SignedIn,
}

/// A signed-in person in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The person as a principal, with the role that is in use.
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
    /// True if the password was given less than 15 minutes ago.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.session.is_fresh(now)
    }
}

/// Failure to sign in, or to prove a password.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// No person has this address and this password.
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
    /// The store or the system does not work: the password is not judged.
    #[error("nobody can sign in")]
    Unavailable(#[source] Cause),
}

/// Failure to find a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Unknown or ended: the answer does not reveal which.
    #[error("the session has ended")]
    Ended,
    /// The store does not work: the session is not judged.
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

/// Tokens that a session continues with; the ones before end.
#[derive(Debug, Clone)]
pub struct RenewedSession {
    /// Token of the session.
    pub token: SessionToken,
    /// Mark of the browser under the new password; `None` if it was not written.
    pub mark: Option<BrowserToken>,
}

impl Accounts {
    /// Begins a session, with the first of the person's roles in the order of
    /// [`Role`](holdfast_domain::admin::Role).
    ///
    /// # Errors
    ///
    /// A [`SignInError`].
    pub async fn sign_in(
        &self,
        email: &str,
        password: &Password,
        origin: &SignInOrigin,
    ) -> Result<BegunSession, SignInError> {
        // One of before the rule of addresses is in its row as it was typed.
        let email = EmailAddress::known(email);
        let written = email.as_ref().map_or("", EmailAddress::as_str);
        // No early return for an unknown address: it costs the same hash below, so that neither the
        // answer nor its time reveals which addresses have an account.
        let known = match &email {
            Some(email) => self.book.password_of(email).await?,
            None => None,
        };
        let mark = self.mark_of(known.as_ref(), origin).await?;
        let attempt = attempt(origin, written, known.as_ref(), mark.as_ref());
        let known = self.prove(attempt, origin.address, password, known).await?;
        self.begin(&known, mark, origin).await
    }

    /// Begins a session of a person whose password is proven, or was set a moment ago.
    pub(crate) async fn begin(
        &self,
        known: &KnownPassword,
        mark: Option<BrowserToken>,
        origin: &SignInOrigin,
    ) -> Result<BegunSession, SignInError> {
        // The broadest one: the person may choose another one later.
        let first = known.grants.iter().map(|grant| grant.authority).min_by_key(|it| it.role);
        let authority = first.ok_or(SignInError::Wrong)?;
        // Made only after the proof, and never taken from the browser: a token that a stranger has
        // planted there before the sign-in opens no session.
        let token = SessionToken::new(random()?);
        let address = Private(origin.address.to_string());
        let new = NewSession {
            id: SessionId::from(Uuid::new_v4()),
            person: known.person,
            token: token.hash(),
            authority,
            address: address.clone(),
            password: known.hash.clone(),
        };
        self.book.begin_session(&new).await?;
        // Read back, not assumed: the hash took its time, and a session that a changed password or
        // an ended role has taken along must not be answered as a success.
        let signed_in = match self.session(&token, origin.address).await {
            Ok(signed_in) => signed_in,
            // The password or the role was changed while it was proven.
            Err(SessionError::Ended) => return Err(SignInError::Wrong),
            Err(SessionError::Unavailable(cause)) => return Err(SignInError::Unavailable(cause)),
        };
        let mark = match mark {
            Some(mark) => {
                let touched = self.book.touch_browser_mark(&mark.hash(), &address).await;
                // The session has begun. An error here would hide its token, and the person would
                // begin another one.
                if let Err(error) = touched {
                    tracing::warn!(%error, "the use of a browser's mark was not written");
                }
                Some(mark)
            }
            None => self.mark_browser(known.person, &known.hash, origin.address).await,
        };
        Ok(BegunSession { token, mark, signed_in })
    }

    /// The mark that the browser shows, if it is one of this person's.
    async fn mark_of(
        &self,
        known: Option<&KnownPassword>,
        origin: &SignInOrigin,
    ) -> Result<Option<BrowserToken>, SignInError> {
        let Some(mark) = &origin.mark else { return Ok(None) };
        // Looked up for unknown addresses as well, which so take as long.
        let marked = self.book.marked_person(&mark.hash()).await?;
        let is_theirs = marked.is_some() && marked == known.map(|known| known.person);
        Ok(is_theirs.then(|| mark.clone()))
    }

    /// Makes a mark for a browser in which a person has proven or set this password. `None` if it is not written: the
    /// change before it has been committed, and the browser is unknown at its next sign-in.
    pub async fn mark_browser(
        &self,
        person: PersonId,
        password: &PasswordHash,
        address: IpAddr,
    ) -> Option<BrowserToken> {
        let made = self.new_mark(person, password, address).await;
        made.inspect_err(|error| tracing::warn!(%error, "a browser's mark was not written")).ok()
    }

    async fn new_mark(
        &self,
        person: PersonId,
        password: &PasswordHash,
        address: IpAddr,
    ) -> Result<BrowserToken, SignInError> {
        let token = BrowserToken::new(random()?);
        let new = NewBrowserMark {
            id: BrowserMarkId::from(Uuid::new_v4()),
            person,
            token: token.hash(),
            address: Private(address.to_string()),
            password: password.clone(),
        };
        self.book.put_browser_mark(&new).await?;
        Ok(token)
    }

    /// Proves a password. The attempt counts as a failure before the hash is computed.
    pub(crate) async fn prove(
        &self,
        (attempt, lane): (Attempt, Lane),
        address: IpAddr,
        password: &Password,
        known: Option<KnownPassword>,
    ) -> Result<KnownPassword, SignInError> {
        // Before the hash, which is the slow step: counted after it, as many guesses as run in
        // parallel would all be judged within one pause.
        let reserved = self.attempts.reserve(attempt, Instant::now());
        let reserved = reserved.map_err(|retry_after| SignInError::Slow { retry_after })?;
        let hash = known.as_ref().map(|known| &known.hash);
        let is_proven = self.passwords.is_proven(lane, password, hash).await?;
        if is_proven && let Some(known) = known {
            reserved.succeed();
            return Ok(known);
        }
        reserved.keep();
        // Only a verdict is noted. A refusal for a pause or a full room returns above: no password
        // was tried.
        self.notes.add_failure(known.map(|known| known.person), address);
        Err(SignInError::Wrong)
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
        // With the role in use only: a person with several roles does not act with the sum of them.
        let principal = Principal::of_person(known.person.id, session.authority, Some(address));
        Ok(SignedIn { principal, person: known.person, session, grants: known.grants, now })
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn sign_out(&self, signed_in: &SignedIn) -> Result<()> {
        self.end_session(signed_in, signed_in.session.id).await
    }

    /// Sessions of the person that have not ended, the newest first.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn sessions_of(&self, signed_in: &SignedIn) -> Result<Vec<Session>> {
        Ok(self.book.sessions_of(signed_in.person.id).await?)
    }

    /// Ends a session of the person, which may be this one. A session of another person stays, and the answer
    /// is the same.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn end_session(&self, signed_in: &SignedIn, session: SessionId) -> Result<()> {
        Ok(self.book.end_session(signed_in.person.id, session).await?)
    }

    /// Ends all sessions of the person, this one too, and all marks of their browsers.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn sign_out_everywhere(&self, signed_in: &SignedIn) -> Result<()> {
        Ok(self.book.end_everywhere(signed_in.person.id).await?)
    }

    /// Browsers that the person has signed in from with the password that they have, the newest first.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`].
    pub async fn browsers_of(&self, signed_in: &SignedIn) -> Result<Vec<BrowserMark>> {
        Ok(self.book.browser_marks_of(signed_in.person.id).await?)
    }

    /// Has the session use another role of the person, under the token that is returned: the one before ends.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`] for one that the person has not.
    pub async fn choose_grant(
        &self,
        signed_in: &SignedIn,
        authority: Authority,
    ) -> Result<SessionToken> {
        if !signed_in.grants.iter().any(|grant| grant.authority == authority) {
            return Err(AccountsError::NotFound(ResourceKind::Grant));
        }
        // Another token for other rights: a copy of the old one must not gain the broader role.
        let token = SessionToken::new(random_bits()?);
        self.book.use_authority(signed_in.session.id, authority, &token.hash()).await?;
        Ok(token)
    }

    /// Changes the person's password. Their other sessions and the marks of all browsers end; the session continues
    /// under another token.
    ///
    /// # Errors
    ///
    /// A [`SignInError`]: [`SignInError::Wrong`] if the old password is.
    pub async fn change_password(
        &self,
        signed_in: &SignedIn,
        old: &Password,
        new: &Password,
        origin: &SignInOrigin,
    ) -> Result<RenewedSession, SignInError> {
        let (person, session) = (signed_in.person.id, signed_in.session.id);
        // Guesses in a session are slowed down as those before it are, under a count of the session.
        let email = signed_in.person.email.as_ref().map_or("", EmailAddress::as_str);
        let known = self.book.password_of_person(person).await?;
        // The lane of a stranger is left out: the session has proven the person, and a crowd that
        // signs in must not keep them from the change of their password.
        let (attempt, _lane) = attempt(origin, email, known.as_ref(), None);
        let lane = Lane::of_known(person.to_bytes());
        let attempt = (attempt.by_known(&session.to_bytes()), lane);
        let known = self.prove(attempt, origin.address, old, known).await?;
        let new = self.passwords.hash(lane, new).await?;
        let token = SessionToken::new(random()?);
        let kept = (session, token.hash());
        let set = new.clone();
        // With the hash that was proven: the transaction compares it, or of two changes at once the
        // later one would rest on a password that is not in force any more.
        let action = PersonAction::ChangePassword { person, old: known.hash, new, kept };
        let request = Request::own(&[b"change password", &person.to_bytes()]);
        let action = AccountAction::Person(action);
        match self.change(&signed_in.principal, &request, action).await {
            Ok(_done) => {
                let mark = self.mark_browser(person, &set, origin.address).await;
                Ok(RenewedSession { token, mark })
            }
            // Changed by another session meanwhile, or ended: the proof is of a state that is gone,
            // so the answer is that of a wrong password.
            Err(AccountsError::Refused(
                AccountRefusal::PasswordChanged
                | AccountRefusal::NoPerson
                | AccountRefusal::PersonEnded,
            )) => Err(SignInError::Wrong),
            Err(error) => Err(SignInError::Unavailable(Box::new(error))),
        }
    }
}

/// The attempt of an origin, with the lane of its hash.
pub(crate) fn attempt(
    origin: &SignInOrigin,
    email: &str,
    known: Option<&KnownPassword>,
    mark: Option<&BrowserToken>,
) -> (Attempt, Lane) {
    let SignInOrigin { address, listener, .. } = *origin;
    let set_at = known.map(|known| known.set_at);
    let attempt = Attempt::of_stranger((address, listener), email, set_at);
    match (mark, known) {
        (Some(mark), Some(known)) => {
            let lane = Lane::of_known(known.person.to_bytes());
            (attempt.by_known(&mark.hash().to_bytes()), lane)
        }
        (_, _) => (attempt, Lane::of_stranger(listener, address)),
    }
}

fn random() -> Result<[u8; 32], SignInError> {
    random_bits().map_err(|error| SignInError::Unavailable(Box::new(error)))
}
