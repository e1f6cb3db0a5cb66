//! Wire formats: OpenAI's chat dialect towards callers and towards providers, and the JSON of
//! Holdfast's own API and of the command line's `--json`, and reports as CSV. Bytes in, domain values out, and back. No
//! I/O, no clock, no policy: callers of this crate decide which error is given when, and what a
//! provider's status proves.

pub mod api;
pub mod chat;
pub mod csv;
pub mod error;
pub mod file;
pub mod json;
pub mod nearest;
pub mod openapi;
pub mod sse;

mod render;
