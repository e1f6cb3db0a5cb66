//! Amazon Bedrock's Converse API: the client. [`request`] says what it is sent, [`answer`] what it
//! answers, whole or in [`frames`](crate::frames), [`signature`] how a request is signed, and
//! [`proof`] what its errors prove.

mod answer;
pub(crate) mod request;
pub(crate) mod signature;
mod turns;

use async_trait::async_trait;
use holdfast_domain::ports::{
    Call, CallFailure, NotRunProof, Provider, ResponseMode, Sink, UnsupportedParam,
};
use holdfast_domain::request::Request;
use holdfast_domain::usage::Meters;
use http::{HeaderName, StatusCode, Uri};

use self::signature::Signer;
pub use self::signature::{AwsKeys, BadRegion, Region};
use crate::adapter::{CredentialHeader, Dialect, Framing, segment};
use crate::proof;
use crate::server::{BadOptions, BaseUrl, HttpClient, ProbeError, ServerOptions};
use crate::turns::NO_STATES;

/// The name of the thoughts that come with calls. Another layout has another.
const SHAPE: &str = "bedrock 1";

pub(crate) static DIALECT: Dialect = Dialect {
    framing: Framing::Aws,
    read: answer::read,
    follow: answer::follow,
    error_header: Some(HeaderName::from_static("x-amzn-errortype")),
    judge: proof::bedrock,
};

/// Server, region and keys of Bedrock's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BedrockOptions {
    /// Server of the region, with an API key of Bedrock's own where there are no `keys`.
    pub server: ServerOptions,
    /// Region of the models, which is part of addresses and signatures.
    pub region: Region,
    /// The keys that requests are signed with.
    pub keys: Option<AwsKeys>,
}

impl BedrockOptions {
    /// Start of a region's API unless the operator says otherwise.
    #[must_use]
    pub fn base_url(region: &Region) -> String {
        format!("https://bedrock-runtime.{region}.amazonaws.com")
    }

    /// Address of the list of models: another host than theirs, where the operator names none.
    fn list_url(&self) -> Result<Uri, BadOptions> {
        let usual = BaseUrl::try_from(Self::base_url(&self.region).as_str()).ok();
        if usual.as_ref() == Some(&self.server.base_url) {
            let list = format!("https://bedrock.{}.amazonaws.com/foundation-models", self.region);
            return list.parse().map_err(BadOptions::Address);
        }
        self.server.base_url.join("/foundation-models")
    }
}

/// Amazon Bedrock's Converse API.
#[derive(Debug)]
pub struct Bedrock {
    server: HttpClient,
    base_url: BaseUrl,
    models: Uri,
}

impl Bedrock {
    /// A client that has not connected yet. Reads the platform's root certificates.
    ///
    /// # Errors
    ///
    /// [`BadOptions`] where there is none with these options.
    pub fn new(options: BedrockOptions) -> Result<Self, BadOptions> {
        let models = options.list_url()?;
        let BedrockOptions { server, region, keys } = options;
        let base_url = server.base_url.clone();
        let mut server = HttpClient::new(server, &CredentialHeader::Bearer)?;
        if let Some(keys) = keys {
            server = server.with_signer(Box::new(Signer::new(keys, region)));
        }
        Ok(Self { server, base_url, models })
    }

    /// Asks for the list of models, which runs none, and tells the status of the answer. Cancel
    /// safe.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] where there was no answer.
    pub async fn probe(&self) -> Result<StatusCode, ProbeError> {
        self.server.probe(self.models.clone()).await
    }
}

#[async_trait]
impl Provider for Bedrock {
    fn check_supported(&self, request: &Request) -> Result<(), UnsupportedParam> {
        self.server.pictures().check(request)?;
        request::translate(request, &NO_STATES).map(drop)
    }

    fn state_shape(&self) -> Option<&'static str> {
        Some(SHAPE)
    }

    async fn run(&self, call: &Call, sink: &mut dyn Sink) -> Result<Option<Meters>, CallFailure> {
        // Who claims asks first, so neither happens; and if it did, nothing was sent.
        let body = request::render(call)
            .map_err(|_unsupported| CallFailure::NotRun(NotRunProof::Account))?;
        let method = match call.response_mode {
            ResponseMode::Whole => "converse",
            ResponseMode::Streamed => "converse-stream",
        };
        let path = format!("/model/{}/{method}", segment(&call.model));
        let uri = self
            .base_url
            .join(&path)
            .map_err(|_address| CallFailure::NotRun(NotRunProof::Account))?;
        self.server.exchange(&DIALECT, (uri, body), call, sink).await
    }
}
