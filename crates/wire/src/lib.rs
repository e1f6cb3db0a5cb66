//! How it is spelled: OpenAI's chat dialect on both sides, and the JSON of Holdfast's own API and of
//! the command line's `--json`. Bytes in, domain values out, and back. No I/O, no clock, no policy:
//! which error is given when, and what a provider's status proves, is decided elsewhere.

pub mod api;
pub mod chat;
pub mod error;
pub mod json;
pub mod nearest;
pub mod openapi;
pub mod sse;

mod render;
