//! The two cookies of the console: the session, and the mark of a browser with an earlier sign-in.
//!
//! | reached by | names | attributes |
//! |---|---|---|
//! | `https` | `__Host-holdfast`, `__Host-holdfast-device` | `Secure; HttpOnly; SameSite=Lax; Path=/` |
//! | `http`, on loopback | `holdfast`, `holdfast-device` | `HttpOnly; SameSite=Lax; Path=/` |
//!
//! The holders' own listener has `holdfast-holder` for `holdfast`: cookies do not separate ports, and both
//! listeners may be on one host.
//!
//! Never in here: a value in a log or a `Debug`. Headers that carry one are marked as sensitive.

use holdfast_domain::secret::{BrowserToken, SessionToken};
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

use crate::audience::Audience;

/// Names and attributes of the cookies at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CookieJar {
    pub(crate) is_https: bool,
    pub(crate) audience: Audience,
}

/// A cookie of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cookie {
    Session,
    Device,
}

impl Cookie {
    const fn name(self, jar: CookieJar) -> &'static str {
        let is_holders = matches!(jar.audience, Audience::Holders);
        // Browsers take a `__Host-` cookie only from this very host and only with `Secure`, so no
        // sibling host can plant one. Over http the prefix would be refused.
        match (self, jar.is_https, is_holders) {
            (Self::Session, true, false) => "__Host-holdfast",
            (Self::Session, false, false) => "holdfast",
            (Self::Device, true, false) => "__Host-holdfast-device",
            (Self::Device, false, false) => "holdfast-device",
            (Self::Session, true, true) => "__Host-holdfast-holder",
            (Self::Session, false, true) => "holdfast-holder",
            (Self::Device, true, true) => "__Host-holdfast-holder-device",
            (Self::Device, false, true) => "holdfast-holder-device",
        }
    }

    /// Seconds for which a browser keeps it; `None`: until the browser ends.
    const fn age(self) -> Option<u32> {
        match self {
            Self::Session => None,
            Self::Device => Some(31_536_000),
        }
    }

    fn values(self, headers: &HeaderMap, jar: CookieJar) -> impl Iterator<Item = &str> {
        let name = self.name(jar);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(';')).filter_map(move |pair| {
            let (known, value) = pair.split_once('=')?;
            (known.trim() == name).then(|| value.trim())
        })
    }

    fn put(self, headers: &mut HeaderMap, jar: CookieJar, value: &str, age: Option<u32>) {
        let (name, secure) = (self.name(jar), if jar.is_https { "; Secure" } else { "" });
        let age = age.map(|age| format!("; Max-Age={age}")).unwrap_or_default();
        // Lax and not Strict: a link in a mail opens with the session, in which a person with a
        // password accepts an invitation.
        let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
        if let Ok(mut line) = HeaderValue::try_from(line) {
            line.set_sensitive(true);
            headers.append(SET_COOKIE, line);
        }
    }
}

/// Token of the session that a request shows.
pub(crate) fn session(headers: &HeaderMap, jar: CookieJar) -> Option<SessionToken> {
    // The first that is one: another host or program may have planted other values under the
    // name.
    Cookie::Session.values(headers, jar).find_map(SessionToken::parse)
}

/// Mark of the browser.
pub(crate) fn mark(headers: &HeaderMap, jar: CookieJar) -> Option<BrowserToken> {
    Cookie::Device.values(headers, jar).find_map(BrowserToken::parse)
}

/// Has the browser show this session from now on.
pub(crate) fn begin(headers: &mut HeaderMap, jar: CookieJar, token: &SessionToken) {
    Cookie::Session.put(headers, jar, &token.expose(), Cookie::Session.age());
}

/// Has the browser keep this mark.
pub(crate) fn put_mark(headers: &mut HeaderMap, jar: CookieJar, mark: &BrowserToken) {
    Cookie::Device.put(headers, jar, &mark.expose(), Cookie::Device.age());
}

/// Has the browser forget its session.
pub(crate) fn end(headers: &mut HeaderMap, jar: CookieJar) {
    Cookie::Session.put(headers, jar, "", Some(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_what_the_scheme_allows() {
        let token = SessionToken::new([7; 32]);
        let (all, holders) = (Audience::Everyone, Audience::Holders);
        for (is_https, audience, name) in [
            (true, all, "__Host-holdfast="),
            (false, all, "holdfast="),
            (true, holders, "__Host-holdfast-holder="),
            (false, holders, "holdfast-holder="),
        ] {
            let mut headers = HeaderMap::new();
            let jar = CookieJar { is_https, audience };
            begin(&mut headers, jar, &token);
            let line = headers[SET_COOKIE].to_str().unwrap().to_owned();
            assert!(
                line.starts_with(name) && line.contains("; Path=/; HttpOnly; SameSite=Lax"),
                "{line}"
            );
            assert_eq!(line.contains("Secure"), is_https, "{line}");
            assert!(!line.contains("Domain"));
            assert!(!format!("{headers:?}").contains(&token.expose()), "it is in no log");
            let shown = line.split(';').next().unwrap().parse().unwrap();
            let asked = HeaderMap::from_iter([(COOKIE, shown)]);
            assert_eq!(session(&asked, jar).unwrap().expose(), token.expose());
            let others = [
                CookieJar { is_https: !is_https, ..jar },
                CookieJar { audience: if audience == all { holders } else { all }, ..jar },
            ];
            for other in others {
                assert!(session(&asked, other).is_none(), "{other:?} has a name of its own");
            }
        }
    }
}
