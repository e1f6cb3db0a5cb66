//! Errors on their way to callers: the code, and every other member of the body.
//!
//! The body is that of the public API: `{"error": {"message", "type", "param", "code"}}`, with `scope` if a role
//! lacks a use case and `edited` if another edit came first. One exhaustive match, `translation`, assigns an error
//! to each failure of a use case.
//!
//! Never in a body: a secret, or the cause of a failure of the server. The cause is logged once, at the place that
//! creates the error, and accompanies the answer as a [`FailureCause`], which stays in the process.

mod code;
mod translation;

use std::borrow::Cow;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use holdfast_domain::admin::UseCase;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

pub use self::code::Code;

/// Seconds after which a request is repeated, unless its refusal has a better time.
const RETRY_AFTER_SECONDS: u16 = 1;
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Error on its way to a caller, in the same words on every interface.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    message: Cow<'static, str>,
    param: Option<Cow<'static, str>>,
    scope: Option<UseCase>,
    edited: Option<u32>,
    cause: Option<FailureCause>,
    /// Seconds after which a request that may be repeated is.
    retry_after: u16,
}

/// Cause of a failure of the process, for its operator: an extension of the answer, which is never written to a
/// socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCause(pub String);

impl Problem {
    /// Error with its code's usual message.
    pub(crate) const fn new(code: Code) -> Self {
        let message = Cow::Borrowed(code.message());
        let retry_after = RETRY_AFTER_SECONDS;
        Self { code, message, param: None, scope: None, edited: None, cause: None, retry_after }
    }

    /// Error with a message of its own.
    pub(crate) fn with_message(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..Self::new(code) }
    }

    /// Error about one member, parameter or header.
    pub(crate) fn invalid(
        param: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { param: Some(param.into()), ..Self::with_message(Code::InvalidValue, message) }
    }

    /// Refusal of a use case to a role.
    pub(crate) fn forbidden(use_case: UseCase, message: String) -> Self {
        Self { scope: Some(use_case), ..Self::with_message(Code::Forbidden, message) }
    }

    /// Code of the error.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Event and remedy in words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Member, parameter or header that the error is about.
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// Time after which a retry may succeed; `None` if a retry has the same answer.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.code.retry().then(|| Duration::from_secs(self.retry_after.into()))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { code, message, param, scope, edited, cause, retry_after } = self;
        let error = ErrorMembers {
            message: message.into_owned(),
            kind: code.kind().to_owned(),
            param: param.map(Cow::into_owned),
            code: code.label().to_owned(),
            scope: scope.map(|use_case| use_case.label().to_owned()),
            edited,
        };
        // A body of texts and numbers always renders; an empty one would still have its status.
        let body = serde_json::to_vec(&ErrorBody { error }).unwrap_or_default();
        let mut answer = Response::new(body.into());
        *answer.status_mut() =
            StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // An extension and not a member: the listener drops it, and only a command in the same
        // process reads it.
        if let Some(cause) = cause {
            answer.extensions_mut().insert(cause);
        }
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let retry = if code.retry() { "true" } else { "false" };
        headers.insert(X_SHOULD_RETRY, HeaderValue::from_static(retry));
        // Only with `x-should-retry: true`: a client that knows one of the two headers must do the
        // same as one that knows the other.
        if code.retry() {
            headers.insert(RETRY_AFTER, HeaderValue::from(retry_after));
        }
        if code == Code::InvalidAdminKey {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // What is left of such a request is not read: the connection cannot be used again.
        if matches!(code, Code::RequestTooLarge | Code::RequestTimeout) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// Body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorMembers,
}

/// Members of an error.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
struct ErrorMembers {
    /// Event and remedy in words.
    message: String,
    /// Family of the error.
    #[serde(rename = "type")]
    kind: String,
    /// Member, parameter or header that the error is about.
    param: Option<String>,
    /// Name of the error: one of a closed table.
    code: String,
    /// Use case that the role has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    scope: Option<String>,
    /// Number of edits by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    edited: Option<u32>,
}
