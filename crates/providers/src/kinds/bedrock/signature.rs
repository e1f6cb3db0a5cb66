//! AWS Signature Version 4: the headers that prove who sends a request.
//!
//! ```text
//! canonical = method, path (encoded once more), query, signed headers, SHA-256 of the body
//! to sign   = "AWS4-HMAC-SHA256", moment, day/region/service/aws4_request, SHA-256 of canonical
//! key       = HMAC chain over day, region, service, "aws4_request", from "AWS4" + the secret
//! ```
//!
//! Signed are the method, the path, the server's name, the moment, the session's token and the
//! body: a request that was changed on its way, or is sent much later, is refused by AWS.
//!
//! Pure: the moment is an argument, so that AWS's own test suite can be run on it. A query is
//! signed as it is: no address of this kind has one.
//!
//! Never: the secret key in a header or in a log. If a key is no text of a header, that header is left out and
//! the server refuses the request.

use std::fmt;
use std::time::SystemTime;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use holdfast_domain::debug_as;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;

use crate::adapter::{SignableRequest, segment};
use holdfast_net::host;

const SERVICE: &str = "bedrock";
const MOMENT: StaticFormatDescription =
    format_description!("[year][month][day]T[hour][minute][second]Z");
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// A region, such as `eu-central-1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region(Box<str>);

/// A text that is not a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a region: lower-case letters, digits and hyphens are expected, like eu-central-1")]
pub struct BadRegion;

impl TryFrom<&str> for Region {
    type Error = BadRegion;

    fn try_from(region: &str) -> Result<Self, BadRegion> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=32).contains(&region.len()) && region.bytes().all(is_plain);
        if fits { Ok(Self(region.into())) } else { Err(BadRegion) }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Keys of an account, for good or for a session. They never print.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    /// Names the secret one.
    pub access_key_id: String,
    /// Signs, and is never sent.
    pub secret_access_key: String,
    /// Token of a session, sent and signed; `None` for keys that stay.
    pub session_token: Option<String>,
}

debug_as!(AwsKeys: "AwsKeys(…)");

/// Signs requests to one region.
#[derive(Debug)]
pub(super) struct Signer<'k> {
    keys: &'k AwsKeys,
    region: &'k Region,
    service: &'static str,
}

impl<'k> Signer<'k> {
    pub(super) const fn new(keys: &'k AwsKeys, region: &'k Region) -> Self {
        Self { keys, region, service: SERVICE }
    }

    /// Adds the headers that sign a request at a moment; none if it has no host or a key is no text of a
    /// header, and the server refuses it then.
    pub(super) fn sign(
        &self,
        unsigned: &SignableRequest<'_>,
        now: SystemTime,
        headers: &mut HeaderMap,
    ) {
        let Ok(moment) = OffsetDateTime::from(now).format(MOMENT) else { return };
        let Some(host) = host(unsigned.uri) else { return };
        let token = self.keys.session_token.as_deref();
        let authorization = self.authorization(unsigned, host, &moment);
        let signed = [
            (DATE, Some(moment.as_str())),
            (TOKEN, token),
            (AUTHORIZATION, Some(authorization.as_str())),
        ];
        for (name, value) in signed {
            if let Some(Ok(mut value)) = value.map(HeaderValue::from_str) {
                // The moment alone is no secret.
                value.set_sensitive(name == TOKEN || name == AUTHORIZATION);
                headers.insert(name, value);
            }
        }
    }

    fn authorization(&self, unsigned: &SignableRequest<'_>, host: &str, moment: &str) -> String {
        // Sorted by name, as AWS wants them: `host`, `x-amz-date`, `x-amz-security-token`.
        let (mut names, mut lines) =
            ("host;x-amz-date".to_owned(), format!("host:{host}\nx-amz-date:{moment}\n"));
        if let Some(token) = &self.keys.session_token {
            names.push_str(";x-amz-security-token");
            lines.push_str(&format!("x-amz-security-token:{token}\n"));
        }
        let SignableRequest { method, uri, body } = unsigned;
        // The path is encoded once more than it is sent.
        let path = uri.path().split('/').map(segment).collect::<Vec<_>>().join("/");
        let query = uri.query().unwrap_or_default();
        let content = hex(digest(&SHA256, body).as_ref());
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{content}");
        let day = moment.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let canonical = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
        let to_sign = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{canonical}");
        let mut key = format!("AWS4{}", self.keys.secret_access_key).into_bytes();
        for part in [day, &self.region.to_string(), self.service, "aws4_request"] {
            key = mac(&key, part);
        }
        let signature = hex(&mac(&key, &to_sign));
        let id = &self.keys.access_key_id;
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use http::{Method, Uri};
    use std::time::Duration;

    use super::*;

    #[test]
    fn keys_of_an_account_never_print() {
        let (keys, ..) = suite(Some("token"));
        assert_eq!(format!("{keys:?} {keys:#?}"), "AwsKeys(…) AwsKeys(…)");
    }

    /// AWS's own test suite for Signature Version 4: the account, the region and the moment.
    fn suite(token: Option<&str>) -> (AwsKeys, Region, SystemTime) {
        let keys = AwsKeys {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: token.map(str::to_owned),
        };
        let region = Region::try_from("us-east-1").unwrap();
        // 2015-08-30T12:36:00Z
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        (keys, region, at)
    }

    fn signer<'k>(keys: &'k AwsKeys, region: &'k Region) -> Signer<'k> {
        Signer { service: "service", ..Signer::new(keys, region) }
    }

    #[test]
    fn signs_as_the_suite_does() {
        let (keys, region, at) = suite(None);
        let signer = signer(&keys, &region);
        let uri = Uri::from_static("https://example.amazonaws.com/");
        let mut headers = HeaderMap::new();
        signer.sign(
            &SignableRequest { method: &Method::GET, uri: &uri, body: b"" },
            at,
            &mut headers,
        );
        assert_eq!(headers[DATE], "20150830T123600Z");
        assert_eq!(
            headers[AUTHORIZATION],
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }

    #[test]
    fn body_path_port_and_token_are_signed_and_keys_never_print() {
        let (keys, region, at) = suite(Some("a-token"));
        let signer = signer(&keys, &region);
        let mut signed = Vec::new();
        for (uri, body) in [
            ("http://h:8080/model/a%3A0/converse", "{}"),
            ("http://h:8080/model/a%3A1/converse", "{}"),
            ("http://h:8081/model/a%3A0/converse", "{}"),
            ("http://h:8080/model/a%3A0/converse", "{ }"),
        ] {
            let uri = uri.parse().unwrap();
            let unsigned =
                SignableRequest { method: &Method::POST, uri: &uri, body: body.as_bytes() };
            let mut headers = HeaderMap::new();
            signer.sign(&unsigned, at, &mut headers);
            assert_eq!(headers[TOKEN], "a-token");
            let authorization = headers[AUTHORIZATION].to_str().unwrap().to_owned();
            assert!(authorization.contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"));
            assert!(!format!("{headers:?}{signer:?}").contains("a-token"));
            signed.push(authorization);
        }
        assert_eq!(signed[0].rsplit('=').next(), Some(SIGNED));
        signed.sort_unstable();
        signed.dedup();
        assert_eq!(signed.len(), 4);
    }

    /// Made by another implementation, from the same account, moment and request.
    const SIGNED: &str = "6803603a704f79471e93c7503311bc64ec5f09349a7969741a4cebb6aa0ba132";
}
