//! What the providers do, through the port alone. The OpenAI client speaks to servers on loopback
//! sockets; nothing leaves the machine.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod calls;
mod openai;
mod proof;
mod simulated;
mod upstream;
