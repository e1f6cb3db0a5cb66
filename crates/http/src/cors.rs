//! Cross-origin requests: which pages in browsers may call the API, and what their scripts may read.
//!
//! Off unless the operator lists origins. A listed origin is compared byte for byte with `Origin`, as browsers
//! spell it. No wildcard and no `allow-credentials`: an API key is no cookie, and a page has to bring its own.
//!
//! | request | answer |
//! |---|---|
//! | preflight | 204 before anything else is looked at: no API key, no line in the log, no place in any limit |
//! | any other | unchanged; with the origin if it is listed, also on refusals, or a script could not read their code |
//!
//! `Vary: Origin` is on all answers while CORS is on, because a cache must not give one page the answer of
//! another. Not a layer of `tower-http`: no other part here is a `tower` service, and its layer takes every
//! `OPTIONS` for a preflight.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, Response, StatusCode};

use crate::reply::HttpResponse;
use crate::response_body::ResponseBody;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");
/// Headers that clients act on; scripts of other origins see only those that are named.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, idempotency-key, idempotent-replayed, x-should-retry, retry-after, retry-after-ms, \
     x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
     x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens",
);
/// Seconds for which a browser may cache the answer to a preflight.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Origin of pages that may call the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedOrigin(HeaderValue);

/// Error of a text that is no origin as browsers spell it.
#[derive(Debug, thiserror::Error)]
#[error(
    "no origin as browsers send it: write scheme and host in lower case, and a port that is not the scheme's \
     own, like https://app.example.com or http://localhost:3000, without a slash at the end"
)]
pub struct BadOrigin;

impl AllowedOrigin {
    /// Reads an origin.
    ///
    /// # Errors
    ///
    /// If no browser spells an origin so: it would match no request.
    pub fn parse(text: &str) -> Result<Self, BadOrigin> {
        let (scheme, host) = text.split_once("://").ok_or(BadOrigin)?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
            });
        let authority: Authority = host.parse().ok().ok_or(BadOrigin)?;
        let usual = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let has_usual_port = usual.is_some() && authority.port_u16() == usual;
        let is_plain = host.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte)
        });
        let is_whole = is_plain && !host.ends_with(':') && !has_usual_port;
        let value = HeaderValue::from_str(text).ok().filter(|_value| is_scheme && is_whole);
        value.map(Self).ok_or(BadOrigin)
    }
}

/// Cross-origin terms of one request.
#[derive(Debug)]
pub(crate) enum Cors {
    /// No origins are listed.
    Off,
    /// Origins are listed: with the request's own, if it is one of them.
    On(Option<HeaderValue>),
}

impl Cors {
    /// Terms of a request with these headers.
    pub(crate) fn of(allowed: &[AllowedOrigin], headers: &HeaderMap) -> Self {
        if allowed.is_empty() {
            return Self::Off;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().filter(|_first| origins.next().is_none());
        Self::On(origin.filter(|origin| allowed.iter().any(|it| it.0 == **origin)).cloned())
    }

    /// Answer to a preflight; `None` for any other request. The answer for an unlisted origin has no CORS
    /// headers, which browsers take for a refusal.
    pub(crate) fn preflight(&self, head: &Parts) -> Option<HttpResponse> {
        let Self::On(origin) = self else { return None };
        let is_preflight = head.method == Method::OPTIONS
            && head.headers.contains_key(ORIGIN)
            && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight {
            return None;
        }
        let mut answer = Response::new(ResponseBody::from(bytes::Bytes::new()));
        *answer.status_mut() = StatusCode::NO_CONTENT;
        if origin.is_some() {
            let headers = answer.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
            // All headers that a client adds of its own: SDKs send new ones with each version.
            for requested in head.headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
                headers.append(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
            }
        }
        Some(self.put(answer))
    }

    /// The same answer with what a browser looks for.
    pub(crate) fn put(&self, mut answer: HttpResponse) -> HttpResponse {
        if let Self::On(origin) = self {
            let headers = answer.headers_mut();
            headers.append(VARY, HeaderValue::from_static("Origin"));
            if let Some(origin) = origin {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_spelled_as_browsers_send_it() {
        for good in [
            "https://app.example.com",
            "http://localhost:3000",
            "http://192.0.2.1:8080",
            "http://[::1]:3000",
            "https://a.example:80",
            "app://obsidian.md",
            "chrome-extension://abcdefgh",
        ] {
            assert!(AllowedOrigin::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "*",
            "null",
            "app.example.com",
            "https://",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://App.example.com",
            "HTTPS://app.example.com",
            "https://app.example.com:443",
            "http://localhost:80",
            "http://localhost:",
            "http://me@localhost",
            "https://*.example.com",
            "https://a.example b",
            "://a",
        ] {
            assert!(AllowedOrigin::parse(bad).is_err(), "{bad}");
        }
    }
}
