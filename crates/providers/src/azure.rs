//! Azure OpenAI: OpenAI's dialect at addresses, with a header for the credential and with errors of
//! its own. The client is [`OpenAi`].

use std::fmt;

use holdfast_wire::chat::upstream::BoundField;
use http::HeaderName;

use crate::adapter::{CredentialHeader, Dialect, Framing};
use crate::openai::{self, Address, OpenAi};
use crate::proof;
use crate::server::{BadOptions, BaseUrl, ServerOptions};

static DIALECT: Dialect = Dialect {
    framing: Framing::Events,
    read: openai::read,
    follow: openai::follow,
    error_header: None,
    judge: proof::azure,
};

/// Server and API version of one resource of Azure OpenAI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureOptions {
    /// Server of the resource: its API begins at `…/openai/v1`, and with a version at `…/openai`.
    pub server: ServerOptions,
    /// Version of the older API, whose addresses name the deployment; `None` is the newer one,
    /// which has no versions.
    pub api_version: Option<ApiVersion>,
    /// Field in which the models read the bound on output tokens.
    pub bound_field: BoundField,
}

impl AzureOptions {
    /// The usual options for a resource.
    #[must_use]
    pub const fn new(base_url: BaseUrl) -> Self {
        let server = ServerOptions::new(base_url);
        Self { server, api_version: None, bound_field: BoundField::MaxCompletionTokens }
    }
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

impl OpenAi {
    /// A client of Azure OpenAI that has not connected yet. Reads the platform's root certificates.
    /// What routes name is a deployment.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] where there is none with these options.
    pub fn azure(options: AzureOptions) -> Result<Self, BadOptions> {
        let AzureOptions { server, api_version, bound_field } = options;
        let base_url = server.base_url.clone();
        let (completions, models) = match api_version {
            None => (Address::One(base_url.join("/chat/completions")?), base_url.join("/models")?),
            Some(version) => {
                let models = base_url.join(&format!("/models?api-version={version}"))?;
                let query = format!("api-version={version}");
                // The older API takes the deployment from the address; the body names it all the
                // same.
                (Address::OfDeployment { base_url, query }, models)
            }
        };
        let shown = CredentialHeader::In(HeaderName::from_static("api-key"));
        Self::at(server, &shown, (completions, models), bound_field, &DIALECT)
    }
}
