//! Requests that are refused before anything of them is read or bound.
//!
//! A web page of any origin can reach a listener on loopback. Three rules keep it from the gateway:
//!
//! | rule | attack |
//! |---|---|
//! | `Host`, and the authority of an absolute target, name this machine and the listener's port | DNS rebinding |
//! | `Sec-Fetch-Site` is `none` or `same-origin`, unless the page's origin is allowed | requests without a preflight |
//! | no `..` segment in a path, however it is encoded | a path that leaves the API at a proxy that folds it |
//!
//! Under an address that other machines reach, any IP address with the listener's port is accepted as well: a
//! rebinding attack needs a name.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use bytes::Bytes;
use holdfast_wire::error::{Code, ErrorBody};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");
/// Headers that scripts of an allowed origin may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, idempotency-key, idempotent-replayed, x-should-retry, retry-after, retry-after-ms, \
     x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
     x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens",
);
/// Seconds for which a browser keeps the answer to a preflight.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// Port of an authority without one.
const HTTP_PORT: u16 = 80;
/// Layers of percent-encoding under which a `..` is still found.
const ENCODINGS_MAX: usize = 3;

/// Name under which clients reach the sidecar, besides those of loopback: a host, with or without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: Box<str>,
    port: Option<u16>,
}

/// Origin of pages that may call the sidecar, as browsers spell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedOrigin(HeaderValue);

/// Error of a text that is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a host: write a name or an address, with or without a port, like sidecar:8089")]
pub struct BadHost;

/// Error of a text that is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an origin as browsers send it: write scheme and host in lower case, and a port that is not the \
     scheme's own, like http://localhost:3000, without a slash at the end"
)]
pub struct BadAllowedOrigin;

impl FromStr for AllowedHost {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, BadHost> {
        let authority = plain_authority(text.as_bytes()).ok_or(BadHost)?;
        let has_port = authority.as_str().len() > authority.host().len();
        if has_port && authority.port_u16().is_none() {
            return Err(BadHost);
        }
        let host = authority.host().to_ascii_lowercase().into();
        Ok(Self { host, port: authority.port_u16() })
    }
}

impl FromStr for AllowedOrigin {
    type Err = BadAllowedOrigin;

    fn from_str(text: &str) -> Result<Self, BadAllowedOrigin> {
        let (scheme, host) = text.split_once("://").ok_or(BadAllowedOrigin)?;
        let authority = plain_authority(host.as_bytes()).ok_or(BadAllowedOrigin)?;
        let usual = match scheme {
            "http" => Some(HTTP_PORT),
            "https" => Some(443),
            _ => None,
        };
        let has_usual_port = usual.is_some() && authority.port_u16() == usual;
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_whole = is_lower && !scheme.is_empty() && !host.ends_with(':') && !has_usual_port;
        let value = HeaderValue::from_str(text).ok().filter(|_value| is_whole);
        value.map(Self).ok_or(BadAllowedOrigin)
    }
}

/// Authority without user name and password.
fn plain_authority(text: &[u8]) -> Option<Authority> {
    let authority = Authority::try_from(text).ok()?;
    (!authority.host().is_empty() && !text.contains(&b'@')).then_some(authority)
}

/// Rules by which requests are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) hosts: Vec<AllowedHost>,
    pub(crate) origins: Vec<AllowedOrigin>,
}

/// Reason for which a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardRefusal {
    /// Another host than this listener's, none, or several.
    Host,
    /// A page of an origin that is not allowed.
    Site,
    /// A path with a `..` segment.
    Path,
}

impl GuardRefusal {
    pub(crate) fn body(self) -> Bytes {
        let (message, param) = match self {
            Self::Host => (
                "This sidecar answers only as 127.0.0.1, localhost or [::1] with its own port. Send exactly \
                 one Host header with that name, or start the sidecar with --allow-host and this one.",
                Some("Host"),
            ),
            Self::Site => (
                "A page of another origin sent this request. Start the sidecar with --allow-origin and \
                 that origin if the page may call it.",
                Some("Sec-Fetch-Site"),
            ),
            Self::Path => ("The path has a segment `..`. Send the path that it leads to.", None),
        };
        ErrorBody { message, param, ..ErrorBody::new(Code::InvalidValue) }.render().into()
    }
}

/// Cross-origin terms of a request that was not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The page's origin, if it is allowed.
    origin: Option<HeaderValue>,
    /// Answers differ by origin.
    has_origins: bool,
}

impl Guard {
    /// Judges a head that came to this address of the listener.
    pub(crate) fn judge(&self, head: &Parts, local: SocketAddr) -> Result<Terms, GuardRefusal> {
        let mut hosts = head.headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| plain_authority(host.as_bytes()));
        let is_own = |authority: &Authority| self.is_host(authority, local);
        if !host.as_ref().is_some_and(is_own) || hosts.next().is_some() {
            return Err(GuardRefusal::Host);
        }
        let target = head.uri.authority();
        if !target.is_none_or(|target| !target.as_str().contains('@') && is_own(target)) {
            return Err(GuardRefusal::Host);
        }
        let origin = self.origin(&head.headers);
        let mut sites = head.headers.get_all(SEC_FETCH_SITE).iter();
        let is_own_site = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
        // A request without the header passes: only browsers send it, SDKs and curl do not.
        if origin.is_none() && !sites.all(is_own_site) {
            return Err(GuardRefusal::Site);
        }
        if has_parent_segment(head.uri.path()) {
            return Err(GuardRefusal::Path);
        }
        Ok(Terms { origin, has_origins: !self.origins.is_empty() })
    }

    fn is_host(&self, authority: &Authority, local: SocketAddr) -> bool {
        let host = authority.host();
        let is_allowed = |allowed: &AllowedHost| {
            allowed.host.eq_ignore_ascii_case(host)
                && allowed.port.is_none_or(|port| authority.port_u16() == Some(port))
        };
        if self.hosts.iter().any(is_allowed) {
            return true;
        }
        if authority.port_u16().unwrap_or(HTTP_PORT) != local.port() {
            return false;
        }
        let ip = local.ip().to_canonical();
        let named = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match named.map(|named| named.to_canonical()) {
            Err(_name) => host.eq_ignore_ascii_case("localhost"),
            Ok(IpAddr::V4(named)) if named.octets() == [127, 0, 0, 1] => true,
            Ok(IpAddr::V6(named)) if named.is_loopback() => true,
            // A published port of a container is reached under an address of its host, which is
            // unknown here. A rebinding attack needs a name, so that any IP address is accepted.
            Ok(named) => named == ip || !ip.is_loopback(),
        }
    }

    /// The request's origin, if it is allowed.
    fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().filter(|_first| origins.next().is_none())?;
        self.origins.iter().any(|it| it.0 == *origin).then(|| origin.clone())
    }
}

impl Terms {
    /// Headers of the answer to a preflight of an allowed origin; `None` for any other request.
    pub(crate) fn preflight(&self, head: &Parts) -> Option<HeaderMap> {
        let is_preflight = head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if self.origin.is_none() || head.method != Method::OPTIONS || !is_preflight {
            return None;
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        for requested in head.headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.append(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
        }
        if head.headers.contains_key(REQUEST_PRIVATE_NETWORK) {
            headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        Some(headers)
    }

    /// Adds what a browser looks for.
    pub(crate) fn put(self, headers: &mut HeaderMap) {
        if self.has_origins {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

/// True for a path with a `..` segment, also if it is percent-encoded, has a parameter (`..;x`), or is between
/// backslashes.
fn has_parent_segment(path: &str) -> bool {
    if !path.contains("..") && !path.contains('%') {
        return false;
    }
    let mut path = path.as_bytes().to_vec();
    // Each proxy on the way may decode once: judged as it came, and without each layer.
    for _ in 0..=ENCODINGS_MAX {
        let is_parent = |segment: &[u8]| segment.split(|byte| *byte == b';').next() == Some(b"..");
        if path.split(|byte| matches!(byte, b'/' | b'\\')).any(is_parent) {
            return true;
        }
        path = decoded(&path);
    }
    false
}

/// The bytes without one layer of percent-encoding.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| {
        let digit = char::from(*bytes.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(high * 16 + low);
                at += 3;
            }
            // A `%` without two digits is an ordinary byte: the target crosses as it was sent.
            (byte, _, _) => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// Text of an address; nothing is bound there.
    const LOCAL: &str = concat!("127.0.0.1", ":8089");

    fn guard() -> Guard {
        let hosts = vec!["sidecar:8089".parse().unwrap(), "proxy".parse().unwrap()];
        Guard { hosts, origins: vec!["http://localhost:3000".parse().unwrap()] }
    }

    #[track_caller]
    fn check(target: &str, headers: &[(&str, &str)], refused: Option<GuardRefusal>) {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let judged = guard().judge(&head, LOCAL.parse().unwrap());
        assert_eq!(judged.err(), refused, "{target} {headers:?}");
    }

    #[test]
    fn only_loopback_names_with_the_own_port_are_answered() {
        for host in [LOCAL, "localhost:8089", "LOCALHOST:8089", "[::1]:8089"] {
            check("/v1/models", &[("host", host)], None);
        }
        for host in ["sidecar:8089", "Sidecar:8089", "proxy", "proxy:1"] {
            check("/v1/models", &[("host", host)], None);
        }
        for host in [
            "evil.example",
            "evil.example:8089",
            "localhost",
            "localhost:8088",
            "localhost.:8089",
            "localhost.evil.example:8089",
            "127.0.0.1.evil.example:8089",
            "127.0.0.2:8089",
            "192.0.2.1:8089",
            "me@localhost:8089",
            "sidecar:1",
            "",
            "\u{ff}",
        ] {
            check("/v1/models", &[("host", host)], Some(GuardRefusal::Host));
        }
        check("/v1/models", &[], Some(GuardRefusal::Host));
        check("/v1/models", &[("host", LOCAL), ("host", LOCAL)], Some(GuardRefusal::Host));
    }

    #[test]
    fn the_authority_of_an_absolute_target_is_judged_too() {
        let host = ("host", LOCAL);
        check("http://localhost:8089/v1/models", &[host], None);
        for target in ["http://evil.example/v1/models", "http://me@localhost:8089/v1/models"] {
            check(target, &[host], Some(GuardRefusal::Host));
        }
        let evil = ("host", "evil.example");
        check("http://localhost:8089/v1/models", &[evil], Some(GuardRefusal::Host));
    }

    #[test]
    fn an_address_that_others_reach_is_answered_under_its_addresses_and_no_name() {
        let guard = Guard { hosts: Vec::new(), origins: Vec::new() };
        for (local, host, is_good) in [
            ("192.0.2.7:8089", "192.0.2.7:8089", true),
            ("172.17.0.2:8089", "192.0.2.7:8089", true),
            ("172.17.0.2:8089", "localhost:8089", true),
            ("172.17.0.2:8089", "evil.example:8089", false),
            ("127.0.0.2:8089", "127.0.0.2:8089", true),
            ("[::1]:80", "localhost", true),
        ] {
            let authority = plain_authority(host.as_bytes()).unwrap();
            assert_eq!(guard.is_host(&authority, local.parse().unwrap()), is_good, "{host}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused_unless_they_are_allowed() {
        let host = ("host", LOCAL);
        for site in ["none", "same-origin"] {
            check("/", &[host, ("sec-fetch-site", site)], None);
        }
        for site in ["cross-site", "same-site", "", "NONE"] {
            let site = ("sec-fetch-site", site);
            check("/", &[host, site], Some(GuardRefusal::Site));
            check("/", &[host, ("sec-fetch-site", "none"), site], Some(GuardRefusal::Site));
            for origin in ["http://evil.example", "null", "http://localhost:3001"] {
                check("/", &[host, site, ("origin", origin)], Some(GuardRefusal::Site));
            }
            check("/", &[host, site, ("origin", "http://localhost:3000")], None);
        }
    }

    #[test]
    fn a_path_that_leads_up_is_refused_in_every_spelling() {
        for path in [
            "/v1/../admin",
            "/v1/..",
            "/v1/%2e%2e/admin",
            "/v1/.%2E/admin",
            "/v1/..%2fadmin",
            "/v1%2F..%2Fadmin",
            "/v1/%252e%252e/admin",
            "/v1/..%5cadmin",
            "/v1/..;x=1/admin",
        ] {
            check(path, &[("host", LOCAL)], Some(GuardRefusal::Path));
        }
        for path in ["/v1/models/a..b", "/v1/...", "/v1/models?x=/../y", "/v1/100%", "/v1/%2"] {
            check(path, &[("host", LOCAL)], None);
        }
    }

    #[test]
    fn only_an_allowed_origin_gets_a_preflight_and_its_headers() {
        for (origin, is_allowed) in [("http://localhost:3000", true), ("http://a", false)] {
            let request = Request::options("/v1/chat/completions").header("host", LOCAL);
            let request = request.header("origin", origin);
            let request = request.header("access-control-request-method", "POST");
            let request = request.header("access-control-request-headers", "authorization");
            let (head, ()) = request.body(()).unwrap().into_parts();
            let terms = guard().judge(&head, LOCAL.parse().unwrap()).unwrap();
            let preflight = terms.preflight(&head);
            assert_eq!(preflight.is_some(), is_allowed);
            let mut headers = preflight.unwrap_or_default();
            terms.put(&mut headers);
            let allowed = headers.get("access-control-allow-origin");
            assert_eq!(allowed.map(HeaderValue::as_bytes), is_allowed.then_some(origin.as_bytes()));
            assert_eq!(headers["vary"], "Origin");
        }
    }

    #[test]
    fn origins_and_hosts_are_read_as_browsers_send_them() {
        for good in ["http://localhost:3000", "https://a.example", "app://obsidian.md"] {
            assert!(good.parse::<AllowedOrigin>().is_ok(), "{good}");
        }
        for bad in ["localhost", "http://a/", "http://a:80", "https://A", "*", "http://me@a"] {
            assert!(bad.parse::<AllowedOrigin>().is_err(), "{bad}");
        }
        for bad in ["", "http://a", "a/b", "me@a", "a:b"] {
            assert!(bad.parse::<AllowedHost>().is_err(), "{bad}");
        }
    }
}
