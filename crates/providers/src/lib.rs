//! Providers behind Holdfast's [`Provider`](holdfast_domain::Provider) port: the simulated one, and
//! one [`HttpProvider`] for every [`Kind`](kinds::Kind) with a server, each with a table of what proves what
//! about a call that failed. The choice of a provider, and of what follows a failure, is the
//! engine's.
//!
//! A provider here runs a call at most once. It follows no redirect, and calls an outcome unknown unless a row
//! of its table proves a better one. Only a [`ChainProvider`] sends a call again, to another gateway that has
//! shown that it keeps the keys of requests. No word of an upstream about itself (texts of errors, ids,
//! headers) leaves this crate.
//!
//! # OpenAI and compatible servers
//!
//! [`OpenAi`](kinds::OpenAi) posts to `{base_url}/chat/completions`, with TLS if the URL is `https`, and then
//! over HTTP/2 if the server chooses it, through the operator's [`Proxies`](holdfast_net::Proxies) if there are any,
//! and reads an answer that arrives whole or, if a stream is requested, in pieces: a server that then
//! answers with JSON has answered all the same. Besides what HTTP itself needs, only
//! `content-type`, `accept`, `user-agent` and the operator's own `authorization` go upstream. The
//! bound that the hold was made with always goes along, in the field that the server reads. Servers
//! are verified against Mozilla's roots and the platform's; `SSL_CERT_FILE` names others instead of
//! the platform's.
//!
//! # Providers with a dialect of their own
//!
//! [`Anthropic`](kinds::Anthropic), [`Gemini`](kinds::Gemini) and [`Bedrock`](kinds::Bedrock) translate a request and its answer; what they have no
//! place for, [`check_supported`](holdfast_domain::Provider::check_supported) refuses before
//! anything is bound. [`AzureOpenAi`](kinds::AzureOpenAi) is [`OpenAi`](kinds::OpenAi) at other addresses, with proofs of its own.
//!
//! # Another Holdfast
//!
//! [`ChainProvider`] speaks [`OpenAi`](kinds::OpenAi)'s dialect to a gateway and sends each call under its own
//! key. If the outcome of a call is unknown, it repeats the request under that key, and gets the answer of the
//! one run. The gateway's charge is reported as the provider's charge.
//!
//! # The simulated provider
//!
//! [`Simulator`] has two models. `sim-1` answers `You said: <the last user message>`; choices after
//! the first begin with `(choice 2)`, `(choice 3)` and so on. It honours `n`, `stop` and the output
//! bound. A token is four bytes of UTF-8 and a rest is one more; it reports usage by that rule:
//! every message's texts and name on the one side, every choice's text, names and inputs of calls
//! on the other. A stream is the same answer word by word. If a `response_format` requires JSON,
//! the answer is the least that the schema requires, and for `json_object` an object with the echo
//! as `said`. A prompt of more tokens than the model's context is refused as too long.
//!
//! `sim-tools` calls the tool that is forced, else the first that it may call: a function with the
//! members that its schema requires (the last user message for a text, 1 or the least for a number,
//! true, the first of a choice, the shortest list), a custom tool with the last user message. The
//! result of a tool it answers with `The tool said: <that>`, unless a tool is forced or required;
//! without tools it is `sim-1`.
//!
//! A line of the last user message that holds only a directive changes the course of the call,
//! and is not echoed:
//!
//! | directive | what happens |
//! |---|---|
//! | `[[sim: slow 5s]]` | waits first (`ms`, `s` or `m`, at most `10m`) |
//! | `[[sim: fail-before-once]]` | the first time that this process sees this prompt: proven not run (it remembers the last 1,024) |
//! | `[[sim: fail-before]]` | proven not run, every time |
//! | `[[sim: refuse]]` | refused for good |
//! | `[[sim: context-overflow]]` | refused for good: the prompt is too long |
//! | `[[sim: fail-after]]` | accepted, then its outcome is unknown |
//! | `[[sim: pace 20ms]]` | waits so long between two pieces of a stream |
//! | `[[sim: break]]` | breaks in the middle of the answer: its outcome is unknown |
//! | `[[sim: stall]]` | falls silent in the middle of the answer, and never ends by itself |
//! | `[[sim: no-usage]]` | answers and reports no usage |
//! | `[[sim: absurd-usage]]` | answers and reports usage beyond belief |
//! | `[[sim: overrun]]` | answers and reports as much as is believed at all, on either side: more than the hold was made for |
//!
//! `slow`, `pace` and `fail-before-once` go with each other and with any one of the rest. Anything
//! else after `[[sim:` at the start of a line is refused before anything runs, by its name, so that
//! a mistyped directive shows.
#![warn(missing_docs)]

mod adapter;
mod chain;
mod frames;
mod images;
pub mod kinds;
mod late_system;
mod long_reading;
mod media;
mod proof;
mod provider;
mod reading;
mod reasoning;
mod refusals;
mod response;
mod retry_info;
mod schema;
mod server;
mod simulated;
mod stream_decoder;
mod tools;
mod turns;

pub use crate::chain::{ChainProvider, KeyUse};
pub use crate::images::ImageUrls;
pub use crate::late_system::LateSystem;
pub use crate::provider::{HttpProvider, ProbeError};
pub use crate::server::{BadKeyHeader, BadUpstreamKey, KeyHeader, ServerOptions, UpstreamKey};
pub use crate::simulated::Simulator;
