//! Parts of a request: its query, the id in its path, the fields of a form. Read strictly, and refused as a page.

use std::str::FromStr;
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use bytes::Bytes;
use holdfast_accounts::sentence;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use uuid::Uuid;

use crate::failure::{Failure, FieldRefusal};

/// Largest form but the playground's, in bytes.
const FORM_MAX: usize = 64 << 10;
/// Time for a form from the end of its head to its last byte.
const FORM_TIME: Duration = Duration::from_secs(10);

/// Names and values, of a query or of a form, as they were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SentFields(Vec<(String, String)>);

impl SentFields {
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The value of this name, without blanks around it; an empty one is none.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _value)| known == name);
        value.map(|(_name, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The value of this name as it was sent, blanks and all; empty if it is missing.
    pub(crate) fn raw(&self, name: &str) -> &str {
        let value = self.0.iter().find(|(known, _value)| known == name);
        value.map_or("", |(_name, value)| value)
    }

    /// All values of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _value)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads the optional value of this name.
    pub(crate) fn read<T>(&self, name: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let value = self.get(name).map(T::from_str).transpose();
        value.map_err(|error| Failure::field(name, sentence(&error.to_string())))
    }

    /// Reads the value of this name, which is only looked for, by the constructor of its type.
    pub(crate) fn sought<T, E: std::fmt::Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        let value = self.get(name).map(read).transpose();
        value.map_err(|error| Failure::field(name, sentence(&error.to_string())))
    }

    /// Reads the optional choice of this name.
    pub(crate) fn choice<T>(
        &self,
        name: &str,
        known: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let bad = || Failure::field(name, FieldRefusal::NotAChoice);
        self.get(name).map(|label| known(label).ok_or_else(bad)).transpose()
    }

    /// Reads the choice of this name, which must be there.
    pub(crate) fn require_choice<T>(
        &self,
        name: &str,
        known: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Failure> {
        let missing = || Failure::field(name, FieldRefusal::NotAChoice);
        self.choice(name, known)?.ok_or_else(missing)
    }

    /// Reads the value of this name, which must be there.
    pub(crate) fn require<T>(&self, name: &str) -> Result<T, Failure>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.read(name)?.ok_or_else(|| Failure::field(name, "Fill this in."))
    }

    /// Names and values in the order in which they were sent.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The query of a request.
#[derive(Debug, Clone)]
pub(crate) struct Query(pub(crate) SentFields);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        Ok(Self(SentFields::parse(parts.uri.query().unwrap_or_default().as_bytes())))
    }
}

/// The first id in a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let segments = RawPathParams::from_request_parts(parts, state).await.ok();
        let segments = segments.ok_or_else(Failure::not_found)?;
        let id = segments.iter().find_map(|(_name, id)| Uuid::try_parse(id).ok());
        id.map(Self).ok_or_else(Failure::not_found)
    }
}

/// Reads the fields of a form.
pub(crate) async fn read_form(
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<SentFields, Failure> {
    read_form_within(headers, body, FORM_MAX).await
}

/// Reads the fields of a form of so many bytes at most.
pub(crate) async fn read_form_within(
    headers: &HeaderMap,
    body: axum::body::Body,
    bytes_max: usize,
) -> Result<SentFields, Failure> {
    let essence =
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.split(';').next());
    let is_form = essence.is_some_and(|essence| {
        essence.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
    });
    if !is_form {
        let message = "Send the form as application/x-www-form-urlencoded.";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    // A body that trickles must not hold its person's place for longer.
    let collected = tokio::time::timeout(FORM_TIME, Limited::new(body, bytes_max).collect()).await;
    let bytes: Bytes = match collected {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) => {
            tracing::debug!(error, "a form was not read");
            // Both are one error of the body. A client that broke off does not read the answer,
            // so the status is that of the other case.
            let message = "The form is too large, or broke off.";
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        Err(_elapsed) => {
            let message = "The form did not arrive in time.";
            return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, message));
        }
    };
    Ok(SentFields::parse(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_or_says_what_to_write() {
        let fields = SentFields::parse(b"a=+7+&b=&c=x&c=y");
        assert_eq!(fields.read::<u8>("a").unwrap(), Some(7));
        assert_eq!(fields.read::<u8>("b").unwrap(), None);
        assert_eq!(fields.all("c").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(fields.require::<u8>("b").unwrap_err().field.as_deref(), Some("b"));
        assert_eq!(fields.require::<u8>("c").unwrap_err().status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(fields.raw("a"), " 7 ");
    }
}
