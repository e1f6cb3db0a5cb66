//! Azure OpenAI: [`OpenAi`] at other addresses, with a header for the credential and with errors of
//! its own. Routes name deployments; the older API takes them from the address, and the body names
//! them all the same.

mod proof;

use std::borrow::Cow;
use std::fmt;

use holdfast_domain::ports::{Call, CallFailure, ResponseMode};
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use http::{HeaderName, Uri};

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, StreamParser, segment};
use crate::kinds::openai::OpenAi;
use holdfast_net::{BadOptions, BaseUrl};

/// Resource of Azure OpenAI: its API begins at `…/openai/v1`, and with a version at `…/openai`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureOpenAi {
    /// Dialect of the deployments.
    pub dialect: OpenAi,
    /// Version of the older API, whose addresses name the deployment; `None` is the newer one,
    /// which has no versions.
    pub api_version: Option<ApiVersion>,
}

/// A version of the API, such as `2024-10-21`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiVersion(Box<str>);

/// A text that is not a version of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a version of the API: a date is expected, like 2024-10-21 or 2025-01-01-preview")]
pub struct BadApiVersion;

impl TryFrom<&str> for ApiVersion {
    type Error = BadApiVersion;

    fn try_from(version: &str) -> Result<Self, BadApiVersion> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let fits = (1..=64).contains(&version.len()) && version.bytes().all(is_plain);
        if fits { Ok(Self(version.into())) } else { Err(BadApiVersion) }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Adapter for AzureOpenAi {
    fn semantic_name(&self) -> &'static str {
        "azure.ai.openai"
    }

    fn credential(&self) -> CredentialHeader {
        CredentialHeader::In(HeaderName::from_static("api-key"))
    }

    fn path(&self, model: &str, mode: ResponseMode) -> Cow<'static, str> {
        let Some(version) = &self.api_version else { return self.dialect.path(model, mode) };
        let model = segment(model);
        format!("/deployments/{model}/chat/completions?api-version={version}").into()
    }

    fn list(&self, base_url: &BaseUrl) -> Result<Uri, BadOptions> {
        match &self.api_version {
            None => base_url.join("/models"),
            Some(version) => base_url.join(&format!("/models?api-version={version}")),
        }
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        self.dialect.render(call)
    }

    fn read(&self, body: &[u8], call: &Call) -> Result<Completion, UnreadableReason> {
        self.dialect.read(body, call)
    }

    fn follow(&self, call: &Call) -> Box<dyn StreamParser> {
        self.dialect.follow(call)
    }

    fn judge(&self, rejected: &ErrorResponse) -> CallFailure {
        proof::of_status(rejected)
    }
}
