//! The port of sessions: how people sign in, and what their browsers show.

use async_trait::async_trait;

use crate::admin::{
    Authority, BrowserMark, EmailAddress, KnownLink, KnownPassword, KnownSession, NewBrowserMark,
    NewSession, Session,
};
use crate::ports::Unavailable;
use crate::private::Private;
use crate::secret::TokenHash;
use crate::{PersonId, SessionId};

/// Keeps sessions of people. They are no part of the trail: what a session does is.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Finds the password of the person who has this address, has not ended, and has one.
    async fn password_of(&self, email: &EmailAddress)
    -> Result<Option<KnownPassword>, Unavailable>;

    /// Finds the password of a person who has not ended.
    async fn password_of_person(
        &self,
        person: PersonId,
    ) -> Result<Option<KnownPassword>, Unavailable>;

    /// Begins a session, if the password that was proven is still the person's. Sessions that have ended are
    /// deleted with it, and the oldest of those beyond [`SESSIONS_MAX`](crate::admin::SESSIONS_MAX).
    async fn begin_session(&self, new: &NewSession) -> Result<(), Unavailable>;

    /// Looks a session up by the hash of its token; one that has ended too.
    async fn session(&self, token: &TokenHash) -> Result<Option<KnownSession>, Unavailable>;

    /// Notes that a session is in use, at this address.
    async fn touch_session(
        &self,
        session: SessionId,
        address: &Private<String>,
    ) -> Result<(), Unavailable>;

    /// Has a session use another authority of its person, if they have it, under another token: the one before ends.
    async fn use_authority(
        &self,
        session: SessionId,
        authority: Authority,
        token: &TokenHash,
    ) -> Result<(), Unavailable>;

    /// Lists the sessions of a person that have not ended, the newest first.
    async fn sessions_of(&self, person: PersonId) -> Result<Vec<Session>, Unavailable>;

    /// Ends a session of this person.
    async fn end_session(&self, person: PersonId, session: SessionId) -> Result<(), Unavailable>;

    /// Keeps a mark of a browser, if the password that it is made under is still the person's, and the newest of its
    /// person up to [`BROWSER_MARKS_MAX`](crate::admin::BROWSER_MARKS_MAX).
    async fn put_browser_mark(&self, new: &NewBrowserMark) -> Result<(), Unavailable>;

    /// Finds the person of a mark that was made under the password that they have.
    async fn marked_person(&self, mark: &TokenHash) -> Result<Option<PersonId>, Unavailable>;

    /// Notes that a person has signed in from the browser of a mark, at this address.
    async fn touch_browser_mark(
        &self,
        mark: &TokenHash,
        address: &Private<String>,
    ) -> Result<(), Unavailable>;

    /// Lists the marks of a person that were made under the password that they have, the newest first.
    async fn browser_marks_of(&self, person: PersonId) -> Result<Vec<BrowserMark>, Unavailable>;

    /// Ends all sessions and all marks of a person.
    async fn end_everywhere(&self, person: PersonId) -> Result<(), Unavailable>;

    /// Looks a link up by the hash of its token; one that is not open any more too.
    async fn known_link(&self, token: &TokenHash) -> Result<Option<KnownLink>, Unavailable>;
}
