//! Translation of requests and answers by each kind, without a network: for whoever measures it, or
//! feeds it what no provider sends. A provider does the same on the way of a call.

use holdfast_domain::ports::{Call, CallFailure, Sink, UnsupportedParam};
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::{BoundField, render_request};

use crate::adapter::Dialect;
use crate::server::ServerOptions;
use crate::stream_decoder::StreamDecoder;
use crate::{anthropic, bedrock, gemini, openai, proof};

/// A dialect. Azure OpenAI speaks OpenAI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialectKind {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Amazon Bedrock's Converse API.
    Bedrock,
}

impl DialectKind {
    /// Every dialect.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Bedrock];

    /// The name in the configuration.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }

    /// The body that a provider of the usual options is sent.
    ///
    /// # Errors
    ///
    /// The first thing that is asked for and that it cannot do.
    pub fn request(self, call: &Call) -> Result<Vec<u8>, UnsupportedParam> {
        match self {
            Self::OpenAi => {
                let field = BoundField::MaxCompletionTokens;
                let bound = call.max_output_tokens;
                Ok(render_request(&call.request, &call.model, bound, field, call.response_mode))
            }
            Self::Anthropic => anthropic::request::render(call, false),
            Self::Gemini => gemini::request::render(call, false),
            Self::Bedrock => bedrock::request::render(call),
        }
    }

    /// Reads the body of a success that came whole, and tells the sink what it says. Returns the
    /// meters as reported; `None` where nothing believable was.
    ///
    /// # Errors
    ///
    /// What is known of a call whose answer is none.
    pub fn whole(
        self,
        body: &[u8],
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<Meters>, CallFailure> {
        self.dialect().deliver(body, call, sink).map_err(proof::unreadable)
    }

    /// Reads a success that comes in these pieces, which may be cut anywhere, and tells the sink
    /// what it says as it says it. Returns the meters as reported.
    ///
    /// # Errors
    ///
    /// What is known of a call whose answer is none, or breaks off before its end.
    pub fn streamed<'p>(
        self,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<Meters>, CallFailure> {
        let mut following =
            StreamDecoder::new(self.dialect(), call, ServerOptions::EVENT_BYTES_MAX);
        for piece in pieces {
            let went_on = following.feed(piece, sink).map_err(proof::unreadable)?;
            if went_on.is_break() {
                break;
            }
        }
        following.end().map_err(proof::unreadable)
    }

    const fn dialect(self) -> &'static Dialect {
        match self {
            Self::OpenAi => &openai::DIALECT,
            Self::Anthropic => &anthropic::DIALECT,
            Self::Gemini => &gemini::DIALECT,
            Self::Bedrock => &bedrock::DIALECT,
        }
    }
}
