//! Target of a request: the authority of an absolute-form target takes the place of `Host` (RFC 9112, 3.2.2), so that
//! the rules of each listener judge the authority that the client has named.

use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderValue, Request, Uri};

/// The same request in origin-form. A target with another scheme, or with user information, leaves no `Host`, which
/// every listener with rules for it refuses. A head with several `Host` headers keeps them, and is refused as well.
pub(crate) fn in_origin_form<B>(request: Request<B>) -> Request<B> {
    // One look for nearly every request: a target is a path.
    if request.uri().scheme().is_none() {
        return request;
    }
    absolute(request)
}

#[cold]
fn absolute<B>(mut request: Request<B>) -> Request<B> {
    let named = host(request.uri());
    let path = request.uri().path_and_query().cloned();
    let headers = request.headers_mut();
    let has_one = headers.get_all(HOST).iter().count() == 1;
    match named {
        Some(named) if has_one => drop(headers.insert(HOST, named)),
        Some(_) => {}
        None => drop(headers.remove(HOST)),
    }
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    request
}

/// The authority that a target names; `None` if it is not one of HTTP.
fn host(uri: &Uri) -> Option<HeaderValue> {
    let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
    let authority = uri.authority()?.as_str();
    let is_plain = is_http && !authority.contains('@');
    HeaderValue::from_str(authority).ok().filter(|_authority| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path and hosts of a request with this target and these `Host` headers.
    fn seen(target: &str, hosts: &[&str]) -> (String, Vec<String>) {
        let mut request = Request::builder().uri(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let request = in_origin_form(request.body(()).unwrap());
        let hosts = request.headers().get_all(HOST).iter();
        let hosts = hosts.map(|host| host.to_str().unwrap().to_owned()).collect();
        (request.uri().to_string(), hosts)
    }

    #[track_caller]
    fn check(target: &str, hosts: &[&str], path: &str, expected: &[&str]) {
        let expected = expected.iter().map(|host| (*host).to_owned()).collect();
        assert_eq!(seen(target, hosts), (path.to_owned(), expected), "{target}");
    }

    #[test]
    fn the_authority_of_a_target_replaces_host() {
        check("/a?b", &["good"], "/a?b", &["good"]);
        check("http://evil/a?b", &["good"], "/a?b", &["evil"]);
        check("https://evil:1", &["good"], "/", &["evil:1"]);
    }

    #[test]
    fn a_target_that_is_not_of_http_leaves_no_host() {
        check("ftp://good/a", &["good"], "/a", &[]);
        check("http://me@good/a", &["good"], "/a", &[]);
    }

    #[test]
    fn a_head_without_one_host_stays_without() {
        check("http://good/a", &[], "/a", &[]);
        check("http://good/a", &["good", "evil"], "/a", &["good", "evil"]);
    }
}
