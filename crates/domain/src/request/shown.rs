//! How a request is shown where programmers look: counts and lengths, never what was asked.

use std::fmt;

use super::{Facts, Request};

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { messages, prompt_bytes, .. } = self.facts();
        write!(f, "Request({}, {messages} messages, {prompt_bytes} bytes)", self.model)
    }
}
