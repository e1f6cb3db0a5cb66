//! Failures of requests to the API, in words for the user of the command.
//!
//! The words of a refusal are the API's own. This file adds the command's side: the work that was not done, and the
//! way to repeat it.

use serde_json::Value;
use uuid::Uuid;

use super::ApiReply;
use crate::failure::{CommandFailure, Refusal};
use crate::view::member;

/// Failure of a request. It had no effect, unless it is `Uncertain` or `Lost`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminClientError {
    /// The API refuses it, or has failed.
    #[error("{message}")]
    Refused {
        code: String,
        message: String,
        /// Part of the request that the error is about.
        param: Option<String>,
    },
    /// No server was reached: the request was not sent.
    #[error("the server is not reached: {0:#}")]
    Unsent(anyhow::Error),
    /// There is no connection that the key may be sent over, now or at another try: the request was not sent.
    #[error("the server is not reached: {0:#}")]
    Untrusted(anyhow::Error),
    /// The request was sent, and its answer did not come.
    #[error("the server gave no answer: {0:#}")]
    Lost(anyhow::Error),
    /// The tries are used up, and one of them may have done it.
    #[error("{why}; run this again with `--key {key}`, it is done at most once")]
    Uncertain { key: Uuid, why: Box<AdminClientError> },
    /// Another service answers at the address.
    #[error(
        "the answer is not of a Holdfast's administration: --server is the address in admin.url, \
         or of admin.listen"
    )]
    NotTheApi,
}

impl ApiReply {
    /// The resource in a good answer.
    pub(super) fn read(self) -> Result<Value, AdminClientError> {
        serde_json::from_slice(self.good()?).ok().ok_or(AdminClientError::NotTheApi)
    }

    /// The body of a good answer.
    fn good(&self) -> Result<&[u8], AdminClientError> {
        if (200..300).contains(&self.status) { Ok(&self.body) } else { Err(self.error()) }
    }

    /// True for a failure that does not come from the API, such as a 502 of a proxy: the server's part is unknown.
    pub(super) fn is_from_between(&self) -> bool {
        self.status >= 500 && matches!(self.error(), AdminClientError::NotTheApi)
    }

    /// True if the server does not know itself what became of the request.
    pub(super) fn is_outcome_unknown(&self) -> bool {
        self.error().is("outcome_unknown")
    }

    /// The error of any other answer.
    pub(super) fn error(&self) -> AdminClientError {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let text = |name: &str| member(member(&body, "error"), name).as_str().map(str::to_owned);
        // Also a body that is not JSON, such as a proxy's page: only the API's own envelope is an
        // answer of it.
        let (Some(code), Some(message)) = (text("code"), text("message")) else {
            return AdminClientError::NotTheApi;
        };
        // In this process the cause is at hand. Over the network it stays in the server's log,
        // because it may name hosts and files.
        let message = match &self.cause {
            Some(cause) => cause.clone(),
            None => message,
        };
        AdminClientError::Refused { code, message, param: text("param") }
    }
}

impl AdminClientError {
    /// True if another try would end in the same way.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Untrusted(_))
    }

    /// True for a refusal of this code.
    pub(crate) fn is(&self, expected: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == expected)
    }

    /// Code of the failure: the API's own if it refused.
    fn code(&self) -> String {
        match self {
            Self::Refused { code, .. } => code.clone(),
            Self::Unsent(_) | Self::Untrusted(_) => "server_unreachable".to_owned(),
            Self::Lost(_) => "no_answer".to_owned(),
            Self::Uncertain { .. } => "outcome_unknown".to_owned(),
            Self::NotTheApi => "not_the_api".to_owned(),
        }
    }

    /// The failure of a command: `nothing` is the work that was not done, such as `nothing was deposited`.
    pub(crate) fn because(self, nothing: &str) -> CommandFailure {
        // Exit status 2: another value mends it, and another attempt does not.
        let is_usage = self.is("invalid_value");
        let message = match &self {
            Self::Refused { code, .. } if code == "invalid_admin_key" => format!(
                "{nothing}: the server does not accept the admin key in HOLDFAST_ADMIN_KEY or \
                 HOLDFAST_ADMIN_KEY_FILE: it is another server's, or has ended"
            ),
            // A reader of "nothing was done" does it again, under another key.
            Self::Uncertain { .. } => format!("it is not known whether this was done: {self}"),
            Self::Refused { param: Some(param), message, .. } if is_usage => {
                format!("{nothing}: {param}: {message}")
            }
            Self::Refused { .. }
            | Self::Unsent(_)
            | Self::Untrusted(_)
            | Self::Lost(_)
            | Self::NotTheApi => format!("{nothing}: {self}"),
        };
        let error = Refusal { code: self.code(), message };
        if is_usage {
            CommandFailure::Usage(error.into())
        } else {
            CommandFailure::Failed(error.into())
        }
    }

    /// The same for a change under this key.
    pub(crate) fn of_change(self, nothing: &str, key: Uuid) -> CommandFailure {
        if self.is("idempotency_key_conflict") {
            let message =
                format!("{nothing}: {self} With `--key {key}` it is that one: use another");
            return Refusal::failed(self.code(), message);
        }
        if self.is("outcome_unknown") {
            return Self::Uncertain { key, why: Box::new(self) }.because(nothing);
        }
        self.because(nothing)
    }

    /// The failure of one request of several, which are repeated together under a key of their own: `of` names it,
    /// such as `the next keys`.
    pub(crate) fn of_part(self, of: &str) -> CommandFailure {
        if let Self::Uncertain { why, .. } = &self {
            let message = format!("the outcome of {of} is not known: {why}");
            return Refusal::failed(self.code(), message);
        }
        self.because(&format!("nothing was done about {of}"))
    }
}
