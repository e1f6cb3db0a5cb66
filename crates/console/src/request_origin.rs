//! The door that a request came through: the name that the console has there, the roles that may sign in, and
//! the client's address. Each request that the guard let in has one.
//!
//! Unsafe requests come from the console's own pages: a browser states it, by `Sec-Fetch-Site` or else by
//! `Origin`, and a request without either is refused.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use holdfast_accounts::{Listener, SignInOrigin};
use holdfast_net::AdminUrl;
use http::header::ORIGIN;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::audience::Audience;
use crate::cookie::{self, CookieJar};
use crate::failure::Failure;

/// Header with the site that a request comes from.
pub(crate) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Network address of the client, behind trusted proxies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// The door of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin {
    /// Scheme and host, as the browser has them: links that are given to others begin with it.
    pub(crate) origin: String,
    pub(crate) is_https: bool,
    pub(crate) audience: Audience,
    pub(crate) client: IpAddr,
}

impl RequestOrigin {
    /// Names and attributes of the cookies here.
    pub(crate) const fn jar(&self) -> CookieJar {
        CookieJar { is_https: self.is_https, audience: self.audience }
    }

    /// Origin of an attempt to sign in, by a request with these headers.
    pub(crate) fn sign_in_origin(&self, headers: &HeaderMap) -> SignInOrigin {
        let listener = match self.audience {
            Audience::Everyone | Audience::Operators => Listener::Operators,
            Audience::Holders => Listener::Holders,
        };
        SignInOrigin { address: self.client, listener, mark: cookie::mark(headers, self.jar()) }
    }

    /// True if the console's own pages sent a request with these headers.
    pub(crate) fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        if headers.contains_key(FETCH_SITE) {
            // No script can set this header: if a browser sends it, `Origin` adds no proof.
            return once(headers, &FETCH_SITE) == Some("same-origin");
        }
        let stated = once(headers, &ORIGIN).and_then(|origin| AdminUrl::parse(origin).ok());
        // Present as well as equal: two origins that cannot be parsed are both `None`.
        stated.is_some() && stated == AdminUrl::parse(&self.origin).ok()
    }
}

impl<S: Sync> FromRequestParts<S> for RequestOrigin {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        parts.extensions.get().cloned().ok_or_else(Failure::not_signed_in)
    }
}

/// A header that is there exactly once: of several, servers on the way would choose differently.
pub(crate) fn once<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_first| values.next().is_none())?;
    value.to_str().ok()
}
