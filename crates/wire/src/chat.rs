//! OpenAI's chat completion dialect: requests of callers, requests to providers, answers of
//! providers, and answers to callers, whole or as chunks.

pub mod chunk;
pub mod completion;
pub mod request;
pub mod resume;
pub mod upstream;
