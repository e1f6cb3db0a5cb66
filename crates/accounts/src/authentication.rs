//! Authentication of admin keys.
//!
//! Each request looks its credential up: administration is rare, and an ended key is refused at once. A refusal
//! never reveals which of missing, malformed, unknown or ended a credential is.

use holdfast_domain::admin::AdminBearer;
use holdfast_domain::ports::{Cause, Unavailable};

use crate::{Accounts, Principal};

/// Failure of an authentication.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// Missing, malformed, unknown or ended: the answer does not reveal which.
    #[error("the admin key is not valid")]
    Invalid,
    /// The store does not work: the key is not judged.
    #[error("admin keys cannot be checked")]
    Unavailable(#[source] Cause),
}

impl Accounts {
    /// The principal that bears this text, at this network address.
    ///
    /// # Errors
    ///
    /// [`AuthenticationError::Invalid`] for every fault of the credential.
    pub async fn authenticate(
        &self,
        bearer: &str,
        address: Option<String>,
    ) -> Result<Principal, AuthenticationError> {
        let bearer = AdminBearer::parse(bearer).ok_or(AuthenticationError::Invalid)?;
        let known = self.book.admin_credential(bearer.id).await;
        let known = known.map_err(|Unavailable(cause)| AuthenticationError::Unavailable(cause))?;
        if let (None, Some(other)) = (&known, self.cell.and_then(|own| own.other_of(bearer.id))) {
            tracing::warn!(cell = %other, "an admin key of another cell was refused: check the address of the request");
        }
        let known = known.filter(|known| !known.has_ended());
        let known = known.ok_or(AuthenticationError::Invalid)?;
        let made_with = known.credential.server_secret;
        // By the secret that the credential was made with: if the configuration no longer lists it,
        // all keys of it are refused.
        let secret = self.secrets.iter().find(|secret| secret.id() == made_with);
        let is_proven = secret.is_some_and(|secret| {
            secret.admin_verifier(&bearer.secret) == known.credential.verifier
        });
        if is_proven {
            Ok(Principal::of_admin_key(&known.admin_key, address))
        } else {
            Err(AuthenticationError::Invalid)
        }
    }
}
