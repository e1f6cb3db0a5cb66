//! OpenAI's chat completion dialect: what callers send, what providers are sent and answer, and what
//! callers get.

pub mod chunk;
pub mod completion;
pub mod request;
pub mod resume;
pub mod upstream;
