//! The gateway behind a sidecar: the upstream path for a client's path, and the headers that cross.
//!
//! A client uses the sidecar like OpenAI's API, below `/v1`, to which the upstream's URL leads; any other path
//! is a sibling of that. Headers of one connection do not cross, nor do those that only browsers and proxies of
//! this machine add: cookies of `localhost` are other programs', and a forwarded address is no proof.
//!
//! A credential crosses as its client sent it. The sidecar has none of its own, so that it never spends for a client
//! without one. Nor does an answer bring back cookies or the gateway's rules for other origins, which `guard` decides.

use bytes::Bytes;
use holdfast_net::{BadBaseUrl, BaseUrl};
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, HeaderName,
    ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, REFERER, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, Method, Uri};

/// The client's own request key, which wins.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Name of the same header as proxies forward it.
const X_IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
/// Prefix of the API's paths at the sidecar.
const API: &str = "/v1";
const COMPLETIONS: &str = "/chat/completions";
/// Headers that are about one connection. A body is framed anew on each.
const OF_CONNECTION: [HeaderName; 11] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers of a request that stay here: cookies, the page that sent it, and who forwarded it for whom.
const OF_CLIENT: [HeaderName; 18] = [
    COOKIE,
    HeaderName::from_static("cookie2"),
    FORWARDED,
    ORIGIN,
    REFERER,
    VIA,
    HeaderName::from_static("cf-connecting-ip"),
    HeaderName::from_static("client-ip"),
    HeaderName::from_static("true-client-ip"),
    HeaderName::from_static("x-client-ip"),
    HeaderName::from_static("x-cluster-client-ip"),
    HeaderName::from_static("x-host"),
    HeaderName::from_static("x-original-forwarded-for"),
    HeaderName::from_static("x-original-host"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-remote-addr"),
    HeaderName::from_static("x-rewrite-url"),
];
/// Beginnings of names of more of them.
const OF_CLIENT_PREFIXES: [&str; 3] = ["x-forwarded", "sec-fetch-", "access-control-request-"];
/// Beginning of the names of headers by which an answer is shared with other origins: the sidecar decides that.
const SHARING: &str = "access-control-";

/// Address of a gateway's API, such as `https://gateway.example/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    text: Box<str>,
    api: BaseUrl,
    root: BaseUrl,
}

/// Text that is no such address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUpstreamUrl {
    /// A user name or password in it.
    #[error("a URL with a user name or password: each client sends its own credential")]
    Userinfo,
    /// Anything else.
    #[error(transparent)]
    Url(BadBaseUrl),
}

impl std::str::FromStr for UpstreamUrl {
    type Err = BadUpstreamUrl;

    fn from_str(text: &str) -> Result<Self, BadUpstreamUrl> {
        let base = |text: &str| {
            BaseUrl::try_from(text).map_err(|error| match error {
                BadBaseUrl::Userinfo => BadUpstreamUrl::Userinfo,
                BadBaseUrl::Malformed
                | BadBaseUrl::Server
                | BadBaseUrl::Query
                | BadBaseUrl::Endpoint => BadUpstreamUrl::Url(error),
            })
        };
        // The text is part of each digest: both spellings of one gateway must find the same slot.
        let trimmed = text.trim_end_matches('/');
        let root = base(trimmed.strip_suffix(API).unwrap_or(trimmed))?;
        Ok(Self { text: trimmed.into(), api: base(text)?, root })
    }
}

impl UpstreamUrl {
    /// The same for the same gateway: part of what a slot is known by.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True if the URL ends at the path at which clients expect the API.
    #[must_use]
    pub fn has_api_path(&self) -> bool {
        self.text.ends_with(API)
    }

    /// Address of a client's target; `None` for one that is no path.
    pub(crate) fn uri(&self, target: &Uri) -> Option<Uri> {
        let path = target.path_and_query()?.as_str();
        let in_api = path.strip_prefix(API).filter(|rest| rest.starts_with(['/', '?']));
        match in_api {
            Some(rest) => self.api.join(rest),
            None => self.root.join(path),
        }
        .ok()
    }

    /// Address at which an operation is cancelled.
    pub(crate) fn cancel(&self, key: uuid::Uuid) -> Option<Uri> {
        self.api.join(&format!("/operations/{key}/cancel")).ok()
    }
}

/// True for a chat completion, under any prefix.
pub(crate) fn is_completion(method: &Method, uri: &Uri) -> bool {
    method == Method::POST && uri.path().trim_end_matches('/').ends_with(COMPLETIONS)
}

/// The headers of a request that cross.
pub(crate) fn request_headers(headers: &HeaderMap) -> HeaderMap {
    let mut crossing = crossing(headers);
    for name in &OF_CLIENT {
        crossing.remove(name);
    }
    remove_all(&mut crossing, |name| {
        OF_CLIENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    });
    crossing
}

/// The headers of an answer that cross.
pub(crate) fn answer_headers(headers: &HeaderMap) -> HeaderMap {
    let mut crossing = crossing(headers);
    // Browsers keep cookies by host without its port: a cookie of the gateway would go to every
    // program of this machine.
    crossing.remove(SET_COOKIE);
    remove_all(&mut crossing, |name| name.starts_with(SHARING));
    crossing
}

fn remove_all(headers: &mut HeaderMap, is_removed: impl Fn(&str) -> bool) {
    let names: Vec<HeaderName> =
        headers.keys().filter(|name| is_removed(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// The headers that are not of one connection.
fn crossing(headers: &HeaderMap) -> HeaderMap {
    let mut crossing = headers.clone();
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    for name in named.flat_map(|names| names.split(',')) {
        crossing.remove(name.trim());
    }
    for name in &OF_CONNECTION {
        crossing.remove(name);
    }
    crossing
}

/// The headers of a completion that cross: its body is read here, so that it must not be compressed.
pub(crate) fn completion_headers(headers: &HeaderMap) -> HeaderMap {
    let mut crossing = request_headers(headers);
    crossing.remove(ACCEPT_ENCODING);
    if !crossing.contains_key(IDEMPOTENCY_KEY) {
        let own: Vec<_> = crossing.get_all(X_IDEMPOTENCY_KEY).iter().cloned().collect();
        crossing.remove(X_IDEMPOTENCY_KEY);
        for key in own {
            crossing.append(IDEMPOTENCY_KEY, key);
        }
    }
    crossing
}

/// The number of choices in a request: `n`, or one.
pub(crate) fn n_choices(body: &Bytes) -> usize {
    // Most bodies do not have the member, and none of them is parsed for it.
    if !body.windows(3).any(|window| window == b"\"n\"") {
        return 1;
    }
    let parsed = holdfast_wire::json::parse(body).ok();
    let n = parsed.as_ref().and_then(|body| body.get("n")?.as_number()?.parse().ok());
    n.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(upstream: &str, target: &str, uri: &str) {
        let upstream: UpstreamUrl = upstream.parse().unwrap();
        let found = upstream.uri(&target.parse().unwrap()).unwrap();
        assert_eq!(found.to_string(), uri);
    }

    #[test]
    fn the_api_is_where_the_url_leads_and_the_rest_beside_it() {
        for upstream in ["https://a/v1", "https://a/v1/"] {
            check(upstream, "/v1/chat/completions?x=1", "https://a/v1/chat/completions?x=1");
            check(upstream, "/readyz", "https://a/readyz");
            check(upstream, "/chat/completions", "https://a/chat/completions");
        }
        check("http://a:1/tenant", "/v1/models", "http://a:1/tenant/models");
        check("http://a:1/tenant", "/v1x", "http://a:1/tenant/v1x");
    }

    #[test]
    fn a_wrong_url_is_told_what_to_write() {
        let told = |text: &str| text.parse::<UpstreamUrl>().unwrap_err().to_string();
        assert!(told("gateway").contains("http://HOST"));
        assert!(told("https://me:secret@a/v1").contains("its own credential"));
        assert!(told("https://a/v1/chat/completions").contains("leave /chat/completions away"));
        assert!(told("https://a/v1?x").contains("query"));
    }

    #[test]
    fn headers_of_one_connection_do_not_cross() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "x-own, close"), ("x-own", "1"), ("host", "a"), ("x-two", "2")]
        {
            headers.insert(name, value.parse().unwrap());
        }
        headers.insert(ACCEPT_ENCODING, "gzip".parse().unwrap());
        let names = |headers: HeaderMap| {
            headers.keys().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(completion_headers(&headers)), ["x-two"]);
        assert!(names(request_headers(&headers)).contains(&"accept-encoding".to_owned()));
    }

    #[test]
    fn what_browsers_and_proxies_add_does_not_cross() {
        let mut headers = HeaderMap::new();
        let more = ["x-forwarded-for", "x-forwarded-client-cert", "sec-fetch-site"];
        let more = more.into_iter().chain(["authorization", "x-stainless-lang"]);
        for name in OF_CLIENT.into_iter().chain(more.map(HeaderName::from_static)) {
            headers.append(name.clone(), "a".parse().unwrap());
            headers.append(name, "b".parse().unwrap());
        }
        for crossing in [request_headers(&headers), completion_headers(&headers)] {
            let mut names: Vec<_> = crossing.keys().map(HeaderName::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["authorization", "x-stainless-lang"]);
        }
        let mut answer = HeaderMap::new();
        for name in ["set-cookie", "access-control-allow-origin", "idempotent-replayed"] {
            answer.insert(name, "a".parse().unwrap());
        }
        assert_eq!(answer_headers(&answer).keys().collect::<Vec<_>>(), ["idempotent-replayed"]);
    }

    #[test]
    fn only_a_posted_completion_gets_a_key() {
        let is = |method, path: &str| is_completion(&method, &path.parse().unwrap());
        assert!(is(Method::POST, "/v1/chat/completions"));
        assert!(is(Method::POST, "/openai/v1/chat/completions"));
        assert!(!is(Method::GET, "/v1/chat/completions"));
        assert!(!is(Method::POST, "/v1/embeddings"));
    }

    #[test]
    fn choices_are_counted_by_the_member_of_the_body() {
        for (body, n) in [("{\"n\": 3}", 3), ("{}", 1), ("{\"m\":\"\\\"n\\\"\"}", 1), ("\"n\"", 1)]
        {
            assert_eq!(n_choices(&Bytes::from(body)), n, "{body}");
        }
    }
}
