//! What the providers do, through the port alone. The OpenAI client speaks to servers on loopback
//! sockets; nothing leaves the machine.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod calls;
mod simulated;
