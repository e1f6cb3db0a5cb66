//! Amazon Bedrock's Converse API: the adapter. [`request`] renders its requests,
//! [`refusals`](crate::refusals) lists unsupported fields, [`answer`] reads its answers, whole or in
//! [`frames`](crate::frames), [`signature`] signs requests, and [`proof`] classifies its errors.

mod answer;
mod proof;
mod request;
mod signature;
mod turns;

use std::borrow::Cow;
use std::time::SystemTime;

use holdfast_domain::ports::{Call, CallFailure, ResponseMode, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use http::{HeaderMap, HeaderName, Uri};

use self::signature::Signer;
pub use self::signature::{AwsKeys, BadRegion, Region};
use crate::adapter::{
    Adapter, CredentialHeader, ErrorResponse, Framing, SignableRequest, StreamParser, segment,
};
use crate::late_system::LateSystem;
use crate::refusals::{Column, check};
use holdfast_net::{BadOptions, BaseUrl};

/// Name of an error.
const ERROR: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// Amazon Bedrock's Converse API in one region. Without `keys`, the server's credential is an API key of
/// Bedrock's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bedrock {
    /// Region of the models, which is part of addresses and signatures.
    pub region: Region,
    /// The keys that requests are signed with.
    pub keys: Option<AwsKeys>,
    /// Treatment of instructions after the first turn.
    pub late_system: LateSystem,
}

impl Bedrock {
    /// Start of a region's API unless the operator sets another.
    #[must_use]
    pub fn base_url(region: &Region) -> String {
        format!("https://bedrock-runtime.{region}.amazonaws.com")
    }
}

impl Adapter for Bedrock {
    fn semantic_name(&self) -> &'static str {
        "aws.bedrock"
    }

    fn credential(&self) -> CredentialHeader {
        CredentialHeader::Bearer
    }

    fn path(&self, model: &str, mode: ResponseMode) -> Cow<'static, str> {
        let method = match mode {
            ResponseMode::Whole => "converse",
            ResponseMode::Streamed => "converse-stream",
        };
        format!("/model/{}/{method}", segment(model)).into()
    }

    /// Another host than that of the models, unless the operator names one.
    fn list(&self, base_url: &BaseUrl) -> Result<Uri, BadOptions> {
        let usual = BaseUrl::try_from(Self::base_url(&self.region).as_str()).ok();
        if usual.as_ref() == Some(base_url) {
            let list = format!("https://bedrock.{}.amazonaws.com/foundation-models", self.region);
            return list.parse().map_err(BadOptions::Address);
        }
        base_url.join("/foundation-models")
    }

    fn state_shape(&self) -> Option<&'static str> {
        Some("bedrock 1")
    }

    fn check(&self, request: &Request) -> Result<(), UnsupportedParam> {
        check(request, Column::Bedrock, self.late_system, &request::WRITTEN)
    }

    fn added_prompt_bytes(&self, request: &Request) -> u64 {
        self.late_system.added_bytes(request)
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        request::render(call)
    }

    fn signs(&self) -> bool {
        self.keys.is_some()
    }

    fn sign(&self, unsigned: &SignableRequest<'_>, headers: &mut HeaderMap) {
        if let Some(keys) = &self.keys {
            Signer::new(keys, &self.region).sign(unsigned, SystemTime::now(), headers);
        }
    }

    fn framing(&self) -> Framing {
        Framing::Aws
    }

    fn read(&self, body: &[u8], _call: &Call) -> Result<Completion, UnreadableReason> {
        answer::read(body)
    }

    fn follow(&self, _call: &Call) -> Box<dyn StreamParser> {
        Box::new(answer::ConverseStream::default())
    }

    fn error_header(&self) -> Option<HeaderName> {
        Some(ERROR)
    }

    fn judge(&self, rejected: &ErrorResponse) -> CallFailure {
        proof::of_status(rejected)
    }
}
