//! The two cookies of the console: the session, and the mark of a browser that somebody has signed in from.
//!
//! | reached by | names | attributes |
//! |---|---|---|
//! | `https` | `__Host-holdfast`, `__Host-holdfast-device` | `Secure; HttpOnly; SameSite=Lax; Path=/` |
//! | `http`, on loopback | `holdfast`, `holdfast-device` | `HttpOnly; SameSite=Lax; Path=/` |
//!
//! Never in here: a value in a log or a `Debug`. Headers that carry one are marked as sensitive.

use holdfast_domain::secret::SessionToken;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

/// A cookie of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cookie {
    Session,
    Device,
}

impl Cookie {
    const fn name(self, is_https: bool) -> &'static str {
        match (self, is_https) {
            (Self::Session, true) => "__Host-holdfast",
            (Self::Session, false) => "holdfast",
            (Self::Device, true) => "__Host-holdfast-device",
            (Self::Device, false) => "holdfast-device",
        }
    }

    /// Seconds for which a browser keeps it; `None`: until the browser ends.
    const fn age(self) -> Option<u32> {
        match self {
            Self::Session => None,
            Self::Device => Some(31_536_000),
        }
    }

    fn values(self, headers: &HeaderMap, is_https: bool) -> impl Iterator<Item = &str> {
        let name = self.name(is_https);
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(';')).filter_map(move |pair| {
            let (known, value) = pair.split_once('=')?;
            (known.trim() == name).then(|| value.trim())
        })
    }

    fn put(self, headers: &mut HeaderMap, is_https: bool, value: &str, age: Option<u32>) {
        let (name, secure) = (self.name(is_https), if is_https { "; Secure" } else { "" });
        let age = age.map(|age| format!("; Max-Age={age}")).unwrap_or_default();
        let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
        if let Ok(mut line) = HeaderValue::try_from(line) {
            line.set_sensitive(true);
            headers.append(SET_COOKIE, line);
        }
    }
}

/// Token of the session that a request shows.
pub(crate) fn session(headers: &HeaderMap, is_https: bool) -> Option<SessionToken> {
    // The first that is one: whatever else has the name was put there by somebody else.
    Cookie::Session.values(headers, is_https).find_map(SessionToken::parse)
}

/// Mark of the browser.
pub(crate) fn device(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    Cookie::Device.values(headers, is_https).next()
}

/// Has the browser show this session from now on.
pub(crate) fn begin(headers: &mut HeaderMap, is_https: bool, token: &SessionToken) {
    Cookie::Session.put(headers, is_https, &token.expose(), Cookie::Session.age());
}

/// Has the browser keep this mark.
pub(crate) fn mark(headers: &mut HeaderMap, is_https: bool, mark: &str) {
    Cookie::Device.put(headers, is_https, mark, Cookie::Device.age());
}

/// Has the browser forget its session.
pub(crate) fn end(headers: &mut HeaderMap, is_https: bool) {
    Cookie::Session.put(headers, is_https, "", Some(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_what_the_scheme_allows() {
        let token = SessionToken::new([7; 32]);
        for (is_https, name, is_secure) in
            [(true, "__Host-holdfast=", true), (false, "holdfast=", false)]
        {
            let mut headers = HeaderMap::new();
            begin(&mut headers, is_https, &token);
            let line = headers[SET_COOKIE].to_str().unwrap().to_owned();
            assert!(
                line.starts_with(name) && line.contains("; Path=/; HttpOnly; SameSite=Lax"),
                "{line}"
            );
            assert_eq!(line.contains("Secure"), is_secure, "{line}");
            assert!(!line.contains("Domain"));
            assert!(!format!("{headers:?}").contains(&token.expose()), "it is in no log");
            let shown = line.split(';').next().unwrap().parse().unwrap();
            let asked = HeaderMap::from_iter([(COOKIE, shown)]);
            assert_eq!(session(&asked, is_https).unwrap().expose(), token.expose());
            assert!(session(&asked, !is_https).is_none(), "the name of another scheme is none");
        }
    }
}
