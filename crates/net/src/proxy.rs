//! Proxies of the operator, and which of them a server is reached through, by the variables that
//! other programs read.
//!
//! `https_proxy` is for servers with TLS, `http_proxy` for those without, and `no_proxy` lists
//! servers that are reached directly. Small letters go before capitals, and an empty variable is an
//! unset one. A wrong proxy is an error with the variable's name; a wrong entry of `no_proxy` is
//! passed over.
//!
//! Never: a request to this machine itself through a proxy, or credentials that print. The way
//! through a proxy is the transport's.

use std::net::IpAddr;

use holdfast_domain::debug_as;
use http::{HeaderValue, Uri};

/// A proxy that speaks plain HTTP: it connects to servers with TLS, and relays to the others.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The operator's credentials there.
    pub(crate) authorization: Option<HeaderValue>,
}

debug_as!(Proxy as it: "Proxy({}:{})", it.host, it.port);

/// The operator's proxies. Requests to the machine itself never go through one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    except: Vec<NoProxyRule>,
}

/// A text that names no proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadProxy {
    /// No host and port can be read from the text.
    #[error("not a proxy: write http://HOST:PORT")]
    Malformed,
    /// A proxy of another kind, such as `https://` or `socks5://`.
    #[error("a proxy of another kind: only http://HOST:PORT is known")]
    Kind,
    /// Credentials whose percent-encoding is wrong, or that no header can carry.
    #[error("a proxy with credentials that cannot be sent: percent-encode them")]
    Credentials,
}

/// Servers that are reached directly.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NoProxyRule {
    All,
    /// A domain and all below it, at one port or any.
    Domain(String, Option<u16>),
    /// Addresses that begin with these bits.
    Network(IpAddr, u32),
}

impl Proxies {
    /// No proxy: every server is reached directly.
    #[must_use]
    pub const fn none() -> Self {
        Self { http: None, https: None, except: Vec::new() }
    }

    /// Reads `https_proxy`, `http_proxy` and `no_proxy`, or the same in capitals if those are unset.
    ///
    /// # Errors
    ///
    /// The variable that is wrong, and why.
    pub fn read(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, (&'static str, BadProxy)> {
        let first = |names: [&'static str; 2]| {
            let set = |name| Some((name, variable(name).filter(|value| !value.is_empty())?));
            names.into_iter().find_map(set)
        };
        let proxy = |names| match first(names) {
            None => Ok(None),
            Some((name, url)) => proxy(url.trim()).map(Some).map_err(|why| (name, why)),
        };
        let except = first(["no_proxy", "NO_PROXY"]).map_or_else(String::new, |(_, list)| list);
        Ok(Self {
            https: proxy(["https_proxy", "HTTPS_PROXY"])?,
            http: proxy(["http_proxy", "HTTP_PROXY"])?,
            except: except.split(',').filter_map(exception).collect(),
        })
    }

    /// Proxy for this server; `None` if it is reached directly.
    pub(crate) fn to(&self, server: &Uri) -> Option<&Proxy> {
        let is_encrypted = server.scheme_str() == Some("https");
        let proxy = if is_encrypted { self.https.as_ref() } else { self.http.as_ref() }?;
        let host = bare(server.host()?).to_ascii_lowercase();
        let port = server.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let address: Option<IpAddr> = host.parse().ok();
        let name = host.trim_end_matches('.');
        // Canonical below, because `::ffff:127.0.0.1` is this machine, too.
        let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
        let is_here = name == "localhost"
            || name.ends_with(".localhost")
            || address.is_some_and(|address| is_own(address.to_canonical()));
        let is_except = |exception: &NoProxyRule| exception.fits(name, address, port);
        (!is_here && !self.except.iter().any(is_except)).then_some(proxy)
    }
}

impl NoProxyRule {
    fn fits(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        match self {
            Self::All => true,
            Self::Domain(domain, at) => {
                let rest = host.strip_suffix(domain.as_str());
                // `myapi.test` is not below `api.test`: what is left must end with a dot.
                let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                is_below && at.is_none_or(|at| at == port)
            }
            Self::Network(network, bits) => {
                address.is_some_and(|address| is_in(address, *network, *bits))
            }
        }
    }
}

/// A host as addresses are spelled elsewhere: version 6 without its brackets.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let differ = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    differ.leading_zeros() >= bits
}

fn proxy(url: &str) -> Result<Proxy, BadProxy> {
    let rest = match url.split_once("://") {
        Some((kind, rest)) if kind.eq_ignore_ascii_case("http") => rest,
        Some(_) => return Err(BadProxy::Kind),
        None => url,
    };
    let authority = rest.trim_end_matches('/');
    // From the right: a password may contain an `@`.
    let (credentials, place) = match authority.rsplit_once('@') {
        Some((credentials, place)) => (Some(credentials), place),
        None => (None, authority),
    };
    let uri: Uri = format!("http://{place}").parse().map_err(|_reason| BadProxy::Malformed)?;
    let host = uri.host().filter(|host| !host.is_empty() && uri.path() == "/");
    let host = bare(host.ok_or(BadProxy::Malformed)?).to_owned();
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let port = match (has_port, uri.port_u16()) {
        (true, None) => return Err(BadProxy::Malformed),
        (_, port) => port.unwrap_or(80),
    };
    let authorization = credentials.map(basic).transpose()?;
    Ok(Proxy { host, port, authorization })
}

fn basic(credentials: &str) -> Result<HeaderValue, BadProxy> {
    let plain = decoded(credentials).ok_or(BadProxy::Credentials)?;
    let value = format!("Basic {}", base64(&plain));
    let mut value = HeaderValue::try_from(value).map_err(|_reason| BadProxy::Credentials)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A user and a password between them, without their percent-encoding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    if !bytes.contains(&b':') {
        bytes.push(b':');
    }
    Some(bytes)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32, at: u32| {
        let index = usize::try_from(bits >> (18 - 6 * at) & 63).unwrap_or(0);
        DIGITS.get(index).copied().map_or('=', char::from)
    };
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let is_data = usize::try_from(at).is_ok_and(|at| at <= three.len());
            text.push(if is_data { digit(bits, at) } else { '=' });
        }
    }
    text
}

fn exception(entry: &str) -> Option<NoProxyRule> {
    let entry = entry.trim().to_ascii_lowercase();
    if entry.is_empty() {
        return None;
    }
    if entry == "*" {
        return Some(NoProxyRule::All);
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let network: IpAddr = bare(network).parse().ok()?;
        return Some(NoProxyRule::Network(network, bits.parse().ok()?));
    }
    if let Ok(address) = bare(&entry).parse() {
        return Some(NoProxyRule::Network(address, if is_v4(address) { 32 } else { 128 }));
    }
    let (domain, port) = match entry.rsplit_once(':') {
        Some((domain, port)) => (domain, Some(port.parse().ok()?)),
        None => (entry.as_str(), None),
    };
    let domain = domain.trim_start_matches('*').trim_start_matches('.');
    (!domain.is_empty()).then(|| NoProxyRule::Domain(domain.to_owned(), port))
}

const fn is_v4(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, (&'static str, BadProxy)> {
        Proxies::read(&|name| {
            let of_name = variables.iter().find(|(other, _)| *other == name);
            of_name.map(|(_, value)| (*value).to_owned())
        })
    }

    fn through(variables: &[(&str, &str)], server: &str) -> Option<String> {
        let proxies = proxies(variables).unwrap();
        let proxy = proxies.to(&server.parse().unwrap());
        proxy.map(|proxy| format!("{}:{}", proxy.host, proxy.port))
    }

    #[test]
    fn each_kind_of_server_has_a_proxy_of_its_own_and_small_letters_come_first() {
        let all = [
            ("HTTPS_PROXY", "http://capital:1"),
            ("https_proxy", "http://small:2"),
            ("HTTP_PROXY", "plain"),
        ];
        assert_eq!(through(&all, "https://api.test/v1").as_deref(), Some("small:2"));
        assert_eq!(through(&all, "http://api.test/v1").as_deref(), Some("plain:80"));
        assert_eq!(through(&all[..1], "https://api.test").as_deref(), Some("capital:1"));
        let empty = [("https_proxy", ""), ("HTTPS_PROXY", "http://[2001:db8::1]:3128/")];
        assert_eq!(through(&empty, "https://api.test").as_deref(), Some("2001:db8::1:3128"));
        assert_eq!(through(&empty, "http://api.test"), None);
        assert_eq!(through(&[], "https://api.test"), None);
    }

    #[test]
    fn exceptions_and_the_machine_itself_are_asked_directly() {
        let servers = [
            "https://api.test",
            "https://deep.api.test:8443",
            "https://myapi.test",
            "https://10.1.2.3",
            "https://11.1.2.3",
            "https://[2001:db8::7]",
            "https://localhost:1",
            "https://127.0.0.9",
            "https://[::1]",
        ];
        for (except, direct) in [
            ("", "------ddd"),
            ("*", "ddddddddd"),
            ("api.test", "dd----ddd"),
            (".API.test , ", "dd----ddd"),
            ("*.api.test", "dd----ddd"),
            ("api.test:8443", "-d----ddd"),
            ("10.0.0.0/8", "---d--ddd"),
            ("11.1.2.3,2001:db8::/32", "----ddddd"),
            ("[2001:db8::7]", "-----dddd"),
            ("10.0.0.0/x,test:port", "------ddd"),
        ] {
            let variables = [("https_proxy", "http://proxy:1"), ("NO_PROXY", except)];
            let of = |server: &&str| if through(&variables, server).is_none() { 'd' } else { '-' };
            assert_eq!(servers.iter().map(of).collect::<String>(), direct, "{except}");
        }
    }

    #[test]
    fn credentials_go_along_decoded_and_never_print() {
        for (credentials, sent) in [
            ("user:pass", "Basic dXNlcjpwYXNz"),
            ("user", "Basic dXNlcjo="),
            ("u%40corp:p%3A%25", "Basic dUBjb3JwOnA6JQ=="),
        ] {
            let url = format!("http://{credentials}@proxy:3128");
            let proxies = proxies(&[("https_proxy", &url)]).unwrap();
            let proxy = proxies.https.clone().unwrap();
            assert_eq!(proxy.authorization.unwrap().to_str().unwrap(), sent);
            assert!(format!("{proxies:?}").contains("Proxy(proxy:3128)"), "{proxies:?}");
        }
    }

    #[test]
    fn what_names_no_proxy_is_told_with_its_variable() {
        for (url, why) in [
            ("https://proxy:1", BadProxy::Kind),
            ("socks5://proxy:1", BadProxy::Kind),
            ("http://", BadProxy::Malformed),
            ("http://proxy:port", BadProxy::Malformed),
            ("http://proxy:1/path", BadProxy::Malformed),
            ("http://a b", BadProxy::Malformed),
            ("http://user:%zz@proxy:1", BadProxy::Credentials),
        ] {
            assert_eq!(proxies(&[("HTTP_PROXY", url)]), Err(("HTTP_PROXY", why)), "{url}");
        }
    }
}
