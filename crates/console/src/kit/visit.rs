//! A request of a signed-in visitor: what every page and every form is handed.

use axum::extract::FromRequestParts;
use holdfast_accounts::{Accounts, Principal, Verb};
use holdfast_domain::admin::UseCase;
use http::request::Parts;
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::{ConsoleState, Id, SentFields, Visitor};
use crate::request_origin::{FETCH_SITE, RequestOrigin, once};

/// Request of a signed-in visitor.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) shared: ConsoleState,
    pub(crate) visitor: Visitor,
    /// Path of the page.
    pub(crate) path: String,
    /// The first id in the path, if there is one.
    id: Option<Uuid>,
    /// Verb of the route, if its form is that of a verb.
    pub(crate) verb: Option<&'static Verb>,
    pub(crate) query: SentFields,
    /// Beginning of the links that are given to others.
    pub(crate) origin: String,
    /// True if the referrer is a page of the console.
    pub(crate) is_own: bool,
}

impl Visit {
    /// The first id in the path.
    pub(crate) fn id(&self) -> Result<Uuid, Failure> {
        self.id.ok_or_else(Failure::not_found)
    }

    pub(crate) const fn accounts(&self) -> &Accounts {
        &self.shared.accounts
    }

    pub(crate) const fn principal(&self) -> &Principal {
        &self.visitor.principal
    }

    pub(crate) fn may(&self, use_case: UseCase) -> bool {
        self.visitor.may(use_case)
    }
}

impl FromRequestParts<ConsoleState> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &ConsoleState) -> Result<Self, Failure> {
        let visitor = Visitor::from_request_parts(parts, shared).await?;
        // Many pages have none: a page that needs an id answers 404 itself.
        let id = Id::from_request_parts(parts, shared).await.ok().map(|Id(id)| id);
        let query = SentFields::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let origin = parts
            .extensions
            .get()
            .map(|request_origin: &RequestOrigin| request_origin.origin.clone());
        let origin = origin.unwrap_or_default();
        // Not by `Origin`: browsers send none with a GET, by which a review is shown.
        let is_own = once(&parts.headers, &FETCH_SITE) == Some("same-origin");
        let verb = parts.extensions.get().copied();
        let (shared, path) = (shared.clone(), parts.uri.path().to_owned());
        Ok(Self { shared, visitor, path, id, verb, query, origin, is_own })
    }
}
