//! What the providers do, through the port alone. The OpenAI client speaks to servers on loopback
//! sockets; nothing leaves the machine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod authority;
mod bedrock;
mod calls;
mod errors;
mod fixtures;
mod frames;
mod http2;
mod notes;
mod openai;
mod proof;
mod proxies;
mod simulated;
mod simulated_streams;
mod simulated_tools;
mod streams;
mod upstream;
