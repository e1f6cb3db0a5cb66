//! The visitor of a page: their principal and their address.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use holdfast_accounts::{Principal, SignedIn};
use holdfast_domain::admin::UseCase;
use http::request::Parts;

use crate::failure::Failure;

/// A person who is signed in, with the one grant that they work under.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) principal: Principal,
    /// E-mail address of the person.
    pub(crate) email: String,
}

impl Visitor {
    /// Word of a page that operators and holders have different words for.
    pub(crate) const fn word(
        &self,
        of_operators: &'static str,
        of_holders: &'static str,
    ) -> &'static str {
        if self.principal.role.is_holder() { of_holders } else { of_operators }
    }

    pub(crate) fn may(&self, use_case: UseCase) -> bool {
        self.principal.role.may(use_case)
    }
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        // Refused, and not let in, if a route was put outside the guard by mistake.
        parts.extensions.get().cloned().ok_or_else(Failure::not_signed_in)
    }
}

/// The session that a request is in, for the pages of the person's own account.
#[derive(Debug, Clone)]
pub(crate) struct CurrentSession(pub(crate) SignedIn);

impl<S: Sync> FromRequestParts<S> for CurrentSession {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        parts.extensions.get().cloned().ok_or_else(Failure::not_signed_in)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for CurrentSession {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Option<Self>, Failure> {
        Ok(parts.extensions.get().cloned())
    }
}
